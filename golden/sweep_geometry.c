/* Geometries. Quantised rows come in groups of 32 columns, so hidden, intermediate and heads * head_dim are multiples
 * of 32 in a sidecar's storages; elsewhere they are anything. */
#include "golden/sweep_dice.h"

typedef struct Space {
  DflashDice *dice;
  const DflashSweepLimits *limits;
  int64_t step, widest; /* columns are multiples of step; usual bound */
  int wide;             /* sums of length: fewer layers and groups */
} Space;

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* The least factor that makes a width a multiple of the step. */
static int64_t fit_step(const Space *s, int64_t width) { return s->step / common_divisor(s->step, width); }

/* ---- heads ---- */

static void draw_heads(const Space *s, DflashGeometry *g) {
  static const int64_t dims[] = {8, 16, 18, 24, 32, 64, 80, 96, 128, 256};
  static const int64_t groups[] = {1, 1, 2, 3, 4, 5, 7, 24};
  int64_t widest = s->wide ? s->limits->columns : least_of(s->widest * 2, s->limits->columns);
  for (int i = 0; i < 16; i++) {
    int64_t rep = DFLASH_DICE_PICK(s->dice, groups), kv = dflash_dice(s->dice, 1, 4);
    g->head_dim = DFLASH_DICE_PICK(s->dice, dims);
    int64_t unit = fit_step(s, rep * g->head_dim);
    g->kv_heads = unit > 1 ? unit : kv;
    g->heads = rep * g->kv_heads;
    if (g->heads * g->head_dim <= widest) return;
  }
  g->head_dim = 32;
  g->kv_heads = g->heads = 1;
}

/* ---- hidden and its groups ---- */

static int64_t draw_columns(const Space *s) {
  if (s->wide) return dflash_dice(s->dice, s->limits->columns / 2 / s->step, s->limits->columns / s->step) * s->step;
  return dflash_dice(s->dice, 32 / s->step, s->widest / s->step) * s->step;
}

/* The largest divisor of n that is not above most. */
static int64_t divisor_below(int64_t n, int64_t most) {
  while (most > 1 && n % most) most--;
  return most;
}

/* Channels a coefficient: one, all, sixteen, an odd number, or some. */
static void draw_groups(const Space *s, DflashGeometry *g) {
  static const int64_t odd[] = {3, 5, 7, 9};
  int64_t kind = dflash_dice(s->dice, s->wide ? 1 : 0, 4), group = 1;
  g->hidden = draw_columns(s);
  if (kind == 1) group = g->hidden;
  if (kind == 2) group = 16;
  if (kind == 3) group = DFLASH_DICE_PICK(s->dice, odd);
  if (kind == 4) group = dflash_dice(s->dice, 2, 32);
  if (s->wide && group < 16) group *= 16;
  int64_t unit = group * fit_step(s, group);
  if (unit > 0 && unit <= g->hidden) g->hidden -= g->hidden % unit;
  g->conv_group = divisor_below(g->hidden, least_of(group, g->hidden));
}

/* ---- tokens ---- */

static int64_t draw_vocab(const Space *s) {
  static const int64_t primes[] = {53, 127, 251, 509, 1021}, large[] = {32771, 65537, 65539};
  int64_t kind = dflash_dice(s->dice, 0, 39);
  if (kind == 0 && s->limits->vocab >= 65539 && !s->wide) return DFLASH_DICE_PICK(s->dice, large);
  if (kind < 12) return DFLASH_DICE_PICK(s->dice, primes);
  if (kind < 24) return (INT64_C(1) << dflash_dice(s->dice, 5, 11)) + 1;
  return dflash_dice(s->dice, 40, 700);
}

static void draw_tokens(const Space *s, DflashGeometry *g) {
  int64_t kind = dflash_dice(s->dice, 0, 7);
  g->vocab = draw_vocab(s);
  g->mask_token = dflash_dice(s->dice, 0, 2) ? g->vocab - 1 : dflash_dice(s->dice, 0, g->vocab - 1);
  g->selector_top = dflash_dice(s->dice, 2, 24);
  if (kind == 0) g->selector_top = 1;
  if (kind >= 4) g->selector_top = 16;
  if (kind == 1 && g->vocab <= 140) g->selector_top = g->vocab - dflash_dice(s->dice, 0, 2);
  g->selector_rank = dflash_dice(s->dice, 1, 96);
  if (g->selector_rank % 32 == 0) g->selector_rank++;
}

