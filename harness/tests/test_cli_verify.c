/* Verifying, from the command line to the records: every option, every record, every count. */
#include "program.h"

#include "dflash/stages.h"

#define VERIFY "verify t.h5 --backend reference "

static int count_of(const char *text, const char *part) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) count++;
  return count;
}

/* Runs and reads what --json holds. */
static cJSON *records_of(int status, const char *arguments) {
  expect_run(status, VERIFY "%s -q --json r.jsonl", arguments);
  expect_no_leftovers();
  return read_records("r.jsonl");
}

static void expect_members(const cJSON *record, const char *names) {
  char *copy = strdup(names), *rest = NULL;
  for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
    if (!cJSON_GetObjectItemCaseSensitive(record, name)) fail_msg("%s: no member %s", text_in(record, "type"), name);
  free(copy);
}

static void test_records_are_as_documented(void **state) {
  (void)state;
  cJSON *records = records_of(0, "--mode alone,chain,local");
  const cJSON *record = cJSON_GetArrayItem(records, 0);
  assert_string_equal(text_in(record, "type"), "run");
  expect_members(record, "command tool backend environment");
  assert_non_null(strstr(text_in(record, "command"), VERIFY));
  assert_int_equal(strncmp(text_in(record, "tool"), "dflash-harness ", 15), 0);
  assert_int_equal(count_records(records, "model"), 1);
  cJSON_ArrayForEach(record, records) {
    const char *type = text_in(record, "type");
    if (strcmp(type, "model") == 0)
      expect_members(record, "backend backend_version device device_name driver is_cpu profile options path repeatable "
                             "resident_bytes open_s");
    if (strcmp(type, "verdict") == 0) {
      expect_members(record, "file case backend device profile mode stage outcome inherited inputs_hash");
      if (cJSON_GetObjectItem(record, "score"))
        expect_members(record, "elements bad place got expected sigma pattern max_abs max_rel nmse cosine max_ulp");
    }
    if (strcmp(type, "case") == 0)
      expect_members(record, "file case backend device profile modes outcome passed failed other largest_score "
                             "elapsed_s inputs_hash values_hash settings");
  }
  record = last_record(records);
  assert_string_equal(text_in(record, "type"), "summary");
  expect_members(record, "cases passed failed skipped not_run resumed bad_input exit elapsed_s");
  assert_int_equal(number_in(record, "cases"), 3);
  assert_int_equal(number_in(record, "passed"), 3);
  assert_int_equal(number_in(record, "exit"), 0);
  cJSON_Delete(records);
}

static void test_counts_add_up(void **state) {
  (void)state;
  cJSON *records = records_of(0, "--mode alone,chain,local");
  int passed = 0, other = 0;
  const cJSON *record;
  cJSON_ArrayForEach(record, records) {
    if (strcmp(text_in(record, "type"), "case") != 0) continue;
    passed += (int)number_in(record, "passed");
    other += (int)number_in(record, "other");
    assert_int_equal(number_in(record, "failed"), 0);
    assert_true(number_in(record, "largest_score") > 0 && number_in(record, "largest_score") < 1);
  }
  assert_int_equal(passed + other, count_records(records, "verdict"));
  assert_true(passed > 300);
  cJSON_Delete(records);
}

/* Every stage and layer once a mode. */
static void test_every_stage_is_judged_in_every_mode(void **state) {
  (void)state;
  static const char *const modes[] = {"alone", "chain", "local"};
  cJSON *records = records_of(0, "--mode alone,chain,local --case main");
#define EXPECT_STAGE(id, name, ...) \
  for (int m = 0; m < 3; m++)       \
    if (!verdict_of(records, "main", modes[m], name, -1)) fail_msg("no %s %s", modes[m], name);
  DFLASH_STAGES(EXPECT_STAGE)
  assert_non_null(verdict_of(records, "main", "chain", "attn.mix", 1));
  assert_null(verdict_of(records, "main", "chain", "attn.mix", 2));
  assert_non_null(verdict_of(records, "main", "chain", "context_state.k", 0));
  assert_non_null(verdict_of(records, "main", "chain", "repeat", -1));
  cJSON_Delete(records);
}

