/* Goldens that hold values of profile i8 beside the exact ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>
#include <hdf5.h>

#include "dflash/backend.h"
#include "golden/generate_material.h"
#include "golden/generate_space.h"
#include "golden/oracle.h"
#include "golden_file.h"

static DflashRecipe i8_recipe(const char *preset, const char *cases) {
  DflashRecipe recipe = golden_recipe(preset, cases);
  recipe.profiles = "i8";
  return recipe;
}

static DflashCase read_case(DflashGolden *golden, int64_t index) {
  DflashCase c;
  DflashError error = {0};
  if (dflash_golden_case(golden, index, &c, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return c;
}

static void turn(DflashCase *c, const DflashGeometry *g) {
  DflashError error = {0};
  if (dflash_case_to_profile(c, g, DFLASH_PROFILE_I8, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static void evaluate(DflashGolden *golden, DflashCase *c) {
  const DflashEvaluate options = {.geometry = dflash_golden_geometry(golden),
                                  .weights = dflash_golden_weights(golden),
                                  .profile = DFLASH_PROFILE_I8,
                                  .values = true,
                                  .scales_alone = true,
                                  .scales_chain = true};
  DflashError error = {0};
  if (dflash_evaluate_case(&options, c, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

/* ---- what the file holds ---- */

/* Everything else in the file is what it is without. */
static void exact_values_and_scales_stay(void **state) {
  (void)state;
  DflashRecipe with = i8_recipe("tiny", "main,rewind"), without = golden_recipe("tiny", "main,rewind");
  DflashMakeResult a = golden_make(&with, SCRATCH("i8.h5"), 2), b = golden_make(&without, SCRATCH("exact.h5"), 1);
  assert_string_equal(a.inputs_hash, b.inputs_hash);
  assert_string_equal(a.scales_hash, b.scales_hash);
  assert_string_not_equal(a.values_hash, b.values_hash);
  DflashGolden *i8 = golden_open(SCRATCH("i8.h5")), *exact = golden_open(SCRATCH("exact.h5"));
  DflashCase c = read_case(i8, 0), d = read_case(exact, 0);
  assert_non_null(c.stages_i8);
  assert_null(d.stages_i8);
  const DflashValue *one = dflash_case_value(&c, DFLASH_STAGE_HEAD_LOGITS, 0);
  const DflashValue *two = dflash_case_value(&d, DFLASH_STAGE_HEAD_LOGITS, 0);
  assert_memory_equal(one->data, two->data, (size_t)(one->rows * one->width) * sizeof(float));
  dflash_case_close(&c);
  dflash_case_close(&d);
  dflash_golden_close(i8);
  dflash_golden_close(exact);
  golden_is_right(SCRATCH("i8.h5"));
  unlink(SCRATCH("exact.h5"));
}

