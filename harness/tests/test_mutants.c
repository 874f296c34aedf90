/* Is this test suite worth anything? The harness with one part replaced by a useless one must turn its own checks red:
 * each check is run by the harness, which must pass, and by the mutant, which must not. */
#include "program.h"

#define SELFTEST "selftest -q --backend-path " DFLASH_BACKEND_FOLDER " --defect "

/* 0 by the harness, `status` by the mutant. */
static void expect_red(const char *mutant, int status, const char *command) {
  const ProgramLimits limits = {.program = mutant};
  Program right = program("%s", command), wrong = program_limited(&limits, "%s", command);
  expect_status(&right, 0);
  expect_status(&wrong, status);
  program_close(&right);
  program_close(&wrong);
}

static void a_comparison_that_always_passes(void **state) {
  (void)state;
  expect_red(DFLASH_MUTANT_FOLDER "/mutant-always-pass", 1, SELFTEST "conv-*");
  expect_red(DFLASH_MUTANT_FOLDER "/mutant-always-pass", 1, SELFTEST "select-*");
}

static void a_clock_that_stands_still(void **state) {
  (void)state;
  expect_red(DFLASH_MUTANT_FOLDER "/mutant-constant-clock", 1, SELFTEST "clock-half,clock-still");
  const ProgramLimits limits = {.program = DFLASH_MUTANT_FOLDER "/mutant-constant-clock"};
  Program bench = program_limited(&limits, "bench t.h5 --backend reference --backend-path " DFLASH_BACKEND_FOLDER);
  expect_status(&bench, 1);
  expect_contains(&bench, bench.err, "stood still");
  program_close(&bench);
}

static void a_block_that_does_nothing(void **state) {
  (void)state;
  expect_run(0, "verify t.h5 -q --backend reference");
  expect_run(1, "verify t.h5 -q --backend noop-block --backend-path " DFLASH_TEST_BACKEND_FOLDER);
  expect_run(1, "verify t.h5 -q --backend noop-block --mode local --backend-path " DFLASH_TEST_BACKEND_FOLDER);
  expect_run(1, "bench t.h5 -q --backend noop-block --backend-path " DFLASH_TEST_BACKEND_FOLDER);
}

static void a_golden_made_by_the_backend_itself(void **state) {
  (void)state;
  expect_red(DFLASH_MUTANT_FOLDER "/mutant-own-golden", 1, "golden check " FIXTURE_FILE("tiny-f32.h5") " --recompute");
  expect_red(DFLASH_MUTANT_FOLDER "/mutant-own-golden", 1,
             "golden check " FIXTURE_FILE("sidecar-rewind.h5") " --recompute");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_comparison_that_always_passes), cmocka_unit_test(a_clock_that_stands_still),
      cmocka_unit_test(a_block_that_does_nothing), cmocka_unit_test(a_golden_made_by_the_backend_itself)};
  return cmocka_run_group_tests(tests, scratch_setup_golden, scratch_teardown);
}
