#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "golden/cases.h"
#include "golden/plan.h"
#include "golden/recipe.h"

static const char TWO[] =
    "{\"preset\":\"tiny\",\"storage\":\"f32\",\"seed\":9,\"plans\":["
    "{\"name\":\"first\",\"ops\":[[\"push\",3,6],[\"truncate\",7],[\"push\",5,4],[\"reset\"],[\"push\",0,3],"
    "[\"push\",3,0]],\"anchor_pos\":3,\"rows\":5,\"n_draft\":2,\"head_width\":77,\"flags\":[\"outlier\"]},"
    "{\"name\":\"second\",\"ops\":[],\"anchor_pos\":9007199254740000,\"flags\":[\"ties\",\"small-rows\"]}]}";

static cJSON *parse(const char *text, DflashRecipe *recipe) {
  cJSON *owner;
  DflashError error = {0};
  if (dflash_recipe_from_json(text, recipe, &owner, &error) != DFLASH_OK) fail_msg("%s: %s", text, error.message);
  return owner;
}

static void plans_survive_json(void **state) {
  (void)state;
  DflashRecipe recipe, back;
  cJSON *owner = parse(TWO, &recipe);
  assert_int_equal(recipe.plan_count, 2);
  assert_int_equal(recipe.plans[0].tap_rows, 13);
  assert_int_equal(recipe.plans[0].ops[2].first_row, 6);
  assert_int_equal(recipe.plans[0].flags, DFLASH_CASE_OUTLIER);
  assert_int_equal(recipe.plans[1].rows, -1);
  assert_int_equal(recipe.plans[1].flags, DFLASH_CASE_TIES | DFLASH_CASE_SMALL);
  char *text = dflash_recipe_to_json(&recipe);
  cJSON *again = parse(text, &back);
  assert_memory_equal(recipe.plans, back.plans, sizeof recipe.plans);
  free(text);
  cJSON_Delete(again);
  cJSON_Delete(owner);
}

static void sizes_left_out_are_the_recipes(void **state) {
  (void)state;
  DflashRecipe recipe, resolved;
  char *cases;
  DflashError error = {0};
  cJSON *owner = parse(TWO, &recipe);
  recipe.rows = 6;
  assert_int_equal(dflash_recipe_resolve(&recipe, &resolved, &cases, &error), DFLASH_OK);
  assert_string_equal(resolved.cases, "");
  assert_true(resolved.plans[0].rows == 5 && resolved.plans[0].n_draft == 2 && resolved.plans[0].head_width == 77);
  assert_true(resolved.plans[1].rows == 6 && resolved.plans[1].n_draft == 5 && resolved.plans[1].head_width == 509);
  free(cases);
  cJSON_Delete(owner);
}

/* A plan named like a kind, with the kind's operations, is that case. */
static void a_plan_is_a_case_like_any_other(void **state) {
  (void)state;
  DflashRecipe recipe;
  DflashCase kind, plan;
  DflashError error = {0};
  assert_int_equal(dflash_recipe_open("tiny", &recipe, &error), DFLASH_OK);
  recipe.context = 5;
  assert_int_equal(dflash_case_draw(&recipe, "main", &kind, &error), DFLASH_OK);
  snprintf(recipe.plans[0].name, sizeof recipe.plans[0].name, "main");
  recipe.plan_count = 1;
  recipe.plans[0].rows = recipe.plans[0].n_draft = recipe.plans[0].head_width = -1;
  recipe.plans[0].anchor_pos = 5;
  assert_true(dflash_plan_add(&recipe.plans[0], DFLASH_OP_PUSH, 0, 5));
  if (dflash_case_draw(&recipe, "main", &plan, &error) != DFLASH_OK) fail_msg("%s", error.message);
  const DflashValue *a = dflash_case_value(&kind, DFLASH_STAGE_FINAL_NORM, 0);
  const DflashValue *b = dflash_case_value(&plan, DFLASH_STAGE_FINAL_NORM, 0);
  assert_int_equal(a->rows * a->width, b->rows * b->width);
  assert_memory_equal(a->data, b->data, (size_t)(a->rows * a->width) * sizeof(float));
  assert_memory_equal(a->chain, b->chain, (size_t)(a->rows * a->width) * sizeof(float));
  dflash_case_close(&kind);
  dflash_case_close(&plan);
}

/* The recipe attribute makes the same golden again. */
static void goldens_of_plans_can_be_made_again(void **state) {
  (void)state;
  static const char path[] = DFLASH_SCRATCH_FOLDER "/plans.h5";
  DflashRecipe recipe, stored;
  DflashMakeResult first, second;
  DflashError error = {0};
  DflashGolden *golden;
  cJSON *owner = parse(TWO, &recipe);
  recipe.plans[1].anchor_pos = 400;
  if (dflash_golden_make(&recipe, path, 1, NULL, &first, &error) != DFLASH_OK) fail_msg("%s", error.message);
  assert_int_equal(first.cases, 2);
  assert_int_equal(dflash_golden_open(path, 1, &golden, &error), DFLASH_OK);
  cJSON *again = parse(dflash_golden_attribute(golden, "recipe"), &stored);
  dflash_golden_close(golden);
  if (dflash_golden_make(&stored, path, 1, NULL, &second, &error) != DFLASH_OK) fail_msg("%s", error.message);
  assert_string_equal(first.inputs_hash, second.inputs_hash);
  assert_string_equal(first.values_hash, second.values_hash);
  assert_string_equal(first.scales_hash, second.scales_hash);
  unlink(path);
  cJSON_Delete(again);
  cJSON_Delete(owner);
}

/* ---- hostile ---- */

