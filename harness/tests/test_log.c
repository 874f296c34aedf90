#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

/* What `speak` writes to stderr. */
static void capture(void (*speak)(void), char *text, size_t capacity) {
  FILE *file = tmpfile();
  assert_non_null(file);
  fflush(stderr);
  int kept = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  speak();
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  rewind(file);
  text[fread(text, 1, capacity - 1, file)] = '\0';
  fclose(file);
}

static void say_all(void) {
  for (int level = DFLASH_LOG_ERROR - 1; level <= DFLASH_LOG_DEBUG + 1; level++)
    dflash_log(level, "l%d\n%s", level, "x");
}

static void levels_filter(void **state) {
  (void)state;
  char text[1000];
  capture(say_all, text, sizeof text);
  assert_string_equal(text, "dflash-harness: error: l0?x\ndflash-harness: warning: l1?x\n");
  dflash_log_level(DFLASH_LOG_DEBUG);
  capture(say_all, text, sizeof text);
  assert_non_null(strstr(text, "dflash-harness: debug: l3?x\n"));
  dflash_log_level(DFLASH_LOG_ERROR);
  capture(say_all, text, sizeof text);
  assert_string_equal(text, "dflash-harness: error: l0?x\n");
}

static void show_progress(void) {
  dflash_progress("verify %d/%d", 3, 12);
  dflash_progress_done();
}

static void progress_needs_a_terminal(void **state) {
  (void)state;
  char text[100];
  capture(show_progress, text, sizeof text);
  assert_string_equal(text, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(levels_filter), cmocka_unit_test(progress_needs_a_terminal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
