/* Sequences: what is pushed, truncated and reset, and the block that follows. */
#include "golden/cases.h"
#include "golden/plan.h"
#include "golden/sweep_dice.h"

enum { OPS_MOST = 12 };

typedef struct Walk {
  DflashDice *dice;
  DflashCasePlan *plan;
  int64_t first, len, longest;
} Walk;

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- operations; the context is followed to know what inside and past mean ---- */

static void push(Walk *w, int64_t pos, int64_t rows) {
  int64_t inside = pos - w->first;
  if (inside >= 0 && inside <= w->len) {
    w->len = inside;
  } else {
    w->first = pos;
    w->len = 0;
  }
  rows = least_of(rows, w->longest - w->len);
  dflash_plan_add(w->plan, DFLASH_OP_PUSH, pos, rows);
  w->len += rows;
}

static void truncate_at(Walk *w, int64_t pos) {
  dflash_plan_add(w->plan, DFLASH_OP_TRUNCATE, pos, 0);
  w->len = most_of(0, least_of(w->len, pos - w->first));
}

static void reset(Walk *w) {
  dflash_plan_add(w->plan, DFLASH_OP_RESET, 0, 0);
  w->first = w->len = 0;
}

static int64_t inside(Walk *w) { return w->first + dflash_dice(w->dice, 0, w->len); }

/* Rows of one push: few, or a good deal of what is aimed at. */
static int64_t some_rows(Walk *w, int64_t length) {
  return dflash_dice_chance(w->dice, 1, 2) ? dflash_dice(w->dice, 1, 4) : dflash_dice(w->dice, 1, length / 2 + 1);
}

static void step(Walk *w, int64_t length) {
  switch (dflash_dice(w->dice, 0, 11)) {
  case 0:
    push(w, inside(w), 0);
    return;
  case 1:
    truncate_at(w, inside(w));
    return;
  case 2:
    truncate_at(w, w->first + w->len + dflash_dice(w->dice, 0, 5));
    return;
  case 3:
    truncate_at(w, most_of(0, w->first - dflash_dice(w->dice, 0, 5)));
    return;
  case 4:
    reset(w);
    return;
  case 5:
    push(w, most_of(0, w->first - dflash_dice(w->dice, 1, 9)), some_rows(w, length));
    return;
  case 6:
    push(w, w->first + w->len + dflash_dice(w->dice, 1, 9), some_rows(w, length));
    return;
  case 7:
  case 8:
    push(w, inside(w), some_rows(w, length));
    return;
  default:
    push(w, w->first + w->len, some_rows(w, length));
  }
}

/* ---- lengths and positions ---- */

static int64_t largest_window(const DflashGeometry *g) {
  int64_t most = 0;
  for (int64_t i = 0; i < g->layers; i++) most = most_of(most, dflash_geometry_window(g, i));
  return most;
}

static int64_t draw_length(DflashDice *dice, const DflashSweepLimits *limits, const DflashGeometry *g) {
  int64_t window = largest_window(g), kind = dflash_dice(dice, 0, 24);
  if (kind == 0) return 0;
  if (kind == 1) return 1;
  if (kind == 2) return dflash_dice(dice, 257, most_of(257, limits->context));
  if (kind < 9 && window > 0) return window + dflash_dice(dice, -1, 1);
  if (kind < 12) return window + g->block + dflash_dice(dice, 0, 6);
  if (kind < 16) return (INT64_C(1) << dflash_dice(dice, 1, 6)) + dflash_dice(dice, -1, 1);
  return dflash_dice(dice, 2, 40);
}

/* Where the context begins: 0, or so that it lies about a position at which some number type gives up. */
static int64_t draw_start(DflashDice *dice, int64_t length) {
  static const int64_t about[] = {256, INT64_C(1) << 16, INT64_C(1) << 20, INT64_C(1) << 24};
  int64_t kind = dflash_dice(dice, 0, 9);
  if (kind < 4) return 0;
  if (kind < 6) return dflash_dice(dice, 1, 99);
  return most_of(0, DFLASH_DICE_PICK(dice, about) - dflash_dice(dice, 0, length + 2) + 1);
}

static void draw_ops(Walk *w, int64_t start, int64_t length) {
  int64_t kind = dflash_dice(w->dice, 0, 5), count = dflash_dice(w->dice, 2, OPS_MOST - 2);
  if (kind == 0 && length == 0) return; /* nothing was ever pushed */
  if (kind < 2) {
    push(w, start, length);
    return;
  }
  push(w, start, kind == 2 ? least_of(1, length) : length / 2);
  for (int64_t i = 0; i < count && kind == 2 && w->len < length; i++)
    push(w, w->first + w->len, least_of(dflash_dice(w->dice, 1, w->len + 1), length - w->len));
  for (int64_t i = 0; i < count && kind > 2; i++) step(w, length);
  if (w->len < length) push(w, w->first + w->len, length - w->len);
}

/* At the end, behind it, before it, or with positions missing between. */
static int64_t draw_anchor(Walk *w) {
  int64_t end = w->first + w->len;
  switch (dflash_dice(w->dice, 0, 9)) {
  case 0:
    return inside(w);
  case 1:
    return most_of(0, end - dflash_dice(w->dice, 1, 3));
  case 2:
    return end + dflash_dice(w->dice, 1, 9);
  case 3:
    return dflash_dice_chance(w->dice, 1, 3) ? most_of(0, w->first - dflash_dice(w->dice, 0, 4)) : end;
  default:
    return end;
  }
}

/* ---- the block ---- */

static void draw_block(DflashDice *dice, const DflashGeometry *g, DflashCasePlan *plan) {
  plan->rows = dflash_dice_chance(dice, 3, 5) ? g->block : dflash_dice(dice, 2, g->block);
  plan->n_draft = dflash_dice_chance(dice, 3, 5) ? plan->rows - 1 : dflash_dice(dice, 1, plan->rows - 1);
  if (g->vocab > 8192) plan->n_draft = 1;
  plan->head_width = g->vocab;
  if (dflash_dice_chance(dice, 3, 10)) plan->head_width = dflash_dice(dice, g->selector_top, g->vocab);
}

static int draw_flags(DflashDice *dice, const DflashGeometry *g) {
  int64_t period, rows;
  switch (dflash_dice(dice, 0, 15)) {
  case 0:
    return DFLASH_CASE_OUTLIER;
  case 1:
    return DFLASH_CASE_ZERO_ROW;
  case 2:
  case 3:
    return DFLASH_CASE_SMALL;
  case 4:
    return dflash_case_ties(g, &period, &rows) ? 0 : DFLASH_CASE_TIES;
  default:
    return 0;
  }
}

void dflash_sweep_plan(DflashDice *dice, const DflashSweepLimits *limits, const DflashGeometry *geometry,
                       DflashCasePlan *plan) {
  int64_t length = least_of(draw_length(dice, limits, geometry), limits->context);
  Walk walk = {.dice = dice, .plan = plan, .longest = most_of(64, limits->context)};
  draw_ops(&walk, draw_start(dice, length), length);
  plan->anchor_pos = draw_anchor(&walk);
  draw_block(dice, geometry, plan);
  plan->flags = draw_flags(dice, geometry);
}
