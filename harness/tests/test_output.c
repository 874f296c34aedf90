#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

#define FOLDER DFLASH_SCRATCH_FOLDER "/output-scratch"
#define TARGET FOLDER "/result"

static int files_in_folder(void) {
  DIR *folder = opendir(FOLDER);
  int count = 0;
  for (const struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

static void assert_contents(const char *expected) {
  char *text;
  uint64_t size;
  assert_int_equal(dflash_read_file(TARGET, 1 << 20, &text, &size, NULL), DFLASH_OK);
  assert_string_equal(text, expected);
  free(text);
}

static int setup(void **state) {
  (void)state;
  mkdir(FOLDER, 0777);
  unlink(TARGET);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  unlink(TARGET);
  return rmdir(FOLDER); /* fails when a file was left */
}

static void appears_only_when_whole(void **state) {
  (void)state;
  DflashOutput output;
  assert_int_equal(dflash_output_open(&output, TARGET, NULL), DFLASH_OK);
  assert_int_equal(dflash_output_write(&output, "one ", 4, NULL), DFLASH_OK);
  assert_int_not_equal(access(TARGET, F_OK), 0);
  assert_int_equal(dflash_output_write(&output, "two", 3, NULL), DFLASH_OK);
  assert_int_equal(dflash_output_commit(&output, NULL), DFLASH_OK);
  assert_contents("one two");
  assert_int_equal(files_in_folder(), 1);
  dflash_output_abort(&output);
  assert_contents("one two");
}

static void abort_keeps_the_old_file(void **state) {
  (void)state;
  assert_int_equal(dflash_write_file(TARGET, "old", 3, NULL), DFLASH_OK);
  DflashOutput output;
  assert_int_equal(dflash_output_open(&output, TARGET, NULL), DFLASH_OK);
  assert_int_equal(dflash_output_write(&output, "new", 3, NULL), DFLASH_OK);
  assert_int_equal(files_in_folder(), 2);
  dflash_output_abort(&output);
  dflash_output_abort(&output);
  assert_int_equal(files_in_folder(), 1);
  assert_contents("old");
}

static void calls_after_the_end_are_errors(void **state) {
  (void)state;
  DflashOutput output;
  DflashError error;
  assert_int_equal(dflash_output_open(&output, TARGET, NULL), DFLASH_OK);
  dflash_output_abort(&output);
  assert_int_equal(dflash_output_write(&output, "x", 1, &error), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(dflash_output_commit(&output, &error), DFLASH_INVALID_ARGUMENT);
  DflashOutput never = {0}; /* descriptor 0 is not its own */
  dflash_output_abort(&never);
  assert_int_not_equal(fcntl(0, F_GETFD), -1);
}

static void bad_places_are_refused(void **state) {
  (void)state;
  DflashOutput output;
  DflashError error;
  assert_int_equal(dflash_output_open(&output, "/nonexistent/x", &error), DFLASH_IO);
  assert_non_null(strstr(error.message, "/nonexistent/x: cannot create"));
  assert_non_null(strstr(error.message, "No such file"));
  assert_int_equal(dflash_output_open(&output, FOLDER, &error), DFLASH_IO);
  assert_non_null(strstr(error.message, "not a regular file"));
  assert_int_equal(dflash_output_open(&output, "/dev/null", &error), DFLASH_IO);
  dflash_output_abort(&output);
}

/* A link planted under the temporary name is replaced, not followed. */
static void temporary_link_is_not_followed(void **state) {
  (void)state;
  char name[512];
  snprintf(name, sizeof name, "%s.tmp-%ld", TARGET, (long)getpid());
  assert_int_equal(symlink("/dev/null", name), 0);
  assert_int_equal(dflash_write_file(TARGET, "x", 1, NULL), DFLASH_OK);
  assert_contents("x");
  assert_int_equal(files_in_folder(), 1);
}

/* In a child: the limit stays there. Exit 0 when the write failed as it should. */
static void size_limit_is_one_clear_line(void **state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    DflashOutput output;
    DflashError error = {0};
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1000, .rlim_max = 1000});
    static char data[4096];
    int wrong = dflash_output_open(&output, TARGET, &error) != DFLASH_OK;
    wrong |= dflash_output_write(&output, data, sizeof data, &error) != DFLASH_IO;
    wrong |= strcmp(error.message, TARGET ": cannot write: File too large") != 0;
    wrong |= files_in_folder() != 0;
    _exit(wrong);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
}

static void end_by(int signal_number, int fork_first) {
  pid_t child = fork();
  if (child == 0) {
    DflashOutput output;
    if (dflash_output_open(&output, TARGET, NULL) != DFLASH_OK) _exit(9);
    if (fork_first && fork() == 0) raise(signal_number); /* the file is not this process's: it stays */
    if (fork_first) wait(NULL);
    if (files_in_folder() != 1) _exit(8);
    raise(signal_number);
    _exit(7);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how));
  assert_int_equal(WTERMSIG(how), signal_number);
  assert_int_equal(files_in_folder(), 0);
}

static void signals_leave_nothing(void **state) {
  (void)state;
  end_by(SIGINT, 0);
  end_by(SIGTERM, 0);
  end_by(SIGPIPE, 0);
  end_by(SIGTERM, 1);
}

static void keep_running(int signal_number) { (void)signal_number; }

static void a_program_s_own_handler_stays(void **state) {
  (void)state;
  void (*before)(int) = signal(SIGHUP, keep_running);
  assert_int_equal(dflash_write_file(TARGET, "x", 1, NULL), DFLASH_OK);
  assert_ptr_equal(signal(SIGHUP, before), keep_running);
}

static void many_at_a_time(void **state) {
  (void)state;
  DflashOutput outputs[40];
  for (int i = 0; i < 40; i++) {
    char name[256];
    snprintf(name, sizeof name, FOLDER "/%d", i);
    assert_int_equal(dflash_output_open(&outputs[i], name, NULL), DFLASH_OK);
  }
  for (int i = 0; i < 40; i++) dflash_output_abort(&outputs[i]);
  assert_int_equal(files_in_folder(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(appears_only_when_whole, setup, teardown),
      cmocka_unit_test_setup_teardown(abort_keeps_the_old_file, setup, teardown),
      cmocka_unit_test_setup_teardown(calls_after_the_end_are_errors, setup, teardown),
      cmocka_unit_test_setup_teardown(bad_places_are_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(temporary_link_is_not_followed, setup, teardown),
      cmocka_unit_test_setup_teardown(size_limit_is_one_clear_line, setup, teardown),
      cmocka_unit_test_setup_teardown(signals_leave_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown(a_program_s_own_handler_stays, setup, teardown),
      cmocka_unit_test_setup_teardown(many_at_a_time, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
