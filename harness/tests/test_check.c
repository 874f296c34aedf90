#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>
#include <hdf5.h>

#include "base/file.h"
#include "golden/check_values.h"
#include "golden_file.h"

static const char *const FILES[] = {"far-bf16",   "kernel4-empty",  "odd-groups",
                                    "operations", "sidecar-rewind", "tiny-f32"};
enum { FILE_COUNT = sizeof FILES / sizeof *FILES };

static void file_path(const char *name, char path[512]) { snprintf(path, 512, "%s/%s.h5", DFLASH_GOLDEN_FOLDER, name); }

static void committed_goldens_are_right(void **state) {
  (void)state;
  for (int i = 0; i < FILE_COUNT; i++) {
    char path[512];
    int64_t wrong;
    file_path(FILES[i], path);
    char *text = golden_check(path, 1, &wrong);
    if (wrong) fail_msg("%s: %s", FILES[i], text);
    assert_non_null(strstr(text, "inputs_hash not checked"));
    assert_non_null(strstr(text, "values_hash not checked"));
    assert_non_null(strstr(text, "scales_hash not checked"));
    assert_non_null(strstr(text, ": 1 case, "));
    assert_non_null(strstr(text, "computed again, 0 wrong"));
    assert_null(strstr(text, "matches"));
    free(text);
  }
}

static void without_recompute_nothing_is_called_computed(void **state) {
  (void)state;
  char path[512];
  int64_t wrong;
  file_path("tiny-f32", path);
  char *text = golden_check(path, 0, &wrong);
  assert_int_equal(wrong, 0);
  assert_non_null(strstr(text, "not computed again"));
  free(text);
}

/* ---- damage ---- */

static void copy_file(const char *from, const char *to) {
  DflashMapping file;
  assert_int_equal(dflash_map_file(from, &file, NULL), DFLASH_OK);
  assert_int_equal(dflash_write_file(to, file.data, file.size, NULL), DFLASH_OK);
  dflash_unmap_file(&file);
}

/* Adds `by` to element `index` of a dataset of numbers. */
static void damage(const char *file, const char *path, size_t index, float by) {
  hid_t id = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT), set = H5Dopen2(id, path, H5P_DEFAULT);
  assert_true(id >= 0 && set >= 0);
  hid_t space = H5Dget_space(set);
  size_t count = (size_t)H5Sget_simple_extent_npoints(space);
  double *values = malloc(count * sizeof *values);
  assert_non_null(values);
  assert_true(index < count);
  assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  values[index] += (double)by;
  assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  free(values);
  H5Sclose(space);
  H5Dclose(set);
  H5Fclose(id);
}

static void expect_finding(const char *file, int recompute, const char *part) {
  int64_t wrong;
  char *text = golden_check(file, recompute, &wrong);
  if (wrong < 1 || !strstr(text, part)) fail_msg("%lld findings, none says '%s':\n%s", (long long)wrong, part, text);
  free(text);
}

static void expect_damage(const char *dataset, size_t index, float by, const char *part) {
  char path[512];
  file_path("tiny-f32", path); /* hidden 64, 4 heads of 16, 2 kv heads, 4 groups of channels, 2 taps */
  copy_file(path, SCRATCH("damaged.h5"));
  damage(SCRATCH("damaged.h5"), dataset, index, by);
  expect_finding(SCRATCH("damaged.h5"), 1, part);
}

static void damage_is_named_with_its_place(void **state) {
  (void)state;
  expect_damage("/cases/main/stages/attn.out/1", 3 * 64 + 17, 0.01f, "case main: attn.out/1: row 3, column 17");
  expect_damage("/cases/main/stages/attn.q/2", 64 + 16 + 5, 0.01f, "attn.q/2: row 1, head 1, channel 5");
  expect_damage("/cases/main/stages/attn.k/0", 2 * 32 + 16 + 1, 0.01f, "attn.k/0: row 2, head 1, channel 1");
  expect_damage("/cases/main/stages/mlp.kernel/0", 16 + 8 + 4 + 2, 0.01f, "row 1, side 1, tap 1, group 2");
  expect_damage("/cases/main/stages/head.logits", 512 + 9, 0.01f, "head.logits: row 1, token 9");
  expect_damage("/cases/main/stages/context.fc", 7, 0.01f, "context.fc: row 0, column 7");
  expect_damage("/cases/main/context_state/v/1", 32 + 3, 0.01f, "context_state.v/1: row 1, head 0, channel 3");
  expect_damage("/cases/main/stages/final.norm", 70, 0.01f, "1 of 512 values are off");
}

