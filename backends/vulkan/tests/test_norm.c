/* norm: y = x / sqrt(mean(x^2) + eps) * weight. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "rows.h"
#include "values.h"

/* On a device that takes no more threads. */
static void norm_by(TestKernels *kernels, uint32_t threads, float *x, float *weight, float *y, uint32_t rows,
                    uint32_t width, float eps) {
  const size_t row = width * sizeof(float);
  const TestArray arrays[] = {{x, rows * row}, {weight, row}, {y, rows * row}};
  const NormPush push = {width, 1 / (float)width, eps};
  const VulkanTraits traits = {.max_threads = threads};
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t count =
      vulkan_row_constants(&traits, &(DflashGeometry){.hidden = width}, VULKAN_KERNEL_NORM, constants);
  test_launch(kernels, &(TestLaunch){VULKAN_KERNEL_NORM, constants, count, arrays, &push, {rows, 1, 1}});
}

/* The kernel `enter`: also h. */
static void enter(TestKernels *kernels, float *x, float *weight, float *y, float *h, uint32_t rows, uint32_t width) {
  const size_t row = width * sizeof(float);
  const TestArray arrays[] = {{x, rows * row}, {weight, row}, {y, rows * row}, {h, rows * row}};
  const NormPush push = {width, 1 / (float)width, 1e-6F};
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t count =
      vulkan_row_constants(&kernels->device.traits, &(DflashGeometry){.hidden = width}, VULKAN_KERNEL_ENTER, constants);
  test_launch(kernels, &(TestLaunch){VULKAN_KERNEL_ENTER, constants, count, arrays, &push, {rows, 1, 1}});
}

static void norm(TestKernels *kernels, float *x, float *weight, float *y, uint32_t rows, uint32_t width, float eps) {
  norm_by(kernels, kernels->device.traits.max_threads, x, weight, y, rows, width, eps);
}

static double exact_factor(const float *x, uint32_t width, float eps) {
  double squares = 0;
  for (uint32_t i = 0; i < width; i++) squares += (double)x[i] * x[i];
  return 1 / sqrt(squares / width + (double)eps);
}

/* The square root halves the sum's error of some roundings; then 1.5 ulp of it and two products. */
enum { LIMIT_ULPS = 4 };

static void assert_norm(const float *x, const float *weight, const float *y, uint32_t width, float eps) {
  const double factor = exact_factor(x, width, eps);
  for (uint32_t i = 0; i < width; i++) {
    const double ulps = test_ulps(y[i], x[i] * factor * weight[i]);
    if (!(ulps <= LIMIT_ULPS))
      fail_msg("%.2f ulp: %a, should be %a, at %u of %u", ulps, (double)y[i], x[i] * factor * weight[i], i, width);
  }
}

static void check(TestKernels *kernels, uint32_t rows, uint32_t width, float scale, float eps) {
  const size_t count = (size_t)rows * width;
  float *x = test_drawn(count, "x"), *weight = test_drawn(width, "weight"), *y = test_poisoned(count);
  for (size_t i = 0; i < count; i++) x[i] *= scale;
  norm(kernels, x, weight, y, rows, width, eps);
  for (uint32_t r = 0; r < rows; r++) assert_norm(x + r * width, weight, y + r * width, width, eps);
  free(y);
  free(weight);
  free(x);
}

static void rows_of_any_width(void **state) {
  static const uint32_t widths[] = {1,   2,   3,    62,   63,   255,  256,  257,  510, 512,
                                    514, 896, 1022, 1024, 1026, 4097, 5120, 8192, 8194};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) check(*state, 3, widths[i], 1, 1e-6F);
  check(*state, 1, 17408, 1, 1e-6F);
  check(*state, 1, 6001, 1, 1e-6F);
  check(*state, 17, 64, 1, 1e-6F);
}

/* Squares up to nearly f32's largest number, and so small that they vanish. */
static void large_and_small_rows(void **state) {
  check(*state, 2, 300, 4e17F, 1e-6F);
  check(*state, 2, 300, 1e-10F, 1e-6F);
  check(*state, 2, 300, 1e-25F, 1e-6F);
  check(*state, 2, 300, 1e-15F, 1e-30F);
  check(*state, 2, 300, 1, 100);
}

/* As in plain f32: squares that overflow leave a root of infinity. */
static void overflowing_squares_give_zero(void **state) {
  float x[] = {1e30F, -2, 3}, weight[] = {1, 1, 1}, y[3];
  memset(y, 0xff, sizeof y);
  norm(*state, x, weight, y, 1, 3, 1e-6F);
  for (int i = 0; i < 3; i++) assert_true(y[i] == 0);
}

enum { WIDTH = 700, ROWS = 4 };

