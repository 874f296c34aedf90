/* The gate: parity, plausibility and times of a night in one verdict. */
#include "bench_records.h"
#include "program.h"

enum { PAIRS = 16 };
#define BASE \
  { .processes = PAIRS, .block = 1e6 }
#define NIGHT \
  { .processes = PAIRS, .block = 1e6, .minute = 1 }

static void write_nights(double block) {
  write_bench_file("base.jsonl", &(BenchFile)BASE);
  write_bench_file("night.jsonl", &(BenchFile){.processes = PAIRS, .block = block, .minute = 1});
}

static void expect_told(int status, const char *text, const char *arguments) {
  Program p = program("gate %s", arguments);
  expect_status(&p, status);
  assert_string_equal(p.err, "");
  expect_contains(&p, p.out, text);
  program_close(&p);
}

static void write_waiver(const char *measure, const char *until) {
  char text[300];
  int n = snprintf(
      text, sizeof text,
      "{\"waivers\":[{\"id\":\"w1\",\"device\":\"cpu\",\"case\":\"*\",\"until\":\"%s\",\"why\":\"known\",%s}]}", until,
      measure);
  write_whole("w.json", text, (size_t)n);
}

static void test_times(void **state) {
  (void)state;
  write_nights(1e6);
  expect_told(0, "the gate passes", "night.jsonl --baseline base.jsonl");
  expect_told(0, "at most 0.5% of nights on which nothing is slower fail for their times (one in 200)",
              "night.jsonl --baseline base.jsonl");
  expect_told(0, "is seen 98 times in 100 in every case", "night.jsonl --baseline base.jsonl");
  write_nights(1.03e6);
  expect_told(1, "failed: time a.h5 main: reference on cpu", "night.jsonl --baseline base.jsonl");
  write_nights(0.9e6);
  expect_told(0, "noted: time a.h5 main: reference on cpu, profile exact, block, caches as they were: faster",
              "night.jsonl --baseline base.jsonl");
}

static void test_what_cannot_be_told(void **state) {
  (void)state;
  write_nights(1e6);
  write_bench_file("night.jsonl", &(BenchFile){.processes = PAIRS, .block = 1e6, .minute = 200, .throttled = 1});
  expect_told(5, "throttled", "night.jsonl --baseline base.jsonl");
  write_bench_file("night.jsonl", &(BenchFile){.processes = 2, .block = 1e6, .minute = 1});
  expect_told(5, "in one case or more no slowdown can be seen", "night.jsonl --baseline base.jsonl");
  write_bench_file("night.jsonl", &(BenchFile){.processes = PAIRS, .block = 1e6, .golden = "new"});
  expect_told(5, "golden is", "night.jsonl --baseline base.jsonl");
  write_bench_file("night.jsonl", &(BenchFile){.processes = 1, .block = 1e6, .outcome = "not trusted"});
  expect_told(5, "not trusted: why", "night.jsonl --baseline none");
}

/* A baseline of a device that this machine has not is no gap. */
static void test_other_devices_in_the_baseline(void **state) {
  (void)state;
  write_nights(1e6);
  append_bench_file("base.jsonl", &(BenchFile){.processes = 2, .block = 3e6, .device = "gpu"});
  expect_told(0, "the gate passes", "night.jsonl --baseline base.jsonl");
}

static void test_pairs_need_no_baseline(void **state) {
  (void)state;
  write_bench_file("pairs.jsonl", &(BenchFile){.processes = PAIRS, .block = 1e6, .side = "A"});
  append_bench_file("pairs.jsonl", &(BenchFile){.processes = PAIRS, .block = 1.02e6, .side = "B", .minute = 1});
  expect_told(1, "failed: time", "pairs.jsonl --baseline none");
  write_nights(1e6);
  expect_told(1, "(one in 200), over 2 cases", "pairs.jsonl night.jsonl --baseline base.jsonl");
}

static void test_parity(void **state) {
  (void)state;
  expect_run(0, "verify t.h5 --backend reference --case main -q --json good.jsonl");
  expect_run(1, "verify t.h5 --backend faulty --option defect=conv-taps-reversed --case main --mode alone -q --json "
                "bad.jsonl");
  expect_told(0, "the gate passes", "good.jsonl --baseline none");
  expect_told(1, "failed: parity t.h5 main: faulty on cpu", "good.jsonl bad.jsonl --baseline none");
  expect_told(1, "reproduce: dflash-harness verify", "bad.jsonl --baseline none");
  write_waiver("\"score\":1e300", "2026-12-31");
  expect_told(0, "waived: w1 (known)", "bad.jsonl --baseline none --waivers w.json --day 2026-12-31");
  expect_told(1, "its waiver w1 ended on 2026-12-31", "bad.jsonl --baseline none --waivers w.json --day 2027-01-01");
  write_waiver("\"score\":1.01", "2026-12-31");
  expect_told(1, "failed: parity", "bad.jsonl --baseline none --waivers w.json --day 2026-12-31");
  expect_told(0, "excuses nothing here", "good.jsonl --baseline none --waivers w.json --day 2026-12-31");
}

