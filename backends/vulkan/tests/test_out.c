/* out: h += the convolution after a sub-layer, side 1, in place; then the norm of what h became. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "convolution.h"
#include "values.h"

static const float eps = 1e-6F;

/* h becomes the sum; on a device that takes no more threads. */
static void out_by(TestKernels *kernels, uint32_t threads, const TestConvolution *c, float *h, float *weight,
                   float *norm) {
  const size_t bytes = test_convolution_x(c).bytes;
  const TestArray arrays[] = {{h, bytes},
                              test_convolution_x(c),
                              test_convolution_d(c),
                              test_convolution_base(c),
                              {weight, c->width * sizeof(float)},
                              {norm, bytes}};
  const OutPush push = {c->width, c->groups, 1 / (float)c->width, eps, 0};
  const VulkanTraits traits = {.max_threads = threads};
  const DflashGeometry geometry = test_convolution_geometry(c);
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t count = vulkan_row_constants(&traits, &geometry, VULKAN_KERNEL_OUT, constants);
  test_launch(kernels, &(TestLaunch){VULKAN_KERNEL_OUT, constants, count, arrays, &push, {c->rows, 1, 1}});
}

static void out(TestKernels *kernels, const TestConvolution *c, float *h, float *weight, float *norm) {
  out_by(kernels, kernels->device.traits.max_threads, c, h, weight, norm);
}

/* Each tap rounds base + d, the product and the sum; h is added at last. */
static void assert_sum(const TestConvolution *c, const float *before, const float *h) {
  for (uint32_t r = 0; r < c->rows; r++)
    for (uint32_t i = 0; i < c->width; i++) {
      double size;
      const uint32_t at = r * c->width + i;
      const double exact = before[at] + test_convolution_at(c, 1, r, i, &size);
      if (!(fabs(h[at] - exact) <= (c->taps + 3) * TEST_ROUNDING * (size + (double)fabsf(before[at]))))
        fail_msg("row %u, channel %u of %u: %a, should be %a", r, i, c->width, (double)h[at], exact);
    }
}

/* Of the values that h has: at most 4 ulp, as for the kernel `norm`. */
static void assert_norm(const float *h, const float *weight, const float *norm, uint32_t width) {
  double squares = 0;
  for (uint32_t i = 0; i < width; i++) squares += (double)h[i] * h[i];
  const double factor = 1 / sqrt(squares / width + (double)eps);
  for (uint32_t i = 0; i < width; i++) {
    const double ulps = test_ulps(norm[i], h[i] * factor * weight[i]);
    if (!(ulps <= 4)) fail_msg("%.2f ulp: %a, should be %a", ulps, (double)norm[i], h[i] * factor * weight[i]);
  }
}

static void check(TestKernels *kernels, uint32_t rows, uint32_t width, uint32_t group, uint32_t taps) {
  const size_t count = (size_t)rows * width;
  TestConvolution c = test_convolution_open(rows, width, group, taps);
  float *before = test_drawn(count, "h"), *h = test_drawn(count, "h");
  float *weight = test_drawn(width, "weight"), *norm = test_poisoned(count);
  out(kernels, &c, h, weight, norm);
  assert_sum(&c, before, h);
  for (uint32_t r = 0; r < rows; r++) assert_norm(h + r * width, weight, norm + r * width, width);
  free(norm);
  free(weight);
  free(h);
  free(before);
  test_convolution_close(&c);
}

static void any_rows_and_taps(void **state) {
  for (uint32_t rows = 1; rows <= 17; rows += rows == 8 ? 8 : 1)
    for (uint32_t taps = 1; taps <= 5; taps++) check(*state, rows, 48, 16, taps);
}

/* Narrower and wider than a workgroup, and wider than what its threads hold. */
static void groups_of_any_size(void **state) {
  check(*state, 3, 1, 1, 2);
  check(*state, 3, 257, 1, 2);
  check(*state, 3, 255, 5, 3);
  check(*state, 3, 777, 777, 2);
  check(*state, 3, 1001, 77, 4);
  check(*state, 3, 10, 5, 2);
  check(*state, 3, 1026, 1, 3);
  check(*state, 3, 1038, 519, 2);
  check(*state, 8, 5120, 16, 2);
  check(*state, 3, 5121, 3, 2);
  check(*state, 3, 8400, 16, 1);
  check(*state, 4, 8400, 525, 3);
}

