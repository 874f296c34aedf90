#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "base/file.h"
#include "golden/recipe.h"

static void expect_equal(const DflashRecipe *a, const DflashRecipe *b) {
  assert_true(dflash_geometry_equal(&a->geometry, &b->geometry));
  assert_string_equal(a->preset, b->preset);
  assert_true(a->seed == b->seed);
  assert_string_equal(a->storage, b->storage);
  assert_string_equal(a->cases ? a->cases : "", b->cases ? b->cases : "");
  assert_true(a->rows == b->rows && a->n_draft == b->n_draft);
  assert_true(a->head_width == b->head_width && a->context == b->context);
  assert_string_equal(a->weights_path ? a->weights_path : "", b->weights_path ? b->weights_path : "");
  assert_string_equal(a->head_path ? a->head_path : "", b->head_path ? b->head_path : "");
  assert_string_equal(a->target_hash ? a->target_hash : "any", b->target_hash ? b->target_hash : "any");
  assert_string_equal(a->profiles ? a->profiles : "", b->profiles ? b->profiles : "");
  assert_int_equal(a->allow_untrusted, b->allow_untrusted);
  assert_int_equal(a->stress, b->stress);
}

static void expect_round_trip(const DflashRecipe *recipe) {
  DflashRecipe back;
  cJSON *owner;
  DflashError error = {0};
  char *text = dflash_recipe_to_json(recipe);
  assert_non_null(text);
  if (dflash_recipe_from_json(text, &back, &owner, &error) != DFLASH_OK) fail_msg("%s", error.message);
  expect_equal(recipe, &back);
  char *again = dflash_recipe_to_json(&back);
  assert_string_equal(text, again);
  free(text);
  free(again);
  cJSON_Delete(owner);
}

static void recipes_survive_json(void **state) {
  (void)state;
  DflashRecipe recipe;
  assert_int_equal(dflash_recipe_open("small", &recipe, NULL), DFLASH_OK);
  expect_round_trip(&recipe);
  recipe.seed = UINT64_MAX;
  recipe.cases = "main,window+1";
  recipe.rows = 4, recipe.n_draft = 2, recipe.head_width = 100, recipe.context = 0;
  recipe.weights_path = "a \"quoted\" place.dflash.cmf";
  recipe.head_path = "target.cmf";
  recipe.target_hash = "0xAb12";
  recipe.profiles = "i8";
  recipe.allow_untrusted = 1;
  recipe.stress = DFLASH_STRESS_ORDER | DFLASH_STRESS_SHARP;
  snprintf(recipe.storage, sizeof recipe.storage, "bf16");
  expect_round_trip(&recipe);
  recipe.seed = (UINT64_C(1) << 53) + 1;
  recipe.geometry.eps = 1.0 / 3.0;
  recipe.geometry.rope_theta = 1e7 + 1.0 / 7.0;
  expect_round_trip(&recipe);
  assert_int_equal(dflash_recipe_open("", &recipe, NULL), DFLASH_OK);
  recipe.weights_path = "folder";
  expect_round_trip(&recipe);
}

static void presets_have_defaults(void **state) {
  (void)state;
  DflashRecipe recipe, resolved;
  char *cases;
  DflashError error = {0};
  assert_int_equal(dflash_recipe_open("qwen3.8-27b", &recipe, &error), DFLASH_OK);
  assert_int_equal(dflash_recipe_resolve(&recipe, &resolved, &cases, &error), DFLASH_OK);
  assert_string_equal(resolved.cases, "main");
  assert_true(resolved.rows == 8 && resolved.n_draft == 7 && resolved.context == 2048);
  assert_true(resolved.head_width == 248320);
  free(cases);
  assert_int_equal(dflash_recipe_open("small", &recipe, &error), DFLASH_OK);
  assert_int_equal(dflash_recipe_resolve(&recipe, &resolved, &cases, &error), DFLASH_OK);
  assert_string_equal(resolved.cases, "main,rewind,hole,cut,shortlist,small-rows,far");
  DflashRecipe again;
  char *same;
  assert_int_equal(dflash_recipe_resolve(&resolved, &again, &same, &error), DFLASH_OK);
  expect_equal(&resolved, &again);
  free(cases);
  free(same);
  assert_int_equal(dflash_recipe_open("huge", &recipe, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "tiny"));
  assert_int_equal(dflash_recipe_open(NULL, &recipe, &error), DFLASH_OK);
}

