#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "golden/cases.h"
#include "golden/recipe.h"
#include "golden/sweep_draw.h"

enum { DRAWS = 2000, SEED = 1 };

/* What draws must show at least once. */
typedef struct Seen {
  const char *name;
  int64_t count;
} Seen;

typedef struct Sums {
  Seen seen[160];
  int count;
} Sums;

static void note(Sums *sums, const char *name, int holds) {
  int i = 0;
  while (i < sums->count && strcmp(sums->seen[i].name, name) != 0) i++;
  if (i == sums->count) sums->seen[sums->count++] = (Seen){name, 0};
  sums->seen[i].count += holds != 0;
}

static int is_prime(int64_t n) {
  for (int64_t i = 2; i * i <= n; i++)
    if (n % i == 0) return 0;
  return n > 1;
}

static int is_power(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

static void note_heads(Sums *s, const DflashGeometry *g) {
  int64_t rep = dflash_geometry_rep(g);
  note(s, "kv_heads 1", g->kv_heads == 1 && rep > 1);
  note(s, "kv_heads as heads", rep == 1 && g->heads > 1);
  note(s, "3 heads a key head", rep == 3);
  note(s, "5 heads a key head", rep == 5);
  note(s, "24 heads a key head", rep == 24);
  note(s, "heads no multiple of 8", (g->heads + g->kv_heads) % 8 != 0);
  note(s, "heads wider than hidden", g->heads * g->head_dim > g->hidden);
  note(s, "heads narrower than hidden", g->heads * g->head_dim < g->hidden);
  static const struct {
    const char *name;
    int64_t dim;
  } dims[] = {{"head_dim 8", 8},   {"head_dim 18", 18},   {"head_dim 64", 64},  {"head_dim 80", 80},
              {"head_dim 96", 96}, {"head_dim 128", 128}, {"head_dim 256", 256}};
  for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) note(s, dims[i].name, g->head_dim == dims[i].dim);
}

static void note_block(Sums *s, const DflashGeometry *g) {
  note(s, "block 2", g->block == 2);
  note(s, "block 7", g->block == 7);
  note(s, "block 9", g->block == 9);
  note(s, "block 16", g->block == 16);
  static const char *const kernels[] = {
      "", "conv_kernel 1", "conv_kernel 2", "conv_kernel 3", "conv_kernel 4", "conv_kernel 5"};
  for (int64_t i = 1; i <= 5; i++) note(s, kernels[i], g->conv_kernel == i);
  note(s, "group 1", g->conv_group == 1);
  note(s, "odd group", g->conv_group > 1 && g->conv_group % 2 == 1 && g->conv_group < g->hidden);
  note(s, "group 16", g->conv_group == 16);
  note(s, "group hidden", g->conv_group == g->hidden);
  note(s, "hidden no multiple of 32", g->hidden % 32 != 0);
  note(s, "hidden odd", g->hidden % 2 != 0);
  note(s, "hidden no multiple of 64", g->hidden % 32 == 0 && g->hidden % 64 != 0);
  note(s, "hidden above 512", g->hidden > 512);
  note(s, "intermediate odd", g->intermediate % 2 != 0);
}

static void note_tokens(Sums *s, const DflashGeometry *g) {
  note(s, "vocab prime", is_prime(g->vocab));
  note(s, "vocab above a power of two", is_power(g->vocab - 1));
  note(s, "vocab above 65536", g->vocab > 65536);
  note(s, "rank above 64", g->selector_rank > 64);
  note(s, "rank below 8", g->selector_rank < 8);
  note(s, "top 1", g->selector_top == 1);
  note(s, "top 16", g->selector_top == 16);
  note(s, "top vocab", g->selector_top == g->vocab);
  assert_true(g->selector_rank % 32 != 0 && g->selector_rank <= 97);
}

static void note_layers(Sums *s, const DflashGeometry *g) {
  int none = 0, some = 0, different = 0, sorted = 1, last = 0;
  for (int64_t i = 0; i < g->layers; i++) {
    int64_t window = dflash_geometry_window(g, i);
    none += window == 0;
    some += window > 0;
    different |= window != dflash_geometry_window(g, 0) && window && dflash_geometry_window(g, 0);
    note(s, "window below block", window > 0 && window < g->block);
  }
  for (int64_t i = 0; i < g->taps.count; i++) {
    sorted &= i == 0 || g->taps.at[i] > g->taps.at[i - 1];
    last |= g->taps.at[i] == g->target_layers - 1;
  }
  note(s, "windows and none", none && some);
  note(s, "no window", some == 0);
  note(s, "different windows", different);
  note(s, "taps unsorted", !sorted);
  note(s, "last tap", last);
  note(s, "layer without rotation", g->no_rope.count > 0 && g->no_rope.count < g->layers);
  note(s, "no rotation", g->no_rope.count == g->layers);
  note(s, "eps 1e-6", g->eps < 2e-6);
  note(s, "eps 1e-2", g->eps > 9e-3);
  note(s, "theta 1e4", g->rope_theta < 2e4);
  note(s, "theta 1e7", g->rope_theta > 9e6);
  note(s, "1 layer", g->layers == 1);
  note(s, "3 layers", g->layers == 3);
}

