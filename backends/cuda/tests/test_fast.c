/* The fast path over the emulated driver, which has a plain program in place of its kernel: a golden of the published
 * geometry with one layer passes, with the whole head and with a shortlist, and blocks of up to 16 rows in profile f16.
 */
#include "harness/tests/program.h"

#define PLACE "--backend cuda --backend-path " CUDA_EMULATED_BACKEND " --option path=fast"

#define MAKE \
  "golden make -q --preset qwen3.8-27b --set layers=1 --set vocab=530 --set mask_token=529 --set taps=19 --context 3 "

static const ProgramLimits fast_device = {.variable = "DFLASH_EMULATED_FAST=1"};

static void expect_pass(const char *words, const char *summary) {
  Program p = program_limited(&fast_device, "verify " PLACE " %s", words);
  expect_status(&p, 0);
  expect_contains(&p, p.out, "one kernel and the choice");
  expect_contains(&p, p.out, summary);
  program_close(&p);
}

static void test_chain(void **state) {
  (void)state;
  expect_pass("--mode chain --case shortlist f.h5", "1 case: 1 passed");
}

static void test_local(void **state) {
  (void)state;
  expect_pass("--mode local --case main f.h5", "1 case: 1 passed");
}

static void test_f16(void **state) {
  (void)state;
  expect_pass("--mode chain --profile f16 --case main f.h5", "1 case: 1 passed");
}

/* 10 rows, half of a block that is too long itself. The stages of the plain path could be entered alone. */
static void test_tall(void **state) {
  (void)state;
  expect_pass("--mode chain --profile f16 --case cut long.h5", "1 case: 1 passed");
  Program p = program_limited(&fast_device, "verify " PLACE " --profile f16 --mode alone --case cut long.h5");
  expect_contains(&p, p.out, "attn.norm/0: the backend cannot enter it alone");
  program_close(&p);
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
  expect_run(0, MAKE "--case main,shortlist -o f.h5");
  expect_run(0, MAKE "--set block=20 --case cut -o long.h5");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain), cmocka_unit_test(test_local),
                                     cmocka_unit_test(test_f16), cmocka_unit_test(test_tall),
                                     cmocka_unit_test(test_declined)};
  return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