static void expect_range(int64_t rows, int64_t n_draft, int64_t head_width, int64_t context, const char *part) {
  DflashRecipe recipe, resolved;
  char *cases = NULL;
  DflashError error = {0};
  assert_int_equal(dflash_recipe_open("tiny", &recipe, &error), DFLASH_OK);
  recipe.rows = rows, recipe.n_draft = n_draft, recipe.head_width = head_width, recipe.context = context;
  assert_int_equal(dflash_recipe_resolve(&recipe, &resolved, &cases, &error), DFLASH_INVALID_ARGUMENT);
  assert_null(cases);
  if (!strstr(error.message, part)) fail_msg("'%s' does not name '%s'", error.message, part);
}

static void sizes_are_checked(void **state) {
  (void)state;
  expect_range(9, -1, -1, -1, "rows is 9");
  expect_range(1, -1, -1, -1, "rows is 1");
  expect_range(4, 4, -1, -1, "n_draft is 4");
  expect_range(-1, 0, -1, -1, "n_draft is 0");
  expect_range(-1, -1, 3, -1, "head_width is 3");
  expect_range(-1, -1, 510, -1, "head_width is 510");
  expect_range(-1, -1, -1, INT64_MAX, "context is");
}

static void expect_refusal(const char *text, const char *part) {
  DflashRecipe recipe;
  cJSON *owner = (cJSON *)1;
  DflashError error = {0};
  assert_true(dflash_recipe_from_json(text, &recipe, &owner, &error) != DFLASH_OK);
  assert_null(owner);
  if (!strstr(error.message, part)) fail_msg("%s: '%s' does not say '%s'", text, error.message, part);
}

static void hostile_recipes_are_refused(void **state) {
  (void)state;
  expect_refusal("", "recipe");
  expect_refusal("[]", "recipe");
  expect_refusal("{\"preset\":\"tiny\"", "recipe");
  expect_refusal("{}", "one of preset, geometry and weights");
  expect_refusal("{\"preset\":\"tiny\",\"casess\":\"main\"}", "casess");
  expect_refusal("{\"preset\":\"nowhere\"}", "nowhere");
  expect_refusal("{\"preset\":7}", "'preset' must be a text");
  expect_refusal("{\"preset\":\"tiny\",\"seed\":-1}", "seed");
  expect_refusal("{\"preset\":\"tiny\",\"seed\":1.5}", "seed");
  expect_refusal("{\"preset\":\"tiny\",\"seed\":\"18446744073709551616\"}", "seed");
  expect_refusal("{\"preset\":\"tiny\",\"seed\":\"12x\"}", "seed");
  expect_refusal("{\"preset\":\"tiny\",\"seed\":\"\"}", "seed");
  expect_refusal("{\"preset\":\"tiny\",\"rows\":\"8\"}", "rows");
  expect_refusal("{\"preset\":\"tiny\",\"rows\":-1}", "rows");
  expect_refusal("{\"preset\":\"tiny\",\"context\":1e30}", "context");
  expect_refusal("{\"preset\":\"tiny\",\"storage\":\"q4tp\"}", "storage");
  expect_refusal("{\"preset\":\"tiny\",\"storage\":\"a storage with a very long name\"}", "storage");
  expect_refusal("{\"preset\":\"tiny\",\"generator\":1}", "generator 1");
  expect_refusal("{\"preset\":\"tiny\",\"allow_untrusted\":1}", "allow_untrusted");
  expect_refusal("{\"preset\":\"tiny\",\"target_hash\":12}", "'target_hash' must be a text");
  expect_refusal("{\"preset\":\"tiny\",\"set\":{\"hiden\":\"8\"}}", "hiden");
  expect_refusal("{\"preset\":\"tiny\",\"set\":{\"hidden\":8}}", "set");
  expect_refusal("{\"preset\":\"tiny\",\"set\":[]}", "set");
  expect_refusal("{\"preset\":\"tiny\",\"stress\":7}", "stress");
  expect_refusal("{\"preset\":\"tiny\",\"stress\":\"sharp,shrp\"}", "'shrp'; known are sharp,");
  expect_refusal("{\"geometry\":{\"hidden\":64}}", "geometry");
}

