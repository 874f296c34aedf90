/* Kernels read and multiply: what they claim to have done, they did. */
#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "launch.h"
#include "values.h"

static TestKernels kernels;

/* The sum of all words, whatever the number of groups. */
static void check_read(uint32_t count, uint32_t groups) {
  const DflashRandom random = dflash_random_stream(17, "words");
  uint32_t *words = test_memory((size_t)count * 4, 4), *sums = test_memory(groups, 4), expected = 0, sum = 0;
  dflash_random_fill(random, 0, (size_t)count * 4, words);
  for (size_t i = 0; i < (size_t)count * 4; i++) expected += words[i];
  for (uint32_t i = 0; i < groups; i++) sums[i] = 0x77777777;
  const MeasurePush push = {count};
  const TestArray arrays[] = {{words, (size_t)count * 16}, {sums, (size_t)groups * 4}};
  test_launch(&kernels,
              &(TestLaunch){.kernel = VULKAN_KERNEL_READ, .push = &push, .groups = {groups, 1, 1}, .arrays = arrays});
  for (uint32_t i = 0; i < groups; i++) sum += sums[i];
  assert_int_equal(sum, expected);
  free(words);
  free(sums);
}

static void every_word_is_read_once(void **state) {
  (void)state;
  check_read(1, 1);
  check_read(255, 3);
  check_read(256 * 8, 1);
  check_read(256 * 8 * 3 + 1, 3);
  check_read(256 * 8 * 2 - 1, 2);
  check_read(50000, 7);
}

/* The same 16 chains of multiply-adds in f64. */
static double chains(uint32_t thread, uint32_t rounds) {
  const double factor = 0.5 + thread / 1024.0, term = 1.0 / (1.0 + rounds);
  double sum = 0;
  for (int chain = 0; chain < 16; chain++) {
    double x = chain;
    for (uint32_t step = 0; step < 4 * rounds; step++) x = x * factor + term;
    sum += x;
  }
  return sum;
}

static void every_step_is_done(void **state) {
  (void)state;
  for (uint32_t rounds = 0; rounds < 4; rounds++) {
    float sums[2 * 256];
    for (size_t i = 0; i < 512; i++) sums[i] = NAN;
    const MeasurePush push = {rounds};
    const TestArray array = {sums, sizeof sums};
    test_launch(&kernels,
                &(TestLaunch){.kernel = VULKAN_KERNEL_MULTIPLY, .push = &push, .groups = {2, 1, 1}, .arrays = &array});
    for (uint32_t i = 0; i < 512; i++) {
      const double exact = chains(i % 256, rounds);
      assert_true(fabs(sums[i] - exact) <= 32 * TEST_ROUNDING * exact);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_word_is_read_once),
      cmocka_unit_test(every_step_is_done),
  };
  test_kernels_open(&kernels);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : EXIT_FAILURE;
}
