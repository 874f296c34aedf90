/* Timing with small budgets: the record, the clocks, what stops it, rounds. */
#include "program.h"

#define BENCH "bench t.h5 --backend reference -q --json r.jsonl "

static cJSON *records_of(const char *arguments) {
  expect_run(0, BENCH "%s", arguments);
  expect_no_leftovers();
  cJSON *records = read_records("r.jsonl");
  assert_int_equal(count_records(records, "case"), 1); /* one case a golden */
  assert_int_equal(count_records(records, "bench"), 1);
  return records;
}

static const cJSON *bench_of(const cJSON *records) {
  const cJSON *record;
  cJSON_ArrayForEach(record, records) {
    if (strcmp(text_in(record, "type"), "bench") == 0) return record;
  }
  fail_msg("no bench record");
  return NULL;
}

static const cJSON *member(const cJSON *object, const char *name) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
  if (!item) fail_msg("no member %s", name);
  return item;
}

static void expect_statistics(const cJSON *s, int samples) {
  double n = number_in(s, "n"), median = number_in(s, "median");
  assert_true(n == samples);
  assert_true(number_in(s, "min") <= median && median <= number_in(s, "p95"));
  assert_true(number_in(s, "mad") >= 0);
  member(s, "lag1");
  assert_int_equal(cJSON_HasObjectItem(s, "low"), n >= 6);
  if (n >= 6) assert_true(number_in(s, "low") <= median && median <= number_in(s, "high"));
}

static void expect_stages(const cJSON *bench, int samples) {
  const cJSON *stage, *stages = member(bench, "stages");
  assert_true(cJSON_GetArraySize(stages) > 20);
  cJSON_ArrayForEach(stage, stages) {
    expect_statistics(member(stage, "time"), samples);
    assert_true(text_in(stage, "stage")[0] != '\0' && text_in(stage, "group")[0] != '\0');
    assert_true(number_in(stage, "bytes") > 0);
    member(stage, "path");
  }
  cJSON_ArrayForEach(stage, member(bench, "groups")) assert_true(number_in(stage, "ns") > 0);
}

static void test_the_record(void **state) {
  (void)state;
  cJSON *records = records_of("--case main --budget 200ms --max-samples 16");
  const cJSON *bench = bench_of(records), *block = member(bench, "block");
  int samples = cJSON_GetArraySize(member(bench, "samples"));
  assert_in_range(samples, 1, 16);
  assert_string_equal(text_in(bench, "what"), "block");
  assert_string_equal(text_in(bench, "case"), "main");
  assert_string_equal(text_in(member(bench, "parity"), "outcome"), "pass");
  assert_true(number_in(member(bench, "parity"), "largest_score") < 1);
  assert_true(number_in(member(bench, "clock"), "resolution_ns") >= 1);
  expect_statistics(member(block, "device"), samples);
  expect_statistics(member(block, "wall"), samples);
  expect_statistics(member(block, "cpu"), samples);
  assert_true(number_in(member(block, "device"), "min") <= number_in(member(block, "wall"), "min"));
  assert_true(number_in(block, "bytes") > 0 && number_in(block, "operations") > 0);
  expect_stages(bench, samples);
  member(bench, "stamped");
  member(bench, "overhead_share");
  member(bench, "sum_share");
  member(bench, "roofline");
  member(bench, "environment");
  member(bench, "state_before");
  assert_string_equal(text_in(case_of(records, "main"), "modes"), "bench");
  cJSON_Delete(records);
}

/* And it is done once: --resume takes it, a plain block is another measurement. */
static void test_rounds(void **state) {
  (void)state;
  const char *round = "--case main --round 4 --max-samples 8";
  cJSON *records = records_of(round);
  assert_string_equal(text_in(bench_of(records), "what"), "round");
  assert_ptr_equal(strstr(text_in(case_of(records, "main"), "settings"), "round=4 backend_file="),
                   text_in(case_of(records, "main"), "settings"));
  cJSON_Delete(records);
  expect_run(0, BENCH "%s --resume", round);
  records = read_records("r.jsonl");
  assert_int_equal(count_records(records, "bench"), 1);
  assert_int_equal(number_in(last_record(records), "resumed"), 1);
  cJSON_Delete(records);
  expect_run(0, BENCH "--case main --max-samples 8 --resume");
  records = read_records("r.jsonl");
  assert_int_equal(count_records(records, "bench"), 2);
  cJSON_Delete(records);
}

static void test_few_samples_and_output_for_a_person(void **state) {
  (void)state;
  Program p =
      program("bench t.h5 --backend reference --case cut --warmup 0 --max-samples 4 --json r.jsonl --junit r.xml");
  expect_status(&p, 0);
  assert_string_equal(p.err, "");
  expect_contains(&p, p.out, "block t.h5 cut: reference on cpu, profile exact");
  expect_contains(&p, p.out, "attn.mix/1");
  expect_contains(&p, p.out, "none: fewer than 6 samples");
  expect_contains(&p, p.out, "; exit status 0\n");
  program_close(&p);
  cJSON *records = read_records("r.jsonl");
  const cJSON *bench = bench_of(records);
  assert_string_equal(text_in(bench, "stopped_by"), "count");
  expect_statistics(member(member(bench, "block"), "device"), 4);
  cJSON_Delete(records);
  assert_true(file_exists("r.xml"));
  expect_no_leftovers();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_record),
      cmocka_unit_test(test_rounds),
      cmocka_unit_test(test_few_samples_and_output_for_a_person),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