static void two_spacings_are_too_many(void **state) {
  (void)state;
  char path[512];
  file_path("tiny-f32", path);
  DflashGolden *golden = golden_open(path);
  DflashCase c;
  assert_int_equal(dflash_golden_case(golden, 0, &c, NULL), DFLASH_OK);
  float value = dflash_case_value(&c, DFLASH_STAGE_MLP_UP, 1)->data[100];
  dflash_case_close(&c);
  dflash_golden_close(golden);
  float step = nextafterf(fabsf(value), INFINITY) - fabsf(value);
  expect_damage("/cases/main/stages/mlp.up/1", 100, value > 0 ? 2 * step : -2 * step, "mlp.up/1: row 1, column 4");
}

static void tokens_are_compared_exactly(void **state) {
  (void)state;
  expect_damage("/cases/main/output/chosen", 2, 1.0f, "select: chosen: row 2");
  expect_damage("/cases/main/output/scores", 5, 1e-4f, "select: scores: row 1, place 1");
}

static void infinite_values_are_found_without_recompute(void **state) {
  (void)state;
  char path[512];
  file_path("tiny-f32", path);
  copy_file(path, SCRATCH("damaged.h5"));
  damage(SCRATCH("damaged.h5"), "/cases/main/stages/mlp.gate/1", 5, INFINITY);
  expect_finding(SCRATCH("damaged.h5"), 0, "mlp.gate/1: row 0, column 5: stored inf is not finite");
  damage(SCRATCH("damaged.h5"), "/cases/main/stages/mlp.gate/1", 5, NAN);
  expect_finding(SCRATCH("damaged.h5"), 1, "mlp.gate/1: row 0, column 5");
  unlink(SCRATCH("damaged.h5"));
}

static void hashes_and_scales_are_checked(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "main,empty");
  golden_make(&recipe, SCRATCH("hashed.h5"), 1);
  int64_t wrong;
  char *text = golden_check(SCRATCH("hashed.h5"), 0, &wrong);
  assert_int_equal(wrong, 0);
  assert_non_null(strstr(text, "inputs_hash matches, values_hash matches, scales_hash matches"));
  free(text);
  damage(SCRATCH("hashed.h5"), "/cases/main/input/h", 9, 1e-3f);
  expect_finding(SCRATCH("hashed.h5"), 0, "inputs_hash does not match");
  golden_make(&recipe, SCRATCH("hashed.h5"), 1);
  damage(SCRATCH("hashed.h5"), "/cases/empty/stages/mlp.down/1", 9, 1e-3f);
  expect_finding(SCRATCH("hashed.h5"), 0, "values_hash does not match");
  golden_make(&recipe, SCRATCH("hashed.h5"), 1);
  damage(SCRATCH("hashed.h5"), "/cases/empty/scales/exact/chain/mlp.down/1", 9, 1.0f);
  expect_finding(SCRATCH("hashed.h5"), 0, "scales_hash does not match");
  unlink(SCRATCH("hashed.h5"));
}

/* ---- error scales ---- */

static void drop_attribute(const char *file, const char *name) {
  hid_t id = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(H5Adelete(id, name) >= 0);
  H5Fclose(id);
}

/* Found whether the hashes are there or not, and beside findings in other cases. */
static void expect_implausible(float by, const char *part) {
  DflashRecipe recipe = golden_recipe("tiny", "main,empty");
  const char *const file = SCRATCH("scales.h5");
  golden_make(&recipe, file, 1);
  damage(file, "/cases/empty/scales/exact/alone/mlp.up/1", 5, by);
  damage(file, "/cases/main/stages/mlp.up/0", 5, INFINITY);
  expect_finding(file, 0, part);
  expect_finding(file, 0, "hashes not checked: a case cannot be read");
  expect_finding(file, 0, "case main: mlp.up/0: row 0, column 5: stored inf");
  drop_attribute(file, "inputs_hash"), drop_attribute(file, "values_hash"), drop_attribute(file, "scales_hash");
  expect_finding(file, 0, part);
  expect_finding(file, 1, part);
  unlink(file);
}

