/* Import, export, prune. */
#include <sys/stat.h>
#include <time.h>

#define HISTORY_NAME "move"
#include "history_runs.h"

#define OTHER DFLASH_SCRATCH_FOLDER "/history-other.db"

static int setup(void **state) {
  (void)state;
  remove_history(HISTORY);
  remove_history(OTHER);
  return 0;
}

/* Two runs; `first` becomes the bytes up to the end of the first one's first case. */
static DflashText two_runs(size_t *first) {
  DflashText lines = {0};
  add_run(&lines, "verify", 0, "abc");
  add_model(&lines, "blas");
  add_case(&lines, "blas", "main", "pass", 0.125);
  if (first) *first = lines.size;
  add_case(&lines, "blas", "cut", "pass", 0.5);
  add_summary(&lines, 0);
  add_run(&lines, "bench", 1, "abc");
  add_bench(&lines, "blas", 100);
  add_summary(&lines, 0);
  return lines;
}

static void expect_counts(DflashHistoryCounts c, int runs, int results, int old_runs, int old_results) {
  assert_int_equal(c.runs, runs);
  assert_int_equal(c.results, results);
  assert_int_equal(c.old_runs, old_runs);
  assert_int_equal(c.old_results, old_results);
}

static void twice_adds_nothing(void **state) {
  (void)state;
  DflashText lines = two_runs(NULL);
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  expect_counts(import(history, &lines), 2, 3, 0, 0);
  expect_counts(import(history, &lines), 0, 0, 2, 3);
  expect_export(history, &(DflashHistoryFilter){0}, 3, &lines);
  dflash_history_close(history);
  dflash_text_free(&lines);
}

/* The file of a run that was still going on, then all of it. */
static void a_part_is_completed(void **state) {
  (void)state;
  size_t first;
  DflashText lines = two_runs(&first);
  DflashText part = {.data = lines.data, .size = first + 40}; /* and a line that broke off */
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  expect_counts(import(history, &part), 1, 1, 0, 0);
  expect_counts(import(history, &lines), 1, 2, 1, 1);
  expect_export(history, &(DflashHistoryFilter){0}, 3, &lines);
  dflash_history_close(history);
  dflash_text_free(&lines);
}

/* Each has a run of its own and one that both know. */
static void histories_are_merged(void **state) {
  (void)state;
  DflashText both = two_runs(NULL), own = {0}, others = {0}, all = {0};
  add_run(&own, "bench", 7, "own");
  add_bench(&own, "blas", 7);
  add_run(&others, "bench", 8, "other");
  add_bench(&others, "blas", 8);
  DflashHistory *here = open_history(HISTORY, DFLASH_HISTORY_WRITE), *there = open_history(OTHER, DFLASH_HISTORY_WRITE);
  import(here, &own);
  import(here, &both);
  import(there, &both);
  import(there, &others);
  DflashText moved = export(there, &(DflashHistoryFilter){0}, 4);
  expect_counts(import(here, &moved), 1, 1, 2, 3);
  expect_counts(import(here, &moved), 0, 0, 3, 4);
  dflash_text_append(&all, "%s%s%s", own.data, both.data, others.data);
  expect_export(here, &(DflashHistoryFilter){0}, 5, &all);
  dflash_history_close(here);
  dflash_history_close(there);
  DflashText *const texts[] = {&both, &own, &others, &all, &moved};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) dflash_text_free(texts[i]);
}

static void export_keeps_runs_around_what_matches(void **state) {
  (void)state;
  DflashText lines = two_runs(NULL), expected = {0};
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  import(history, &lines);
  add_run(&expected, "verify", 0, "abc");
  add_case(&expected, "blas", "cut", "pass", 0.5);
  add_summary(&expected, 0);
  expect_export(history, &(DflashHistoryFilter){.case_name = "cut"}, 1, &expected);
  dflash_history_close(history);
  dflash_text_free(&expected);
  dflash_text_free(&lines);
}

/* What is wrong names its line, and nothing of its file stays. */
static void bad_lines_leave_nothing(void **state) {
  (void)state;
  static const char *const bad[] = {"no JSON\n",
                                    "{}\n",
                                    "{\"schema\":\"dflash-record\",\"version\":2}\n",
                                    "{\"schema\":\"dflash-record\",\"version\":1} x\n",
                                    "\n",
                                    "[]\n"};
  DflashText lines = two_runs(NULL);
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  DflashHistoryCounts counts;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    DflashText text = {0};
    DflashError error = {0};
    dflash_text_append(&text, "%s%s", lines.data, bad[i]);
    assert_int_equal(dflash_history_import_text(history, "f.jsonl", text.data, text.size, &counts, &error),
                     DFLASH_INVALID_DATA);
    assert_memory_equal(error.message, "f.jsonl: line 12: is no record", 30);
    DflashText nothing = export(history, &(DflashHistoryFilter){0}, 0);
    assert_string_equal(nothing.data, "");
    dflash_text_free(&nothing);
    dflash_text_free(&text);
  }
  dflash_history_close(history);
  dflash_text_free(&lines);
}

