/* Children that return, crash, hang, vanish, babble, and leave processes behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "run/isolate.h"
#include "time/clock.h"

typedef struct Heard {
  int records, stop_after;
  double sum;
} Heard;

static int hear(void *context, cJSON *record) {
  Heard *heard = context;
  heard->records++;
  heard->sum += cJSON_GetNumberValue(cJSON_GetObjectItem(record, "n"));
  return heard->records == heard->stop_after;
}

static void say(DflashChild *child, double n) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddNumberToObject(record, "n", n);
  dflash_child_send(child, record);
  cJSON_Delete(record);
}

typedef int (*Act)(void *context, DflashChild *child);

static DflashChildResult isolate(Act act, void *context, double timeout_s, Heard *heard) {
  DflashChildResult result;
  DflashError error;
  assert_int_equal(dflash_isolate(act, context, timeout_s, hear, heard, &result, &error), DFLASH_OK);
  return result;
}

static int count_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

static int send_many(void *context, DflashChild *child) {
  for (int i = 1; i <= 20000; i++) say(child, i);
  return *(int *)context;
}

static void test_every_record_arrives(void **state) {
  (void)state;
  int value = 7, before = count_descriptors();
  for (int i = 0; i < 5; i++) {
    Heard heard = {0};
    DflashChildResult result = isolate(send_many, &value, 10, &heard);
    assert_int_equal(result.how, DFLASH_CHILD_EXITED);
    assert_int_equal(result.value, 7);
    assert_int_equal(heard.records, 20000);
    assert_true(heard.sum == 20000.0 * 20001 / 2);
  }
  assert_int_equal(count_descriptors(), before);
}

static int crash(void *context, DflashChild *child) {
  signal(SIGSEGV, SIG_DFL);
  say(child, 1);
  raise(*(int *)context);
  return 0;
}

static void test_a_crash_names_its_signal(void **state) {
  (void)state;
  int number = SIGSEGV;
  Heard heard = {0};
  DflashChildResult result = isolate(crash, &number, 10, &heard);
  assert_int_equal(result.how, DFLASH_CHILD_CRASHED);
  assert_int_equal(result.value, SIGSEGV);
  assert_string_equal(result.text, "crashed with signal 11 (Segmentation fault)");
  assert_int_equal(heard.records, 1);
}

static int leave(void *context, DflashChild *child) {
  say(child, 1);
  _exit(*(int *)context);
}

static void test_an_exit_inside_is_no_return(void **state) {
  (void)state;
  for (int status = 0; status < 2; status++) {
    Heard heard = {0};
    DflashChildResult result = isolate(leave, &status, 10, &heard);
    assert_int_equal(result.how, DFLASH_CHILD_CRASHED);
    assert_int_equal(result.value, status);
    assert_non_null(strstr(result.text, "ended the process with exit status"));
    assert_int_equal(heard.records, 1);
  }
}

static int hang(void *context, DflashChild *child) {
  (void)context;
  signal(SIGTERM, SIG_IGN);
  say(child, 1);
  for (;;) pause();
  return 0;
}

static int close_and_hang(void *context, DflashChild *child) {
  for (int i = 3; i < 1000; i++) close(i);
  return hang(context, child);
}

static void test_silence_ends_a_child(void **state) {
  (void)state;
  Act acts[] = {hang, close_and_hang};
  for (int i = 0; i < 2; i++) {
    Heard heard = {0};
    uint64_t begin = dflash_clock_ns();
    DflashChildResult result = isolate(acts[i], NULL, 0.3, &heard);
    assert_int_equal(result.how, DFLASH_CHILD_HUNG);
    assert_string_equal(result.text, "made no progress for 0.3 s");
    assert_true(dflash_clock_ns() - begin < 5000000000U);
  }
}

static int work_slowly(void *context, DflashChild *child) {
  (void)context;
  for (int i = 0; i < 8; i++) {
    usleep(100000);
    say(child, 1);
  }
  return 0;
}

static void test_progress_restarts_the_limit(void **state) {
  (void)state;
  Heard heard = {0};
  DflashChildResult result = isolate(work_slowly, NULL, 0.6, &heard);
  assert_int_equal(result.how, DFLASH_CHILD_EXITED);
  assert_int_equal(heard.records, 8);
}

/* The grandchild holds the pipe open. */
static int leave_a_process(void *context, DflashChild *child) {
  pid_t left = fork();
  if (left == 0)
    for (;;) pause();
  say(child, left);
  return *(int *)context;
}