static void changes_apply_to_the_preset(void **state) {
  (void)state;
  DflashRecipe recipe;
  cJSON *owner;
  assert_int_equal(dflash_recipe_from_json("{\"set\":{\"conv_kernel\":\"3\",\"windows\":\"1,2\"},\"preset\":\"tiny\"}",
                                           &recipe, &owner, NULL),
                   DFLASH_OK);
  assert_true(recipe.geometry.conv_kernel == 3 && recipe.geometry.windows.at[1] == 2 && recipe.geometry.hidden == 64);
  assert_true(recipe.seed == 1 && recipe.rows == -1);
  cJSON_Delete(owner);
}

static void check_file(const char *name) {
  char path[512], *text, *cases;
  uint64_t size;
  DflashRecipe recipe, resolved;
  cJSON *owner;
  DflashError error = {0};
  snprintf(path, sizeof path, "%s/../recipes/%s", DFLASH_GOLDEN_FOLDER, name);
  assert_int_equal(dflash_read_file(path, 1 << 16, &text, &size, &error), DFLASH_OK);
  if (dflash_recipe_from_json(text, &recipe, &owner, &error) != DFLASH_OK) fail_msg("%s: %s", name, error.message);
  if (dflash_recipe_resolve(&recipe, &resolved, &cases, &error) != DFLASH_OK) fail_msg("%s: %s", name, error.message);
  assert_string_equal(cases, recipe.cases); /* written in the list's order */
  free(cases);
  cJSON_Delete(owner);
  free(text);
}

static void shipped_recipes_are_sound(void **state) {
  (void)state;
  int count = 0;
  DIR *folder = opendir(DFLASH_GOLDEN_FOLDER "/../recipes");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (!strstr(entry->d_name, ".json")) continue;
    check_file(entry->d_name);
    count++;
  }
  closedir(folder);
  assert_true(count >= 23);
}

/* Entries of inv_freq that a power taken in f32 misses. */
static int64_t missed_by_powf(const DflashGeometry *g) {
  int64_t missed = 0;
  for (int64_t i = 0; i < g->head_dim / 2; i++) {
    const float exact = (float)pow(g->rope_theta, -2.0 * (double)i / (double)g->head_dim);
    missed += exact != powf((float)g->rope_theta, -2.0f * (float)i / (float)g->head_dim);
  }
  return missed;
}

/* At positions about 2^20 one unit in the last place of inv_freq turns a pair by up to a sixteenth of a radian. */
static void shipped_recipes_show_frequencies_in_f32(void **state) {
  (void)state;
  static const char *const names[] = {"head-dim-96.json", "theta-far.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[512], *text;
    uint64_t size;
    DflashRecipe recipe;
    cJSON *owner;
    snprintf(path, sizeof path, "%s/../recipes/%s", DFLASH_GOLDEN_FOLDER, names[i]);
    assert_int_equal(dflash_read_file(path, 1 << 16, &text, &size, NULL), DFLASH_OK);
    assert_int_equal(dflash_recipe_from_json(text, &recipe, &owner, NULL), DFLASH_OK);
    assert_true(missed_by_powf(&recipe.geometry) * 4 > recipe.geometry.head_dim / 2);
    assert_non_null(strstr(recipe.cases, "far"));
    cJSON_Delete(owner);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recipes_survive_json),
      cmocka_unit_test(presets_have_defaults),
      cmocka_unit_test(sizes_are_checked),
      cmocka_unit_test(hostile_recipes_are_refused),
      cmocka_unit_test(changes_apply_to_the_preset),
      cmocka_unit_test(shipped_recipes_are_sound),
      cmocka_unit_test(shipped_recipes_show_frequencies_in_f32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
