#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/cases.h"
#include "golden/recipe.h"

/* The preset's recipe with all sizes filled in. */
static DflashRecipe resolve(const char *preset, const char *cases) {
  DflashRecipe recipe, resolved;
  DflashError error = {0};
  assert_int_equal(dflash_recipe_open(preset, &recipe, &error), DFLASH_OK);
  recipe.cases = cases;
  char *names;
  if (dflash_recipe_resolve(&recipe, &resolved, &names, &error) != DFLASH_OK) fail_msg("%s", error.message);
  free(names);
  resolved.cases = NULL;
  return resolved;
}

static DflashStatus select_cases(const char *preset, const char *patterns, char **names, DflashError *error) {
  DflashRecipe recipe = resolve(preset, "main");
  return dflash_case_select(&recipe, patterns, names, error);
}

static void expect_names(const char *preset, const char *patterns, const char *expected) {
  char *names;
  DflashError error = {0};
  if (select_cases(preset, patterns, &names, &error) != DFLASH_OK) fail_msg("%s", error.message);
  assert_string_equal(names, expected);
  free(names);
}

static void expect_refusal(const char *preset, const char *patterns, const char *part) {
  char *names;
  DflashError error = {0};
  assert_int_equal(select_cases(preset, patterns, &names, &error), DFLASH_INVALID_ARGUMENT);
  assert_null(names);
  if (!strstr(error.message, part)) fail_msg("'%s' does not say '%s'", error.message, part);
}

static void kinds_are_named_once_and_described(void **state) {
  (void)state;
  for (size_t i = 0; i < dflash_case_kind_count(); i++) {
    const DflashCaseKind *kind = dflash_case_kind(i);
    assert_int_equal(dflash_case_kind_find(kind->name), i);
    assert_true(strlen(kind->about) > 5 && strlen(kind->about) < 100);
    assert_null(strchr(kind->name, ','));
    assert_null(strchr(kind->name, '/'));
  }
  assert_null(dflash_case_kind(dflash_case_kind_count()));
  assert_int_equal(dflash_case_kind_find("no such kind"), -1);
}

static void patterns_select_in_the_order_of_the_list(void **state) {
  (void)state;
  expect_names("tiny", "cut,main", "main,cut");
  expect_names("tiny", "window*", "window-1,window,window+1");
  expect_names("tiny", "*-2^24,,far", "far,beyond-2^24,past-2^24");
  expect_names("tiny", "exact-integer", "exact-integer");
  expect_refusal("tiny", "main,nothing*", "nothing*");
  expect_refusal("tiny", "exact*", "exact*"); /* exact kinds are named in full */
  expect_refusal("tiny", "main,exact-24bit", "a golden of its own");
  expect_refusal("tiny", "exact-integer,exact-24bit", "a golden of its own");
  expect_refusal("tiny", "", "no case");
}

static void impossible_kinds_are_refused_by_name_and_skipped_by_pattern(void **state) {
  (void)state;
  DflashRecipe recipe = resolve("tiny", "main");
  char *names;
  DflashError error = {0};
  recipe.geometry.window = 0;
  assert_int_equal(dflash_case_select(&recipe, "window", &names, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "no layer has a window"));
  assert_int_equal(dflash_case_select(&recipe, "*window*,main", &names, &error), DFLASH_OK);
  assert_string_equal(names, "main");
  free(names);
  recipe.rows = 2;
  assert_int_equal(dflash_case_select(&recipe, "cut", &names, &error), DFLASH_INVALID_ARGUMENT);
  recipe.head_path = "target.cmf";
  assert_int_equal(dflash_case_select(&recipe, "ties", &names, &error), DFLASH_INVALID_ARGUMENT);
  recipe.weights_path = "x.dflash.cmf";
  assert_int_equal(dflash_case_select(&recipe, "exact-24bit", &names, &error), DFLASH_INVALID_ARGUMENT);
}

static void a_list_is_walked(void **state) {
  (void)state;
  size_t kind = 99;
  const char *at = dflash_case_next("main,window,exact-24bit", &kind);
  assert_string_equal(at, "window,exact-24bit");
  assert_string_equal(dflash_case_kind(kind)->name, "main");
  at = dflash_case_next(at, &kind);
  assert_string_equal(dflash_case_kind(kind)->name, "window");
  at = dflash_case_next(at, &kind);
  assert_string_equal(at, "");
  assert_null(dflash_case_next(at, &kind));
  assert_null(dflash_case_next("mainly", &kind));
}

/* ---- plans ---- */

typedef struct Outcome {
  DflashCasePlan plan;
  int64_t first, len, last_push;
} Outcome;

static Outcome play(const DflashRecipe *recipe, const char *name) {
  Outcome o;
  const char *why = dflash_case_plan((size_t)dflash_case_kind_find(name), recipe, &o.plan);
  if (why) fail_msg("%s: %s", name, why);
  assert_int_equal(dflash_context_replay(o.plan.ops, o.plan.op_count, &o.first, &o.len, NULL, &o.last_push, NULL),
                   DFLASH_OK);
  return o;
}