/* ---- layers ---- */

static int64_t draw_window(const Space *s, const DflashGeometry *g) {
  switch (dflash_dice(s->dice, 0, 3)) {
  case 0:
    return dflash_dice(s->dice, 1, g->block); /* shorter than the block */
  case 1:
    return (INT64_C(1) << dflash_dice(s->dice, 2, 5)) + dflash_dice(s->dice, -1, 1);
  default:
    return dflash_dice(s->dice, 2, 40);
  }
}

/* None, one for all, or mixed with layers that see everything. */
static void draw_windows(const Space *s, DflashGeometry *g) {
  int64_t kind = dflash_dice(s->dice, 0, 3);
  g->window = kind == 0 ? 0 : draw_window(s, g);
  if (kind < 2) return;
  g->windows.count = g->layers;
  for (int64_t i = 0; i < g->layers; i++) g->windows.at[i] = dflash_dice_chance(s->dice, 1, 3) ? 0 : draw_window(s, g);
}

static void draw_rotation(const Space *s, DflashGeometry *g) {
  static const double thetas[] = {1e4, 1e5, 5e5, 1e6, 1e7}, sizes[] = {1e-6, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2};
  g->rope_theta = DFLASH_DICE_PICK(s->dice, thetas);
  g->eps = DFLASH_DICE_PICK(s->dice, sizes);
  int64_t kind = dflash_dice(s->dice, 0, 7);
  if (kind > 2) return;
  g->no_rope.count = kind == 0 ? g->layers : 1;
  for (int64_t i = 0; i < g->no_rope.count; i++)
    g->no_rope.at[i] = kind == 0 ? i : dflash_dice(s->dice, 0, g->layers - 1);
}

/* Different layers of the target in any order, the last one among them half of the time. */
static void draw_taps(const Space *s, DflashGeometry *g) {
  int64_t step = 1 + 2 * dflash_dice(s->dice, 0, 3), first;
  g->target_layers = INT64_C(1) << dflash_dice(s->dice, 3, 6); /* an odd step walks over all of a power of two */
  g->taps.count = dflash_dice(s->dice, 1, s->wide ? 2 : 5);
  first = dflash_dice(s->dice, 0, g->target_layers - 1);
  int64_t last = dflash_dice(s->dice, 0, 2 * g->taps.count - 1);
  if (last < g->taps.count) first = g->target_layers - 1 + (g->target_layers - step) * last;
  for (int64_t i = 0; i < g->taps.count; i++) g->taps.at[i] = (first + i * step) % g->target_layers;
}

void dflash_sweep_geometry(DflashDice *dice, const DflashSweepLimits *limits, const char *storage,
                           DflashGeometry *geometry) {
  Space s = {.dice = dice, .limits = limits, .step = storage[0] == 's' ? 32 : 1};
  *geometry = (DflashGeometry){0};
  s.wide = dflash_dice_chance(dice, 1, 20);
  s.widest = least_of(dflash_dice_chance(dice, 1, 4) ? 224 : 128, limits->columns);
  geometry->block = dflash_dice(dice, 2, s.wide ? 8 : 16);
  geometry->layers = s.wide ? 1 : dflash_dice(dice, 1, 5) / 2 + (dflash_dice_chance(dice, 1, 2));
  if (geometry->layers == 0) geometry->layers = 1;
  geometry->conv_kernel = dflash_dice(dice, 1, 5);
  draw_heads(&s, geometry);
  draw_groups(&s, geometry);
  geometry->intermediate = draw_columns(&s);
  draw_tokens(&s, geometry);
  draw_windows(&s, geometry);
  draw_rotation(&s, geometry);
  draw_taps(&s, geometry);
}