/* Not those before the first q4tp matrix; all of the others, each unlike the exact one. */
static void only_stages_that_differ_are_kept(void **state) {
  (void)state;
  DflashRecipe recipe = i8_recipe("tiny", "main");
  golden_make(&recipe, SCRATCH("i8.h5"), 1);
  DflashGolden *golden = golden_open(SCRATCH("i8.h5"));
  DflashCase c = read_case(golden, 0);
  int32_t stage;
  int64_t layer;
  int kept = 0;
  for (int64_t i = 0; dflash_stage_walk(dflash_golden_geometry(golden), i, &stage, &layer); i++) {
    const DflashValue *exact = dflash_case_value(&c, stage, layer), *i8 = c.stages_i8 + (exact - c.stages);
    assert_true(!i8->alone && !i8->chain);
    if (!i8->data) continue;
    assert_true(i8->rows == exact->rows && i8->width == exact->width);
    assert_memory_not_equal(i8->data, exact->data, (size_t)(i8->rows * i8->width) * sizeof(float));
    kept++;
  }
  assert_null(c.stages_i8[DFLASH_STAGE_ATTN_NORM * c.layers].data);
  assert_null(c.stages_i8[DFLASH_STAGE_CONTEXT_NORM * c.layers].data);
  assert_non_null(c.stages_i8[DFLASH_STAGE_ATTN_Q_PROJ * c.layers].data);
  assert_non_null(c.stages_i8[DFLASH_STAGE_HEAD_LOGITS * c.layers].data);
  assert_true(kept > 30);
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

static void a_golden_is_made_again_from_its_recipe(void **state) {
  (void)state;
  DflashRecipe recipe = i8_recipe("tiny", "main"), back;
  DflashMakeResult one = golden_make(&recipe, SCRATCH("i8.h5"), 2);
  DflashGolden *golden = golden_open(SCRATCH("i8.h5"));
  cJSON *owner;
  const char *text = dflash_golden_attribute(golden, "recipe");
  assert_non_null(strstr(text, "\"profiles\":\"i8\""));
  assert_int_equal(dflash_recipe_from_json(text, &back, &owner, NULL), DFLASH_OK);
  DflashMakeResult two = golden_make(&back, SCRATCH("again.h5"), 1);
  assert_string_equal(one.values_hash, two.values_hash);
  cJSON_Delete(owner);
  dflash_golden_close(golden);
  unlink(SCRATCH("again.h5"));
}

static void the_size_is_foreseen(void **state) {
  (void)state;
  DflashRecipe recipe = i8_recipe("tiny", "main,rewind");
  DflashMakeResult result = golden_make(&recipe, SCRATCH("i8.h5"), 1);
  DflashMaterial *material;
  uint64_t needed;
  assert_int_equal(dflash_material_find(&recipe, &material, NULL), DFLASH_OK);
  assert_int_equal(dflash_space_needed(material, &needed, NULL), DFLASH_OK);
  assert_in_range(needed, result.bytes, result.bytes + result.bytes / 3 + 100000);
  dflash_material_close(material);
}

/* ---- refusals ---- */

static void refuse(const DflashRecipe *recipe, const char *part) {
  DflashMakeResult result;
  DflashError error = {0};
  assert_int_equal(dflash_golden_make(recipe, SCRATCH("none.h5"), 1, NULL, &result, &error), DFLASH_INVALID_ARGUMENT);
  if (!strstr(error.message, part)) fail_msg("'%s' does not say '%s'", error.message, part);
  assert_int_not_equal(access(SCRATCH("none.h5"), F_OK), 0);
}

static void what_cannot_be_made_is_refused(void **state) {
  (void)state;
  static const char *const storages[] = {"f32", "f16", "bf16", "q8_2f"};
  static const char *const lists[] = {"f16", "i8,f16", "i8,", ",i8", "exact", "i"};
  for (int i = 0; i < 4; i++) {
    DflashRecipe recipe = i8_recipe("tiny", "main");
    snprintf(recipe.storage, sizeof recipe.storage, "%s", storages[i]);
    refuse(&recipe, "no matrix here is q4tp");
  }
  for (int i = 0; i < 6; i++) {
    DflashRecipe recipe = i8_recipe("tiny", "main");
    recipe.profiles = lists[i];
    refuse(&recipe, "has no values to add");
  }
  DflashRecipe files = i8_recipe("", "main");
  files.weights_path = DFLASH_GOLDEN_FOLDER "/far-bf16-checkpoint";
  refuse(&files, "no matrix here is q4tp");
  files.weights_path = DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf";
  golden_make(&files, SCRATCH("i8.h5"), 1);
  golden_is_right(SCRATCH("i8.h5"));
}

static void a_case_of_another_profile_is_not_written(void **state) {
  (void)state;
  DflashRecipe recipe = i8_recipe("tiny", "main");
  golden_make(&recipe, SCRATCH("i8.h5"), 1);
  DflashGolden *golden = golden_open(SCRATCH("i8.h5"));
  const DflashGeometry *g = dflash_golden_geometry(golden);
  DflashCase c = read_case(golden, 0);
  DflashGoldenWriter *writer;
  DflashError error = {0};
  turn(&c, g);
  assert_int_equal(
      dflash_golden_create(SCRATCH("none.h5"), g, dflash_golden_weights(golden)->inv_freq, &writer, &error), DFLASH_OK);
  assert_int_equal(dflash_golden_write_case(writer, &c, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "holds profile 1"));
  dflash_golden_abort(writer);
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

/* ---- a case of profile i8 ---- */

static void expect_same(const DflashCase *a, const DflashCase *b, const DflashGeometry *g) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++) {
    const DflashValue *one = dflash_case_value(a, stage, layer), *two = dflash_case_value(b, stage, layer);
    if (stage == DFLASH_STAGE_SELECT || one->rows == 0) continue;
    size_t bytes = (size_t)(one->rows * one->width) * sizeof(float);
    assert_memory_equal(one->data, two->data, bytes);
    assert_memory_equal(one->alone, two->alone, bytes);
    assert_memory_equal(one->chain, two->chain, bytes);
  }
  size_t held = (size_t)(a->sizes.context_len * g->kv_heads * g->head_dim) * sizeof(float);
  for (layer = 0; layer < a->layers; layer++) {
    assert_memory_equal(a->held_k[layer].data, b->held_k[layer].data, held);
    assert_memory_equal(a->held_v[layer].data, b->held_v[layer].data, held);
    assert_memory_equal(a->held_v[layer].chain, b->held_v[layer].chain, held);
  }
  size_t scores = (size_t)(a->sizes.n_draft * g->selector_top);
  assert_memory_equal(a->tokens.scores, b->tokens.scores, scores * sizeof(double));
  assert_memory_equal(a->tokens.chain, b->tokens.chain, scores * sizeof(float));
  assert_memory_equal(a->tokens.chosen, b->tokens.chosen, (size_t)a->sizes.n_draft * sizeof(int32_t));
}