enum { ROWS = 6, WIDTH = 300, GROUP = 15, TAPS = 3 };

static void a_cut_block_gives_the_same_bits(void **state) {
  const size_t bytes = 2 * WIDTH * sizeof(float);
  TestConvolution c = test_convolution_open(ROWS, WIDTH, GROUP, TAPS);
  float *weight = test_drawn(WIDTH, "weight");
  float *all = test_drawn(ROWS * WIDTH, "h"), *all_norm = test_poisoned(ROWS * WIDTH);
  float *cut = test_drawn(2 * WIDTH, "h"), *cut_norm = test_poisoned(2 * WIDTH);
  out(*state, &c, all, weight, all_norm);
  c.rows = 2;
  out(*state, &c, cut, weight, cut_norm);
  assert_memory_equal(all, cut, bytes);
  assert_memory_equal(all_norm, cut_norm, bytes);
  free(cut_norm);
  free(cut);
  free(all_norm);
  free(all);
  free(weight);
  test_convolution_close(&c);
}

static void assert_row(const float *h, const float *norm, uint32_t channel, bool touched) {
  for (uint32_t i = 0; i < WIDTH; i++) {
    assert_int_equal(isfinite(h[i]), !(touched && i == channel));
    if (!touched) assert_true(isfinite(norm[i]));
  }
}

/* The channel of h is touched in these rows alone; a NaN in h takes the row's norm. */
static void what_is_not_finite_stays_in_its_rows(void **state) {
  TestConvolution c = test_convolution_open(ROWS, WIDTH, GROUP, TAPS);
  float *weight = test_drawn(WIDTH, "weight"), *h = test_drawn(ROWS * WIDTH, "h"), *norm = test_poisoned(ROWS * WIDTH);
  c.x[1 * WIDTH + 260] = NAN; /* rows 1 to 3 */
  h[4 * WIDTH + 260] = -INFINITY;
  c.d[5 * 2 * TAPS * c.groups + 0 * c.groups + 2] = NAN; /* the other side */
  c.base[0 * WIDTH + 17] = NAN;                          /* the other side */
  c.d[(TAPS + 1) * c.groups + 9] = NAN;                  /* row 0 has no such tap */
  out(*state, &c, h, weight, norm);
  for (uint32_t r = 0; r < ROWS; r++) assert_row(h + r * WIDTH, norm + r * WIDTH, 260, r >= 1 && r <= 4);
  for (uint32_t i = 0; i < WIDTH; i++) assert_true(isnan(norm[2 * WIDTH + i]));
  assert_true(isnan(norm[4 * WIDTH + 260]));
  free(norm);
  free(h);
  free(weight);
  test_convolution_close(&c);
}

/* 256 threads, which every device takes, sum in the order of 512. */
static void any_number_of_threads_gives_the_same_bits(void **state) {
  static const uint32_t widths[] = {60, 1030, 5120, 8400, 4105};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    const size_t count = (size_t)3 * widths[i], bytes = count * sizeof(float);
    TestConvolution c = test_convolution_open(3, widths[i], 5, 2);
    float *weight = test_drawn(widths[i], "weight");
    float *many = test_drawn(count, "h"), *many_norm = test_poisoned(count);
    float *few = test_drawn(count, "h"), *few_norm = test_poisoned(count);
    out(*state, &c, many, weight, many_norm);
    out_by(*state, 256, &c, few, weight, few_norm);
    assert_memory_equal(many, few, bytes);
    assert_memory_equal(many_norm, few_norm, bytes);
    free(few_norm);
    free(few);
    free(many_norm);
    free(many);
    free(weight);
    test_convolution_close(&c);
  }
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(any_rows_and_taps, &kernels),
      cmocka_unit_test_prestate(groups_of_any_size, &kernels),
      cmocka_unit_test_prestate(a_cut_block_gives_the_same_bits, &kernels),
      cmocka_unit_test_prestate(what_is_not_finite_stays_in_its_rows, &kernels),
      cmocka_unit_test_prestate(any_number_of_threads_gives_the_same_bits, &kernels),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
