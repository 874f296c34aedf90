#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "model/geometry.h"

static const char valid[] = "{\"hidden\": 64, \"intermediate\": 160, \"layers\": 2, \"heads\": 4, \"kv_heads\": 2, "
                            "\"head_dim\": 16, \"vocab\": 509,"
                            "\"block\": 8, \"mask_token\": 508, \"conv_group\": 8, \"conv_kernel\": 2, "
                            "\"selector_rank\": 16, \"selector_top\": 4,"
                            "\"taps\": [2, 0], \"target_layers\": 4, \"window\": 24, \"rope_theta\": 1e4, \"eps\": "
                            "1e-2, \"other\": {\"hidden\": 1}}";

/* Status for the valid object with one key replaced (value NULL: removed). */
static DflashStatus with(const char *key, const char *value, DflashGeometry *geometry, DflashError *error) {
  cJSON *object = cJSON_Parse(valid);
  assert_non_null(object);
  cJSON_DeleteItemFromObjectCaseSensitive(object, key);
  if (value) {
    cJSON *item = cJSON_Parse(value);
    assert_non_null(item);
    cJSON_AddItemToObject(object, key, item);
  }
  DflashStatus status = dflash_geometry_from_json(object, geometry, error);
  cJSON_Delete(object);
  return status;
}

static void a_valid_object_is_read(void **state) {
  (void)state;
  DflashGeometry geometry = {0};
  assert_int_equal(with("nothing", NULL, &geometry, NULL), DFLASH_OK);
  for (size_t i = 0; i < dflash_preset_count(); i++)
    if (strcmp(dflash_preset(i)->name, "tiny") == 0)
      assert_true(dflash_geometry_equal(&geometry, &dflash_preset(i)->geometry));
}

static void presets_survive_a_round_trip(void **state) {
  (void)state;
  for (size_t i = 0; i < dflash_preset_count(); i++) {
    cJSON *object = dflash_geometry_to_json(&dflash_preset(i)->geometry);
    assert_non_null(object);
    assert_true(!cJSON_HasObjectItem(object, "windows") == (dflash_preset(i)->geometry.windows.count == 0));
    char *text = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    object = cJSON_Parse(text);
    free(text);
    DflashGeometry geometry = {0};
    assert_int_equal(dflash_geometry_from_json(object, &geometry, NULL), DFLASH_OK);
    assert_true(dflash_geometry_equal(&geometry, &dflash_preset(i)->geometry));
    cJSON_Delete(object);
  }
}

static void absent_keys_are_named(void **state) {
  (void)state;
  for (size_t i = 0; i < dflash_geometry_field_count(); i++) {
    const DflashField *field = dflash_geometry_field(i);
    DflashGeometry geometry = {.hidden = -7};
    DflashError error = {0};
    char part[64];
    snprintf(part, sizeof part, "'%s' is absent", field->name);
    DflashStatus status = with(field->name, NULL, &geometry, &error);
    assert_int_equal(status, field->may_be_absent ? DFLASH_OK : DFLASH_INVALID_DATA);
    if (field->may_be_absent) continue;
    assert_non_null(strstr(error.message, part));
    assert_true(geometry.hidden == -7); /* untouched on failure */
  }
}

static void wrong_types_are_named(void **state) {
  (void)state;
  static const struct {
    const char *key, *value, *part;
  } cases[] = {{"hidden", "\"64\"", "a string"},
               {"hidden", "null", "null"},
               {"hidden", "true", "a boolean"},
               {"hidden", "[64]", "an array"},
               {"hidden", "{}", "an object"},
               {"hidden", "64.5", "holds 64.5"},
               {"hidden", "1e300", "2^53"},
               {"hidden", "9007199254740993", "2^53"},
               {"hidden", "-9007199254740993", "2^53"},
               {"hidden", "1e999", "2^53"},
               {"eps", "\"1e-6\"", "a string"},
               {"eps", "1e999", "eps is inf"},
               {"eps", "null", "null"},
               {"taps", "3", "a number"},
               {"taps", "[1, \"2\"]", "a string"},
               {"taps", "[1.5]", "1.5"},
               {"windows", "null", "null"},
               {"no_rope", "{}", "an object"},
               {"windows", "[1]", "windows has 1"},
               {"block", "1", "block is 1"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    DflashGeometry geometry;
    DflashError error = {0};
    assert_int_equal(with(cases[i].key, cases[i].value, &geometry, &error), DFLASH_INVALID_DATA);
    if (!strstr(error.message, cases[i].part) || !strstr(error.message, cases[i].key)) fail_msg("%s", error.message);
  }
}

static void integers_may_be_written_as_reals(void **state) {
  (void)state;
  DflashGeometry geometry;
  assert_int_equal(with("hidden", "6.4e1", &geometry, NULL), DFLASH_OK);
  assert_true(geometry.hidden == 64);
  assert_int_equal(with("window", "9007199254740991", &geometry, NULL), DFLASH_OK);
  assert_true(geometry.window == 9007199254740991);
}

static void long_lists_are_refused(void **state) {
  (void)state;
  char text[1024] = "[";
  for (int i = 0; i < DFLASH_LIST_MAX; i++) strcat(text, "0,");
  strcat(text, "0]");
  DflashGeometry geometry;
  DflashError error = {0};
  assert_int_equal(with("taps", text, &geometry, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "'taps' has more than 256"));
}

static void other_json_is_refused(void **state) {
  (void)state;
  DflashGeometry geometry;
  cJSON *array = cJSON_Parse("[1]");
  assert_int_equal(dflash_geometry_from_json(array, &geometry, NULL), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_geometry_from_json(NULL, &geometry, NULL), DFLASH_INVALID_DATA);
  cJSON_Delete(array);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_valid_object_is_read),
      cmocka_unit_test(presets_survive_a_round_trip),
      cmocka_unit_test(absent_keys_are_named),
      cmocka_unit_test(wrong_types_are_named),
      cmocka_unit_test(integers_may_be_written_as_reals),
      cmocka_unit_test(long_lists_are_refused),
      cmocka_unit_test(other_json_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