static void test_modes_are_those_asked_for(void **state) {
  (void)state;
  static const char *const modes[] = {"alone", "chain", "local"};
  for (int m = 0; m < 3; m++) {
    char arguments[64];
    snprintf(arguments, sizeof arguments, "--case main --mode %s", modes[m]);
    cJSON *records = records_of(0, arguments);
    for (int other = 0; other < 3; other++)
      assert_int_equal(verdict_of(records, "main", modes[other], "attn.mix", 0) != NULL, other == m);
    assert_string_equal(text_in(case_of(records, "main"), "modes"), modes[m]);
    cJSON_Delete(records);
  }
  cJSON *records = records_of(0, "--case main");
  assert_string_equal(text_in(case_of(records, "main"), "modes"), "alone,chain"); /* it enters every stage alone */
  cJSON_Delete(records);
}

static int verdicts_of(const char *arguments) {
  cJSON *records = records_of(0, arguments);
  int count = count_records(records, "verdict");
  cJSON_Delete(records);
  return count;
}

static void test_stages_and_layers(void **state) {
  (void)state;
  assert_int_equal(verdicts_of("--case main --mode alone --stage attn.mix"), 2);
  assert_int_equal(verdicts_of("--case main --mode alone --stage attn.mix/1"), 1);
  assert_int_equal(verdicts_of("--case main --mode alone --stage attn.mix --layer 0"), 1);
  assert_int_equal(verdicts_of("--case main --mode alone --stage attn.*,select --layer 1"), 11);
  assert_int_equal(verdicts_of("--case main --mode chain --stage attn.mix,final.norm"), 3);
  assert_int_equal(verdicts_of("--case main --mode local --stage head.logits"), 1);
  cJSON *records = records_of(0, "--case main --mode alone --stage attn.mix --layer 1");
  assert_non_null(verdict_of(records, "main", "alone", "attn.mix", 1));
  assert_ptr_equal(strstr(text_in(case_of(records, "main"), "settings"), "stage=attn.mix layer=1 backend_file="),
                   text_in(case_of(records, "main"), "settings"));
  cJSON_Delete(records);
}

/* Profiles have no scales in the file: each mode makes those that it judges by, the laws' as well. */
static void test_modes_of_a_profile(void **state) {
  (void)state;
  static const char *modes[] = {"alone", "chain", "local"};
  for (int i = 0; i < 3; i++)
    expect_run(0, "verify %s --backend reference -q --profile f16 --mode %s", FIXTURE_FILE("tiny-f32.h5"), modes[i]);
}

static void test_a_loaded_context(void **state) {
  (void)state;
  cJSON *records = records_of(0, "--context load --mode alone,chain,local");
  for (int m = 0; m < 2; m++) {
    const cJSON *verdict = verdict_of(records, "rewind", m ? "chain" : "alone", "context.k", 0);
    assert_non_null(verdict);
    assert_string_equal(text_in(verdict, "outcome"), "not run");
  }
  assert_string_equal(text_in(verdict_of(records, "rewind", "chain", "context_state.k", 1), "outcome"), "pass");
  assert_string_equal(text_in(verdict_of(records, "rewind", "chain", "attn.mix", 1), "outcome"), "pass");
  cJSON_Delete(records);
}

static void test_shards_hold_every_case_once(void **state) {
  (void)state;
  copy_whole("t.h5", "u.h5");
  for (int shards = 1; shards <= 7; shards += 2) {
    int seen[2][3] = {{0}};
    static const char *const names[] = {"cut", "main", "rewind"};
    for (int shard = 1; shard <= shards; shard++) {
      expect_run(shard <= 6 ? 0 : 4,
                 "verify t.h5 u.h5 --backend reference --mode chain --shard %d/%d -q --json s.jsonl", shard, shards);
      cJSON *records = read_records("s.jsonl");
      const cJSON *record;
      cJSON_ArrayForEach(record, records) {
        if (strcmp(text_in(record, "type"), "case") != 0) continue;
        for (int c = 0; c < 3; c++)
          seen[text_in(record, "file")[0] == 'u'][c] += strcmp(text_in(record, "case"), names[c]) == 0;
      }
      cJSON_Delete(records);
    }
    for (int i = 0; i < 6; i++) assert_int_equal(seen[i / 3][i % 3], 1);
  }
}