/* The stored values and those of a golden that has none lead to the same case. */
static void stored_and_computed_values_agree(void **state) {
  (void)state;
  DflashRecipe with = i8_recipe("tiny", "rewind"), without = golden_recipe("tiny", "rewind");
  golden_make(&with, SCRATCH("i8.h5"), 1);
  golden_make(&without, SCRATCH("exact.h5"), 1);
  DflashGolden *one = golden_open(SCRATCH("i8.h5")), *two = golden_open(SCRATCH("exact.h5"));
  const DflashGeometry *g = dflash_golden_geometry(one);
  DflashCase a = read_case(one, 0), b = read_case(two, 0);
  turn(&a, g);
  turn(&b, g);
  assert_true(a.profile == DFLASH_PROFILE_I8 && !a.stages_i8);
  assert_true(!a.held_k[0].data && !a.tokens.chosen && !a.tokens.scores);
  assert_non_null(dflash_case_value(&a, DFLASH_STAGE_MLP_UP, 1)->data);
  assert_null(dflash_case_value(&a, DFLASH_STAGE_MLP_UP, 1)->chain);
  assert_null(dflash_case_value(&b, DFLASH_STAGE_MLP_UP, 1)->data);
  assert_non_null(dflash_case_value(&b, DFLASH_STAGE_ATTN_NORM, 0)->data);
  evaluate(one, &a);
  evaluate(two, &b);
  expect_same(&a, &b, g);
  dflash_case_close(&a);
  dflash_case_close(&b);
  dflash_golden_close(one);
  dflash_golden_close(two);
  unlink(SCRATCH("exact.h5"));
}