/* Gone, or a zombie until its new parent looks. */
static bool is_over(pid_t pid) {
  char path[64], letter = '?';
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return true;
  if (fscanf(file, "%*d %*s %c", &letter) != 1) letter = '?';
  fclose(file);
  return letter == 'Z' || letter == 'X';
}

static void test_a_process_left_behind_is_ended(void **state) {
  (void)state;
  int value = 0;
  Heard heard = {0};
  uint64_t begin = dflash_clock_ns();
  DflashChildResult result = isolate(leave_a_process, &value, 20, &heard);
  assert_int_equal(result.how, DFLASH_CHILD_EXITED);
  assert_true(dflash_clock_ns() - begin < 5000000000U);
  for (int waited = 0; !is_over((pid_t)heard.sum) && waited < 2000; waited++) usleep(1000);
  assert_true(is_over((pid_t)heard.sum));
}

static void test_a_child_may_be_stopped(void **state) {
  (void)state;
  int value = 0;
  Heard heard = {.stop_after = 3};
  DflashChildResult result = isolate(send_many, &value, 10, &heard);
  assert_int_equal(result.how, DFLASH_CHILD_STOPPED);
  assert_int_equal(heard.records, 3);
}

static int babble(void *context, DflashChild *child) {
  (void)context;
  static const char *const lines[] = {"\n", "{\n", "null\n", "[1,2]\n", "{\"n\":2}\n", "half a li"};
  for (int d = 3; d < 32; d++) /* whichever is the pipe */
    for (size_t i = 0; i < 6; i++)
      if (fcntl(d, F_GETFL) >= 0 && (fcntl(d, F_GETFL) & O_ACCMODE) == O_WRONLY &&
          write(d, lines[i], strlen(lines[i])) < 0)
        break;
  (void)child;
  return 0;
}

static void test_lines_that_are_no_records_do_no_harm(void **state) {
  (void)state;
  Heard heard = {0};
  DflashChildResult result = isolate(babble, NULL, 10, &heard);
  assert_true(result.how == DFLASH_CHILD_EXITED || result.how == DFLASH_CHILD_CRASHED); /* its last word is cut */
  assert_true(heard.records >= 1);
}

static int print(void *context, DflashChild *child) {
  dflash_child_hush(child, *(int *)context);
  puts("on stdout");
  fflush(stdout);
  fputs("on stderr\n", stderr);
  dflash_child_hush(child, 0);
  fputs("later\n", stderr);
  return 0;
}

/* What a child's stdout and stderr come to, in the parent's stderr. */
static void capture(int hushed, char text[256]) {
  char name[] = DFLASH_SCRATCH_FOLDER "/isolate-XXXXXX";
  int file = mkstemp(name), kept = dup(STDERR_FILENO);
  assert_true(file >= 0 && kept >= 0);
  dup2(file, STDERR_FILENO);
  Heard heard = {0};
  DflashChildResult result = isolate(print, &hushed, 10, &heard);
  dup2(kept, STDERR_FILENO);
  close(kept);
  assert_int_equal(result.how, DFLASH_CHILD_EXITED);
  ssize_t size = pread(file, text, 255, 0);
  text[size > 0 ? size : 0] = '\0';
  close(file);
  unlink(name);
}

static void test_output_goes_to_stderr_or_nowhere(void **state) {
  (void)state;
  char text[256];
  capture(0, text);
  assert_string_equal(text, "on stdout\non stderr\nlater\n");
  capture(1, text);
  assert_non_null(strstr(text, "later\n"));
  assert_null(strstr(text, "on stderr"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_record_arrives),
      cmocka_unit_test(test_a_crash_names_its_signal),
      cmocka_unit_test(test_an_exit_inside_is_no_return),
      cmocka_unit_test(test_silence_ends_a_child),
      cmocka_unit_test(test_progress_restarts_the_limit),
      cmocka_unit_test(test_a_process_left_behind_is_ended),
      cmocka_unit_test(test_a_child_may_be_stopped),
      cmocka_unit_test(test_lines_that_are_no_records_do_no_harm),
      cmocka_unit_test(test_output_goes_to_stderr_or_nowhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