static void a_row_of_zeros_stays_zero(void **state) {
  float *x = test_poisoned(WIDTH), *weight = test_drawn(WIDTH, "weight"), *y = test_poisoned(WIDTH);
  memset(x, 0, WIDTH * sizeof *x);
  norm(*state, x, weight, y, 1, WIDTH, 1e-6F);
  for (int i = 0; i < WIDTH; i++) assert_true(y[i] == 0);
  free(y);
  free(weight);
  free(x);
}

/* NaN takes its whole row, infinity itself; no other row sees them. */
static void what_is_not_finite_stays_in_its_row(void **state) {
  static const uint32_t places[] = {0, 255, 256, WIDTH - 1};
  float *x = test_drawn(ROWS * WIDTH, "x"), *weight = test_drawn(WIDTH, "weight"), *y = test_poisoned(ROWS * WIDTH);
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const float kept[] = {x[WIDTH + places[i]], x[3 * WIDTH + places[i]]};
    x[WIDTH + places[i]] = test_float(0xffc00001);
    x[3 * WIDTH + places[i]] = -INFINITY;
    norm(*state, x, weight, y, ROWS, WIDTH, 1e-6F);
    assert_norm(x, weight, y, WIDTH, 1e-6F);
    assert_norm(x + 2 * WIDTH, weight, y + 2 * WIDTH, WIDTH, 1e-6F);
    for (int j = 0; j < WIDTH; j++) assert_true(isnan(y[WIDTH + j]));
    assert_true(isnan(y[3 * WIDTH + places[i]]));
    x[WIDTH + places[i]] = kept[0];
    x[3 * WIDTH + places[i]] = kept[1];
  }
  weight[WIDTH - 1] = NAN;
  norm(*state, x, weight, y, ROWS, WIDTH, 1e-6F);
  for (int r = 0; r < ROWS; r++) {
    assert_true(isnan(y[(r + 1) * WIDTH - 1]));
    assert_false(isnan(y[(r + 1) * WIDTH - 2]));
  }
  free(y);
  free(weight);
  free(x);
}

static void a_cut_call_gives_the_same_bits(void **state) {
  float *x = test_drawn(ROWS * WIDTH, "x"), *weight = test_drawn(WIDTH, "weight");
  float *all = test_poisoned(ROWS * WIDTH), *one = test_poisoned(WIDTH);
  norm(*state, x, weight, all, ROWS, WIDTH, 1e-6F);
  norm(*state, x, weight, one, 1, WIDTH, 1e-6F);
  assert_memory_equal(all, one, WIDTH * sizeof *one);
  free(one);
  free(all);
  free(weight);
  free(x);
}

/* 256 threads, which every device takes, sum in the order of 512. */
static void any_number_of_threads_gives_the_same_bits(void **state) {
  static const uint32_t widths[] = {62, 511, 514, 1026, 2560, 4097, 5120, 8193, 17408};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    const size_t bytes = widths[i] * sizeof(float);
    float *x = test_drawn(widths[i], "x"), *weight = test_drawn(widths[i], "weight");
    float *many = test_poisoned(widths[i]), *few = test_poisoned(widths[i]);
    norm(*state, x, weight, many, 1, widths[i], 1e-6F);
    norm_by(*state, 256, x, weight, few, 1, widths[i], 1e-6F);
    assert_memory_equal(many, few, bytes);
    free(few);
    free(many);
    free(weight);
    free(x);
  }
}

/* Every bit of x, whatever it says. */
static void enter_copies_its_rows(void **state) {
  static const uint32_t widths[] = {1, 62, 514, 5120, 6001, 8194};
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    const size_t count = (size_t)3 * widths[i];
    float *x = test_drawn(count, "x"), *weight = test_drawn(widths[i], "weight");
    float *y = test_poisoned(count), *expected = test_poisoned(count), *h = test_drawn(count, "h");
    x[count - 1] = -INFINITY;
    enter(*state, x, weight, y, h, 3, widths[i]);
    norm(*state, x, weight, expected, 3, widths[i], 1e-6F);
    assert_memory_equal(h, x, count * sizeof *h);
    assert_memory_equal(y, expected, (size_t)2 * widths[i] * sizeof *y);
    free(h);
    free(expected);
    free(y);
    free(weight);
    free(x);
  }
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(rows_of_any_width, &kernels),
      cmocka_unit_test_prestate(large_and_small_rows, &kernels),
      cmocka_unit_test_prestate(overflowing_squares_give_zero, &kernels),
      cmocka_unit_test_prestate(a_row_of_zeros_stays_zero, &kernels),
      cmocka_unit_test_prestate(what_is_not_finite_stays_in_its_row, &kernels),
      cmocka_unit_test_prestate(a_cut_call_gives_the_same_bits, &kernels),
      cmocka_unit_test_prestate(any_number_of_threads_gives_the_same_bits, &kernels),
      cmocka_unit_test_prestate(enter_copies_its_rows, &kernels),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
