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

/* The nearest id comes first. */
static void an_unknown_defect_names_the_closest(void **state) {
  (void)state;
  expect_run(0, "golden make --preset tiny --case main -o t.h5");
  expect_error(2, "\"conv-taps-revers\"; close: conv-taps-reversed, |dflash-harness selftest --list",
               "verify t.h5 --backend faulty --option defect=conv-taps-revers");
}

static void the_list_tells_all(void **state) {
  (void)state;
  Program p = program("selftest --list --defect activations-two-f16");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "1 entry\n");
  assert_null(strstr(p.out, "origin"));
  program_close(&p);
  p = program("selftest --list -v --defect activations-two-f16");
  expect_contains(&p, p.out, "    origin: generic\n    goldens: exact-24bit/exact-24bit");
  expect_contains(&p, p.out, "    exposed by: full mantissas\n    hidden from end values: ");
  program_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_refused_ends_it_at_once),
      cmocka_unit_test(an_unknown_defect_names_the_closest),
      cmocka_unit_test(the_list_tells_all),
  };
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