static void note_op(Sums *s, const DflashContextOp *op, int64_t first, int64_t len) {
  int64_t at = op->pos - first;
  if (op->op == DFLASH_OP_PUSH) {
    note(s, "append", at == len && op->n_rows > 0);
    note(s, "rewind by push", at >= 0 && at < len && op->n_rows > 0);
    note(s, "push past the end", len > 0 && at > len);
    note(s, "push before first", at < 0);
    note(s, "empty push", op->n_rows == 0 && at >= 0 && at < len);
  }
  if (op->op == DFLASH_OP_TRUNCATE) {
    note(s, "truncate before first", len > 0 && at < 0);
    note(s, "truncate inside", at > 0 && at < len);
    note(s, "truncate past the end", at > len);
  }
  note(s, "reset", op->op == DFLASH_OP_RESET && len > 0);
}

static void note_context(Sums *s, const DflashGeometry *g, const DflashCasePlan *plan) {
  int64_t first = 0, len = 0, window = 0;
  for (int64_t i = 0; i < plan->op_count; i++) {
    note_op(s, &plan->ops[i], first, len);
    assert_int_equal(dflash_context_replay(plan->ops, i + 1, &first, &len, NULL, NULL, NULL), DFLASH_OK);
  }
  for (int64_t i = 0; i < g->layers; i++)
    if (dflash_geometry_window(g, i) > window) window = dflash_geometry_window(g, i);
  note(s, "12 operations", plan->op_count == 12);
  note(s, "1 operation", plan->op_count == 1);
  note(s, "no operation", plan->op_count == 0);
  note(s, "empty context", len == 0);
  note(s, "context of 1", len == 1);
  note(s, "context of window - 1", len == window - 1);
  note(s, "context of window", window && len == window);
  note(s, "context of window + 1", window && len == window + 1);
  note(s, "context of a power of two", len > 8 && is_power(len));
  note(s, "context above a power of two", len > 8 && is_power(len - 1));
  note(s, "context below a power of two", len > 8 && is_power(len + 1));
  note(s, "context above 256", len > 256);
  note(s, "window, block, context", window && g->block < window && window + g->block <= len);
  note(s, "anchor behind a hole", len > 0 && plan->anchor_pos > first + len);
  note(s, "anchor inside", plan->anchor_pos > first && plan->anchor_pos < first + len);
  note(s, "anchor at first", len > 0 && plan->anchor_pos <= first);
  note(s, "position 0", len > 0 && first == 0);
  static const struct {
    const char *name;
    int64_t at;
  } places[] = {{"across 256", 256}, {"across 2^16", 65536}, {"across 2^20", 1048576}, {"across 2^24", 16777216}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    note(s, places[i].name, len > 2 && first < places[i].at && plan->anchor_pos + plan->rows > places[i].at);
}

static void note_plan(Sums *s, const DflashGeometry *g, const DflashCasePlan *plan) {
  note_context(s, g, plan);
  note(s, "cut block", plan->rows < g->block);
  note(s, "kernel above rows", g->conv_kernel > plan->rows);
  note(s, "fewer drafts", plan->n_draft < plan->rows - 1);
  note(s, "shortlist", plan->head_width < g->vocab);
  note(s, "outlier", plan->flags & DFLASH_CASE_OUTLIER);
  note(s, "zero row", plan->flags & DFLASH_CASE_ZERO_ROW);
  note(s, "small rows", plan->flags & DFLASH_CASE_SMALL);
  note(s, "ties", plan->flags & DFLASH_CASE_TIES);
  note(s, "exact integer", plan->flags & DFLASH_CASE_INTEGER);
  note(s, "exact 24bit", plan->flags & DFLASH_CASE_24BIT);
}

static void note_recipe(Sums *s, const DflashRecipe *r) {
  note_heads(s, &r->geometry);
  note_block(s, &r->geometry);
  note_tokens(s, &r->geometry);
  note_layers(s, &r->geometry);
  for (int64_t i = 0; i < r->plan_count; i++) note_plan(s, &r->geometry, &r->plans[i]);
  for (size_t i = 0; i < dflash_stress_count(); i++)
    note(s, dflash_stress(i)->name, (r->stress & dflash_stress(i)->flag) != 0);
  note(s, "sidecar", strcmp(r->storage, "sidecar") == 0);
  note(s, "f32", strcmp(r->storage, "f32") == 0);
  note(s, "f16", strcmp(r->storage, "f16") == 0);
  note(s, "bf16", strcmp(r->storage, "bf16") == 0);
  note(s, "q8_2f", strcmp(r->storage, "q8_2f") == 0);
  note(s, "1 sequence", r->plan_count == 1);
  note(s, "3 sequences", r->plan_count == 3);
}

static void draws_are_valid_and_show_everything(void **state) {
  (void)state;
  Sums sums = {0};
  for (uint64_t i = 0; i < DRAWS; i++) {
    DflashRecipe recipe, resolved;
    char *cases;
    DflashError error = {0};
    dflash_sweep_draw(SEED, i, &dflash_sweep_limits, &recipe);
    if (dflash_recipe_resolve(&recipe, &resolved, &cases, &error) != DFLASH_OK)
      fail_msg("draw %d: %s", (int)i, error.message);
    free(cases);
    note_recipe(&sums, &recipe);
  }
  for (int i = 0; i < sums.count; i++)
    if (sums.seen[i].count == 0) fail_msg("%d draws show no '%s'", DRAWS, sums.seen[i].name);
  assert_true(sums.count > 90);
}

/* A recipe as its JSON text, which holds all of it. */
static char *text_of(uint64_t seed, uint64_t index) {
  DflashRecipe recipe;
  memset(&recipe, 0xa5, sizeof recipe);
  dflash_sweep_draw(seed, index, &dflash_sweep_limits, &recipe);
  char *text = dflash_recipe_to_json(&recipe);
  assert_non_null(text);
  return text;
}

static void draws_follow_from_seed_and_index(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 50; i++) {
    char *one = text_of(SEED, i), *same = text_of(SEED, i), *next = text_of(SEED, i + 1), *other = text_of(2, i);
    assert_string_equal(one, same);
    assert_string_not_equal(one, next);
    assert_string_not_equal(one, other);
    free(one), free(same), free(next), free(other);
  }
}

