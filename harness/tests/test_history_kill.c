/* Writers that are killed, and writers at once. DFLASH_KILLS: how many moments (40). */
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <time.h>

#define HISTORY_NAME "kill"
#include "history_runs.h"

#include "base/random.h"

enum { CASES = 3, WRITERS = 2, RUNS = 30 };

static int setup(void **state) {
  (void)state;
  remove_history(HISTORY);
  return 0;
}

static void add_whole_run(DflashText *lines, const char *writer, int number) {
  add_run(lines, writer, number, "abc");
  add_model(lines, "blas");
  for (int i = 0; i < CASES - 1; i++) add_case(lines, "blas", i == 0 ? "main" : "cut", "pass", 0.5 + i);
  add_bench(lines, "blas", 100 + number);
  add_summary(lines, 0);
}

/* One run through the store, as commands do it; false: it could not. */
static bool write_run(const char *writer, int number) {
  DflashText lines = {0};
  DflashStore *store = NULL;
  add_whole_run(&lines, writer, number);
  DflashStatus status = dflash_store_open(&(DflashStoreOptions){.history_path = HISTORY}, &store, NULL);
  for (const char *line = lines.data; status == DFLASH_OK && *line; line += strcspn(line, "\n") + 1) {
    cJSON *record = cJSON_ParseWithLength(line, strcspn(line, "\n"));
    status = dflash_store_record(store, record, NULL);
    cJSON_Delete(record);
  }
  DflashStatus closed = dflash_store_close(store, NULL);
  dflash_text_free(&lines);
  return status == DFLASH_OK && closed == DFLASH_OK;
}

/* Writes runs until it is killed, and tells of each when it is in the file. */
static void write_for_ever(int first, int told) {
  for (int number = first;; number++) {
    if (!write_run("verify", number)) _exit(1);
    if (write(told, &number, sizeof number) != sizeof number) _exit(2);
  }
}

/* Which runs a writer told of, of the file at hand. */
typedef struct Told {
  bool runs[1024];
  int next, kills; /* number of the run to begin with */
} Told;

static int read_told(int descriptor, Told *told) {
  int number, count = 0;
  for (; read(descriptor, &number, sizeof number) == sizeof number; count++) {
    assert_in_range(number, 0, 1022);
    told->runs[number] = true;
    told->next = number + 1;
  }
  close(descriptor);
  told->next++; /* one may have been in work */
  return count;
}

/* SIGKILL after `us`; how many runs it told of. */
static int write_and_be_killed(Told *told, unsigned us) {
  int ends[2], how;
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    close(ends[0]);
    write_for_ever(told->next, ends[1]);
  }
  close(ends[1]);
  nanosleep(&(struct timespec){us / 1000000, (long)(us % 1000000) * 1000}, NULL);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
  told->kills++;
  return read_told(ends[0], told);
}

static void expect_integrity(void) {
  sqlite3 *db = NULL;
  sqlite3_stmt *statement = NULL;
  assert_int_equal(sqlite3_open(HISTORY, &db), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  assert_string_equal(sqlite3_column_text(statement, 0), "ok");
  sqlite3_finalize(statement);
  sqlite3_close(db);
}

static DflashText read_all(void) {
  DflashHistory *history = open_history(HISTORY, DFLASH_HISTORY_READ);
  DflashText all = {0};
  DflashError error = {0};
  int64_t results;
  dflash_text_append(&all, "%s", "");
  if (dflash_history_export(history, &(DflashHistoryFilter){0}, append_line, &all, &results, &error) != DFLASH_OK)
    fail_msg("%s", error.message);
  dflash_history_close(history);
  return all;
}

/* Every run that was told of is there, to the letter, and at most one more for each kill. */
static void expect_runs(const Told *told) {
  DflashText all = read_all();
  int whole = 0;
  for (int number = 0; number < told->next; number++) {
    DflashText lines = {0};
    add_whole_run(&lines, "verify", number);
    if (told->runs[number] && !strstr(all.data, lines.data)) fail_msg("run %d is gone or damaged", number);
    whole += told->runs[number];
    dflash_text_free(&lines);
  }
  assert_in_range(count_of(all.data, "\"type\":\"run\""), whole, whole + told->kills);
  dflash_text_free(&all);
}

/* Killed before the file was made, it is not there, or is empty with what undoes its beginning beside it. */
static bool was_made(void) {
  DflashHistory *history = NULL;
  DflashStatus status = dflash_history_open(HISTORY, DFLASH_HISTORY_WRITE, &history, NULL);
  dflash_history_close(history);
  return status == DFLASH_OK;
}

/* Three runs' time: a kill falls anywhere within them, on a slow disk as well. */
static uint32_t window_us(void) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  assert_true(write_run("verify", 1023));
  clock_gettime(CLOCK_MONOTONIC, &end);
  int64_t us = (int64_t)(end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
  setup(NULL);
  return (uint32_t)(us < 2000 ? 6000 : us > 500000 ? 1500000 : 3 * us);
}

static void a_kill_costs_the_run_in_work_at_most(void **state) {
  (void)state;
  const char *wanted = getenv("DFLASH_KILLS");
  int kills = wanted ? atoi(wanted) : 40, whole = 0;
  DflashRandom random = dflash_random_stream((uint64_t)time(NULL), "moments");
  const uint32_t window = window_us();
  Told told = {0};
  assert_true(kills > 0);
  for (int i = 0; i < kills; i++) {
    if (told.next > 60) { /* a file that grows makes checking slow, not better */
      setup(NULL);
      told = (Told){0};
    }
    whole += write_and_be_killed(&told, dflash_random_below(random, (uint64_t)i, window));
    assert_true(was_made());
    expect_runs(&told);
    expect_integrity();
  }
  if (wanted) print_message("%d kills, %d whole runs\n", kills, whole);
  assert_true(whole > 0);
}

/* ---- at once ---- */

static void writers_at_once_lose_nothing(void **state) {
  (void)state;
  static const char *const names[WRITERS] = {"verify", "sweep"};
  pid_t children[WRITERS];
  for (int w = 0; w < WRITERS; w++) {
    children[w] = fork();
    assert_true(children[w] >= 0);
    for (int number = 0; children[w] == 0 && number < RUNS; number++)
      if (!write_run(names[w], number)) _exit(1);
    if (children[w] == 0) _exit(0);
  }
  for (int w = 0; w < WRITERS; w++) {
    int how;
    assert_int_equal(waitpid(children[w], &how, 0), children[w]);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  }
  DflashText all = read_all();
  for (int i = 0; i < WRITERS * RUNS; i++) {
    DflashText lines = {0};
    add_whole_run(&lines, names[i % WRITERS], i / WRITERS);
    if (!strstr(all.data, lines.data)) fail_msg("run %d of %s is gone", i / WRITERS, names[i % WRITERS]);
    dflash_text_free(&lines);
  }
  assert_int_equal(count_of(all.data, "\"type\":\"run\""), WRITERS * RUNS);
  dflash_text_free(&all);
  expect_integrity();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(a_kill_costs_the_run_in_work_at_most, setup),
                                     cmocka_unit_test_setup(writers_at_once_lose_nothing, setup)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
