/* The exit status that follows from what the cases came to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "compare/compare.h"
#include "run/tally.h"

static DflashTally tally_of(const int *outcomes, int count) {
  DflashTally tally = {0};
  for (int i = 0; i < count; i++) dflash_tally_case(&tally.now, outcomes[i]);
  return tally;
}

#define TALLY(...) tally_of((const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

static void expect(DflashTally tally, int status, int with_allow_missing) {
  assert_int_equal(dflash_tally_exit(&tally, 0), status);
  assert_int_equal(dflash_tally_exit(&tally, 1), with_allow_missing);
}

static void test_statuses(void **state) {
  (void)state;
  enum { PASS = DFLASH_OUTCOME_PASS, UNAVAILABLE = DFLASH_OUTCOME_UNAVAILABLE };
  expect((DflashTally){0}, DFLASH_EXIT_NOTHING, DFLASH_EXIT_NOTHING);
  expect(TALLY(PASS), 0, 0);
  expect(TALLY(PASS, DFLASH_OUTCOME_NEAR_TIE), 0, 0);
  expect(TALLY(DFLASH_OUTCOME_NOT_RUN), DFLASH_EXIT_NOTHING, DFLASH_EXIT_NOTHING);
  expect(TALLY(PASS, DFLASH_OUTCOME_NOT_RUN), 0, 0);
  expect(TALLY(DFLASH_OUTCOME_NOT_TRUSTED), DFLASH_EXIT_CANNOT_TELL, DFLASH_EXIT_CANNOT_TELL);
  expect(TALLY(PASS, DFLASH_OUTCOME_NOT_TRUSTED), 0, 0);
  expect(TALLY(UNAVAILABLE), DFLASH_EXIT_UNAVAILABLE, DFLASH_EXIT_SKIPPED);
  expect(TALLY(PASS, UNAVAILABLE), DFLASH_EXIT_UNAVAILABLE, 0);
  expect(TALLY(PASS, DFLASH_OUTCOME_UNSUPPORTED), DFLASH_EXIT_UNAVAILABLE, 0);
  expect(TALLY(UNAVAILABLE, DFLASH_OUTCOME_NOT_TRUSTED), DFLASH_EXIT_UNAVAILABLE, DFLASH_EXIT_CANNOT_TELL);
}

static void test_every_failure_is_wrong(void **state) {
  (void)state;
  for (int outcome = 0; outcome < DFLASH_OUTCOME_COUNT; outcome++)
    if (dflash_outcome_is_failure(outcome))
      expect(TALLY(DFLASH_OUTCOME_PASS, outcome, DFLASH_OUTCOME_UNAVAILABLE), DFLASH_EXIT_WRONG, DFLASH_EXIT_WRONG);
  expect(TALLY(-1), DFLASH_EXIT_WRONG, DFLASH_EXIT_WRONG); /* an unknown one too */
}

static void test_bad_input_stands_behind_wrong(void **state) {
  (void)state;
  DflashTally tally = TALLY(DFLASH_OUTCOME_PASS);
  tally.bad_input = 1;
  expect(tally, DFLASH_EXIT_BAD_INPUT, DFLASH_EXIT_BAD_INPUT);
  dflash_tally_case(&tally.now, DFLASH_OUTCOME_CRASHED);
  expect(tally, DFLASH_EXIT_WRONG, DFLASH_EXIT_WRONG);
}

static void test_earlier_cases_count(void **state) {
  (void)state;
  DflashTally tally = {0};
  dflash_tally_case(&tally.earlier, DFLASH_OUTCOME_PASS);
  expect(tally, 0, 0);
  dflash_tally_case(&tally.earlier, DFLASH_OUTCOME_UNAVAILABLE);
  expect(tally, DFLASH_EXIT_UNAVAILABLE, 0);
  dflash_tally_case(&tally.earlier, DFLASH_OUTCOME_MISMATCH);
  expect(tally, DFLASH_EXIT_WRONG, DFLASH_EXIT_WRONG);
}

static void test_the_record_counts_every_case_once(void **state) {
  (void)state;
  DflashTally tally = {0};
  for (int outcome = 0; outcome < DFLASH_OUTCOME_COUNT; outcome++) dflash_tally_case(&tally.now, outcome);
  dflash_tally_case(&tally.earlier, DFLASH_OUTCOME_PASS);
  cJSON *record = dflash_tally_record(&tally, 1, 0.5);
  static const char *const parts[] = {"passed", "failed", "skipped", "not_run"};
  int sum = 0;
  for (int i = 0; i < 4; i++) sum += cJSON_GetObjectItem(record, parts[i])->valueint;
  assert_int_equal(sum, DFLASH_OUTCOME_COUNT);
  assert_int_equal(cJSON_GetObjectItem(record, "cases")->valueint, DFLASH_OUTCOME_COUNT);
  assert_int_equal(cJSON_GetObjectItem(record, "resumed")->valueint, 1);
  cJSON_Delete(record);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_statuses),
      cmocka_unit_test(test_every_failure_is_wrong),
      cmocka_unit_test(test_bad_input_stands_behind_wrong),
      cmocka_unit_test(test_earlier_cases_count),
      cmocka_unit_test(test_the_record_counts_every_case_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