/* Numbers of one draw, so that a change of what is drawn is seen. */
static void one_draw_is_pinned(void **state) {
  (void)state;
  DflashRecipe recipe;
  dflash_sweep_draw(UINT64_MAX, 7, &dflash_sweep_limits, &recipe);
  const DflashGeometry *g = &recipe.geometry;
  char text[200];
  snprintf(text, sizeof text, "%s hidden %d, intermediate %d, heads %d of %d, vocab %d, plans %d, ops %d, seed %llu",
           recipe.storage, (int)g->hidden, (int)g->intermediate, (int)g->heads, (int)g->head_dim, (int)g->vocab,
           (int)recipe.plan_count, (int)recipe.plans[0].op_count, (unsigned long long)recipe.seed);
  assert_string_equal(text,
                      "sidecar hidden 96, intermediate 64, heads 20 of 8, vocab 509, plans 1, ops 5, seed 2222627289");
}

static void limits_hold(void **state) {
  (void)state;
  const DflashSweepLimits limits = {.columns = 64, .context = 64, .vocab = 2049, .quantised = 1};
  for (uint64_t i = 0; i < 500; i++) {
    DflashRecipe recipe;
    dflash_sweep_draw(SEED, i, &limits, &recipe);
    assert_true(recipe.geometry.hidden <= 64 && recipe.geometry.intermediate <= 64);
    assert_true(recipe.geometry.heads * recipe.geometry.head_dim <= 64);
    assert_true(recipe.geometry.vocab <= 2049);
    assert_string_equal(recipe.storage, "sidecar");
    for (int64_t p = 0; p < recipe.plan_count; p++) {
      int64_t first, len;
      assert_int_equal(
          dflash_context_replay(recipe.plans[p].ops, recipe.plans[p].op_count, &first, &len, NULL, NULL, NULL),
          DFLASH_OK);
      assert_true(len <= 64);
    }
  }
}

/* Some draws become goldens in memory: the plans are what the generator takes. */
static void draws_can_be_made(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 12; i++) {
    DflashRecipe recipe;
    DflashMaterial *material;
    DflashCase c;
    DflashError error = {0};
    dflash_sweep_draw(SEED, i, &dflash_sweep_limits, &recipe);
    if (dflash_material_open(&recipe, NULL, &material, &error) != DFLASH_OK) fail_msg("%s", error.message);
    for (int64_t p = 0; p < recipe.plan_count; p++) {
      const char *name = dflash_material_case_name(material, p);
      if (dflash_material_case(material, name, NULL, &c, &error) != DFLASH_OK) fail_msg("%s", error.message);
      if (dflash_case_check(&c, &recipe.geometry, &error) != DFLASH_OK) fail_msg("%s", error.message);
      dflash_case_close(&c);
    }
    dflash_material_close(material);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_are_valid_and_show_everything),
      cmocka_unit_test(draws_follow_from_seed_and_index),
      cmocka_unit_test(one_draw_is_pinned),
      cmocka_unit_test(limits_hold),
      cmocka_unit_test(draws_can_be_made),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
