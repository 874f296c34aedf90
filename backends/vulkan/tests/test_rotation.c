/* rotation: cosine and sine of f32(position * inv_freq), one rounding. */
#include <math.h>
#include <stdlib.h>

#include "launch.h"
#include "values.h"

static void rotation(TestKernels *kernels, const TestArray arrays[3], uint32_t rows, uint32_t half, uint32_t groups) {
  const RotationPush push = {half};
  test_launch(kernels, &(TestLaunch){VULKAN_KERNEL_ROTATION, NULL, 0, arrays, &push, {groups, rows, 1}});
}

static void assert_turn(float position, float inv_freq, float cosine, float sine) {
  const float angle = position * inv_freq;
  const double off = fmax(test_ulps(cosine, cos((double)angle)), test_ulps(sine, sin((double)angle)));
  if (!(off <= 2)) /* the bound of the parity rules */
    fail_msg("%.2f ulp: %a and %a for the angle %a", off, (double)cosine, (double)sine, (double)angle);
}

static void check(TestKernels *kernels, float *positions, uint32_t rows, float *inv_freq, uint32_t half) {
  const size_t count = (size_t)2 * rows * half;
  float *table = test_poisoned(count);
  const TestArray arrays[] = {
      {positions, rows * sizeof(float)}, {inv_freq, half * sizeof(float)}, {table, count * sizeof(float)}};
  rotation(kernels, arrays, rows, half, (half + 63) / 64);
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t i = 0; i < half; i++)
      assert_turn(positions[r], inv_freq[i], table[2 * r * half + i], table[(2 * r + 1) * half + i]);
  free(table);
}

static void fill_frequencies(float *inv_freq, uint32_t half, double theta) {
  for (uint32_t i = 0; i < half; i++) inv_freq[i] = (float)pow(theta, -(double)i / half);
}

/* Near 0, around 2^24, where positions round, and far beyond. */
static void positions_of_any_size(void **state) {
  static const double starts[] = {0, 4000, 16777210, 1e8, 1e9, 4e15, 1e30};
  enum { ROWS = 16, MOST = 128 };
  float positions[ROWS], inv_freq[MOST];
  for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++) {
    for (int r = 0; r < ROWS; r++) positions[r] = (float)(starts[s] + r);
    fill_frequencies(inv_freq, 64, 1e7);
    check(*state, positions, ROWS, inv_freq, 64);
    fill_frequencies(inv_freq, MOST, 500);
    check(*state, positions, 9, inv_freq, MOST);
  }
}

static void tables_of_any_size(void **state) {
  static const uint32_t halves[] = {1, 3, 21, 63, 65, 127};
  float positions[17], inv_freq[127];
  for (int r = 0; r < 17; r++) positions[r] = (float)(1000003 + 77 * r);
  for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
    fill_frequencies(inv_freq, halves[i], 1e6);
    check(*state, positions, 1, inv_freq, halves[i]);
    check(*state, positions, 17, inv_freq, halves[i]);
  }
}

static void fewer_groups_take_more(void **state) {
  enum { ROWS = 5, HALF = 200 };
  float positions[ROWS] = {1, 2, 3, 4, 5}, inv_freq[HALF], *table = test_poisoned(2 * ROWS * HALF);
  fill_frequencies(inv_freq, HALF, 1e4);
  const TestArray arrays[] = {
      {positions, sizeof positions}, {inv_freq, sizeof inv_freq}, {table, 2 * ROWS * HALF * sizeof(float)}};
  rotation(*state, arrays, ROWS, HALF, 2);
  for (int i = 0; i < HALF; i++) assert_turn(5, inv_freq[i], table[2 * 4 * HALF + i], table[(2 * 4 + 1) * HALF + i]);
  free(table);
}

/* An infinite frequency, as an f32 of a small theta can be, has no angle. */
static void an_infinite_angle_is_nan(void **state) {
  float positions[] = {3, 0}, inv_freq[] = {1, INFINITY};
  check(*state, positions, 2, inv_freq, 2);
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(positions_of_any_size, &kernels),
      cmocka_unit_test_prestate(tables_of_any_size, &kernels),
      cmocka_unit_test_prestate(fewer_groups_take_more, &kernels),
      cmocka_unit_test_prestate(an_infinite_angle_is_nan, &kernels),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
