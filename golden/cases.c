/* The list of case kinds and the operations of each. */
#include "golden/cases.h"

#include <stdio.h>
#include <string.h>

typedef struct Sizes {
  const DflashRecipe *recipe;
  int64_t n, some;     /* context rows; the same, but at least 8, where a kind cuts them up */
  int64_t least, most; /* smallest and largest positive window, 0: none */
} Sizes;

typedef const char *(*PlanFn)(const Sizes *sizes, DflashCasePlan *plan);

static void push(DflashCasePlan *plan, int64_t pos, int64_t rows) {
  plan->ops[plan->op_count++] = (DflashContextOp){DFLASH_OP_PUSH, pos, plan->tap_rows, rows};
  plan->tap_rows += rows;
  plan->anchor_pos = pos + rows;
}

static void truncate_at(DflashCasePlan *plan, int64_t pos) {
  plan->ops[plan->op_count++] = (DflashContextOp){DFLASH_OP_TRUNCATE, pos, 0, 0};
  plan->anchor_pos = pos;
}

static void reset(DflashCasePlan *plan) { plan->ops[plan->op_count++] = (DflashContextOp){DFLASH_OP_RESET, 0, 0, 0}; }

static const char *one_push(DflashCasePlan *plan, int64_t pos, int64_t rows) {
  if (rows > 0) push(plan, pos, rows);
  plan->anchor_pos = pos + rows;
  return NULL;
}

static const char *plan_main(const Sizes *s, DflashCasePlan *plan) { return one_push(plan, 0, s->n); }

/* ---- bookkeeping ---- */

static const char *plan_rewind(const Sizes *s, DflashCasePlan *plan) {
  push(plan, 0, s->some);
  truncate_at(plan, s->some - 3);
  push(plan, s->some - 5, 4);
  push(plan, s->some - 2, 1);
  push(plan, s->some - 1, 3);
  return NULL;
}

static const char *plan_rewind_all(const Sizes *s, DflashCasePlan *plan) {
  push(plan, 9, s->some);
  truncate_at(plan, 4);
  push(plan, 9, s->some / 2);
  return NULL;
}

static const char *plan_gap(const Sizes *s, DflashCasePlan *plan) {
  push(plan, 0, s->some);
  push(plan, s->some + 5, s->some);
  return NULL;
}

static const char *plan_before_first(const Sizes *s, DflashCasePlan *plan) {
  push(plan, 20, s->some);
  push(plan, 13, s->some / 2);
  return NULL;
}

static const char *plan_hole(const Sizes *s, DflashCasePlan *plan) {
  one_push(plan, 7, s->n);
  plan->anchor_pos += 5;
  return NULL;
}

static const char *plan_empty(const Sizes *s, DflashCasePlan *plan) {
  (void)s;
  return one_push(plan, 11, 0);
}

static const char *plan_empty_push(const Sizes *s, DflashCasePlan *plan) {
  push(plan, 2, s->some);
  push(plan, s->some - 2, 0);
  return NULL;
}

static const char *plan_one_row(const Sizes *s, DflashCasePlan *plan) {
  (void)s;
  return one_push(plan, 6, 1);
}

static const char *plan_before_end(const Sizes *s, DflashCasePlan *plan) {
  push(plan, 1, s->some);
  plan->anchor_pos -= 3;
  return NULL;
}

static const char *plan_reset(const Sizes *s, DflashCasePlan *plan) {
  push(plan, 4, s->some);
  reset(plan);
  push(plan, 0, s->some / 2);
  truncate_at(plan, s->some + 9);
  plan->anchor_pos = s->some / 2;
  return NULL;
}

static const char *plan_many_pushes(const Sizes *s, DflashCasePlan *plan) {
  static const int64_t sizes[] = {1, 2, 5, 1, 4};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) push(plan, plan->anchor_pos, sizes[i]);
  push(plan, plan->anchor_pos, s->n);
  push(plan, plan->anchor_pos, 3);
  return NULL;
}

static const char *plan_growth(const Sizes *s, DflashCasePlan *plan) {
  push(plan, 0, 1);
  while (plan->tap_rows <= s->some && plan->op_count < DFLASH_PLAN_OPS - 1) push(plan, plan->tap_rows, plan->tap_rows);
  push(plan, plan->tap_rows, 1);
  return NULL;
}

/* ---- windows ---- */

