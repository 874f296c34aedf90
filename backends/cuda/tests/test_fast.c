/* The fast path over the emulated driver, which has a plain program in place of its kernel: a golden of the published
 * geometry with one layer passes. */
#include "harness/tests/program.h"

#define PLACE "--backend cuda --backend-path " CUDA_EMULATED_BACKEND " --option path=fast"

static const ProgramLimits fast_device = {.variable = "DFLASH_EMULATED_FAST=1"};

static void test_verify(void **state) {
  (void)state;
  expect_run(0, "golden make -q --preset qwen3.8-27b --set layers=1 --set vocab=530 --set mask_token=529 --set taps=19 "
                "--context 3 --case main -o f.h5");
  Program p = program_limited(&fast_device, "verify " PLACE " --mode chain f.h5");
  expect_status(&p, 0);
  expect_contains(&p, p.out, "one kernel and the choice");
  expect_contains(&p, p.out, "1 case: 1 passed");
  program_close(&p);
}

/* Nothing falls back where it was asked for. */
static void test_declined(void **state) {
  (void)state;
  Program p = program_limited(&fast_device, "verify " PLACE " --profile f16 f.h5");
  expect_status(&p, 3);
  expect_contains(&p, p.out, "path=fast: it is for profile exact");
  program_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_verify), cmocka_unit_test(test_declined)};
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
