/* One step towards a smaller recipe. Steps are numbered over all kinds of reductions, the strongest first. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden/plan.h"
#include "golden/recipe.h"
#include "run/sweep_parts.h"

/* Variant k of a kind, in place. What no longer fits together is mended afterwards. */
typedef void (*Reduction)(DflashRecipe *recipe, int64_t k);

/* ---- sequences ---- */

static void drop_plan(DflashRecipe *r, int64_t k) {
  if (k >= r->plan_count || r->plan_count == 1) return;
  for (int64_t i = k; i + 1 < r->plan_count; i++) r->plans[i] = r->plans[i + 1];
  r->plan_count--;
}

static void keep_plan(DflashRecipe *r, int64_t k) {
  if (k >= r->plan_count) return;
  r->plans[0] = r->plans[k];
  r->plan_count = 1;
}

/* Operations once more, without operation `without`, or with other numbers of rows. */
static void renumber(DflashCasePlan *plan, int64_t without) {
  DflashCasePlan old = *plan;
  plan->op_count = plan->tap_rows = 0;
  memset(plan->ops, 0, sizeof plan->ops);
  for (int64_t i = 0; i < old.op_count; i++)
    if (i != without) dflash_plan_add(plan, old.ops[i].op, old.ops[i].pos, old.ops[i].n_rows);
}

/* Variant 0 drops all of a plan's operations. */
static void drop_op(DflashRecipe *r, int64_t k) {
  DflashCasePlan *plan = &r->plans[k / (DFLASH_PLAN_OPS + 1)];
  int64_t op = k % (DFLASH_PLAN_OPS + 1) - 1;
  if (k / (DFLASH_PLAN_OPS + 1) >= r->plan_count || op >= plan->op_count) return;
  if (op < 0) plan->op_count = 0;
  renumber(plan, op);
}

/* Half the rows, or one less. */
static void drop_rows(DflashRecipe *r, int64_t k) {
  DflashCasePlan *plan = &r->plans[k / 2 / DFLASH_PLAN_OPS];
  int64_t op = k / 2 % DFLASH_PLAN_OPS;
  if (k / 2 / DFLASH_PLAN_OPS >= r->plan_count || op >= plan->op_count || plan->ops[op].n_rows == 0) return;
  plan->ops[op].n_rows = k % 2 ? plan->ops[op].n_rows - 1 : plan->ops[op].n_rows / 2;
  renumber(plan, -1);
}

/* Positions from 0 on, or the anchor at the context's end. */
static void move_plan(DflashRecipe *r, int64_t k) {
  DflashCasePlan *plan = &r->plans[k / 2];
  int64_t least = plan->anchor_pos, first, len;
  if (k / 2 >= r->plan_count) return;
  if (dflash_context_replay(plan->ops, plan->op_count, &first, &len, NULL, NULL, NULL) != DFLASH_OK) return;
  if (k % 2) plan->anchor_pos = first + len;
  if (k % 2) return;
  for (int64_t i = 0; i < plan->op_count; i++)
    if (plan->ops[i].op != DFLASH_OP_RESET && plan->ops[i].pos < least) least = plan->ops[i].pos;
  for (int64_t i = 0; i < plan->op_count; i++)
    if (plan->ops[i].op != DFLASH_OP_RESET) plan->ops[i].pos -= least;
  plan->anchor_pos -= least;
}

/* ---- numbers ---- */

enum { SMALLER = 4 };

/* The least one, half, the next multiple of 32 below, one less. */
static void make_smaller(int64_t *value, int64_t least, int64_t k) {
  int64_t to = k == 0 ? least : k == 1 ? *value / 2 : k == 2 ? (*value - 1) / 32 * 32 : *value - 1;
  if (to >= least && to < *value) *value = to;
}

static void shrink_plan(DflashRecipe *r, int64_t k) {
  int64_t plan = k / (3 * SMALLER), field = k / SMALLER % 3;
  if (plan >= r->plan_count) return;
  if (field == 0) make_smaller(&r->plans[plan].rows, 2, k % SMALLER);
  if (field == 1) make_smaller(&r->plans[plan].n_draft, 1, k % SMALLER);
  if (field == 2) make_smaller(&r->plans[plan].head_width, r->geometry.selector_top, k % SMALLER);
}

typedef struct Field {
  size_t offset;
  int64_t least;
} Field;

static const Field FIELDS[] = {
    {offsetof(DflashGeometry, block), 2},         {offsetof(DflashGeometry, hidden), 1},
    {offsetof(DflashGeometry, intermediate), 1},  {offsetof(DflashGeometry, vocab), 2},
    {offsetof(DflashGeometry, selector_rank), 1}, {offsetof(DflashGeometry, selector_top), 1},
    {offsetof(DflashGeometry, conv_kernel), 1},   {offsetof(DflashGeometry, conv_group), 1},
    {offsetof(DflashGeometry, head_dim), 2},      {offsetof(DflashGeometry, window), 0},
};
enum { FIELD_COUNT = sizeof FIELDS / sizeof *FIELDS };

static void shrink_geometry(DflashRecipe *r, int64_t k) {
  const Field *field = &FIELDS[k / SMALLER];
  make_smaller((int64_t *)(void *)((char *)&r->geometry + field->offset), field->least, k % SMALLER);
}