static const char *around_window(const Sizes *s, DflashCasePlan *plan, int64_t length, int64_t more) {
  if (s->most == 0) return "no layer has a window";
  if (length + more > INT64_C(1) << 20) return "the window is too long";
  return one_push(plan, 3, length + more);
}

static const char *plan_short_window(const Sizes *s, DflashCasePlan *plan) {
  return around_window(s, plan, s->least / 2, 0);
}
static const char *plan_window_less(const Sizes *s, DflashCasePlan *plan) {
  return around_window(s, plan, s->most, -1);
}
static const char *plan_window(const Sizes *s, DflashCasePlan *plan) { return around_window(s, plan, s->most, 0); }
static const char *plan_window_more(const Sizes *s, DflashCasePlan *plan) { return around_window(s, plan, s->most, 1); }
static const char *plan_long_window(const Sizes *s, DflashCasePlan *plan) {
  return around_window(s, plan, s->most, s->recipe->geometry.block + 3);
}

/* ---- block and tokens ---- */

static const char *plan_cut(const Sizes *s, DflashCasePlan *plan) {
  if (plan->rows < 3) return "a block of two rows cannot be cut";
  plan->rows = plan->rows / 2 > 2 ? plan->rows / 2 : 2;
  return plan_main(s, plan);
}

static const char *plan_two_rows(const Sizes *s, DflashCasePlan *plan) {
  plan->rows = 2;
  return plan_main(s, plan);
}

static const char *plan_one_draft(const Sizes *s, DflashCasePlan *plan) {
  plan->n_draft = 1;
  return plan_main(s, plan);
}

static const char *plan_shortlist(const Sizes *s, DflashCasePlan *plan) {
  const DflashGeometry *g = &s->recipe->geometry;
  if (g->vocab == g->selector_top) return "the vocabulary has no more than selector_top tokens";
  int64_t width = g->vocab / 8 * 5;
  plan->head_width = width > g->selector_top ? width : g->selector_top;
  return plan_main(s, plan);
}

static const char *plan_shortlist_top(const Sizes *s, DflashCasePlan *plan) {
  plan->head_width = s->recipe->geometry.selector_top;
  return plan_main(s, plan);
}

static const char *plan_ties(const Sizes *s, DflashCasePlan *plan) {
  int64_t period;
  if (s->recipe->head_path) return "it needs a drawn head";
  const char *why = dflash_case_ties(&s->recipe->geometry, &period, &plan->head_width);
  return why ? why : plan_main(s, plan);
}

/* ---- positions ---- */

static const char *plan_near_256(const Sizes *s, DflashCasePlan *plan) {
  int64_t rows = s->n < 200 ? s->n : 200;
  return one_push(plan, 254 - rows, rows);
}

static const char *plan_far(const Sizes *s, DflashCasePlan *plan) {
  return one_push(plan, (INT64_C(1) << 20) - s->n / 2, s->n);
}

static const char *plan_beyond(const Sizes *s, DflashCasePlan *plan) {
  return one_push(plan, (INT64_C(1) << 24) - 1 - s->n, s->n);
}

static const char *plan_past(const Sizes *s, DflashCasePlan *plan) {
  return one_push(plan, (INT64_C(1) << 24) + 3, s->n);
}

typedef struct Kind {
  DflashCaseKind kind;
  PlanFn plan;
  int flags;
} Kind;