static void a_case_before_its_run_is_refused(void **state) {
  (void)state;
  DflashText lines = {0};
  DflashHistoryCounts counts;
  DflashError error = {0};
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  add_case(&lines, "blas", "main", "pass", 0.5);
  assert_int_equal(dflash_history_import_text(history, "f", lines.data, lines.size, &counts, &error),
                   DFLASH_INVALID_DATA);
  assert_string_equal(error.message, "f: line 1: a record of type 'verdict' stands before any of type 'run'");
  dflash_history_close(history);
  dflash_text_free(&lines);
}

/* ---- prune ---- */

/* 20 days, of two backends; and a run that never had a result on day 0. */
static DflashHistory *filled(void) {
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  DflashText lines = {0};
  add_run(&lines, "verify", 0, "empty");
  add_summary(&lines, 2);
  for (int day = 0; day < 20; day++) {
    add_run(&lines, "bench", day, "abc");
    add_bench(&lines, "blas", 100 + day);
    if (day < 10) add_bench(&lines, "reference", 200 + day);
    add_summary(&lines, 0);
  }
  import(history, &lines);
  dflash_text_free(&lines);
  return history;
}

static int64_t run_count(DflashHistory *history) {
  int64_t runs = 0;
  DflashText text = {0};
  DflashError error = {0};
  int64_t results;
  if (dflash_history_export(history, &(DflashHistoryFilter){0}, append_line, &text, &results, &error) != DFLASH_OK)
    fail_msg("%s", error.message);
  runs = count_of(text.data ? text.data : "", "\"type\":\"run\"");
  dflash_text_free(&text);
  return runs;
}

static void prune_removes_what_is_old(void **state) {
  (void)state;
  const struct {
    DflashHistoryPrune what;
    int results, runs;
  } cases[] = {{{.before = FIRST_DAY}, 0, 0},
               {{.before = FIRST_DAY + 5 * DAY}, 10, 6},
               {{.keep = 4}, 16 + 6, 12},
               {{.before = FIRST_DAY + 8 * DAY, .keep = 4}, 8 + 6, 6 + 1},
               {{.before = FIRST_DAY + 100 * DAY}, 30, 21},
               {{.keep = 50}, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t results, runs;
    setup(NULL);
    DflashHistory *history = filled();
    DflashHistoryPrune dry = cases[i].what;
    dry.dry_run = true;
    assert_int_equal(dflash_history_prune(history, &dry, &results, &runs, NULL), DFLASH_OK);
    assert_int_equal(results, cases[i].results);
    assert_int_equal(run_count(history), 21);
    assert_int_equal(dflash_history_prune(history, &cases[i].what, &results, &runs, NULL), DFLASH_OK);
    assert_int_equal(results, cases[i].results);
    assert_int_equal(runs, cases[i].runs);
    assert_int_equal(run_count(history), 21 - cases[i].runs);
    dflash_history_close(history);
  }
}

static void pruning_makes_the_file_smaller(void **state) {
  (void)state;
  struct stat before, after;
  int64_t results, runs;
  DflashHistory *history = filled();
  assert_int_equal(stat(HISTORY, &before), 0);
  assert_int_equal(
      dflash_history_prune(history, &(DflashHistoryPrune){.before = FIRST_DAY + 18 * DAY}, &results, &runs, NULL),
      DFLASH_OK);
  dflash_history_close(history);
  assert_int_equal(stat(HISTORY, &after), 0);
  assert_true(after.st_size < before.st_size);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(twice_adds_nothing, setup),
                                     cmocka_unit_test_setup(a_part_is_completed, setup),
                                     cmocka_unit_test_setup(histories_are_merged, setup),
                                     cmocka_unit_test_setup(export_keeps_runs_around_what_matches, setup),
                                     cmocka_unit_test_setup(bad_lines_leave_nothing, setup),
                                     cmocka_unit_test_setup(a_case_before_its_run_is_refused, setup),
                                     cmocka_unit_test_setup(prune_removes_what_is_old, setup),
                                     cmocka_unit_test_setup(pruning_makes_the_file_smaller, setup)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
