#include "records.h"
#include "well_formed.h"

#define PATH DFLASH_SCRATCH_FOLDER "/junit.xml"
#define KEPT DFLASH_SCRATCH_FOLDER "/junit.jsonl"

static int setup(void **state) {
  (void)state;
  unlink(PATH);
  unlink(KEPT);
  return 0;
}

static DflashStore *begin(void) {
  DflashStore *store = open_store(&(DflashStoreOptions){.junit_path = PATH});
  put_record(store, RUN_RECORD);
  return store;
}

/* The file as it stands, checked; free() releases. */
static char *checked(void) {
  char *text = text_of_file(PATH);
  const char *wrong = xml_wrong(text);
  if (wrong) fail_msg("%s in:\n%s", wrong, text);
  return text;
}

static char *finish(DflashStore *store) {
  assert_int_equal(dflash_store_close(store, NULL), DFLASH_OK);
  return checked();
}

static void assert_holds(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no %s in:\n%s", part, text);
}

/* The checker must be able to find something. */
static void the_checker_refuses_bad_xml(void **state) {
  (void)state;
#define PROLOG "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
  static const char *const bad[] = {
      "<a/>\n",
      PROLOG "<a>\n",
      PROLOG "<a></b>\n",
      PROLOG "<a x=\"<\"/>\n",
      PROLOG "<a x=\"&\"/>\n",
      PROLOG "<a/><b/>\n",
      PROLOG "<a>\x01</a>\n",
      PROLOG "<a>\xff</a>\n",
      PROLOG "<a x=y/>\n",
      PROLOG "<a>\xef\xbf\xbf</a>\n",
      PROLOG "<a",
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_non_null(xml_wrong(bad[i]));
  assert_null(xml_wrong(PROLOG "<a x=\"&lt;1\" y=\"\"><b/>t&amp;\n<c></c></a>\n"));
}

static void one_test_case_a_stage_and_one_a_case(void **state) {
  (void)state;
  DflashStore *store = begin();
  put_record(store, VERDICT_PASS);
  put_record(store, VERDICT_MISMATCH);
  put_record(store, CASE_MISMATCH);
  put_record(store, CASE_PASS("two"));
  char *text = finish(store);
  assert_holds(text, "tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"0\" time=\"1.000000\"");
  assert_holds(text, "<testcase classname=\"blas-exact.a_h5.one.alone\" name=\"attn.mix/2\"></testcase>");
  assert_holds(text, "<testcase classname=\"blas-exact.a_h5.one.chain\" name=\"mlp.kernel/2\"><failure "
                     "type=\"mismatch\"");
  assert_holds(text, "got: 0.5\nexpected: 0.125\nscore: 41.25\n");
  assert_holds(text, "message=\"mismatch at row 3, side 1, tap 0, group 12: got 0.5, expected 0.125, score 41.2\"");
  assert_holds(text, "pattern: one row (3)");
  assert_holds(text, "message=\"mismatch: mlp.kernel/2 is off\"");
  assert_holds(text, "reproduce: dflash-harness verify dir/a.h5");
  assert_holds(text, "<property name=\"cpu\" value=\"c\"/>");
  assert_holds(text, "<property name=\"load\" value=\"[1,2]\"/>");
  assert_holds(text, "<property name=\"command\" value=\"dflash-harness verify a.h5\"/>");
  free(text);
}

static void what_was_not_judged_is_skipped(void **state) {
  (void)state;
  DflashStore *store = begin();
  put_record(store, "{'type':'verdict','case':'c','mode':'alone','stage':'attn.q','layer':0,'outcome':'covered',"
                    "'covered_by':'attn.mix'}");
  put_record(store, "{'type':'verdict','case':'c','mode':'alone','stage':'head.logits','outcome':'unsupported',"
                    "'note':'fused & gone'}");
  put_record(store, "{'type':'verdict','case':'c','mode':'alone','stage':'select','outcome':'not run'}");
  put_record(store, "{'type':'case','case':'c','outcome':'crashed','message':'killed by signal 11'}");
  char *text = finish(store);
  assert_holds(text, "tests=\"4\" failures=\"0\" errors=\"1\" skipped=\"3\"");
  assert_holds(text, "<skipped message=\"covered by attn.mix\"></skipped>");
  assert_holds(text, "<skipped message=\"unsupported: fused &amp; gone\"></skipped>");
  assert_holds(text, "<skipped message=\"not run\"></skipped>");
  assert_holds(text, "<error type=\"crashed\" message=\"crashed: killed by signal 11\">");
  free(text);
}

/* Every byte, in every place that takes a text. */
static void any_bytes_give_valid_xml(void **state) {
  (void)state;
  DflashStore *store = begin();
  for (int byte = 1; byte < 256; byte++) {
    char name[] = {'n', (char)byte, '"', '<', ']', ']', '>', (char)byte, 0};
    static const char *const members[] = {"file",  "case",  "backend", "profile", "mode",
                                          "stage", "place", "note",    "message"};
    cJSON *record = make_record("{'type':'verdict','outcome':'mismatch'}");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) cJSON_AddStringToObject(record, members[i], name);
    assert_int_equal(dflash_store_record(store, record, NULL), DFLASH_OK);
    cJSON_ReplaceItemInObject(record, "type", cJSON_CreateString(byte == 255 ? "case" : "verdict"));
    cJSON_ReplaceItemInObject(record, "outcome", cJSON_CreateString(name));
    assert_int_equal(dflash_store_record(store, record, NULL), DFLASH_OK);
    cJSON_Delete(record);
  }
  cJSON *run = make_record("{'type':'run','command':'x'}");
  cJSON *environment = cJSON_AddObjectToObject(run, "environment");
  cJSON_AddStringToObject(environment, "a\x02\"<", "\xff\xef\xbf\xbe\x1b");
  assert_int_equal(dflash_store_record(store, run, NULL), DFLASH_OK);
  cJSON_Delete(run);
  free(finish(store));
}

