/* `selftest` as a user runs it: what is refused, listed, printed and written. */
#include "program.h"

#define ONE "selftest --defect conv-taps-reversed "

/* One line, the backend's own words, before any trial. */
static void what_is_refused_ends_it_at_once(void **state) {
  (void)state;
  expect_error(2, "base is \"nope\"|valid: reference, blas", "selftest --option base=nope");
  expect_error(2, "colour", ONE "--option colour=red");
  expect_error(3, "nowhere", "selftest --backend nowhere");
  expect_error(2, "nowhere/r.jsonl", ONE "--json nowhere/r.jsonl");
}

/* The nearest id comes first. */
static void an_unknown_defect_names_the_closest(void **state) {
  (void)state;
  expect_run(0, "golden make --preset tiny --case main -o t.h5");
  expect_error(2, "\"conv-taps-revers\"; close: conv-taps-reversed, |dflash-harness selftest --list",
               "verify t.h5 --backend faulty --option defect=conv-taps-revers");
}

static void the_list_tells_all(void **state) {
  (void)state;
  Program p = program("selftest --list --defect activations-two-f16");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "1 entry\n");
  assert_null(strstr(p.out, "origin"));
  program_close(&p);
  p = program("selftest --list -v --defect activations-two-f16");
  expect_contains(&p, p.out, "    origin: generic\n    goldens: exact-24bit/exact-24bit");
  expect_contains(&p, p.out, "    exposed by: full mantissas\n    hidden from end values: ");
  program_close(&p);
}

/* First run, then a record a trial and a rate, last the summary. */
static void records_are_whole(void **state) {
  (void)state;
  Program p = program(ONE "--draws 2 --json r.jsonl");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "1 of 1 defects found, 1 at the stage (100.0%); from end values 1 of 1 (100.0%)");
  expect_contains(&p, p.out, "if below 5%: golden that finds it");
  program_close(&p);
  cJSON *records = read_records("r.jsonl");
  assert_string_equal(text_in(cJSON_GetArrayItem(records, 0), "type"), "run");
  const cJSON *summary = last_record(records), *base = cJSON_GetArrayItem(records, cJSON_GetArraySize(records) - 2);
  assert_int_equal(count_records(records, "rate"), 2);
  assert_string_equal(text_in(base, "defect"), "");
  assert_true(number_in(base, "draws") == 2 && number_in(base, "found") == 0 && number_in(base, "broken") == 0);
  assert_string_equal(text_in(summary, "type"), "summary");
  assert_true(number_in(summary, "defects") == 1 && number_in(summary, "found") == 1);
  assert_true(number_in(summary, "correct_runs") == 3 && number_in(summary, "false_alarms") == 0);
  assert_int_equal(count_records(records, "defect"), 5);
  cJSON_Delete(records);
}

static void what_was_not_selected_is_not_summed(void **state) {
  (void)state;
  Program p = program("selftest --defect lawful-backward-fused");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "false alarms: 0 in ");
  assert_null(strstr(p.out, "0 of 0"));
  assert_null(strstr(p.out, "inf"));
  program_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_refused_ends_it_at_once),
      cmocka_unit_test(an_unknown_defect_names_the_closest),
      cmocka_unit_test(the_list_tells_all),
      cmocka_unit_test(records_are_whole),
      cmocka_unit_test(what_was_not_selected_is_not_summed),
  };
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
