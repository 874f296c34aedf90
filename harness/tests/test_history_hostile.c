/* Files that are no history, or a damaged one: refused in one line or read as far as they go, never more. */
#include <sqlite3.h>
#include <sys/stat.h>

#define HISTORY_NAME "hostile"
#include "history_runs.h"

#include "base/random.h"

#define DAMAGED DFLASH_SCRATCH_FOLDER "/history-damaged.db"

static void execute(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  char *message = NULL;
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s", message);
  sqlite3_close(db);
}

static void write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
}

static int setup(void **state) {
  (void)state;
  remove_history(HISTORY);
  remove_history(DAMAGED);
  DflashText lines = {0};
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_WRITE);
  for (int day = 0; day < 8; day++) {
    add_run(&lines, "bench", day, "abc");
    add_bench(&lines, "blas", 100 + day);
    add_case(&lines, "blas", "main", "pass", 0.5);
    add_summary(&lines, 0);
  }
  import(history, &lines);
  dflash_history_close(history);
  dflash_text_free(&lines);
  return 0;
}

static void what_is_no_history_is_refused(void **state) {
  (void)state;
  static const char text[] = "{\"schema\":\"dflash-record\",\"version\":1,\"type\":\"run\"}\n";
  write_file(DAMAGED, text, sizeof text - 1);
  expect_refused(DAMAGED, DFLASH_HISTORY_READ, DFLASH_INVALID_DATA, "is no history: file is not a database");
  expect_refused(DAMAGED, DFLASH_HISTORY_WRITE, DFLASH_INVALID_DATA, "is no history: file is not a database");
  char *still = text_of_file(DAMAGED);
  assert_string_equal(still, text);
  free(still);
  write_file(DAMAGED, "", 0);
  expect_refused(DAMAGED, DFLASH_HISTORY_READ, DFLASH_INVALID_DATA, "is an empty file, but no history");
  remove_history(DAMAGED);
  expect_refused(DAMAGED, DFLASH_HISTORY_READ, DFLASH_IO, "cannot open: No such file");
  expect_refused(DFLASH_SCRATCH_FOLDER, DFLASH_HISTORY_WRITE, DFLASH_IO, "is no regular file");
  expect_refused("/dev/null", DFLASH_HISTORY_WRITE, DFLASH_IO, "is no regular file");
  expect_refused("/proc/none/history.db", DFLASH_HISTORY_WRITE, DFLASH_IO, "No such file");
}

static void another_database_is_left_alone(void **state) {
  (void)state;
  execute(DAMAGED, "CREATE TABLE result (id); INSERT INTO result VALUES (1)");
  expect_refused(DAMAGED, DFLASH_HISTORY_READ, DFLASH_INVALID_DATA, "is a database, but no history");
  expect_refused(DAMAGED, DFLASH_HISTORY_WRITE, DFLASH_INVALID_DATA, "is a database, but no history");
  execute(DAMAGED, "INSERT INTO result VALUES (2)");
}

static void tables_that_lack_are_told(void **state) {
  (void)state;
  execute(DAMAGED, "PRAGMA application_id = 0x44464831; PRAGMA user_version = 2; CREATE TABLE run (id)");
  expect_refused(DAMAGED, DFLASH_HISTORY_WRITE, DFLASH_INVALID_DATA, "is no history as this program knows it: no such");
}

static int ignore(void *context, const cJSON *record) {
  (void)context;
  (void)record;
  return 0;
}

/* Opens, reads everything, writes a run. A status that is an error has a line that names the file. */
static DflashStatus use(const char *path) {
  DflashHistory *history = NULL;
  DflashError error = {0};
  DflashHistoryCounts counts;
  DflashText lines = {0};
  int64_t results;
  DflashStatus status = dflash_history_open(path, DFLASH_HISTORY_WRITE, &history, &error);
  if (status == DFLASH_OK)
    status = dflash_history_export(history, &(DflashHistoryFilter){0}, ignore, NULL, &results, &error);
  add_run(&lines, "bench", 99, "new");
  add_bench(&lines, "blas", 7);
  if (status == DFLASH_OK) status = dflash_history_import_text(history, path, lines.data, lines.size, &counts, &error);
  if (status != DFLASH_OK) assert_memory_equal(error.message, path, strlen(path));
  dflash_history_close(history);
  dflash_text_free(&lines);
  return status;
}

