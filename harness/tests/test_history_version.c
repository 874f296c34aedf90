/* Versions of the schema: an older file is brought up to date, a newer one is left alone. version-1.db was written by
 * the first program that kept a history: a verification and two benches of a golden that has no hash. */
#include <math.h>
#include <sqlite3.h>

#define HISTORY_NAME "version"
#include "history_runs.h"

#define VERSION_1 DFLASH_HISTORY_FILES "/version-1.db"
#define OTHER DFLASH_SCRATCH_FOLDER "/history-again.db"

static void execute(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  char *message = NULL;
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s", message);
  sqlite3_close(db);
}

static char *bytes_of(const char *path, uint64_t *size) {
  char *text;
  assert_int_equal(dflash_read_file(path, 1 << 20, &text, size, NULL), DFLASH_OK);
  return text;
}

static int setup(void **state) {
  (void)state;
  uint64_t size;
  char *old = bytes_of(VERSION_1, &size);
  remove_history(HISTORY);
  remove_history(OTHER);
  assert_int_equal(dflash_write_file(HISTORY, old, size, NULL), DFLASH_OK);
  free(old);
  return 0;
}

typedef struct Seen {
  int verified, timed;
} Seen;

static int see(void *context, const DflashHistoryResult *r) {
  Seen *seen = context;
  bool bench = strcmp(r->kind, "bench") == 0;
  assert_string_equal(r->golden, "tiny-f32.h5");
  assert_string_equal(r->inputs_hash, "file:tiny-f32.h5");
  assert_string_equal(r->outcome, "pass");
  assert_int_equal(strlen(r->revision), 40);
  assert_string_equal(r->dirty, "no");
  assert_string_equal(r->side, "");
  assert_int_equal(isnan(r->load), !bench);
  assert_true(bench ? r->median_ns > 0 && r->samples >= 8 : r->passed == 6);
  seen->verified += !bench;
  seen->timed += bench;
  return 0;
}

static void check(DflashHistory *history) {
  Seen seen = {0};
  assert_int_equal(dflash_history_list(history, &(DflashHistoryFilter){0}, see, &seen, NULL), DFLASH_OK);
  assert_int_equal(seen.verified, 1);
  assert_int_equal(seen.timed, 2);
}

static void version_1_is_brought_up_to_date(void **state) {
  (void)state;
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_READ);
  check(history);
  dflash_history_close(history);
  history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  check(history);
  DflashText lines = export(history, &(DflashHistoryFilter){0}, 3);
  assert_int_equal(count_of(lines.data, "\"type\":\"run\""), 3);
  assert_int_equal(count_of(lines.data, "\"type\":\"bench\""), 2);
  assert_int_equal(count_of(lines.data, "\"type\":\"verdict\""), 6);
  dflash_history_close(history);
  /* What it holds then is what importing its records gives. */
  DflashHistory *again = open_history(OTHER, DFLASH_HISTORY_WRITE);
  import(again, &lines);
  check(again);
  expect_export(again, &(DflashHistoryFilter){0}, 3, &lines);
  dflash_history_close(again);
  dflash_text_free(&lines);
}

static void version_1_goes_on(void **state) {
  (void)state;
  DflashText lines = {0};
  add_run(&lines, "bench", 3, "feed");
  add_bench(&lines, "blas", 10);
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  import(history, &lines);
  expect_export(history, &(DflashHistoryFilter){.revision = "beef"}, 1, &lines);
  dflash_history_close(history);
  dflash_text_free(&lines);
}

/* Damage in the midst of bringing it up to date leaves version 1. */
static void a_damaged_version_1_stays_one(void **state) {
  (void)state;
  execute(HISTORY, "UPDATE records SET pack = x'00' WHERE result = 3");
  uint64_t before, after;
  char *old = bytes_of(HISTORY, &before);
  expect_refused(HISTORY, DFLASH_HISTORY_WRITE, DFLASH_INVALID_DATA, "result 3: records are damaged");
  char *now = bytes_of(HISTORY, &after);
  assert_int_equal(before, after);
  /* Bytes 24 to 27 and 92 to 95 count changes of the file. */
  assert_memory_equal(old + 28, now + 28, 92 - 28);
  assert_memory_equal(old + 96, now + 96, before - 96);
  free(now);
  free(old);
}

static void a_newer_version_is_left_alone(void **state) {
  (void)state;
  static const int versions[] = {DFLASH_HISTORY_VERSION + 1, 1000, 0, -1};
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    char sql[60], part[80];
    uint64_t before, after;
    setup(NULL);
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", versions[i]);
    execute(HISTORY, sql);
    char *old = bytes_of(HISTORY, &before);
    snprintf(part, sizeof part, "is a history of version %d; this program knows versions up to %d", versions[i],
             DFLASH_HISTORY_VERSION);
    if (versions[i] < 1) snprintf(part, sizeof part, "is a database, but no history");
    expect_refused(HISTORY, DFLASH_HISTORY_READ, DFLASH_INVALID_DATA, part);
    expect_refused(HISTORY, DFLASH_HISTORY_WRITE, DFLASH_INVALID_DATA, part);
    char *now = bytes_of(HISTORY, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, now, before);
    free(now);
    free(old);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(version_1_is_brought_up_to_date, setup),
                                     cmocka_unit_test_setup(version_1_goes_on, setup),
                                     cmocka_unit_test_setup(a_damaged_version_1_stays_one, setup),
                                     cmocka_unit_test_setup(a_newer_version_is_left_alone, setup)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
