/* Backends that are wrong on purpose: the right outcome at the right stage, and the other cases' results survive. */
#include "program.h"

#include <time.h>

/* Runs and reads what --json holds. */
static cJSON *records_of(int status, const char *arguments) {
  expect_run(status, "verify t.h5 %s -q --json r.jsonl --junit r.xml", arguments);
  expect_no_leftovers();
  cJSON *records = read_records("r.jsonl");
  assert_int_equal(number_in(last_record(records), "exit"), status);
  return records;
}

/* The case's verdict that is no pass; fails the test unless there is one a mode at most. */
static void expect_case(const cJSON *records, const char *name, const char *outcome, const char *mode,
                        const char *stage, int layer) {
  const cJSON *record = case_of(records, name);
  assert_string_equal(text_in(record, "outcome"), outcome);
  if (strcmp(outcome, "pass") == 0) return;
  const cJSON *verdict = verdict_of(records, name, mode, stage, layer);
  if (!verdict) fail_msg("%s: no verdict of %s %s/%d", name, mode, stage, layer);
  assert_string_equal(text_in(verdict, "outcome"), outcome);
  assert_true(number_in(record, "failed") >= 1);
  assert_true(text_in(record, "message")[0] != '\0');
  expect_run(1, "%s -q", text_in(record, "reproduce") + strlen("dflash-harness "));
}

typedef struct Wrong {
  const char *backend, *outcome, *mode, *stage;
  int layer;
} Wrong;

static void test_wrong_values(void **state) {
  (void)state;
  static const Wrong wrong[] = {
      {"nan-stage", "nonfinite", "alone", "attn.mix", 0},
      {"nan-stage", "nonfinite", "chain", "attn.mix", 0},
      {"nan-stage", "nonfinite", "local", "attn.mix", 0},
      {"unwritten-stage", "unwritten", "alone", "attn.mix", 0},
      {"unwritten-stage", "unwritten", "chain", "attn.mix", 0},
      {"overrun-stage", "overrun", "alone", "attn.mix", 0},
      {"overrun-stage", "overrun", "chain", "attn.mix", 0},
      {"off-stage", "mismatch", "alone", "attn.mix", 0},
      {"off-stage", "mismatch", "chain", "attn.mix", 0},
      {"off-stage", "mismatch", "local", "attn.mix", 0},
      {"unrepeatable", "unrepeatable", "chain", "repeat", -1},
      {"error-block", "error", "chain", "block", -1},
      {"crash-block", "crashed", "chain", "block", -1},
      {"crash-block", "crashed", "local", "block", -1},
      {"exit-block", "crashed", "chain", "block", -1},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char arguments[128];
    snprintf(arguments, sizeof arguments, "--case main --backend %s --mode %s", wrong[i].backend, wrong[i].mode);
    cJSON *records = records_of(1, arguments);
    bool block = strcmp(wrong[i].stage, "block") == 0; /* the production run, whatever it is judged by */
    expect_case(records, "main", wrong[i].outcome, block ? "chain" : wrong[i].mode, wrong[i].stage, wrong[i].layer);
    cJSON_Delete(records);
  }
}

static void test_the_first_divergence(void **state) {
  (void)state;
  cJSON *records = records_of(1, "--case main --backend off-stage");
  const cJSON *first = cJSON_GetObjectItem(case_of(records, "main"), "first");
  assert_string_equal(text_in(first, "stage"), "attn.mix");
  assert_int_equal(number_in(first, "layer"), 0);
  assert_int_equal(number_in(first, "bad"), 1);
  assert_string_equal(text_in(first, "place"), "row 4, head 0, channel 0");
  assert_true(number_in(first, "score") > 2);
  assert_non_null(
      strstr(text_in(case_of(records, "main"), "reproduce"), "--case main --stage attn.mix --layer 0 --mode alone"));
  assert_string_equal(text_in(verdict_of(records, "main", "alone", "attn.mix", 1), "outcome"), "pass");
  cJSON_Delete(records);
}