static void a_truncated_history_is_refused(void **state) {
  (void)state;
  char *whole;
  uint64_t size;
  assert_int_equal(dflash_read_file(HISTORY, 1 << 20, &whole, &size, NULL), DFLASH_OK);
  for (uint64_t part = 1; part < size; part += part < 600 ? 97 : 2048 + 13) {
    remove_history(DAMAGED);
    write_file(DAMAGED, whole, part);
    if (use(DAMAGED) == DFLASH_OK) fail_msg("%d of %d bytes are taken for a history", (int)part, (int)size);
  }
  free(whole);
}

/* Anything may come of it but a crash, a hang or a message without the file's name. */
static void changed_bytes_do_no_harm(void **state) {
  (void)state;
  DflashRandom random = dflash_random_stream(5, "damage");
  char *whole;
  uint64_t size, word = 0;
  int found = 0;
  assert_int_equal(dflash_read_file(HISTORY, 1 << 20, &whole, &size, NULL), DFLASH_OK);
  for (int round = 0; round < 120; round++) {
    char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, whole, size);
    for (int change = 0; change < 1 + round % 40; change++) {
      uint32_t at = dflash_random_below(random, word, (uint32_t)size);
      copy[at] = (char)dflash_random_u32(random, word + 1);
      word += 2;
    }
    remove_history(DAMAGED);
    write_file(DAMAGED, copy, size);
    found += use(DAMAGED) != DFLASH_OK;
    free(copy);
  }
  assert_true(found > 0);
  free(whole);
}

static void damaged_records_name_their_result(void **state) {
  (void)state;
  static const char *const packs[] = {"randomblob(300)", "x''", "'text'", "NULL", "zeroblob(100000)", "12"};
  for (size_t i = 0; i < sizeof packs / sizeof packs[0]; i++) {
    char sql[200];
    int64_t results;
    DflashError error = {0};
    setup(NULL);
    snprintf(sql, sizeof sql,
             "CREATE TABLE copy AS SELECT * FROM records; DROP TABLE records; ALTER TABLE copy RENAME TO records;"
             "UPDATE records SET pack = %s WHERE result = 3",
             packs[i]);
    execute(HISTORY, sql);
    DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_READ);
    DflashStatus status = dflash_history_export(history, &(DflashHistoryFilter){0}, ignore, NULL, &results, &error);
    dflash_history_close(history);
    if (status == DFLASH_OK) fail_msg("%s is taken for records", packs[i]);
    assert_int_equal(status, DFLASH_INVALID_DATA);
    if (!strstr(error.message, "history-hostile.db: result 3: records are damaged")) fail_msg("%s", error.message);
  }
}

/* A file from elsewhere may define what SQLite would run: it is not run. */
static void triggers_are_not_run(void **state) {
  (void)state;
  int64_t results;
  execute(HISTORY, "CREATE TRIGGER harm AFTER INSERT ON result BEGIN DELETE FROM records; END");
  assert_int_equal(use(HISTORY), DFLASH_OK);
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_READ);
  assert_int_equal(dflash_history_export(history, &(DflashHistoryFilter){0}, ignore, NULL, &results, NULL), DFLASH_OK);
  assert_int_equal(results, 17);
  dflash_history_close(history);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(what_is_no_history_is_refused, setup),
                                     cmocka_unit_test_setup(another_database_is_left_alone, setup),
                                     cmocka_unit_test_setup(tables_that_lack_are_told, setup),
                                     cmocka_unit_test_setup(a_truncated_history_is_refused, setup),
                                     cmocka_unit_test_setup(changed_bytes_do_no_harm, setup),
                                     cmocka_unit_test_setup(damaged_records_name_their_result, setup),
                                     cmocka_unit_test_setup(triggers_are_not_run, setup)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
