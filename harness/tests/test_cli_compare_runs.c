/* compare-runs on records whose times are chosen, and bench --against on real processes. */
#include "bench_records.h"
#include "program.h"

enum { PAIRS = 16 };
#define A_TIMES \
  { .processes = PAIRS, .block = 1e6, .minute = 0 }
#define B_TIMES \
  { .processes = PAIRS, .block = 1e6, .minute = 1 }

static Program compare(const char *arguments) { return program("compare-runs a.jsonl b.jsonl %s", arguments); }

/* Runs, wants the status and a text on stdout. */
static void expect_told(int status, const char *text, const char *arguments) {
  Program p = compare(arguments);
  expect_status(&p, status);
  assert_string_equal(p.err, "");
  expect_contains(&p, p.out, text);
  program_close(&p);
}

static void write_sides(const BenchFile *a, const BenchFile *b) {
  write_bench_file("a.jsonl", a);
  write_bench_file("b.jsonl", b);
}

static void test_the_same(void **state) {
  (void)state;
  write_sides(&(BenchFile)A_TIMES, &(BenchFile)B_TIMES);
  expect_told(0, "same: the block", "");
  expect_told(0, "units are 16 pairs of processes that ran in turn", "");
  expect_told(0, "10 pairs can call the block, 12 a group", "");
}

static void test_slower_and_faster(void **state) {
  (void)state;
  BenchFile slow = B_TIMES;
  slow.slow = 2;
  slow.slow_by = 1.04; /* 2% of the block */
  write_sides(&(BenchFile)A_TIMES, &slow);
  expect_told(1, "slower: the block +2.00%", "");
  expect_told(1, "called in attention (+2.00% of the block)", "");
  expect_told(1, "part.attention/0", "");
  expect_told(0, "same: the block", "--share 5%");
  Program p = program("compare-runs b.jsonl a.jsonl");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "faster: the block -1.96%");
  program_close(&p);
}

/* A group that moves the block too little to fail it fails by itself. */
static void test_a_group_is_called(void **state) {
  (void)state;
  BenchFile slow = B_TIMES;
  slow.slow = 3;
  slow.slow_by = 1.04;
  write_sides(&(BenchFile)A_TIMES, &slow);
  expect_told(1, "slower: a group; the block +0.80%", "");
  expect_told(1, "called in head", "");
}

/* What ran one side after the other may be off for other reasons. */
static void test_sides_that_ran_apart(void **state) {
  (void)state;
  BenchFile later = {.processes = PAIRS, .block = 1.03e6, .minute = 120};
  write_sides(&(BenchFile)A_TIMES, &later);
  expect_told(5, "one side after the other; assumed: each side as a whole may be off by 1%", "");
  expect_told(1, "slower: the block +3.00%", "--between 0 --share 1%");
  expect_told(0, "same: the block within 5%: +3.00%", "--between 0");
  later.block = 1.1e6;
  write_sides(&(BenchFile)A_TIMES, &later);
  expect_told(1, "slower: the block +10.00%", "");
  later.block = 1e6;
  write_sides(&(BenchFile)A_TIMES, &later);
  expect_told(0, "same: the block within 5%", "");
  expect_told(5, "cannot tell: the interval", "--share 1%");
}

/* B has one process less: no pairs, and still over the same time. */
static void test_sides_that_ran_together(void **state) {
  (void)state;
  BenchFile b = B_TIMES;
  b.processes--;
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(0, "16 and 15 processes that ran over the same time", "");
}

static void test_single_runs(void **state) {
  (void)state;
  write_sides(&(BenchFile){.processes = 1, .block = 1e6}, &(BenchFile){.processes = 1, .block = 1.03e6, .minute = 1});
  expect_told(5, "units are batches of the samples of one process a side", "");
  expect_told(1, "slower: the block +3.00%", "--between 0 --share 1%");
  write_sides(&(BenchFile){.processes = 1, .block = 1e6, .samples = 12}, &(BenchFile){.processes = 1, .block = 2e6});
  expect_told(5, "fewer than 16 samples", "");
}

static void test_too_few(void **state) {
  (void)state;
  write_sides(&(BenchFile){.processes = 3, .block = 1e6}, &(BenchFile){.processes = 3, .block = 9e6, .minute = 1});
  expect_told(5, "too few: 3 and 3 where 10 are needed", "");
  expect_told(5, "no slowdown, however large, can be called with so few", "");
}