static void nonfinite_numbers_are_spelled(void **state) {
  (void)state;
  DflashStore *store = begin();
  put_record(store, "{'type':'verdict','case':'c','mode':'alone','stage':'select','outcome':'nonfinite','got':'nan',"
                    "'score':'inf'}");
  char *text = finish(store);
  assert_holds(text, "got: nan\nscore: inf");
  free(text);
}

/* The file is valid from the start and after every case; what a crash loses is the case in work. */
static void valid_at_every_moment(void **state) {
  (void)state;
  DflashStore *store = begin();
  char *text = checked();
  assert_holds(text, "tests=\"0\"");
  free(text);
  put_record(store, VERDICT_PASS);
  put_record(store, CASE_PASS("one"));
  put_record(store, VERDICT_PASS);
  text = checked();
  assert_holds(text, "tests=\"2\"");
  free(text);
  free(finish(store));
}

static void totals_and_time_are_told(void **state) {
  (void)state;
  DflashStore *store = open_store(&(DflashStoreOptions){.junit_path = PATH});
  put_record(store, "{'type':'run','environment':{'time':'2026-01-02T03:04:05Z'}}");
  put_record(store, CASE_MISMATCH);
  char *text = finish(store);
#define TOTALS "name=\"dflash-harness\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"0.500000\""
  assert_holds(text, "<testsuites " TOTALS ">");
  assert_holds(text, "<testsuite " TOTALS " timestamp=\"2026-01-02T03:04:05Z\">");
  free(text);
}

static DflashStore *resume(void) {
  return open_store(&(DflashStoreOptions){.json_path = KEPT, .junit_path = PATH, .resume = 1});
}

/* From the moment it is open, and under names that do not depend on where the run went on. */
static void kept_cases_are_in_it(void **state) {
  (void)state;
  DflashStore *store = resume(); /* nothing to resume yet */
  put_record(store, RUN_RECORD);
  put_record(store, VERDICT_PASS);
  put_record(store, VERDICT_MISMATCH);
  put_record(store, CASE_MISMATCH);
  put_record(store, VERDICT_PASS);
  put_record(store, CASE_PASS("two"));
  put_record(store, SUMMARY_RECORD);
  char *whole = finish(store);
  unlink(PATH);
  store = resume();
  char *text = checked();
  assert_string_equal(strstr(text, "<testcase"), strstr(whole, "<testcase"));
  free(text);
  put_record(store, "{'type':'run','command':'again'}");
  put_record(store, CASE_PASS("three"));
  text = finish(store);
  assert_holds(text, "tests=\"6\" failures=\"2\" errors=\"0\" skipped=\"0\" time=\"1.500000\"");
  assert_int_equal(count_of(text, "name=\"command\""), 1);
  assert_holds(text, "name=\"command\" value=\"again\"");
  free(text);
  free(whole);
}

/* Its verdicts stand before a run that went on, or after all: neither belongs to a case. */
static void a_case_that_broke_off_is_not(void **state) {
  (void)state;
#define LINE "{\"schema\":\"dflash-record\",\"version\":1,\"type\":"
  static const char records[] = LINE "\"verdict\",\"stage\":\"lost\"}\n" LINE "\"model\"}\n" LINE "\"run\"}\n" LINE
                                     "\"verdict\",\"stage\":\"kept\",\"outcome\":\"pass\"}\n" LINE
                                     "\"case\",\"outcome\":\"pass\"}\n" LINE "\"verdict\",\"stage\":\"lost\"}\n" LINE;
  FILE *file = fopen(KEPT, "w");
  assert_non_null(file);
  fputs(records, file);
  fclose(file);
  char *text = finish(resume());
  assert_holds(text, "tests=\"2\"");
  assert_holds(text, "name=\"kept\"");
  assert_null(strstr(text, "lost"));
  free(text);
}

static void bad_paths_are_known_at_once(void **state) {
  (void)state;
  DflashStoreOptions options = {.junit_path = "/nonexistent/junit.xml"};
  DflashStore *store;
  DflashError error;
  assert_int_equal(dflash_store_open(&options, &store, &error), DFLASH_IO);
  assert_non_null(strstr(error.message, "/nonexistent/junit.xml"));
  assert_null(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(the_checker_refuses_bad_xml, setup),
      cmocka_unit_test_setup(one_test_case_a_stage_and_one_a_case, setup),
      cmocka_unit_test_setup(what_was_not_judged_is_skipped, setup),
      cmocka_unit_test_setup(any_bytes_give_valid_xml, setup),
      cmocka_unit_test_setup(nonfinite_numbers_are_spelled, setup),
      cmocka_unit_test_setup(valid_at_every_moment, setup),
      cmocka_unit_test_setup(totals_and_time_are_told, setup),
      cmocka_unit_test_setup(kept_cases_are_in_it, setup),
      cmocka_unit_test_setup(a_case_that_broke_off_is_not, setup),
      cmocka_unit_test_setup(bad_paths_are_known_at_once, setup),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