static void profiles_are_not_mixed(void **state) {
  (void)state;
  DflashRecipe recipe = i8_recipe("tiny", "main");
  golden_make(&recipe, SCRATCH("i8.h5"), 1);
  DflashGolden *golden = golden_open(SCRATCH("i8.h5"));
  const DflashGeometry *g = dflash_golden_geometry(golden);
  DflashCase c = read_case(golden, 0);
  DflashEvaluate options = {.geometry = g, .weights = dflash_golden_weights(golden), .profile = DFLASH_PROFILE_I8};
  DflashError error = {0};
  assert_int_equal(dflash_evaluate_case(&options, &c, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "profile 0"));
  assert_int_equal(dflash_case_to_profile(&c, g, DFLASH_PROFILE_COUNT, &error), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(dflash_case_to_profile(&c, g, -1, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(c.tokens.chain);
  const float *logits = dflash_case_value(&c, DFLASH_STAGE_HEAD_LOGITS, 0)->data;
  assert_int_equal(dflash_case_to_profile(&c, g, DFLASH_PROFILE_F16, &error), DFLASH_OK);
  assert_ptr_equal(dflash_case_value(&c, DFLASH_STAGE_HEAD_LOGITS, 0)->data, logits);
  assert_true(!c.tokens.chain && c.tokens.chosen && c.held_k[0].data);
  assert_int_equal(dflash_case_to_profile(&c, g, DFLASH_PROFILE_I8, &error), DFLASH_INVALID_ARGUMENT);
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

/* ---- damage ---- */

static float element(const char *file, const char *path, size_t index, const float *replace) {
  hid_t id = H5Fopen(file, replace ? H5F_ACC_RDWR : H5F_ACC_RDONLY, H5P_DEFAULT);
  hid_t set = H5Dopen2(id, path, H5P_DEFAULT), space = H5Dget_space(set);
  size_t count = (size_t)H5Sget_simple_extent_npoints(space);
  float *values = malloc(count * sizeof *values);
  assert_true(values && index < count);
  assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  float old = values[index];
  if (replace) values[index] = *replace;
  if (replace) assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  free(values);
  H5Sclose(space);
  H5Dclose(set);
  H5Fclose(id);
  return old;
}

/* The value in a fresh file, changed; `part` is then found, or nothing when it is NULL. */
static void expect_damage(const char *path, size_t index, float by, int recompute, const char *part) {
  DflashRecipe recipe = i8_recipe("tiny", "main");
  golden_make(&recipe, SCRATCH("i8.h5"), 1);
  float damaged = element(SCRATCH("i8.h5"), path, index, NULL) + by;
  element(SCRATCH("i8.h5"), path, index, &damaged);
  int64_t wrong;
  char *text = golden_check(SCRATCH("i8.h5"), recompute, &wrong);
  if (wrong < 1 || !strstr(text, part)) fail_msg("%lld findings, none says '%s':\n%s", (long long)wrong, part, text);
  free(text);
}

static void a_changed_value_is_found(void **state) {
  (void)state;
  expect_damage("/cases/main/stages.i8/mlp.down/1", 3 * 64 + 17, 0.01f, 1,
                "case main: stages.i8/mlp.down/1: row 3, column 17");
  expect_damage("/cases/main/stages.i8/attn.q_proj/0", 5, 1e-5f, 1,
                "stages.i8/attn.q_proj/0: row 0, head 0, channel 5");
  expect_damage("/cases/main/stages.i8/context.k/1", 40, 0.01f, 1, "stages.i8/context.k/1: row 1, head 0, channel 8");
  expect_damage("/cases/main/stages.i8/final.norm", 70, NAN, 0, "stages.i8/final.norm: row 1, column 6: stored nan");
}

/* A stage that is missing stands for the exact one, and that is not this profile's. */
static void a_missing_stage_is_found(void **state) {
  (void)state;
  DflashRecipe recipe = i8_recipe("tiny", "main");
  golden_make(&recipe, SCRATCH("i8.h5"), 1);
  hid_t id = H5Fopen(SCRATCH("i8.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(H5Ldelete(id, "/cases/main/stages.i8/attn.o_proj/0", H5P_DEFAULT) >= 0);
  H5Fclose(id);
  int64_t wrong;
  char *text = golden_check(SCRATCH("i8.h5"), 1, &wrong);
  assert_true(wrong > 0);
  assert_non_null(strstr(text, "stages.i8/attn.o_proj/0: row"));
  free(text);
  unlink(SCRATCH("i8.h5"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exact_values_and_scales_stay),
      cmocka_unit_test(only_stages_that_differ_are_kept),
      cmocka_unit_test(a_golden_is_made_again_from_its_recipe),
      cmocka_unit_test(the_size_is_foreseen),
      cmocka_unit_test(what_cannot_be_made_is_refused),
      cmocka_unit_test(a_case_of_another_profile_is_not_written),
      cmocka_unit_test(stored_and_computed_values_agree),
      cmocka_unit_test(profiles_are_not_mixed),
      cmocka_unit_test(a_changed_value_is_found),
      cmocka_unit_test(a_missing_stage_is_found),
  };
  return cmocka_run_group_tests_name("golden_i8", tests, NULL, NULL);
}