static void test_what_is_not_comparable(void **state) {
  (void)state;
  BenchFile b = B_TIMES;
  b.golden = "h";
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(5, "golden is \"g v\" there, \"h v\" on side B", "");
  b.golden = NULL;
  b.profile = "f16";
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(5, "profile is \"exact\" there, \"f16\" on side B", "");
  b.profile = NULL;
  b.cold = 1;
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(5, "caches is \"caches as they were\" there, \"cold\" on side B", "");
  b.cold = 0;
  b.device = "gpu";
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(5, "device is \"cpu\" there, \"gpu\" on side B", "");
  expect_told(0, "same: the block", "--across");
}

static void test_disturbed_runs(void **state) {
  (void)state;
  BenchFile b = B_TIMES;
  b.throttled = 1;
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(0, "same: the block", ""); /* pairs were throttled alike */
  b.minute = 200;
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(5, "throttled (reasons 0x20)", "");
  b.minute = 1;
  b.throttled = 0;
  b.outcome = "not trusted";
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(5, "not trusted: why", "");
  b.outcome = NULL;
  b.load = 7;
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(0, "same: the block", ""); /* pairs had the same load */
  b.minute = 200;
  write_sides(&(BenchFile)A_TIMES, &b);
  expect_told(5, "the machine was busy: load 7.0 on 2 CPUs", "");
  expect_told(0, "one side after the other", "--max-load 0");
}

static void test_several_files_and_both_sides_in_one(void **state) {
  (void)state;
  BenchFile half = {.processes = PAIRS / 2, .block = 1e6}, b = B_TIMES;
  write_bench_file("a1.jsonl", &half);
  half.minute = PAIRS;
  write_bench_file("a2.jsonl", &half);
  write_bench_file("b.jsonl", &b);
  Program p = program("compare-runs a1.jsonl,a2.jsonl b.jsonl");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "units are 16 pairs");
  program_close(&p);
  BenchFile side = {.processes = PAIRS, .block = 1e6, .side = "A"};
  write_bench_file("pairs.jsonl", &side);
  side = (BenchFile){.processes = PAIRS, .block = 1.2e6, .side = "B", .minute = 1};
  append_bench_file("pairs.jsonl", &side);
  p = program("compare-runs pairs.jsonl");
  expect_status(&p, 1);
  program_close(&p);
}

static void test_what_is_written(void **state) {
  (void)state;
  BenchFile slow = B_TIMES;
  slow.slow = 1;
  slow.slow_by = 1.5;
  write_sides(&(BenchFile)A_TIMES, &slow);
  expect_run(1, "compare-runs a.jsonl b.jsonl -q --json c.jsonl --markdown c.md");
  expect_no_leftovers();
  cJSON *records = read_records("c.jsonl");
  assert_int_equal(count_records(records, "comparison"), 1);
  const cJSON *record = cJSON_GetArrayItem(records, 0), *block = cJSON_GetObjectItem(record, "block");
  assert_string_equal(text_in(record, "verdict"), "slower");
  assert_string_equal(text_in(record, "place"), "qkv");
  assert_true(number_in(block, "change") > 0.149 && number_in(block, "change") < 0.151);
  assert_true(number_in(block, "p") <= number_in(block, "rate"));
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(record, "groups")), BENCH_GROUPS);
  assert_true(number_in(last_record(records), "exit") == 1);
  cJSON_Delete(records);
  size_t size;
  char *text = read_whole("c.md", &size);
  assert_non_null(strstr(text, " | +50.00% | "));
  free(text);
}