static void every_plan_is_lawful(void **state) {
  (void)state;
  static const char *const presets[] = {"tiny", "small", "narrow-0.3b", "qwen3.8-27b"};
  for (size_t p = 0; p < sizeof presets / sizeof *presets; p++) {
    DflashRecipe recipe = resolve(presets[p], "main");
    for (size_t i = 0; i < dflash_case_kind_count(); i++) {
      Outcome o = play(&recipe, dflash_case_kind(i)->name);
      const DflashGeometry *g = &recipe.geometry;
      assert_true(o.plan.op_count <= DFLASH_PLAN_OPS && o.plan.anchor_pos >= 0);
      assert_true(o.plan.rows >= 2 && o.plan.rows <= g->block && o.plan.n_draft >= 1 && o.plan.n_draft < o.plan.rows);
      assert_true(o.plan.head_width >= g->selector_top && o.plan.head_width <= g->vocab);
      for (int64_t k = 0; k < o.plan.op_count; k++)
        assert_true(o.plan.ops[k].first_row + o.plan.ops[k].n_rows <= o.plan.tap_rows);
    }
  }
}

static void plans_do_what_they_say(void **state) {
  (void)state;
  DflashRecipe r = resolve("tiny", "main");
  int64_t n = r.context, block = r.geometry.block, window = r.geometry.window;
  Outcome o = play(&r, "main");
  assert_true(o.first == 0 && o.len == n && o.plan.anchor_pos == n && o.plan.rows == block);
  o = play(&r, "rewind");
  assert_true(o.first == 0 && o.len == n + 2 && o.plan.anchor_pos == n + 2 && o.plan.tap_rows > o.len);
  o = play(&r, "rewind-all");
  assert_true(o.first == 9 && o.len == n / 2 && o.plan.anchor_pos == 9 + n / 2);
  o = play(&r, "gap");
  assert_true(o.first == n + 5 && o.len == n && o.plan.anchor_pos == 2 * n + 5);
  o = play(&r, "before-first");
  assert_true(o.first == 13 && o.len == n / 2);
  o = play(&r, "hole");
  assert_true(o.plan.anchor_pos == o.first + o.len + 5);
  o = play(&r, "empty");
  assert_true(o.len == 0 && o.last_push == -1 && o.plan.op_count == 0);
  o = play(&r, "empty-push");
  assert_true(o.len == n - 4 && o.plan.anchor_pos == o.first + o.len);
  o = play(&r, "one-row");
  assert_true(o.len == 1);
  o = play(&r, "before-end");
  assert_true(o.plan.anchor_pos == o.first + o.len - 3);
  o = play(&r, "reset");
  assert_true(o.first == 0 && o.len == n / 2 && o.plan.anchor_pos == n / 2);
  o = play(&r, "many-pushes");
  assert_true(o.len == o.plan.tap_rows && o.plan.op_count == 7 && o.plan.ops[0].n_rows == 1);
  o = play(&r, "growth");
  assert_true(o.len > n && ((o.len - 1) & (o.len - 2)) == 0 && o.plan.ops[o.plan.op_count - 1].n_rows == 1);
  assert_true(play(&r, "short-window").len == window / 2);
  assert_true(play(&r, "window-1").len == window - 1);
  assert_true(play(&r, "window").len == window);
  assert_true(play(&r, "window+1").len == window + 1);
  assert_true(play(&r, "long-window").len == window + block + 3);
  assert_true(play(&r, "cut").plan.rows == block / 2);
  assert_true(play(&r, "two-rows").plan.rows == 2 && play(&r, "two-rows").plan.n_draft == 1);
  assert_true(play(&r, "one-draft").plan.n_draft == 1 && play(&r, "one-draft").plan.rows == block);
  assert_true(play(&r, "shortlist").plan.head_width < r.geometry.vocab);
  assert_true(play(&r, "shortlist-top").plan.head_width == r.geometry.selector_top);
}

static void positions_lie_where_they_should(void **state) {
  (void)state;
  DflashRecipe r = resolve("tiny", "main");
  Outcome o = play(&r, "near-256");
  assert_true(o.plan.anchor_pos < 256 && o.plan.anchor_pos + o.plan.rows > 257);
  o = play(&r, "far");
  assert_true(o.first < 1 << 20 && o.plan.anchor_pos > 1 << 20);
  o = play(&r, "beyond-2^24");
  assert_true(o.plan.anchor_pos == (1 << 24) - 1 && o.first + o.len == o.plan.anchor_pos);
  assert_true(play(&r, "past-2^24").first > 1 << 24);
}

static void mixed_windows_give_their_extremes(void **state) {
  (void)state;
  DflashRecipe r = resolve("small", "main"); /* 96, all, 64 */
  assert_true(play(&r, "short-window").len == 32 && play(&r, "window").len == 96);
}

static void ties_split_at_the_cut(void **state) {
  (void)state;
  DflashGeometry g = {.vocab = 5000};
  int64_t period, rows;
  for (g.selector_top = 1; g.selector_top < 70; g.selector_top++) {
    assert_null(dflash_case_ties(&g, &period, &rows));
    assert_true(rows % period == 0 && rows / period >= 3 && g.selector_top % (rows / period) != 0);
    assert_true(rows >= g.selector_top && rows <= g.vocab);
  }
  g = (DflashGeometry){.vocab = 2, .selector_top = 1};
  assert_non_null(dflash_case_ties(&g, &period, &rows));
  g = (DflashGeometry){.vocab = 8, .selector_top = 8};
  assert_non_null(dflash_case_ties(&g, &period, &rows));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kinds_are_named_once_and_described),
      cmocka_unit_test(patterns_select_in_the_order_of_the_list),
      cmocka_unit_test(impossible_kinds_are_refused_by_name_and_skipped_by_pattern),
      cmocka_unit_test(a_list_is_walked),
      cmocka_unit_test(every_plan_is_lawful),
      cmocka_unit_test(plans_do_what_they_say),
      cmocka_unit_test(positions_lie_where_they_should),
      cmocka_unit_test(mixed_windows_give_their_extremes),
      cmocka_unit_test(ties_split_at_the_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
