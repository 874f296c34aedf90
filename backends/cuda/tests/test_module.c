/* The module that ships, with its images, over the emulated driver: it loads, and its images are there. Skipped where
 * there was no nvcc to build it. */
#include "harness/tests/program.h"

enum { SKIPPED = 77 };

static void test_verify(void **state) {
  (void)state;
  expect_run(0, "verify -q " FIXTURE_FILE("operations.h5") " --backend cuda --backend-path " DFLASH_BACKEND_FOLDER);
}

int main(void) {
  if (!file_exists(DFLASH_BACKEND_FOLDER "/dflash-backend-cuda.so")) {
    fprintf(stderr, "the cuda backend was not built: there was no nvcc\n");
    return SKIPPED;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_verify)};
  return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
