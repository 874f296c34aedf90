/* The gate and a history: the last good night as baseline, the newest night as results. */
#include "bench_records.h"
#include "program.h"

enum { PROCESSES = 16, NIGHT = 40 }; /* minutes that a night takes */

/* A night that begins so many minutes after midnight. */
static BenchFile night_at(int minute, double block) {
  return (BenchFile){.processes = PROCESSES, .block = block, .minute = minute};
}

static void expect_told(int status, const char *text, const char *arguments) {
  Program p = program("gate %s", arguments);
  expect_status(&p, status);
  expect_contains(&p, p.out, text);
  assert_string_equal(p.err, "");
  program_close(&p);
}

static void add_night(int minute, double block) {
  const BenchFile night = night_at(minute, block);
  write_bench_file("one.jsonl", &night);
  expect_run(0, "history import one.jsonl --history h.db");
}

static void test_the_last_night_is_the_baseline(void **state) {
  (void)state;
  remove("h.db");
  add_night(0, 1e6);
  const BenchFile same = night_at(600, 1e6), slower = night_at(600, 1.2e6);
  write_bench_file("now.jsonl", &same);
  expect_told(0, "the gate passes", "now.jsonl --baseline last-good --history h.db");
  write_bench_file("now.jsonl", &slower);
  expect_told(1, "failed: time a.h5 main: reference on cpu", "now.jsonl --baseline last-good --history h.db");
}

/* The night itself is in the history as well: it is not its own baseline. */
static void test_a_night_is_not_held_against_itself(void **state) {
  (void)state;
  remove("h.db");
  add_night(0, 1e6);
  add_night(600, 1.2e6);
  expect_told(1, "failed: time a.h5 main: reference on cpu", "one.jsonl --baseline last-good --history h.db");
}

static void test_the_first_night_cannot_tell(void **state) {
  (void)state;
  remove("h.db");
  add_night(0, 1e6);
  expect_told(5, "only on side B", "one.jsonl --baseline last-good --history h.db");
}

/* Other goldens, devices and outcomes are no baseline. */
static void test_only_what_is_alike_counts(void **state) {
  (void)state;
  remove("h.db");
  BenchFile others[] = {night_at(0, 2e6), night_at(100, 2e6), night_at(200, 2e6)};
  others[0].golden = "another";
  others[1].device = "gpu";
  others[2].outcome = "not trusted";
  for (int i = 0; i < 3; i++) {
    write_bench_file("one.jsonl", &others[i]);
    expect_run(0, "history import one.jsonl --history h.db");
  }
  const BenchFile now = night_at(600, 1e6);
  write_bench_file("now.jsonl", &now);
  expect_told(5, "only on side B", "now.jsonl --baseline last-good --history h.db");
  add_night(300, 1e6);
  expect_told(0, "the gate passes", "now.jsonl --baseline last-good --history h.db");
}

static void test_the_newest_night_is_judged(void **state) {
  (void)state;
  remove("h.db");
  add_night(0, 1e6);
  expect_told(0, "the gate passes: 1 finding,", "--baseline none --history h.db");
}

static void test_runs_are_compared_by_number(void **state) {
  (void)state;
  remove("h.db");
  add_night(0, 1e6);
  Program p = program("compare-runs h.db#1 h.db#2");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "same: the block");
  program_close(&p);
  expect_error(2, "h.db: has no result of run 99", "compare-runs h.db#1 h.db#99");
  expect_error(2, "'1x' is no number of a run", "compare-runs h.db#1x h.db#1");
  expect_error(2, "one.jsonl: is no history", "compare-runs one.jsonl#1 h.db#1");
}

static void test_a_branch_that_is_none(void **state) {
  (void)state;
  remove("h.db");
  add_night(0, 1e6);
  expect_error(3, "git names no revisions of branch 'no-such-branch'",
               "gate one.jsonl --baseline branch:no-such-branch --history h.db");
  expect_error(2, "'--all' is no name of a branch", "gate one.jsonl --baseline branch:--all --history h.db");
}

/* Pairs go into the history with their sides, and come out as they went in. */
/* What one pair says of a program against itself depends on the machine's load; that the history says the same does
 * not. */
static void test_pairs_in_a_history(void **state) {
  (void)state;
  remove("h.db");
  Program pair = program(
      "bench t.h5 --case main --backend reference --against reference --max-samples 20 --budget 1ms --each 100s -q "
      "--history h.db --json pairs.jsonl");
  if (pair.status != 0 && pair.status != 1) expect_status(&pair, 5);
  program_close(&pair);
  cJSON *records = read_records("pairs.jsonl");
  assert_int_equal(count_records(records, "comparison"), 1);
  cJSON_Delete(records);
  Program from_file = program("compare-runs pairs.jsonl --max-load 0"), p = program("compare-runs h.db#1 --max-load 0");
  expect_status(&p, from_file.status);
  assert_string_equal(p.out, from_file.out);
  program_close(&p);
  program_close(&from_file);
  expect_no_leftovers();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_last_night_is_the_baseline), cmocka_unit_test(test_a_night_is_not_held_against_itself),
      cmocka_unit_test(test_the_first_night_cannot_tell),    cmocka_unit_test(test_only_what_is_alike_counts),
      cmocka_unit_test(test_the_newest_night_is_judged),     cmocka_unit_test(test_runs_are_compared_by_number),
      cmocka_unit_test(test_a_branch_that_is_none),          cmocka_unit_test(test_pairs_in_a_history)};
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
