/* What goes into a history, and what lists and readers get out of it. */
#include <math.h>
#include <time.h>

#define HISTORY_NAME "columns"
#include "history_runs.h"

static int setup(void **state) {
  (void)state;
  remove_history(HISTORY);
  return 0;
}

/* ---- through the store, as commands write ---- */

static void put_lines(DflashStore *store, const char *text) {
  while (*text) {
    size_t length = strcspn(text, "\n");
    cJSON *record = cJSON_ParseWithLength(text, length);
    DflashError error = {0};
    if (dflash_store_record(store, record, &error) != DFLASH_OK) fail_msg("%s", error.message);
    cJSON_Delete(record);
    text += length + 1;
  }
}

static DflashText two_cases(void) {
  DflashText lines = {0};
  add_run(&lines, "verify", 0, "abc123");
  add_model(&lines, "blas");
  add_case(&lines, "blas", "main", "pass", 0.1 + 0.2);
  add_case(&lines, "blas", "cut", "mismatch", 41.25);
  add_summary(&lines, 1);
  return lines;
}

static void what_a_run_told_comes_back(void **state) {
  (void)state;
  DflashText lines = two_cases();
  DflashStore *store = open_store(&(DflashStoreOptions){.history_path = HISTORY});
  put_lines(store, lines.data);
  assert_int_equal(dflash_store_close(store, NULL), DFLASH_OK);
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_READ);
  expect_export(history, &(DflashHistoryFilter){0}, 2, &lines);
  dflash_history_close(history);
  dflash_text_free(&lines);
}

static int count_one(void *context, const DflashHistoryResult *result) {
  (void)result;
  ++*(int *)context;
  return 0;
}