static void scales_must_be_finite_and_not_negative(void **state) {
  (void)state;
  expect_implausible(-1e3f,
                     "case empty: mlp.up/1: error scale 'alone' of element 5 is -1000; valid: finite, 0 or more");
  expect_implausible(INFINITY, "mlp.up/1: error scale 'alone' of element 5 is inf");
  expect_implausible(NAN, "mlp.up/1: error scale 'alone' of element 5 is nan");
}

/* To the bit when the generator is this one; its hash, which would say the same, is taken away. */
static void scales_are_compared_to_the_bit(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "main,rewind");
  const char *const file = SCRATCH("scales.h5"), *const scores = "/cases/rewind/scales/exact/chain/scores";
  golden_make(&recipe, file, 1);
  golden_is_right(file);
  drop_attribute(file, "scales_hash");
  damage(file, scores, 3, 1e-14f);
  golden_is_right(file); /* below its spacing: nothing changed */
  DflashGolden *golden = golden_open(file);
  DflashCase c;
  assert_int_equal(dflash_golden_case(golden, 1, &c, NULL), DFLASH_OK);
  float scale = c.tokens.chain[3];
  dflash_case_close(&c);
  dflash_golden_close(golden);
  damage(file, scores, 3, nextafterf(scale, INFINITY) - scale);
  expect_finding(file, 1, "case rewind: select: error scale 'chain': row 0, column 3: ");
  expect_finding(file, 1, "1 of 28 are off");
  drop_attribute(file, "generator");
  golden_is_right(file);
  damage(file, scores, 3, 0.01f * scale);
  expect_finding(file, 1, "case rewind: select: error scale 'chain': row 0, column 3: ");
  unlink(file);
}

static void check_again_finds_scales(const char *kind, int chain) {
  DflashRecipe recipe = golden_recipe("tiny", kind);
  DflashMaterial *material;
  DflashChecker k = {.path = "F", .recompute = 1};
  DflashCase c;
  char *text = NULL;
  size_t size = 0;
  assert_int_equal(dflash_material_open(&recipe, NULL, &material, NULL), DFLASH_OK);
  assert_int_equal(dflash_material_case(material, kind, NULL, &c, NULL), DFLASH_OK);
  DflashValue *value = dflash_case_value(&c, DFLASH_STAGE_ATTN_MIX, 1);
  *(chain ? &value->chain[70] : &value->alone[70]) *= 1.01f;
  k.c = &c, k.geometry = dflash_material_geometry(material), k.out = open_memstream(&text, &size);
  assert_int_equal(dflash_check_again(&k, dflash_material_weights(material), NULL, NULL), DFLASH_OK);
  fclose(k.out);
  if (k.wrong != 1 || !strstr(text, chain ? "attn.mix/1: error scale 'chain': row 1, head 0, channel 6" : "'alone'"))
    fail_msg("%s", text);
  free(text);
  dflash_case_close(&c);
  dflash_material_close(material);
}

static void a_wrong_scale_is_found(void **state) {
  (void)state;
  check_again_finds_scales("main", 0);
  check_again_finds_scales("rewind", 1);
}

/* ---- info ---- */

static char *info_of(const char *path, int json) {
  char *text = NULL;
  size_t size = 0;
  DflashError error = {0};
  DflashGolden *golden = golden_open(path);
  FILE *out = open_memstream(&text, &size);
  if (dflash_golden_info(golden, "F", json, out, &error) != DFLASH_OK) fail_msg("%s", error.message);
  fclose(out);
  dflash_golden_close(golden);
  return text;
}

static void info_is_one_json_object(void **state) {
  (void)state;
  char path[512];
  file_path("sidecar-rewind", path);
  char *text = info_of(path, 1);
  cJSON *info = cJSON_Parse(text), *weights = cJSON_GetObjectItem(info, "weights");
  assert_non_null(info);
  assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(info, "geometry"), "hidden")->valueint == 256);
  assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(weights, "q4tp"), "tensors")->valueint == 14);
  assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(weights, "f16"), "bytes")->valueint == 2 * 1000 * 32 * 2);
  cJSON *c = cJSON_GetArrayItem(cJSON_GetObjectItem(info, "cases"), 0);
  assert_string_equal(cJSON_GetObjectItem(c, "name")->valuestring, "main");
  assert_true(cJSON_IsFalse(cJSON_GetObjectItem(c, "scales")));
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(info, "router")));
  assert_true(cJSON_GetObjectItem(info, "router_rows")->valueint > 0);
  cJSON_Delete(info);
  free(text);
}