/* What only a second look finds: bookkeeping, later blocks, sequences that capture nothing, claims about stages. */
static void test_what_a_first_block_does_not_show(void **state) {
  (void)state;
  static const struct {
    const char *backend, *outcome, *message;
  } wrong[] = {
      {"keeps-rows", "error", "says that it holds"},
      {"late-overrun", "overrun", "block.logits: wrote outside its output: element 1 past its end"},
      {"second-plain", "mismatch", "chosen"},
      {"false-cover", "error", "stage_info of attn.mix/0: not materialised, and covered_by 9999"},
      {"load-swaps", "mismatch", "layer 0 does not hold the rows that were loaded"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char arguments[100];
    snprintf(arguments, sizeof arguments, "--case rewind --backend %s", wrong[i].backend);
    cJSON *records = records_of(1, arguments);
    const cJSON *record = case_of(records, "rewind");
    assert_string_equal(text_in(record, "outcome"), wrong[i].outcome);
    if (!strstr(text_in(record, "message"), wrong[i].message)) fail_msg("%s", text_in(record, "message"));
    cJSON_Delete(records);
  }
  expect_run(1, "bench t.h5 -q --backend half-clock --budget 200ms");
}

/* Stages alone are right: found before the block, they stay in the record of a case that crashed in it. */
static void test_what_was_found_before_a_crash_stays(void **state) {
  (void)state;
  static const char *const backends[] = {"crash-block", "exit-block", "error-block"};
  for (int i = 0; i < 3; i++) {
    char arguments[128];
    snprintf(arguments, sizeof arguments, "--backend %s --mode alone,chain", backends[i]);
    cJSON *records = records_of(1, arguments);
    assert_int_equal(count_records(records, "case"), 3);
    assert_string_equal(text_in(verdict_of(records, "rewind", "alone", "attn.mix", 1), "outcome"), "pass");
    assert_int_equal(number_in(case_of(records, "rewind"), "failed"), 1);
    assert_true(number_in(case_of(records, "rewind"), "passed") > 40);
    cJSON_Delete(records);
    snprintf(arguments, sizeof arguments, "--backend %s --mode alone", backends[i]);
    cJSON_Delete(records_of(0, arguments));
  }
}

static void test_the_other_cases_survive_a_crash(void **state) {
  (void)state;
  cJSON *records = records_of(1, "--backend crash-cut");
  expect_case(records, "cut", "crashed", "chain", "block", -1);
  expect_case(records, "main", "pass", "", "", -1);
  expect_case(records, "rewind", "pass", "", "", -1);
  assert_int_equal(number_in(last_record(records), "passed"), 2);
  assert_int_equal(number_in(last_record(records), "failed"), 1);
  cJSON_Delete(records);
}

static void test_a_hang_ends(void **state) {
  (void)state;
  time_t begin = time(NULL);
  cJSON *records = records_of(1, "--backend hang-block --timeout 400ms");
  assert_true(time(NULL) - begin < 20);
  const char *const names[] = {"cut", "main", "rewind"};
  for (int i = 0; i < 3; i++) {
    assert_string_equal(text_in(case_of(records, names[i]), "outcome"), "hung");
    assert_string_equal(text_in(case_of(records, names[i]), "message"),
                        "the backend made no progress for 0.4 s in chain block");
    assert_non_null(verdict_of(records, names[i], "chain", "block", -1));
  }
  cJSON_Delete(records);
}

static void test_crashes_outside_of_a_case(void **state) {
  (void)state;
  static const Wrong wrong[] = {{"crash-open", "crashed", "-", "model", -1},
                                {"crash-load", "crashed", "-", "backend", -1}};
  for (int i = 0; i < 2; i++) {
    char arguments[64];
    snprintf(arguments, sizeof arguments, "--backend %s", wrong[i].backend);
    cJSON *records = records_of(1, arguments);
    assert_int_equal(count_records(records, "case"), 3);
    expect_case(records, "cut", "crashed", "-", wrong[i].stage, -1);
    expect_case(records, "rewind", "crashed", "-", wrong[i].stage, -1);
    cJSON_Delete(records);
  }
}

/* Every case passed, and yet it is not well. */
static void test_a_crash_at_the_end(void **state) {
  (void)state;
  cJSON *records = records_of(1, "--backend crash-close");
  expect_case(records, "main", "pass", "", "", -1);
  assert_string_equal(text_in(case_of(records, "(end)"), "outcome"), "crashed");
  assert_non_null(strstr(text_in(case_of(records, "(end)"), "message"), "while it closed the model"));
  assert_non_null(verdict_of(records, "(end)", "-", "close", -1));
  cJSON_Delete(records);
}

static void test_those_that_do_not_load(void **state) {
  (void)state;
  static const char *const backends[][2] = {{"wrong-abi", "built for ABI 2, this harness takes ABI 1"},
                                            {"no-symbol", "no symbol 'dflash_backend'"},
                                            {"no-member", "required member 'read_context' is NULL"},
                                            {"small-struct", "the required members take"}};
  for (int i = 0; i < 4; i++) {
    expect_error(3, backends[i][1], "verify t.h5 --backend %s -q --json r.jsonl", backends[i][0]);
    cJSON *records = read_records("r.jsonl");
    assert_int_equal(count_records(records, "case"), 3);
    assert_string_equal(text_in(case_of(records, "main"), "outcome"), "unavailable");
    assert_int_equal(number_in(last_record(records), "skipped"), 3);
    cJSON_Delete(records);
    expect_run(77, "verify t.h5 --backend %s -q --allow-missing", backends[i][0]);
  }
}

static void test_repeated_failures_are_counted(void **state) {
  (void)state;
  cJSON *records = records_of(1, "--case main --backend off-stage --mode chain --repeat 3");
  const cJSON *repeat = verdict_of(records, "main", "chain", "repeat", -1);
  assert_int_equal(number_in(repeat, "runs"), 3);
  assert_int_equal(number_in(repeat, "failed_runs"), 3);
  assert_string_equal(text_in(repeat, "note"), "3 of 3 runs fail, first at attn.mix/0");
  cJSON_Delete(records);
  records = records_of(1, "--case main --backend unrepeatable --mode chain --repeat 5");
  repeat = verdict_of(records, "main", "chain", "repeat", -1);
  assert_int_equal(number_in(repeat, "failed_runs"), 0); /* a last bit is within the scale */
  assert_string_equal(text_in(repeat, "outcome"), "unrepeatable");
  assert_non_null(strstr(text_in(repeat, "note"), "first at attn.mix/0"));
  cJSON_Delete(records);
}

/* stdout is for the tool's own words. */
static void test_a_backend_that_talks(void **state) {
  (void)state;
  Program p = program("verify t.h5 --backend talk --case main");
  expect_status(&p, 0);
  assert_null(strstr(p.out, "talk: on stdout"));
  expect_contains(&p, p.err, "talk: on stdout");
  program_close(&p);
}

static void test_a_process_left_behind(void **state) {
  (void)state;
  time_t begin = time(NULL);
  cJSON_Delete(records_of(0, "--backend helper --timeout 60s"));
  assert_true(time(NULL) - begin < 20);
}

static void test_nothing_wrong_is_timed(void **state) {
  (void)state;
  static const char *const backends[][2] = {
      {"nan-stage", "nonfinite"}, {"off-stage", "mismatch"}, {"error-block", "error"}, {"crash-block", "crashed"}};
  for (int i = 0; i < 4; i++) {
    expect_run(1, "bench t.h5 --backend %s --case main --budget 100ms -q --json r.jsonl", backends[i][0]);
    cJSON *records = read_records("r.jsonl");
    assert_int_equal(count_records(records, "bench"), 0);
    assert_string_equal(text_in(case_of(records, "main"), "outcome"), backends[i][1]);
    assert_true(text_in(case_of(records, "main"), "reproduce")[0] != '\0');
    cJSON_Delete(records);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wrong_values),
      cmocka_unit_test(test_the_first_divergence),
      cmocka_unit_test(test_what_a_first_block_does_not_show),
      cmocka_unit_test(test_what_was_found_before_a_crash_stays),
      cmocka_unit_test(test_the_other_cases_survive_a_crash),
      cmocka_unit_test(test_a_hang_ends),
      cmocka_unit_test(test_crashes_outside_of_a_case),
      cmocka_unit_test(test_a_crash_at_the_end),
      cmocka_unit_test(test_those_that_do_not_load),
      cmocka_unit_test(test_repeated_failures_are_counted),
      cmocka_unit_test(test_a_backend_that_talks),
      cmocka_unit_test(test_a_process_left_behind),
      cmocka_unit_test(test_nothing_wrong_is_timed),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
