/* --resume: after a kill, after a broken line, by all that decides what a record says. */
#include "program.h"

#define VERIFY "verify t.h5 --backend reference --json r.jsonl -q "

/* Runs with --resume; how many cases ran and how many were there before. */
static void expect_resume(int status, int ran, int resumed, const char *arguments) {
  Program p = program("%s --resume", arguments);
  expect_status(&p, status);
  program_close(&p);
  cJSON *records = read_records("r.jsonl");
  const cJSON *summary = last_record(records);
  assert_string_equal(text_in(summary, "type"), "summary");
  if (number_in(summary, "cases") != ran || number_in(summary, "resumed") != resumed)
    fail_msg("%s: %g cases ran and %g were there; expected %d and %d", arguments, number_in(summary, "cases"),
             number_in(summary, "resumed"), ran, resumed);
  assert_int_equal(number_in(summary, "exit"), status);
  cJSON_Delete(records);
}

static void expect_every_case_once(void) {
  cJSON *records = read_records("r.jsonl");
  assert_int_equal(count_records(records, "case"), 3);
  case_of(records, "cut");
  case_of(records, "main");
  case_of(records, "rewind");
  cJSON_Delete(records);
}

static void test_after_a_kill(void **state) {
  (void)state;
  const ProgramLimits limits = {.kill_after = 50, .kill_file = "r.jsonl"};
  remove("r.jsonl");
  Program p = program_limited(&limits, VERIFY "--repeat 1000 --junit r.xml");
  assert_int_equal(p.status, -1);
  program_close(&p);
  cJSON *records = read_records("r.jsonl"); /* whole lines only */
  int done = count_records(records, "case");
  assert_int_equal(count_records(records, "summary"), 0);
  cJSON_Delete(records);
  assert_in_range(done, 1, 2);
  expect_resume(0, 3 - done, done, VERIFY "--repeat 1000");
  expect_every_case_once();
}

/* Wherever the file breaks off, what is missing is run again and nothing else. */
static void test_after_a_break(void **state) {
  (void)state;
  size_t size;
  expect_run(0, VERIFY);
  char *text = read_whole("r.jsonl", &size);
  for (size_t i = 0; i <= 12; i++) {
    size_t cut = i == 12 ? size - 1 : size * i / 12;
    int done = 0;
    for (const char *at = text; (at = strstr(at, "\"type\":\"case\"")) != NULL; at++) {
      const char *end = strchr(at, '\n');
      done += end != NULL && (size_t)(end - text) < cut;
    }
    write_whole("r.jsonl", text, cut);
    expect_resume(0, 3 - done, done, VERIFY);
    expect_every_case_once();
  }
  free(text);
}

static void test_a_complete_file(void **state) {
  (void)state;
  expect_run(0, VERIFY);
  expect_resume(0, 0, 3, VERIFY);
  expect_resume(0, 0, 3, VERIFY);
  remove("r.jsonl");
  expect_resume(0, 3, 0, VERIFY); /* no file is an empty one */
}

/* Green must not come of having failed before. */
static void test_what_failed_before_still_fails(void **state) {
  (void)state;
  expect_run(1, "verify t.h5 --backend nan-stage --json r.jsonl -q");
  expect_resume(1, 0, 3, "verify t.h5 --backend nan-stage --json r.jsonl -q");
  expect_run(1, "verify t.h5 --backend crash-cut --json r.jsonl -q");
  expect_resume(1, 0, 3, "verify t.h5 --backend crash-cut --json r.jsonl -q");
  expect_run(3, "verify t.h5 --backend template --json r.jsonl -q");
  expect_resume(3, 3, 0, "verify t.h5 --backend template --json r.jsonl -q"); /* it may run by now */
}

/* A case done in another way is not done. */
static void test_what_decides_a_record(void **state) {
  (void)state;
  static const char *const others[] = {"--mode alone",   "--stage attn.mix", "--layer 1",
                                       "--context load", "--repeat 2",       "--option threads=2"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    char arguments[256];
    expect_run(0, VERIFY "%s", others[i]);
    expect_resume(0, 3, 0, VERIFY);
    snprintf(arguments, sizeof arguments, VERIFY "%s", others[i]);
    expect_resume(0, 0, 3, arguments);
  }
}

static void test_a_backend_by_its_path(void **state) {
  (void)state;
  const char *by_path = "verify t.h5 --backend " DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so --json r.jsonl -q";
  expect_run(0, "%s", by_path);
  expect_resume(0, 0, 3, by_path);
  expect_resume(0, 0, 3, VERIFY "--device cpu");
}

static void test_another_golden_of_the_same_name(void **state) {
  (void)state;
  expect_run(0, "golden make --preset tiny --case main -q -o v.h5");
  expect_run(0, "verify v.h5 --backend reference --json r.jsonl -q");
  expect_run(0, "golden make --preset tiny --case main --seed 2 -q -o v.h5");
  expect_resume(0, 1, 0, "verify v.h5 --backend reference --json r.jsonl -q");
}

static void test_new_cases_join(void **state) {
  (void)state;
  expect_run(0, VERIFY "--case main");
  expect_resume(0, 2, 1, VERIFY);
  expect_every_case_once();
}

static void test_shards_go_on(void **state) {
  (void)state;
  remove("r.jsonl");
  for (int shard = 1; shard <= 3; shard++) {
    char arguments[256];
    snprintf(arguments, sizeof arguments, VERIFY "--shard %d/3", shard);
    expect_resume(0, 1, 0, arguments);
  }
  expect_resume(0, 0, 3, VERIFY);
}

static void test_a_file_of_something_else(void **state) {
  (void)state;
  size_t size;
  static const char notes[] = "my notes\n";
  for (int resume = 0; resume < 2; resume++) {
    write_whole("notes.txt", notes, sizeof notes - 1);
    expect_error(2, "notes.txt: holds something else than records",
                 "verify t.h5 --backend reference -q --json notes.txt %s", resume ? "--resume" : "");
    char *text = read_whole("notes.txt", &size);
    assert_string_equal(text, notes);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_after_a_kill),
      cmocka_unit_test(test_after_a_break),
      cmocka_unit_test(test_a_complete_file),
      cmocka_unit_test(test_what_failed_before_still_fails),
      cmocka_unit_test(test_what_decides_a_record),
      cmocka_unit_test(test_a_backend_by_its_path),
      cmocka_unit_test(test_another_golden_of_the_same_name),
      cmocka_unit_test(test_new_cases_join),
      cmocka_unit_test(test_shards_go_on),
      cmocka_unit_test(test_a_file_of_something_else),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
