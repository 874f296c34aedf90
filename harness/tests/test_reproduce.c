/* The command that repeats a failure, as a shell would read it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/reproduce.h"

static void expect(const DflashRunOptions *options, DflashReproduce what, const char *expected) {
  char *command = dflash_reproduce_command(options, &what);
  assert_string_equal(command, expected);
  free(command);
}

static void test_the_shortest(void **state) {
  (void)state;
  const DflashRunOptions options = {.backend = "blas", .layer = -1, .repeat = 1};
  expect(&options, (DflashReproduce){.command = "verify", .file = "a.h5", .case_name = "main", .layer = -1},
         "dflash-harness verify a.h5 --backend blas --profile exact --case main");
  expect(&options,
         (DflashReproduce){.command = "verify",
                           .file = "a.h5",
                           .case_name = "beyond-2^24",
                           .stage = "attn.mix",
                           .layer = 0,
                           .mode = "alone"},
         "dflash-harness verify a.h5 --backend blas --profile exact --case beyond-2^24 --stage attn.mix --layer 0 "
         "--mode alone");
}

static void test_two_files(void **state) {
  (void)state;
  const DflashRunOptions options = {.layer = -1, .repeat = 1};
  expect(&options,
         (DflashReproduce){
             .command = "compare", .file = "a.h5", .second_file = "my values.h5", .case_name = "main", .layer = -1},
         "dflash-harness compare a.h5 'my values.h5' --profile exact --case main");
}

static void test_every_option(void **state) {
  (void)state;
  DflashRunOptions options = {.backend = "./x.so",
                              .backend_path = "a:b",
                              .device = "cpu",
                              .options = {{"form", "f 32"}},
                              .option_count = 1,
                              .threads = 2,
                              .profile = DFLASH_PROFILE_I8,
                              .stages = "attn.*",
                              .layer = 1,
                              .modes = 1U << DFLASH_MODE_CHAIN,
                              .load_context = 1,
                              .repeat = 3};
  expect(&options, (DflashReproduce){.command = "verify", .file = "it's.h5", .case_name = "main", .layer = -1},
         "dflash-harness verify 'it'\\''s.h5' --backend ./x.so --backend-path a:b --device cpu --option form='f 32' "
         "--threads 2 --profile i8 --case main --stage 'attn.*' --layer 1 --mode chain --context load --repeat 3");
  options = (DflashRunOptions){.backend = "blas", .layer = -1, .repeat = 1, .round = 16, .cold = 1};
  expect(&options, (DflashReproduce){.command = "bench", .file = "", .layer = -1},
         "dflash-harness bench '' --backend blas --profile exact --round 16 --cold");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_shortest),
      cmocka_unit_test(test_two_files),
      cmocka_unit_test(test_every_option),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