/* Reads or resolves `plans`, the JSON text of the list, and expects a message that says `part`. */
static void expect_refusal(const char *plans, const char *part) {
  char text[4096];
  snprintf(text, sizeof text, "{\"preset\":\"tiny\",\"plans\":%s}", plans);
  DflashRecipe recipe, resolved;
  cJSON *owner = NULL;
  char *cases = NULL;
  DflashError error = {0};
  DflashStatus status = dflash_recipe_from_json(text, &recipe, &owner, &error);
  if (status == DFLASH_OK) status = dflash_recipe_resolve(&recipe, &resolved, &cases, &error);
  if (status == DFLASH_OK || !strstr(error.message, part)) fail_msg("%s: '%s' is not '%s'", plans, error.message, part);
  cJSON_Delete(owner);
}

/* One plan with these members beside a lawful rest. */
static void expect_member_refusal(const char *members, const char *part) {
  char plan[2048];
  snprintf(plan, sizeof plan, "[{\"name\":\"p\",\"anchor_pos\":4%s%s}]", *members ? "," : "", members);
  expect_refusal(plan, part);
}

static void hostile_lists_are_refused(void **state) {
  (void)state;
  static const char ONE[] = "{\"name\":\"p\",\"anchor_pos\":4}";
  char list[1024] = "[";
  expect_refusal("{}", "'plans' must be a list");
  expect_refusal("[]", "one at least");
  expect_refusal("[7]", "a list of objects");
  expect_refusal("[{\"anchor_pos\":4}]", "its name is ''");
  expect_refusal("[{\"name\":\"a/b\",\"anchor_pos\":4}]", "its name is 'a/b'");
  expect_refusal("[{\"name\":\"p\"}]",
                 "recipe: plan 'p' lacks 'anchor_pos', the position of its block's first row; valid: an integer, 0 or "
                 "more");
  expect_refusal("[{\"name\":\"p\",\"anchor_pos\":-1}]", "'anchor_pos' of a plan must be an integer, 0 or more");
  expect_member_refusal("\"rows\":\"8\"", "'rows' of a plan must be an integer, 0 or more");
  snprintf(list, sizeof list, "[%s,%s]", ONE, ONE);
  expect_refusal(list, "two plans have the name 'p'");
  expect_refusal("[{\"name\":\"p\",\"anchor_pos\":4},{\"name\":\"q\",\"anchor_pos\":4,\"flags\":[\"exact-24bit\"]}]",
                 "weights of its own");
  list[0] = '[', list[1] = '\0';
  for (int i = 0; i < 9; i++) snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? "," : "", ONE);
  strcat(list, "]");
  expect_refusal(list, "more than 8 plans");
}

static void hostile_plans_are_refused(void **state) {
  (void)state;
  expect_member_refusal("\"name\":\"0123456789012345678901234567890123456789\"", "1 to 31");
  expect_member_refusal("\"name\":7", "1 to 31");
  expect_member_refusal("\"row\":3", "unknown member 'row'");
  expect_member_refusal("\"rows\":\"3\"", "integer");
  expect_member_refusal("\"rows\":-3", "integer");
  expect_member_refusal("\"rows\":1", "rows is 1");
  expect_member_refusal("\"rows\":9", "rows is 9");
  expect_member_refusal("\"rows\":4,\"n_draft\":4", "n_draft is 4");
  expect_member_refusal("\"head_width\":510", "head_width is 510");
  expect_member_refusal("\"anchor_pos\":1e300", "integer");
  expect_member_refusal("\"ops\":7", "a list");
  expect_member_refusal("\"ops\":[7]", "lists");
  expect_member_refusal("\"ops\":[[\"pull\",1,2]]", "lists");
  expect_member_refusal("\"ops\":[[\"push\",1]]", "lists");
  expect_member_refusal("\"ops\":[[\"reset\",1]]", "lists");
  expect_member_refusal("\"ops\":[[\"push\",-1,2]]", "position");
  expect_member_refusal("\"ops\":[[\"push\",1,2.5]]", "position");
  expect_member_refusal("\"ops\":[[\"push\",0,1048576],[\"push\",0,1]]", "rows pushed is 1");
  expect_member_refusal("\"ops\":[[\"push\",0,1099511627777]]", "fewer rows");
  expect_member_refusal("\"flags\":\"ties\"", "ties, zero-row");
  expect_member_refusal("\"flags\":[\"tie\"]", "ties, zero-row");
  expect_member_refusal("\"flags\":[\"exact-integer\",\"exact-24bit\"]", "one kind");
  expect_member_refusal("\"flags\":[\"exact-integer\",\"ties\"]", "no other flag");
  char ops[2048] = "\"ops\":[[\"reset\"]";
  for (int i = 0; i < DFLASH_PLAN_OPS; i++) strcat(ops, ",[\"reset\"]");
  strcat(ops, "]");
  expect_member_refusal(ops, "more than 32 operations");
}

static void cases_and_plans_exclude_each_other(void **state) {
  (void)state;
  DflashRecipe recipe, resolved;
  char *cases;
  DflashError error = {0};
  cJSON *owner = parse(TWO, &recipe);
  recipe.cases = "main";
  assert_int_equal(dflash_recipe_resolve(&recipe, &resolved, &cases, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "cases or plans, not both"));
  cJSON_Delete(owner);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_survive_json),
      cmocka_unit_test(sizes_left_out_are_the_recipes),
      cmocka_unit_test(a_plan_is_a_case_like_any_other),
      cmocka_unit_test(goldens_of_plans_can_be_made_again),
      cmocka_unit_test(hostile_lists_are_refused),
      cmocka_unit_test(hostile_plans_are_refused),
      cmocka_unit_test(cases_and_plans_exclude_each_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
