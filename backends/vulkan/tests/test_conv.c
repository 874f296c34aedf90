/* conv: the convolution before a sub-layer, side 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "convolution.h"
#include "values.h"

static void conv(TestKernels *kernels, const TestConvolution *c, float *y) {
  const TestArray arrays[] = {
      test_convolution_x(c), test_convolution_d(c), test_convolution_base(c), {y, test_convolution_x(c).bytes}};
  const ConvPush push = {c->width, c->groups};
  const DflashGeometry geometry = test_convolution_geometry(c);
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t count = vulkan_row_constants(&kernels->device.traits, &geometry, VULKAN_KERNEL_CONV, constants);
  test_launch(
      kernels,
      &(TestLaunch){
          VULKAN_KERNEL_CONV, constants, count, arrays, &push, {vulkan_row_groups(constants, c->width), c->rows, 1}});
}

/* Each tap rounds base + d, the product and the sum. */
static void assert_conv(const TestConvolution *c, const float *y) {
  for (uint32_t r = 0; r < c->rows; r++)
    for (uint32_t i = 0; i < c->width; i++) {
      double size;
      const double exact = test_convolution_at(c, 0, r, i, &size);
      const double error = fabs(y[r * c->width + i] - exact);
      if (!(error <= (c->taps + 2) * TEST_ROUNDING * size))
        fail_msg("row %u, channel %u of %u: %a, should be %a", r, i, c->width, (double)y[r * c->width + i], exact);
    }
}

static void check(TestKernels *kernels, uint32_t rows, uint32_t width, uint32_t group, uint32_t taps) {
  TestConvolution c = test_convolution_open(rows, width, group, taps);
  float *y = test_poisoned((size_t)rows * width);
  conv(kernels, &c, y);
  assert_conv(&c, y);
  free(y);
  test_convolution_close(&c);
}

static void any_rows_and_taps(void **state) {
  for (uint32_t rows = 1; rows <= 17; rows += rows == 8 ? 8 : 1)
    for (uint32_t taps = 1; taps <= 5; taps++) check(*state, rows, 48, 16, taps);
}

static void groups_of_any_size(void **state) {
  check(*state, 3, 1, 1, 2);
  check(*state, 3, 257, 1, 2);
  check(*state, 3, 255, 5, 3);
  check(*state, 3, 777, 777, 2);
  check(*state, 3, 1001, 77, 4);
  check(*state, 3, 10, 5, 2);
  check(*state, 3, 258, 1, 3);
  check(*state, 3, 1038, 519, 2);
  check(*state, 8, 5120, 16, 2);
}

enum { ROWS = 6, WIDTH = 300, GROUP = 15, TAPS = 3 };

static void a_cut_block_gives_the_same_bits(void **state) {
  TestConvolution c = test_convolution_open(ROWS, WIDTH, GROUP, TAPS);
  float *all = test_poisoned(ROWS * WIDTH), *cut = test_poisoned(2 * WIDTH);
  conv(*state, &c, all);
  c.rows = 2;
  conv(*state, &c, cut);
  assert_memory_equal(all, cut, 2 * WIDTH * sizeof *cut);
  free(cut);
  free(all);
  test_convolution_close(&c);
}

/* What is not finite where `touched` says so, and nowhere else. */
static void assert_touched(const TestConvolution *c, const float *y) {
  for (uint32_t r = 0; r < c->rows; r++)
    for (uint32_t i = 0; i < c->width; i++) {
      double size;
      const bool finite = isfinite(test_convolution_at(c, 0, r, i, &size));
      assert_int_equal(isfinite(y[r * c->width + i]), finite);
    }
}

static void what_is_not_finite_is_seen_by_its_taps(void **state) {
  TestConvolution c = test_convolution_open(ROWS, WIDTH, GROUP, TAPS);
  float *y = test_poisoned(ROWS * WIDTH);
  c.x[2 * WIDTH + 7] = NAN;                                 /* rows 2 to 4 */
  c.x[5 * WIDTH + WIDTH - 1] = INFINITY;                    /* row 5 */
  c.d[3 * 2 * TAPS * c.groups + 2 * c.groups + 4] = NAN;    /* a group of row 3 */
  c.d[0 * 2 * TAPS * c.groups + 1 * c.groups + 9] = NAN;    /* row 0 has no such tap */
  c.d[4 * 2 * TAPS * c.groups + TAPS * c.groups + 3] = NAN; /* the other side */
  c.base[1 * WIDTH + 100] = -INFINITY;                      /* all rows but the first */
  c.base[TAPS * WIDTH + 200] = NAN;                         /* the other side */
  conv(*state, &c, y);
  assert_touched(&c, y);
  assert_true(isnan(y[2 * WIDTH + 7]) && isnan(y[4 * WIDTH + 7]) && isfinite(y[5 * WIDTH + 7]));
  assert_true(isfinite(y[9 * GROUP]) && isfinite(y[4 * WIDTH + 3 * GROUP]) && isfinite(y[200]));
  free(y);
  test_convolution_close(&c);
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(any_rows_and_taps, &kernels),
      cmocka_unit_test_prestate(groups_of_any_size, &kernels),
      cmocka_unit_test_prestate(a_cut_block_gives_the_same_bits, &kernels),
      cmocka_unit_test_prestate(what_is_not_finite_is_seen_by_its_taps, &kernels),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