static const Kind KINDS[] = {
    {{"main", "one push, the anchor behind it, a full block, the whole head"}, plan_main, 0},
    {{"rewind", "push, truncate, two overlapping pushes, an append"}, plan_rewind, 0},
    {{"rewind-all", "truncate before the first position, push there again"}, plan_rewind_all, 0},
    {{"gap", "a push past the end: the context starts over"}, plan_gap, 0},
    {{"before-first", "a push before the first position: the context starts over"}, plan_before_first, 0},
    {{"hole", "positions missing between the context's end and the anchor"}, plan_hole, 0},
    {{"empty", "no context"}, plan_empty, 0},
    {{"empty-push", "a push of no rows inside what is held: rows are forgotten"}, plan_empty_push, 0},
    {{"one-row", "a context of one row"}, plan_one_row, 0},
    {{"before-end", "the anchor three positions before the context's end"}, plan_before_end, 0},
    {{"reset", "push, reset, push at 0, truncate past the end"}, plan_reset, 0},
    {{"many-pushes", "appends of 1, 2, 5, 1, 4, many and 3 rows"}, plan_many_pushes, 0},
    {{"growth", "appends that double the context, then one row"}, plan_growth, 0},
    {{"short-window", "half the smallest window as context"}, plan_short_window, 0},
    {{"window-1", "a context one shorter than the largest window"}, plan_window_less, 0},
    {{"window", "a context as long as the largest window"}, plan_window, 0},
    {{"window+1", "a context one longer than the largest window"}, plan_window_more, 0},
    {{"long-window", "a context longer than window and block together"}, plan_long_window, 0},
    {{"cut", "half of the block's rows"}, plan_cut, 0},
    {{"two-rows", "the anchor and one draft"}, plan_two_rows, 0},
    {{"one-draft", "a full block, one draft"}, plan_one_draft, 0},
    {{"shortlist", "five eighths of the head's rows"}, plan_shortlist, 0},
    {{"shortlist-top", "as many of the head's rows as there are candidates"}, plan_shortlist_top, 0},
    {{"ties", "equal logits among the candidates, at their cut and at their top; equal scores"},
     plan_ties,
     DFLASH_CASE_TIES},
    {{"zero-row", "a zero embedding, a zero context row, a zero group of 32"}, plan_main, DFLASH_CASE_ZERO_ROW},
    {{"outlier", "an embedding with an element of 70000, a context row with one of 10000"},
     plan_main,
     DFLASH_CASE_OUTLIER},
    {{"small-rows", "embeddings and context rows whose mean squares lie from above eps to far below it"},
     plan_main,
     DFLASH_CASE_SMALL},
    {{"near-256", "positions around 256"}, plan_near_256, 0},
    {{"far", "positions around 2^20"}, plan_far, 0},
    {{"beyond-2^24", "the anchor at 2^24 - 1"}, plan_beyond, 0},
    {{"past-2^24", "all positions past 2^24, where f32 rounds them"}, plan_past, 0},
    {{"exact-integer", "weights and inputs on which linear stages do not round; weights of its own"},
     plan_main,
     DFLASH_CASE_INTEGER},
    {{"exact-24bit", "full mantissas against one power of two a row; weights of its own"},
     plan_main,
     DFLASH_CASE_24BIT},
};

size_t dflash_case_kind_count(void) { return sizeof KINDS / sizeof *KINDS; }

const DflashCaseKind *dflash_case_kind(size_t index) {
  return index < dflash_case_kind_count() ? &KINDS[index].kind : NULL;
}

int64_t dflash_case_kind_find(const char *name) {
  for (size_t i = 0; i < dflash_case_kind_count(); i++)
    if (strcmp(KINDS[i].kind.name, name) == 0) return (int64_t)i;
  return -1;
}

int dflash_case_kind_flags(size_t index) { return KINDS[index].flags; }

static void find_windows(const DflashGeometry *g, Sizes *s) {
  for (int64_t layer = 0; layer < g->layers; layer++) {
    int64_t window = dflash_geometry_window(g, layer);
    if (window == 0) continue;
    if (s->least == 0 || window < s->least) s->least = window;
    if (window > s->most) s->most = window;
  }
}

const char *dflash_case_plan(size_t index, const DflashRecipe *recipe, DflashCasePlan *plan) {
  Sizes sizes = {.recipe = recipe, .n = recipe->context, .some = recipe->context > 8 ? recipe->context : 8};
  find_windows(&recipe->geometry, &sizes);
  *plan = (DflashCasePlan){
      .flags = KINDS[index].flags, .rows = recipe->rows, .n_draft = recipe->n_draft, .head_width = recipe->head_width};
  snprintf(plan->name, sizeof plan->name, "%s", KINDS[index].kind.name);
  const char *why = KINDS[index].plan(&sizes, plan);
  if (!why && (KINDS[index].flags & DFLASH_CASE_EXACT) && recipe->weights_path) why = "it draws weights of its own";
  if (plan->n_draft > plan->rows - 1) plan->n_draft = plan->rows - 1;
  return why;
}

/* Groups of equal rows whose size does not divide selector_top: the cut falls inside a group. */
const char *dflash_case_ties(const DflashGeometry *geometry, int64_t *period, int64_t *rows) {
  int64_t size = 3;
  while (geometry->selector_top % size == 0) size++;
  *period = geometry->vocab / size < 4 * geometry->selector_top ? geometry->vocab / size : 4 * geometry->selector_top;
  *rows = *period * size;
  return *rows < geometry->selector_top || *period < 1 ? "the vocabulary is too small to repeat rows" : NULL;
}