static int count_results(DflashHistory *history, const DflashHistoryFilter *filter) {
  int count = 0;
  DflashError error = {0};
  if (dflash_history_list(history, filter, count_one, &count, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return count;
}

/* A case is there when its record is, one that never completes never is. */
static void cases_are_there_as_they_end(void **state) {
  (void)state;
  DflashText lines = {0}, part = {0};
  DflashStore *store = open_store(&(DflashStoreOptions){.history_path = HISTORY});
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_READ);
  add_run(&lines, "verify", 0, "abc123");
  add_case(&lines, "blas", "main", "pass", 0.5);
  put_lines(store, lines.data);
  assert_int_equal(count_results(history, &(DflashHistoryFilter){0}), 1);
  add_case(&part, "blas", "late", "pass", 0.5);
  part.data[strcspn(part.data, "\n") + 1] = '\0'; /* its verdict alone */
  put_lines(store, part.data);
  assert_int_equal(dflash_store_close(store, NULL), DFLASH_OK);
  assert_int_equal(count_results(history, &(DflashHistoryFilter){0}), 1);
  expect_export(history, &(DflashHistoryFilter){0}, 1, &lines);
  dflash_history_close(history);
  dflash_text_free(&part);
  dflash_text_free(&lines);
}

/* ---- columns ---- */

static int check_bench(void *context, const DflashHistoryResult *r) {
  ++*(int *)context;
  assert_string_equal(r->kind, "bench");
  assert_string_equal(r->backend, "vulkan");
  assert_string_equal(r->device, "0");
  assert_string_equal(r->device_name, "D");
  assert_string_equal(r->driver, "d 7");
  assert_string_equal(r->backend_version, "3");
  assert_string_equal(r->backend_file, "ff00");
  assert_string_equal(r->profile, "exact");
  assert_string_equal(r->case_name, "main");
  assert_string_equal(r->golden, "a.h5");
  assert_string_equal(r->inputs_hash, "ab12cd34ef");
  assert_string_equal(r->modes, "bench");
  assert_string_equal(r->settings, "cold");
  assert_string_equal(r->machine, "C 1, 4 CPUs, 8 GiB");
  assert_string_equal(r->host, "h");
  assert_string_equal(r->revision, "beef"); /* of the build that was timed */
  assert_string_equal(r->dirty, "yes");
  assert_string_equal(r->command, "dflash-harness bench a.h5");
  assert_string_equal(r->outcome, "pass");
  assert_string_equal(r->stopped_by, "count");
  assert_int_equal(r->time, FIRST_DAY + 3 * DAY);
  assert_int_equal(r->passed, 1);
  assert_int_equal(r->samples, 6);
  assert_true(r->median_ns == 1000.5 && r->low_ns == 999.5 && r->high_ns == 1001.5);
  assert_true(r->wall_ns == 1002.5 && r->cpu_ns == 7.5);
  assert_true(r->load == 1.5 && r->other_users == 3 && r->throttle == 5 && r->largest_score == 0.25);
  return 0;
}

static void a_bench_fills_its_columns(void **state) {
  (void)state;
  DflashText lines = {0};
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  add_run(&lines, "bench", 3, "feed");
  add_model(&lines, "vulkan");
  add_bench(&lines, "vulkan", 1000.5);
  add_summary(&lines, 0);
  import(history, &lines);
  int count = 0;
  assert_int_equal(dflash_history_list(history, &(DflashHistoryFilter){0}, check_bench, &count, NULL), DFLASH_OK);
  assert_int_equal(count, 1);
  dflash_history_close(history);
  dflash_text_free(&lines);
}

static void samples_and_records_are_read_alone(void **state) {
  (void)state;
  static const double expected[] = {5, 4, 6, 5, 5, 4};
  DflashText lines = {0};
  double *samples;
  int64_t count;
  cJSON *record;
  DflashError error = {0};
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  add_run(&lines, "bench", 3, "feed");
  add_bench(&lines, "blas", 10);
  import(history, &lines);
  assert_int_equal(dflash_history_samples(history, 1, &samples, &count, NULL), DFLASH_OK);
  assert_int_equal(count, 6);
  assert_memory_equal(samples, expected, sizeof expected);
  free(samples);
  assert_int_equal(dflash_history_record(history, 1, "case", &record, NULL), DFLASH_OK);
  assert_string_equal(dflash_field_text(record, "modes"), "bench");
  cJSON_Delete(record);
  assert_int_equal(dflash_history_record(history, 1, "verdict", &record, NULL), DFLASH_OK);
  assert_null(record);
  assert_int_equal(dflash_history_records(history, 2, &record, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "has no records of result 2"));
  dflash_history_close(history);
  dflash_text_free(&lines);
}

/* ---- series and filters ---- */

/* 12 days, each one bench on two backends and one verification. */
static DflashHistory *filled(void) {
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  DflashText lines = {0};
  for (int day = 0; day < 12; day++) {
    add_run(&lines, "bench", day, day % 2 ? "0dd0" : "e0e0");
    add_bench(&lines, "blas", 100 + day);
    add_bench(&lines, "reference", 1000 + day);
    add_summary(&lines, 0);
    add_run(&lines, "verify", day, day % 2 ? "0dd0" : "e0e0");
    add_case(&lines, "blas", "main", day == 5 ? "mismatch" : "pass", 0.25);
    add_summary(&lines, day == 5);
  }
  import(history, &lines);
  dflash_text_free(&lines);
  return history;
}

static void filters_choose(void **state) {
  (void)state;
  DflashHistory *history = filled();
  const struct {
    DflashHistoryFilter filter;
    int results;
  } cases[] = {{{0}, 36},
               {{.kind = "bench"}, 24},
               {{.kind = "ver*,sweep"}, 12},
               {{.backend = "reference"}, 12},
               {{.backend = "blas,ref*"}, 36},
               {{.backend = "bla"}, 0},
               {{.device = "1"}, 0},
               {{.profile = "exact", .case_name = "m?in"}, 36},
               {{.golden = "a.h5"}, 36},
               {{.golden = "b*"}, 0},
               {{.golden = "ab12cd34"}, 36},
               {{.golden = "ab12cd3"}, 0},
               {{.outcome = "mismatch"}, 1},
               {{.machine = "C 1*"}, 36},
               {{.revision = "0dd0", .kind = "verify"}, 6},
               {{.revision = "beef"}, 24},
               {{.dirty = "no"}, 12},
               {{.since = FIRST_DAY + 10 * DAY}, 6},
               {{.until = FIRST_DAY + DAY}, 3},
               {{.since = FIRST_DAY + 3 * DAY, .until = FIRST_DAY + 4 * DAY, .kind = "bench"}, 2},
               {{.run = 1}, 2},
               {{.series = 1}, 12},
               {{.limit = 5}, 5}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int found = count_results(history, &cases[i].filter);
    if (found != cases[i].results) fail_msg("filter %zu finds %d, not %d", i, found, cases[i].results);
  }
  dflash_history_close(history);
}

typedef struct Medians {
  double at[16];
  int count;
} Medians;

static int take_median(void *context, const DflashHistoryResult *r) {
  Medians *medians = context;
  medians->at[medians->count++] = r->median_ns;
  return medians->count == 16;
}

static void the_newest_come_first_or_last(void **state) {
  (void)state;
  DflashHistory *history = filled();
  DflashHistoryFilter filter = {.kind = "bench", .backend = "blas", .limit = 3};
  Medians newest = {0}, oldest = {0};
  assert_int_equal(dflash_history_list(history, &filter, take_median, &newest, NULL), DFLASH_OK);
  filter.oldest_first = true;
  assert_int_equal(dflash_history_list(history, &filter, take_median, &oldest, NULL), DFLASH_OK);
  assert_int_equal(newest.count, 3);
  assert_int_equal(oldest.count, 3);
  for (int i = 0; i < 3; i++) {
    assert_true(newest.at[i] == 111 - i);
    assert_true(oldest.at[i] == 109 + i);
  }
  dflash_history_close(history);
}

/* The build and the values may change within a series; what is timed may not. */
static void settings_that_count_make_a_series(void **state) {
  (void)state;
  static const char *const settings[] = {"cold backend_file=1 values=2", "cold backend_file=9 values=8 golden=7",
                                         "round=4 backend_file=1"};
  int64_t series[3] = {0};
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  for (int i = 0; i < 3; i++) {
    char text[300];
    DflashText lines = {0};
    add_run(&lines, "bench", i, "feed");
    snprintf(text, sizeof text, "{'type':'case','case':'main','backend':'blas','modes':'bench','settings':'%s'}",
             settings[i]);
    add(&lines, text);
    import(history, &lines);
    dflash_text_free(&lines);
  }
  for (int64_t i = 1; i <= 3; i++) series[i - 1] = count_results(history, &(DflashHistoryFilter){.series = i});
  assert_int_equal(series[0], 2);
  assert_int_equal(series[1], 1);
  assert_int_equal(series[2], 0);
  dflash_history_close(history);
}

static int check_sweep(void *context, const DflashHistoryResult *r) {
  ++*(int *)context;
  assert_string_equal(r->kind, "sweep");
  assert_string_equal(r->backend, "blas");
  assert_string_equal(r->profile, "i8");
  assert_string_equal(r->outcome, "mismatch");
  assert_int_equal(r->failed, 1);
  return 0;
}

static void a_sweep_is_one_result(void **state) {
  (void)state;
  DflashText lines = {0};
  int count = 0;
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  add_run(&lines, "sweep", 1, "feed");
  add(&lines, "{'type':'draw','draw':0,'outcome':'pass'}");
  add(&lines, "{'type':'draw','draw':1,'profile':'i8','outcome':'mismatch'}");
  add(&lines, "{'type':'summary','draws':2,'passed':1,'failed':1,'exit':1}");
  import(history, &lines);
  assert_int_equal(dflash_history_list(history, &(DflashHistoryFilter){0}, check_sweep, &count, NULL), DFLASH_OK);
  assert_int_equal(count, 1);
  expect_export(history, &(DflashHistoryFilter){0}, 1, &lines);
  dflash_history_close(history);
  dflash_text_free(&lines);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(what_a_run_told_comes_back, setup),
                                     cmocka_unit_test_setup(cases_are_there_as_they_end, setup),
                                     cmocka_unit_test_setup(a_bench_fills_its_columns, setup),
                                     cmocka_unit_test_setup(samples_and_records_are_read_alone, setup),
                                     cmocka_unit_test_setup(filters_choose, setup),
                                     cmocka_unit_test_setup(the_newest_come_first_or_last, setup),
                                     cmocka_unit_test_setup(settings_that_count_make_a_series, setup),
                                     cmocka_unit_test_setup(a_sweep_is_one_result, setup)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
