/* A disk that is full at every point: one line, status 2, nothing half-written. A limit on file sizes stands in; it
 * holds for the file that stderr is, too, and leaves room for a line. */
#include "program.h"

#include <sys/stat.h>
#include <time.h>

enum { LINE = 300 };

static long size_of(const char *path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return (long)info.st_size;
}

static void expect_full(const Program *p, const char *path) {
  expect_status(p, 2);
  expect_contains(p, p->err, path);
  expect_contains(p, p->err, "File too large");
  const char *end = strchr(p->err, '\n');
  if (!end || end[1] != '\0' || strncmp(p->err, "dflash-harness: error: ", 23) != 0)
    fail_msg("%s\nis not one error line:\n%s", p->command, p->err);
  expect_no_leftovers();
}

static Program make(long limit) {
  return program_limited(&(ProgramLimits){.file_bytes = limit}, "golden make --preset tiny --case main -q -o g.h5");
}

static void test_making_a_golden(void **state) {
  (void)state;
  Program p = make(0);
  expect_status(&p, 0);
  program_close(&p);
  long size = size_of("g.h5");
  remove("g.h5");
  for (int i = 0; i < 16; i++) {
    p = make(i == 0 ? LINE : i == 15 ? size - 1 : size * i / 15);
    expect_full(&p, "g.h5");
    assert_false(file_exists("g.h5"));
    program_close(&p);
  }
  p = make(size);
  expect_status(&p, 0);
  program_close(&p);
}

static void test_a_golden_that_was_there_stays(void **state) {
  (void)state;
  copy_whole("t.h5", "g.h5");
  Program p = make(100000);
  expect_full(&p, "g.h5");
  program_close(&p);
  expect_run(0, "golden check g.h5");
}

static Program verify(long limit, const char *arguments) {
  return program_limited(&(ProgramLimits){.file_bytes = limit}, "verify t.h5 --backend reference -q %s", arguments);
}

/* What is there is whole cases. */
static void test_records(void **state) {
  (void)state;
  expect_run(0, "verify t.h5 --backend reference -q --json whole.jsonl");
  long size = size_of("whole.jsonl");
  for (int i = 0; i < 9; i++) {
    remove("r.jsonl");
    Program p = verify(i == 0 ? LINE : size * i / 9, "--json r.jsonl");
    expect_full(&p, "r.jsonl: cannot write");
    program_close(&p);
    cJSON *records = read_records("r.jsonl");
    const cJSON *record;
    int since_case = 0;
    cJSON_ArrayForEach(record, records) {
      since_case += strcmp(text_in(record, "type"), "verdict") == 0;
      if (strcmp(text_in(record, "type"), "case") == 0) since_case = 0;
    }
    assert_int_equal(since_case, 0);
    assert_true(count_records(records, "case") < 3 || count_records(records, "summary") == 0);
    cJSON_Delete(records);
  }
}

/* Work that nobody will read is not done: the case after the one that did not fit would hang. */
static void test_the_run_stops_at_once(void **state) {
  (void)state;
  time_t begin = time(NULL);
  Program p = program_limited(&(ProgramLimits){.file_bytes = 10000},
                              "verify t.h5 --backend hang-full -q --timeout 60s --json r.jsonl");
  expect_full(&p, "r.jsonl");
  program_close(&p);
  assert_true(time(NULL) - begin < 30);
}

/* What failed counts first: the case was judged before its records did not fit. */
static void test_a_failure_stays_one(void **state) {
  (void)state;
  remove("r.jsonl");
  Program p = program_limited(&(ProgramLimits){.file_bytes = 3000},
                              "verify t.h5 --backend off-stage --mode alone -q --json r.jsonl");
  expect_status(&p, 1);
  expect_contains(&p, p.err, "r.jsonl: cannot write: File too large");
  program_close(&p);
}

/* A run that stopped so goes on when there is room again. */
static void test_records_go_on(void **state) {
  (void)state;
  long size = size_of("whole.jsonl");
  remove("r.jsonl");
  Program p = verify(size / 2, "--json r.jsonl");
  expect_full(&p, "r.jsonl");
  program_close(&p);
  expect_run(0, "verify t.h5 --backend reference -q --json r.jsonl --resume");
  cJSON *records = read_records("r.jsonl");
  assert_int_equal(count_records(records, "case"), 3);
  cJSON_Delete(records);
}

/* The file of an earlier moment stays, well-formed. */
static void test_junit(void **state) {
  (void)state;
  expect_run(0, "verify t.h5 --backend reference -q --junit whole.xml");
  long size = size_of("whole.xml");
  for (int i = 0; i < 6; i++) {
    remove("r.xml");
    Program p = verify(i == 0 ? LINE : size * i / 6, "--junit r.xml");
    expect_full(&p, "r.xml: cannot write");
    program_close(&p);
    if (!file_exists("r.xml")) continue;
    size_t bytes;
    char *xml = read_whole("r.xml", &bytes);
    assert_int_equal(strncmp(xml, "<?xml", 5), 0);
    assert_string_equal(xml + bytes - strlen("</testsuites>\n"), "</testsuites>\n");
    free(xml);
  }
}

static void test_paths_that_cannot_be_written(void **state) {
  (void)state;
  static const char *const options[] = {"--json", "--junit"};
  for (int i = 0; i < 2; i++) {
    expect_error(2, "nowhere/x: cannot", "verify t.h5 --backend reference -q %s nowhere/x", options[i]);
    expect_error(2, ".: ", "verify t.h5 --backend reference -q %s .", options[i]);
  }
}

static void expect_full_stdout(const char *arguments) {
  Program p = program_limited(&(ProgramLimits){.stdout_path = "/dev/full"}, "%s", arguments);
  expect_status(&p, 2);
  expect_contains(&p, p.err, "No space left on device");
  assert_ptr_equal(strchr(p.err, '\n'), p.err + strlen(p.err) - 1);
  program_close(&p);
}

static void test_stdout(void **state) {
  (void)state;
  expect_full_stdout("list stages");
  expect_full_stdout("--help");
  expect_full_stdout("golden info t.h5");
  expect_full_stdout("verify t.h5 --backend reference");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_making_a_golden),
      cmocka_unit_test(test_a_golden_that_was_there_stays),
      cmocka_unit_test(test_records),
      cmocka_unit_test(test_the_run_stops_at_once),
      cmocka_unit_test(test_a_failure_stays_one),
      cmocka_unit_test(test_records_go_on),
      cmocka_unit_test(test_junit),
      cmocka_unit_test(test_paths_that_cannot_be_written),
      cmocka_unit_test(test_stdout),
  };
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
