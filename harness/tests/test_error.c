#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void set_fills_and_returns(void **state) {
  (void)state;
  DflashError error = {0};
  assert_int_equal(dflash_error_set(&error, DFLASH_IO, "%s: %d", "a", 7), DFLASH_IO);
  assert_int_equal(error.status, DFLASH_IO);
  assert_string_equal(error.message, "a: 7");
  assert_int_equal(dflash_error_set(NULL, DFLASH_INTERNAL, "x"), DFLASH_INTERNAL);
}

static void control_characters_are_replaced(void **state) {
  (void)state;
  DflashError error;
  dflash_error_set(&error, DFLASH_IO, "a\nb\033[2J\x7f\xc2\x9b!\tä");
  assert_string_equal(error.message, "a?b?[2J??"
                                     "?!?ä");
}

static void long_lines_are_cut(void **state) {
  (void)state;
  char text[3000];
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = '\0';
  DflashError error;
  dflash_error_set(&error, DFLASH_IO, "%s", text);
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
  dflash_error_prefix(&error, "p");
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
  assert_memory_equal(error.message, "p: xxx", 6);
  dflash_error_prefix(&error, "%s", text);
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void own_message_may_be_an_argument(void **state) {
  (void)state;
  DflashError error;
  dflash_error_set(&error, DFLASH_IO, "inner");
  dflash_error_set(&error, DFLASH_INVALID_DATA, "outer (%s)", error.message);
  assert_string_equal(error.message, "outer (inner)");
  assert_int_equal(dflash_error_prefix(&error, "%s|%s", error.message, "x"), DFLASH_INVALID_DATA);
  assert_string_equal(error.message, "outer (inner)|x: outer (inner)");
  assert_int_equal(dflash_error_prefix(NULL, "x"), DFLASH_OK);
}

static void unterminated_message_is_bounded(void **state) {
  (void)state;
  DflashError error = {.status = DFLASH_INTERNAL};
  memset(error.message, 'y', sizeof error.message);
  dflash_error_prefix(&error, "p");
  assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void every_status_has_a_name_and_an_exit(void **state) {
  (void)state;
  for (DflashStatus s = DFLASH_OK; s <= DFLASH_INTERNAL; s++)
    assert_string_not_equal(dflash_status_name(s), "unknown status");
  assert_string_equal(dflash_status_name(-1), "unknown status");
  assert_string_equal(dflash_status_name(DFLASH_INTERNAL + 1), "unknown status");
  assert_string_equal(dflash_status_name(DFLASH_INVALID_DATA), "invalid data");
  for (DflashStatus s = DFLASH_OK + 1; s <= DFLASH_INTERNAL; s++)
    assert_int_not_equal(dflash_status_exit(s), DFLASH_EXIT_OK);
  assert_int_equal(dflash_status_exit(DFLASH_OK), DFLASH_EXIT_OK);
  assert_int_equal(dflash_status_exit(DFLASH_INVALID_DATA), DFLASH_EXIT_BAD_INPUT);
  assert_int_equal(dflash_status_exit(DFLASH_UNAVAILABLE), DFLASH_EXIT_UNAVAILABLE);
  assert_int_equal(dflash_status_exit(DFLASH_NONFINITE), DFLASH_EXIT_WRONG);
  assert_int_equal(dflash_status_exit(12345), DFLASH_EXIT_WRONG);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(set_fills_and_returns),
      cmocka_unit_test(control_characters_are_replaced),
      cmocka_unit_test(long_lines_are_cut),
      cmocka_unit_test(own_message_may_be_an_argument),
      cmocka_unit_test(unterminated_message_is_bounded),
      cmocka_unit_test(every_status_has_a_name_and_an_exit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