static void test_time_waivers(void **state) {
  (void)state;
  write_nights(1.03e6);
  write_waiver("\"time_share\":0.05", "2026-12-31");
  expect_told(0, "waived: time", "night.jsonl --baseline base.jsonl --waivers w.json --day 2026-12-31");
  expect_told(1, "ended on", "night.jsonl --baseline base.jsonl --waivers w.json --day 2027-12-31");
  write_waiver("\"time_share\":0.02", "2026-12-31");
  expect_told(1, "failed: time", "night.jsonl --baseline base.jsonl --waivers w.json --day 2026-12-31");
}

/* A run that was killed, one whose golden could not be read. */
static void test_runs_that_went_wrong(void **state) {
  (void)state;
  expect_run(0, "verify t.h5 --backend reference --case main -q --json good.jsonl");
  size_t size;
  char *text = read_whole("good.jsonl", &size);
  text[size - 1] = '\0';
  char *last = strrchr(text, '\n');
  write_whole("killed.jsonl", text, (size_t)(last - text) + 1);
  free(text);
  expect_told(5, "did not end: cases may be missing", "killed.jsonl --baseline none");
  write_whole("no.h5", "x", 1);
  expect_run(2, "verify no.h5 --backend reference -q --json none.jsonl");
  expect_told(1, "bad input", "none.jsonl --baseline none");
}

static void test_accept(void **state) {
  (void)state;
  write_nights(1e6);
  remove("kept.jsonl");
  expect_run(0, "gate night.jsonl --baseline none --accept kept.jsonl -q");
  expect_run(0, "gate night.jsonl --baseline kept.jsonl -q"); /* the same processes: pairs of equal times */
  write_bench_file("gpu.jsonl", &(BenchFile){.processes = 2, .block = 3e6, .device = "gpu"});
  expect_run(0, "gate gpu.jsonl --baseline none --accept kept.jsonl -q");
  cJSON *records = read_records("kept.jsonl");
  assert_int_equal(count_records(records, "bench"), PAIRS + 2);
  cJSON_Delete(records);
  write_nights(1.5e6);
  Program p = program("gate night.jsonl --baseline base.jsonl --accept kept.jsonl -q");
  expect_status(&p, 1);
  expect_contains(&p, p.err, "not written: the gate fails");
  program_close(&p);
  expect_run(0, "gate night.jsonl --baseline none --accept kept.jsonl -q"); /* meant to be slower */
  records = read_records("kept.jsonl");
  assert_int_equal(count_records(records, "bench"), PAIRS + 2);
  cJSON_Delete(records);
  expect_no_leftovers();
}

static void test_what_is_written(void **state) {
  (void)state;
  write_nights(1.03e6);
  expect_run(1, "gate night.jsonl --baseline base.jsonl -q --json g.jsonl --junit g.xml --markdown g.md");
  cJSON *records = read_records("g.jsonl");
  const cJSON *gate = last_record(records);
  assert_string_equal(text_in(gate, "type"), "gate");
  assert_int_equal(count_records(records, "comparison"), 1);
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(gate, "findings")),
                   2); /* parity of all processes, and the time */
  assert_true(number_in(gate, "exit") == 1);
  cJSON_Delete(records);
  size_t size;
  char *text = read_whole("g.xml", &size);
  assert_non_null(strstr(text, "tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""));
  free(text);
  text = read_whole("g.md", &size);
  assert_non_null(strstr(text, "**the gate fails"));
  assert_non_null(strstr(text, "one in 200"));
  free(text);
  expect_no_leftovers();
}

static void test_bad_input(void **state) {
  (void)state;
  write_nights(1e6);
  write_whole("empty.jsonl", "", 0);
  write_whole("bad.json", "{\"waivers\":[{}]}", 16);
  expect_error(2, "no results are given", "gate --baseline none");
  expect_error(2, "--baseline is missing", "gate night.jsonl");
  expect_error(2, "nosuch.jsonl", "gate night.jsonl --baseline nosuch.jsonl");
  expect_error(2, "--history is missing", "gate night.jsonl --baseline last-good");
  expect_error(2, "bad.json: waiver 1", "gate night.jsonl --baseline none --waivers bad.json");
  expect_error(2, "--day", "gate night.jsonl --baseline none --day 2026-02-30");
  expect_error(2, "is read: not written over", "gate night.jsonl --baseline base.jsonl --json base.jsonl");
  expect_error(2, "two outputs", "gate night.jsonl --baseline none --json x --junit x");
  expect_run(4, "gate empty.jsonl --baseline none -q");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_times),
      cmocka_unit_test(test_what_cannot_be_told),
      cmocka_unit_test(test_other_devices_in_the_baseline),
      cmocka_unit_test(test_pairs_need_no_baseline),
      cmocka_unit_test(test_parity),
      cmocka_unit_test(test_time_waivers),
      cmocka_unit_test(test_runs_that_went_wrong),
      cmocka_unit_test(test_accept),
      cmocka_unit_test(test_what_is_written),
      cmocka_unit_test(test_bad_input),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