static void info_is_text(void **state) {
  (void)state;
  for (int i = 0; i < FILE_COUNT; i++) {
    char path[512];
    file_path(FILES[i], path);
    char *text = info_of(path, 0);
    assert_non_null(strstr(text, "geometry\n") && strstr(text, "weights") && strstr(text, "  main ") ? text : NULL);
    assert_non_null(strstr(text, "no error scales"));
    free(text);
  }
}

static void expect_in_info(const char *path, const char *part) {
  char *text = info_of(path, 0);
  if (!strstr(text, part)) fail_msg("no '%s' in\n%s", part, text);
  free(text);
}

static void info_counts_properly(void **state) {
  (void)state;
  DflashRecipe recipe = golden_recipe("tiny", "main,one-draft,empty,rewind");
  char *text;
  golden_make(&recipe, SCRATCH("info.h5"), 1);
  expect_in_info(SCRATCH("info.h5"), "7 drafts of 509 tokens; 1 operation leaves 0 .. 20\n");
  expect_in_info(SCRATCH("info.h5"), "1 draft of 509 tokens; ");
  expect_in_info(SCRATCH("info.h5"), "; 0 operations leave 0 .. 0\n");
  expect_in_info(SCRATCH("info.h5"), "router: none\n");
  text = info_of(SCRATCH("info.h5"), 1);
  assert_non_null(strstr(text, "\"scales_hash\""));
  assert_null(strstr(text, "router_rows"));
  free(text);
  snprintf(recipe.storage, sizeof recipe.storage, "f16");
  golden_make(&recipe, SCRATCH("info.h5"), 1);
  expect_in_info(SCRATCH("info.h5"), " tensors, ");
  unlink(SCRATCH("info.h5"));
}

static void info_shows_router_and_target(void **state) {
  (void)state;
  char path[512];
  file_path("sidecar-rewind", path);
  expect_in_info(path, "router: rank ");
  DflashRecipe recipe = golden_recipe("", "main");
  recipe.weights_path = DFLASH_GOLDEN_FOLDER "/sidecar-rewind.dflash.cmf";
  recipe.context = 4;
  golden_make(&recipe, SCRATCH("info.h5"), 1);
  expect_in_info(SCRATCH("info.h5"), "; 8 rows with margins\n");
  expect_in_info(SCRATCH("info.h5"), "  trunk_hash64     ");
  unlink(SCRATCH("info.h5"));
}

/* Text from a file cannot steer a terminal. */
static void info_shows_no_control_characters(void **state) {
  (void)state;
  char path[512];
  file_path("operations", path);
  copy_file(path, SCRATCH("info.h5"));
  hid_t id = H5Fopen(SCRATCH("info.h5"), H5F_ACC_RDWR, H5P_DEFAULT), type = H5Tcopy(H5T_C_S1);
  assert_true(H5Adelete(id, "note") >= 0 && H5Tset_size(type, 16) >= 0);
  hid_t space = H5Screate(H5S_SCALAR), note = H5Acreate2(id, "note", type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(note, type, "red \033[31m text\0") >= 0);
  H5Aclose(note), H5Sclose(space), H5Tclose(type), H5Fclose(id);
  expect_in_info(SCRATCH("info.h5"), "red ?[31m text");
  unlink(SCRATCH("info.h5"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(committed_goldens_are_right),
      cmocka_unit_test(without_recompute_nothing_is_called_computed),
      cmocka_unit_test(damage_is_named_with_its_place),
      cmocka_unit_test(two_spacings_are_too_many),
      cmocka_unit_test(tokens_are_compared_exactly),
      cmocka_unit_test(infinite_values_are_found_without_recompute),
      cmocka_unit_test(hashes_and_scales_are_checked),
      cmocka_unit_test(a_wrong_scale_is_found),
      cmocka_unit_test(scales_must_be_finite_and_not_negative),
      cmocka_unit_test(scales_are_compared_to_the_bit),
      cmocka_unit_test(info_counts_properly),
      cmocka_unit_test(info_shows_router_and_target),
      cmocka_unit_test(info_shows_no_control_characters),
      cmocka_unit_test(info_is_one_json_object),
      cmocka_unit_test(info_is_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