static void shrink_heads(DflashRecipe *r, int64_t k) {
  int64_t rep = dflash_geometry_rep(&r->geometry), kv = r->geometry.kv_heads;
  make_smaller(k / SMALLER ? &rep : &kv, 1, k % SMALLER);
  r->geometry.kv_heads = kv;
  r->geometry.heads = kv * rep;
}

/* ---- lists ---- */

static void drop_entry(DflashList *list, int64_t k) {
  if (k >= list->count) return;
  for (int64_t i = k; i + 1 < list->count; i++) list->at[i] = list->at[i + 1];
  list->at[--list->count] = 0;
}

static void drop_layer(DflashRecipe *r, int64_t k) {
  DflashGeometry *g = &r->geometry;
  if (k >= g->layers || g->layers == 1) return;
  drop_entry(&g->windows, k);
  for (int64_t i = g->no_rope.count; i-- > 0;) {
    if (g->no_rope.at[i] > k)
      g->no_rope.at[i]--;
    else if (g->no_rope.at[i] == k)
      drop_entry(&g->no_rope, i);
  }
  g->layers--;
}

static void drop_tap(DflashRecipe *r, int64_t k) {
  if (r->geometry.taps.count > 1) drop_entry(&r->geometry.taps, k);
}

/* One window for all layers, none, no layers without rotation. */
static void drop_lists(DflashRecipe *r, int64_t k) {
  DflashGeometry *g = &r->geometry;
  if (k < 2) g->windows = (DflashList){0};
  if (k == 0) g->window = 0;
  if (k == 2) g->no_rope = (DflashList){0};
}

/* ---- data ---- */

static void drop_stress(DflashRecipe *r, int64_t k) {
  const DflashStress *stress = dflash_stress((size_t)k);
  r->stress = stress != NULL ? r->stress & ~stress->flag : 0;
}

static void drop_flags(DflashRecipe *r, int64_t k) {
  if (k < r->plan_count) r->plans[k].flags = 0;
  for (int64_t i = 0; k == DFLASH_PLANS_MAX && i < r->plan_count; i++) r->plans[i].flags = 0;
}

static void simplify_storage(DflashRecipe *r, int64_t k) {
  (void)k;
  snprintf(r->storage, sizeof r->storage, "f32");
}

typedef struct Kind {
  Reduction reduce;
  int64_t variants;
} Kind;

static const Kind KINDS[] = {
    {keep_plan, DFLASH_PLANS_MAX},
    {drop_plan, DFLASH_PLANS_MAX},
    {drop_layer, 8},
    {drop_op, (int64_t)DFLASH_PLANS_MAX *(DFLASH_PLAN_OPS + 1)},
    {shrink_plan, (int64_t)DFLASH_PLANS_MAX * 3 * SMALLER},
    {drop_rows, (int64_t)DFLASH_PLANS_MAX *DFLASH_PLAN_OPS * 2},
    {move_plan, (int64_t)DFLASH_PLANS_MAX * 2},
    {shrink_heads, (int64_t)2 * SMALLER},
    {shrink_geometry, (int64_t)FIELD_COUNT *SMALLER},
    {drop_tap, 8},
    {drop_lists, 3},
    {drop_stress, 16},
    {drop_flags, DFLASH_PLANS_MAX + 1},
    {simplify_storage, 1},
};

/* ---- together ---- */

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

static void mend(DflashRecipe *r) {
  DflashGeometry *g = &r->geometry;
  g->conv_group = least_of(g->conv_group, g->hidden);
  while (g->hidden % g->conv_group) g->conv_group--;
  g->head_dim -= g->head_dim % 2;
  g->selector_top = least_of(g->selector_top, g->vocab);
  g->mask_token = least_of(g->mask_token, g->vocab - 1);
  for (int64_t i = 0; i < r->plan_count; i++) {
    DflashCasePlan *plan = &r->plans[i];
    plan->rows = least_of(plan->rows, g->block);
    plan->n_draft = least_of(plan->n_draft, plan->rows - 1);
    plan->head_width = least_of(plan->head_width, g->vocab);
    if (plan->head_width < g->selector_top) plan->head_width = g->selector_top;
  }
}

static int resolves(const DflashRecipe *recipe) {
  DflashRecipe resolved;
  char *cases = NULL;
  DflashStatus status = dflash_recipe_resolve(recipe, &resolved, &cases, NULL);
  free(cases);
  return status == DFLASH_OK;
}

/* Byte by byte: copies were made so. */
static bool same(const void *a, const void *b) { return memcmp(a, b, sizeof(DflashRecipe)) == 0; }

int dflash_sweep_reduce(const DflashRecipe *from, int64_t step, DflashRecipe *to) {
  size_t kind = 0;
  while (kind < sizeof KINDS / sizeof *KINDS && step >= KINDS[kind].variants) step -= KINDS[kind++].variants;
  if (kind == sizeof KINDS / sizeof *KINDS) return -1;
  memcpy(to, from, sizeof *to);
  KINDS[kind].reduce(to, step);
  if (same(from, to)) return 0;
  mend(to);
  return !same(from, to) && resolves(to);
}
