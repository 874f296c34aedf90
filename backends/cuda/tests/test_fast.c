/* The fast path over the emulated driver, which has a plain program in place of its kernel: a golden of the published
 * geometry with one layer passes, with the whole head and with a shortlist. */
#include "harness/tests/program.h"

#define PLACE "--backend cuda --backend-path " CUDA_EMULATED_BACKEND " --option path=fast"

static const ProgramLimits fast_device = {.variable = "DFLASH_EMULATED_FAST=1"};

static void expect_pass(const char *words, const char *summary) {
  Program p = program_limited(&fast_device, "verify " PLACE " %s f.h5", words);
  expect_status(&p, 0);
  expect_contains(&p, p.out, "one kernel and the choice");
  expect_contains(&p, p.out, summary);
  program_close(&p);
}

static void test_chain(void **state) {
  (void)state;
  expect_pass("--mode chain --case shortlist", "1 case: 1 passed");
}

static void test_local(void **state) {
  (void)state;
  expect_pass("--mode local --case main", "1 case: 1 passed");
}

static void test_f16(void **state) {
  (void)state;
  expect_pass("--mode chain --profile f16 --case main", "1 case: 1 passed");
}

/* Nothing falls back where it was asked for. */
static void test_declined(void **state) {
  (void)state;
  Program p = program_limited(&fast_device, "verify " PLACE " --profile i8 f.h5");
  expect_status(&p, 3);
  expect_contains(&p, p.out, "path=fast: it is for profiles exact and f16");
  program_close(&p);
}

static int setup(void **state) {
  const int status = scratch_setup(state);
  if (status) return status;
  expect_run(0, "golden make -q --preset qwen3.8-27b --set layers=1 --set vocab=530 --set mask_token=529 --set taps=19 "
                "--context 3 --case main,shortlist -o f.h5");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain), cmocka_unit_test(test_local),
                                     cmocka_unit_test(test_f16), cmocka_unit_test(test_declined)};
  return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
