#include <math.h>

#include "compare/compare.h"
#include "records.h"
#include "store/fields.h"
#include "store/units.h"

static void members_are_read(void **state) {
  (void)state;
  cJSON *record =
      make_record("{'type':'verdict','stage':'attn.mix','layer':2,'a':'inf','b':'-inf','c':'nan','d':true}");
  char label[32];
  assert_true(dflash_record_is(record, "verdict"));
  assert_false(dflash_record_is(record, "case"));
  assert_string_equal(dflash_record_label(record, label, sizeof label), "attn.mix/2");
  assert_true(dflash_field_number(record, "a") == INFINITY && dflash_field_number(record, "b") == -INFINITY);
  assert_true(isnan(dflash_field_number(record, "c")) && isnan(dflash_field_number(record, "none")));
  assert_true(dflash_field_true(record, "d"));
  assert_string_equal(dflash_field_text(record, "layer"), "");
  assert_string_equal(dflash_field_text(NULL, "x"), "");
  assert_true(isnan(dflash_field_number(NULL, "x")));
  cJSON_Delete(record);
}

static void lines_hold_what_json_cannot(void **state) {
  (void)state;
  cJSON *record = cJSON_CreateObject();
  cJSON_AddNumberToObject(record, "a", NAN);
  cJSON_AddNumberToObject(record, "b", -INFINITY);
  cJSON_AddNumberToObject(record, "c", 0.1);
  cJSON_AddStringToObject(record, "d\xff", "x\n\x01\xfe");
  cJSON *list = cJSON_AddArrayToObject(record, "e");
  cJSON_AddItemToArray(list, cJSON_CreateNumber(INFINITY));
  char *line = dflash_record_line(record);
  assert_string_equal(
      line, "{\"a\":\"nan\",\"b\":\"-inf\",\"c\":0.1,\"d\xef\xbf\xbd\":\"x\\n\\u0001\xef\xbf\xbd\",\"e\":[\"inf\"]}");
  assert_true(isnan(cJSON_GetObjectItem(record, "a")->valuedouble)); /* the record itself is as it was */
  free(line);
  cJSON_Delete(record);
}

/* The names that comparison gives, so that neither list can change alone. */
static void outcome_classes_agree_with_compare(void **state) {
  (void)state;
  for (int outcome = 0; outcome < DFLASH_OUTCOME_COUNT; outcome++) {
    DflashOutcomeClass class = dflash_outcome_class(dflash_outcome_name(outcome));
    bool failure = class == DFLASH_OUTCOME_FAILED || class == DFLASH_OUTCOME_BROKEN;
    assert_int_equal(failure, dflash_outcome_is_failure(outcome));
    bool passed = outcome == DFLASH_OUTCOME_PASS || outcome == DFLASH_OUTCOME_NEAR_TIE;
    assert_int_equal(class == DFLASH_OUTCOME_PASSED, passed);
    bool broken =
        outcome == DFLASH_OUTCOME_ERROR || outcome == DFLASH_OUTCOME_CRASHED || outcome == DFLASH_OUTCOME_HUNG;
    assert_int_equal(class == DFLASH_OUTCOME_BROKEN, broken);
  }
  assert_int_equal(dflash_outcome_class(""), DFLASH_OUTCOME_FAILED);
  assert_int_equal(dflash_outcome_class("splendid"), DFLASH_OUTCOME_FAILED);
}

static void units_are_readable(void **state) {
  (void)state;
  char text[DFLASH_UNITS_MAX];
  assert_string_equal(dflash_show_time(0, text), "0.000 ns");
  assert_string_equal(dflash_show_time(812, text), "812.0 ns");
  assert_string_equal(dflash_show_time(1234, text), "1.234 us");
  assert_string_equal(dflash_show_time(999960, text), "1.000 ms");
  assert_string_equal(dflash_show_time(12.5e6, text), "12.50 ms");
  assert_string_equal(dflash_show_time(7.2e12, text), "7200 s");
  assert_string_equal(dflash_show_time(NAN, text), "-");
  assert_string_equal(dflash_show_bytes(1.32e9, text), "1.320 GB");
  assert_string_equal(dflash_show_giga(4.6e12, text), "4600");
  assert_string_equal(dflash_show_giga(12.3456e9, text), "12.35");
  assert_string_equal(dflash_show_share(0.1234, text), "12.3%");
  assert_string_equal(dflash_show_share(NAN, text), "-");
  assert_string_equal(dflash_show_score(INFINITY, text), "inf");
  assert_string_equal(dflash_show_number(0.1f, text), "0.100000001");
  assert_string_equal(dflash_show_number(NAN, text), "nan");
  assert_true(strlen(dflash_show_bytes(1e300, text)) < DFLASH_UNITS_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(members_are_read),
      cmocka_unit_test(lines_hold_what_json_cannot),
      cmocka_unit_test(outcome_classes_agree_with_compare),
      cmocka_unit_test(units_are_readable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
