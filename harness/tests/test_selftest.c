/* `selftest` as a user runs it: what is refused, listed, printed and written. */
#include "program.h"

#define ONE "selftest --defect conv-taps-reversed "

/* One line, the backend's own words, before any trial. */
static void what_is_refused_ends_it_at_once(void **state) {
  (void)state;
  expect_error(2, "base is \"nope\"|valid: reference, blas", "selftest --option base=nope");
  expect_error(2, "colour", ONE "--option colour=red");
  expect_error(3, "nowhere", "selftest --backend nowhere");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_refused_ends_it_at_once),
  };
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