static void test_repeats(void **state) {
  (void)state;
  cJSON *records = records_of(0, "--case main --repeat 4");
  const cJSON *repeat = verdict_of(records, "main", "chain", "repeat", -1);
  assert_int_equal(number_in(repeat, "runs"), 4);
  assert_int_equal(number_in(repeat, "failed_runs"), 0);
  cJSON_Delete(records);
}

static void test_junit_counts_match(void **state) {
  (void)state;
  cJSON *records = records_of(0, "--context load --junit r.xml");
  size_t size;
  char *xml = read_whole("r.xml", &size);
  int tests = 0, failures = -1, errors = -1, skipped = 0;
  const char *suite = strstr(xml, "<testsuite name");
  assert_non_null(suite);
  assert_int_equal(
      sscanf(suite, "<testsuite name=\"dflash-harness\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\"",
             &tests, &failures, &errors, &skipped),
      4);
  assert_int_equal(tests, count_records(records, "verdict") + count_records(records, "case"));
  assert_int_equal(tests, count_of(xml, "<testcase "));
  assert_int_equal(skipped, count_of(xml, "<skipped "));
  assert_true(skipped > 0);
  assert_int_equal(failures, 0);
  assert_int_equal(errors, 0);
  free(xml);
  cJSON_Delete(records);
}

static void test_several_files(void **state) {
  (void)state;
  Program p = program("verify nosuch.h5 t.h5 --backend reference --json r.jsonl");
  expect_status(&p, 2); /* the missing one, and yet the other's cases are told */
  assert_string_equal(p.err, "dflash-harness: error: nosuch.h5: cannot open: No such file or directory\n");
  program_close(&p);
  cJSON *records = read_records("r.jsonl");
  assert_int_equal(count_records(records, "case"), 3);
  assert_int_equal(number_in(last_record(records), "bad_input"), 1);
  assert_int_equal(number_in(last_record(records), "exit"), 2);
  cJSON_Delete(records);
}

static void test_fixtures(void **state) {
  (void)state;
  expect_run(0, "verify %s %s %s --backend reference -q --mode alone,chain,local", FIXTURE_FILE("tiny-f32.h5"),
             FIXTURE_FILE("kernel4-empty.h5"), FIXTURE_FILE("operations.h5"));
}

static void test_output_for_a_person(void **state) {
  (void)state;
  Program p = program(VERIFY "--case main");
  expect_status(&p, 0);
  assert_string_equal(p.err, "");
  expect_contains(&p, p.out, "model: reference ");
  expect_contains(&p, p.out, "1 case: 1 passed, 0 failed; ");
  expect_contains(&p, p.out, "; exit status 0\n");
  assert_null(strstr(p.out, "attn.mix/1"));
  program_close(&p);
  p = program(VERIFY "--case main --verbose");
  expect_contains(&p, p.out, "attn.mix/1");
  program_close(&p);
  p = program(VERIFY "--quiet");
  assert_string_equal(p.out, "");
  program_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_records_are_as_documented),
      cmocka_unit_test(test_counts_add_up),
      cmocka_unit_test(test_every_stage_is_judged_in_every_mode),
      cmocka_unit_test(test_modes_are_those_asked_for),
      cmocka_unit_test(test_stages_and_layers),
      cmocka_unit_test(test_modes_of_a_profile),
      cmocka_unit_test(test_a_loaded_context),
      cmocka_unit_test(test_shards_hold_every_case_once),
      cmocka_unit_test(test_repeats),
      cmocka_unit_test(test_junit_counts_match),
      cmocka_unit_test(test_several_files),
      cmocka_unit_test(test_fixtures),
      cmocka_unit_test(test_output_for_a_person),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