static void test_bad_input(void **state) {
  (void)state;
  write_sides(&(BenchFile)A_TIMES, &(BenchFile)B_TIMES);
  write_whole("x.jsonl", "{\"schema\":\"else\"}\n", 18);
  write_whole("broken.jsonl", "{\"schema\":\"dflash-rec", 21);
  write_whole("empty.jsonl", "", 0);
  expect_error(2, "nothing.jsonl", "compare-runs a.jsonl nothing.jsonl");
  expect_error(2, "x.jsonl: line 1|no record of schema", "compare-runs a.jsonl x.jsonl");
  expect_error(2, "broken.jsonl: line 1", "compare-runs broken.jsonl a.jsonl");
  expect_error(2, "empty.jsonl: no bench record", "compare-runs empty.jsonl a.jsonl");
  expect_error(2, "no bench record of side A", "compare-runs a.jsonl");
  expect_error(2, "0 are given", "compare-runs");
  expect_error(2, "not written over", "compare-runs a.jsonl b.jsonl --json a.jsonl");
  expect_error(2, "same file", "compare-runs a.jsonl b.jsonl --json c --markdown c");
  expect_error(2, "--between", "compare-runs a.jsonl b.jsonl --between 2");
  expect_error(2, "--max-load", "compare-runs a.jsonl b.jsonl --max-load -1");
}

#define AGAINST "bench t.h5 --case main --backend faulty --max-samples 4 --warmup 0 --no-roofline "

/* A budget for one pair: too few to tell, and everything is recorded. */
static void test_against_within_a_budget(void **state) {
  (void)state;
  Program p = program(AGAINST "--against reference --budget 1ms --each 10ms --json pairs.jsonl");
  expect_status(&p, 5);
  assert_string_equal(p.err, "");
  expect_contains(&p, p.out, "reference (A), faulty (B)");
  expect_contains(&p, p.out, "1 pairs, looked at 1 time");
  program_close(&p);
  cJSON *records = read_records("pairs.jsonl");
  assert_int_equal(count_records(records, "run"), 1);
  assert_int_equal(count_records(records, "bench"), 2);
  assert_int_equal(count_records(records, "comparison"), 1);
  assert_true(number_in(last_record(records), "exit") == 5);
  cJSON_Delete(records);
  expect_run(5, "compare-runs pairs.jsonl -q");
  expect_no_leftovers();
}

/* Another program, here this one again. */
static void test_against_another_program(void **state) {
  (void)state;
  expect_run(5, AGAINST "--against " DFLASH_HARNESS_PROGRAM " --budget 1ms --each 10ms -q --json pairs.jsonl");
  cJSON *records = read_records("pairs.jsonl");
  assert_int_equal(count_records(records, "bench"), 2);
  cJSON_Delete(records);
  expect_error(1, "side A, exit status 1: ", AGAINST "--against /bin/false");
  expect_error(2, "side A: /bin/true wrote no records", AGAINST "--against /bin/true");
}

/* A stage that takes twenty times as long shows on any machine, at the first look. */
static void test_a_planted_slowdown_is_found(void **state) {
  (void)state;
  Program p = program(AGAINST "--option slow=head.logits:20 --against-option base=reference --each 10ms --budget 100s");
  expect_status(&p, 1);
  expect_contains(&p, p.out, "  slower: ");
  expect_contains(&p, p.out, "called in head");
  expect_contains(&p, p.out, "option:slow=head.logits:20");
  program_close(&p);
}

static void test_against_refuses(void **state) {
  (void)state;
  expect_error(3, "side B, exit status 3: backend 'nosuch' is not here",
               "bench t.h5 --backend nosuch --against reference --quiet");
  expect_error(2, "--against goes with none", AGAINST "--against reference --junit r.xml");
  expect_error(2, "--against-option: 'x' is not KEY=VALUE", AGAINST "--against-option x");
  expect_error(1, "side A, exit status 1: attn.conv_in", AGAINST "--against-option defect=conv-taps-reversed");
  expect_no_leftovers();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_same),
      cmocka_unit_test(test_slower_and_faster),
      cmocka_unit_test(test_a_group_is_called),
      cmocka_unit_test(test_sides_that_ran_apart),
      cmocka_unit_test(test_sides_that_ran_together),
      cmocka_unit_test(test_single_runs),
      cmocka_unit_test(test_too_few),
      cmocka_unit_test(test_what_is_not_comparable),
      cmocka_unit_test(test_disturbed_runs),
      cmocka_unit_test(test_several_files_and_both_sides_in_one),
      cmocka_unit_test(test_what_is_written),
      cmocka_unit_test(test_bad_input),
      cmocka_unit_test(test_against_within_a_budget),
      cmocka_unit_test(test_against_another_program),
      cmocka_unit_test(test_a_planted_slowdown_is_found),
      cmocka_unit_test(test_against_refuses),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
