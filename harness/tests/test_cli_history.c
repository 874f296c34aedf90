/* --history of the commands that run, and `history` itself, as a user calls them. */
#include "program.h"

#include <sys/stat.h>
#include <unistd.h>

#define VERIFY "verify t.h5 --backend reference -q "
#define BENCH "bench t.h5 --backend reference -q --max-samples 8 "

/* "h.db": one verification of three cases, one bench; "r.jsonl", "b.jsonl": what --json wrote of the same. */
static int setup(void **state) {
  int failed = scratch_setup_golden(state);
  if (failed) return failed;
  expect_run(0, VERIFY "--history h.db --json r.jsonl");
  expect_run(0, BENCH "--history h.db --json b.jsonl");
  return 0;
}

static void expect_output(const char *part, const char *arguments) {
  Program p = program("%s", arguments);
  expect_status(&p, 0);
  expect_contains(&p, p.out, part);
  assert_string_equal(p.err, "");
  program_close(&p);
}

static int lines_of(const char *arguments) {
  Program p = program("%s", arguments);
  int lines = 0;
  expect_status(&p, 0);
  for (const char *c = p.out; *c; c++) lines += *c == '\n';
  program_close(&p);
  return lines;
}

static void test_list(void **state) {
  (void)state;
  assert_int_equal(lines_of("history list --history h.db"), 1 + 4);
  assert_int_equal(lines_of("history list --history h.db --json"), 4);
  assert_int_equal(lines_of("history list --history h.db --json --kind verify --case cut,main"), 2);
  assert_int_equal(lines_of("history list --history h.db --json -n 1"), 1);
  assert_int_equal(lines_of("history list --history h.db --json --since 1h --golden t.h5 --backend ref*"), 4);
  expect_error(4, "no result matches",
               "history list --history h.db --json --since 2000-01-01 --until 2000-01-01T00:00:01Z");
}

static void test_list_of_nothing(void **state) {
  (void)state;
  expect_error(4, "h.db: no result matches", "history list --history h.db --backend blas");
  expect_error(4, "h.db: no result matches", "history list --history h.db --until 2000-01-01");
  expect_error(4, "h.db: no result matches", "history export --history h.db --outcome crashed -o none.jsonl");
  assert_false(file_exists("none.jsonl"));
}

static void test_show(void **state) {
  (void)state;
  expect_output("main                          ", "history show 1 --history h.db");
  expect_output("3 cases: 3 passed, 0 failed", "history show 1 --history h.db");
  expect_output("block t.h5 main: reference on cpu", "history show last --history h.db");
  expect_output("\"type\":\"bench\"", "history show 2 --history h.db --json");
  expect_error(2, "h.db: has no run 7", "history show 7 --history h.db");
  expect_error(2, "h.db: has no run 1 with such a case", "history show 1 --history h.db --case nosuch");
  expect_error(2, "'0' is neither the number of a run nor 'last'", "history show 0 --history h.db");
}

static void expect_same_files(const char *a, const char *b) {
  size_t a_size, b_size;
  char *first = read_whole(a, &a_size), *second = read_whole(b, &b_size);
  assert_int_equal(a_size, b_size);
  assert_memory_equal(first, second, a_size);
  free(first);
  free(second);
}

static void test_export_is_what_json_wrote(void **state) {
  (void)state;
  expect_run(0, "history export --history h.db --kind verify -o e.jsonl");
  expect_same_files("e.jsonl", "r.jsonl");
  expect_run(0, "history export --history h.db --kind bench -o e.jsonl");
  expect_same_files("e.jsonl", "b.jsonl");
  expect_no_leftovers();
}

static void test_import_adds_once(void **state) {
  (void)state;
  remove("i.db");
  expect_output("r.jsonl: 1 run, 3 results added; 0 and 0 were there", "history import r.jsonl b.jsonl --history i.db");
  expect_output("b.jsonl: 0 runs, 0 results added; 1 and 1 were there",
                "history import r.jsonl b.jsonl --history i.db");
  /* What --history wrote itself is known as well. */
  expect_output("r.jsonl: 0 runs, 0 results added; 1 and 3 were there", "history import r.jsonl --history h.db");
  expect_run(0, "history export --history i.db -o i.jsonl");
  expect_run(0, "history export --history h.db -o e.jsonl");
  expect_same_files("i.jsonl", "e.jsonl");
}

static void test_bad_lines_make_no_result(void **state) {
  (void)state;
  static const char bad[] = "{\"schema\":\"dflash-record\",\"version\":1,\"type\":\"run\"}\nsomething\n";
  remove("i.db");
  write_whole("bad.jsonl", bad, sizeof bad - 1);
  expect_error(2, "bad.jsonl: line 2: is no record of schema dflash-record, version 1",
               "history import bad.jsonl --history i.db");
  expect_error(4, "no result matches", "history list --history i.db");
  expect_error(2, "none.jsonl: |No such file", "history import none.jsonl --history j.db");
  assert_false(file_exists("j.db"));
  write_whole("bad.jsonl", "", 0);
  expect_error(2, "bad.jsonl: holds no run", "history import bad.jsonl --history i.db");
}

static void test_prune(void **state) {
  (void)state;
  copy_whole("h.db", "p.db");
  expect_output("p.db: 0 results and 0 runs would go", "history prune --history p.db --older-than 1d --dry-run");
  expect_output("p.db: 4 results and 2 runs would go",
                "history prune --history p.db --older-than 2999-01-01 --dry-run");
  assert_int_equal(lines_of("history list --history p.db --json"), 4);
  expect_output("p.db: 0 results and 0 runs removed", "history prune --history p.db --older-than 2999-01-01 --keep 1");
  expect_output("p.db: 4 results and 2 runs removed", "history prune --history p.db --older-than 2999-01-01");
  expect_error(4, "no result matches", "history list --history p.db");
}

static void test_mistakes_of_usage(void **state) {
  (void)state;
  expect_error(2, "history needs one of list, show, export, import, prune", "history");
  expect_error(2, "history 'lst' is unknown; there are list, show, export, import, prune", "history lst");
  expect_error(2, "--history FILE is missing", "history list");
  expect_error(2, "history list takes no operand: 'h.db'", "history list h.db");
  expect_error(2, "--since: 'yesterday' is no time such as", "history list --history h.db --since yesterday");
  expect_error(2, "--until: '2026-13-01' is no time", "history list --history h.db --until 2026-13-01");
  expect_error(2, "history show needs the number of one run", "history show --history h.db");
  expect_error(2, "history import needs a file", "history import --history h.db");
  expect_error(2, "h.db: is the history itself", "history import h.db --history h.db");
  expect_error(2, "h.db: is the history: not written over", "history export --history h.db -o h.db");
  expect_error(2, "history prune needs --older-than WHEN or --keep N", "history prune --history h.db");
  expect_error(2, "t.h5: is a golden file that is read", VERIFY "--history t.h5");
  expect_error(2, "--history names the file of another output: x.jsonl", VERIFY "--history x.jsonl --json x.jsonl");
  assert_false(file_exists("x.jsonl"));
}

/* Before anything runs. */
static void test_a_history_that_cannot_be_used(void **state) {
  (void)state;
  expect_error(2, "r.jsonl: is no history: file is not a database", VERIFY "--history r.jsonl --json other.jsonl");
  expect_error(2, "/proc/h.db: |unable to open database file", VERIFY "--history /proc/h.db");
  expect_error(2, "nowhere/h.db: |No such file or directory", BENCH "--history nowhere/h.db");
  expect_error(2, "none.db: cannot open: No such file", "history list --history none.db");
  expect_same_files("r.jsonl", "r.jsonl");
}

static void test_resume_adds_what_was_missing(void **state) {
  (void)state;
  remove("k.db");
  remove("k.jsonl");
  expect_run(0, VERIFY "--history k.db --json k.jsonl --case main");
  expect_run(0, VERIFY "--history k.db --json k.jsonl --resume");
  assert_int_equal(lines_of("history list --history k.db --json"), 3);
  expect_output("k.jsonl: 0 runs, 0 results added; 2 and 3 were there", "history import k.jsonl --history k.db");
}

/* Killed once the file of records has the first case: the history has it, too, or not yet, and goes on. */
static void test_a_killed_run(void **state) {
  (void)state;
  remove("k.db");
  remove("k.jsonl");
  ProgramLimits limits = {.kill_after = 20, .kill_file = "k.jsonl"};
  Program p = program_limited(&limits, VERIFY "--json k.jsonl --history k.db");
  program_close(&p);
  expect_run(0, VERIFY "--history k.db");
  expect_run(0, "history import k.jsonl --history k.db");
  assert_true(lines_of("history list --history k.db --json") >= 4);
}

/* A limit on file sizes stands in for a full disk. What was there before stays. */
static void test_a_full_disk(void **state) {
  (void)state;
  struct stat about;
  assert_int_equal(stat("h.db", &about), 0);
  for (long extra = -30000; extra <= 5000; extra += 7000) {
    copy_whole("h.db", "f.db");
    ProgramLimits limits = {.file_bytes = (long)about.st_size + extra};
    Program p = program_limited(&limits, VERIFY "--case main --history f.db");
    expect_status(&p, 2);
    expect_contains(&p, p.err, "f.db: ");
    assert_ptr_equal(strchr(p.err, '\n') + 1, p.err + strlen(p.err));
    program_close(&p);
    assert_true(lines_of("history list --history f.db --json") >= 4);
    expect_run(0, "history show 2 --history f.db");
  }
}

static void test_help_is_complete(void **state) {
  (void)state;
  expect_output("usage: dflash-harness history list|show|export|import|prune", "history --help");
  static const char *const actions[] = {"list", "show", "export", "import", "prune"};
  for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
    Program p = program("history %s --help", actions[i]);
    expect_status(&p, 0);
    expect_contains(&p, p.out, "--history FILE");
    program_close(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_list),
      cmocka_unit_test(test_list_of_nothing),
      cmocka_unit_test(test_show),
      cmocka_unit_test(test_export_is_what_json_wrote),
      cmocka_unit_test(test_import_adds_once),
      cmocka_unit_test(test_bad_lines_make_no_result),
      cmocka_unit_test(test_prune),
      cmocka_unit_test(test_mistakes_of_usage),
      cmocka_unit_test(test_a_history_that_cannot_be_used),
      cmocka_unit_test(test_resume_adds_what_was_missing),
      cmocka_unit_test(test_a_killed_run),
      cmocka_unit_test(test_a_full_disk),
      cmocka_unit_test(test_help_is_complete),
  };
  return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
