/* act: y = silu(gate) * up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "rows.h"
#include "values.h"

/* With no more than `most` workgroups a row. */
static void act(TestKernels *kernels, float *gate, float *up, float *y, uint32_t rows, uint32_t width, uint32_t most) {
  const size_t bytes = (size_t)rows * width * sizeof(float);
  const TestArray arrays[] = {{gate, bytes}, {up, bytes}, {y, bytes}};
  const ActPush push = {width};
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t count = vulkan_row_constants(&kernels->device.traits, &(DflashGeometry){.intermediate = width},
                                              VULKAN_KERNEL_ACT, constants);
  const uint32_t groups = vulkan_row_groups(constants, width);
  test_launch(
      kernels,
      &(TestLaunch){VULKAN_KERNEL_ACT, constants, count, arrays, &push, {groups < most ? groups : most, rows, 1}});
}

static double exact_act(double gate, double up) { return gate / (1 + exp(-gate)) * up; }

/* exp at most 1.1 ulp and four more roundings; exp's comes twice far below 0. */
enum { LIMIT_ULPS = 4 };

static void assert_act(const float *gate, const float *up, const float *y, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const double exact = exact_act(gate[i], up[i]), ulps = test_ulps(y[i], exact);
    /* silu of a gate near 0 may be flushed before the product */
    const bool flushed = fabsf(gate[i]) < 0x1p-125 && fabs(y[i] - exact) <= 0x1p-126 * (double)fabsf(up[i]);
    if (!(ulps <= LIMIT_ULPS || flushed))
      fail_msg("%.2f ulp: %a for silu(%a) * %a, should be %a", ulps, (double)y[i], (double)gate[i], (double)up[i],
               exact);
  }
}

/* Gates evenly from low to high, and up of this size. */
static void check(TestKernels *kernels, uint32_t count, double low, double high, float size) {
  float *gate = test_poisoned(count), *up = test_drawn(count, "up"), *y = test_poisoned(count);
  for (uint32_t i = 0; i < count; i++) {
    gate[i] = (float)(low + (high - low) * (i + 0.5) / count);
    up[i] *= size;
  }
  act(kernels, gate, up, y, 1, count, UINT32_MAX);
  assert_act(gate, up, y, count);
  free(y);
  free(up);
  free(gate);
}

static void gates_of_any_size(void **state) {
  check(*state, 50000, -5, 5, 1);
  check(*state, 50000, -110, 110, 1);
  check(*state, 50000, -1e-3, 1e-3, 1e-3F);
  check(*state, 5000, -3e38, 3e38, 1e-3F);
  check(*state, 5000, -1e-36, 1e-36, 10);
}

/* silu alone is none of f32's normal numbers there, or exp(-gate) is infinite; the product is neither. */
static void small_gates_times_large_numbers(void **state) {
  check(*state, 50000, -92, -78, 1);
  check(*state, 50000, -92, -78, 1e30F);
  check(*state, 50000, -172, -90, 2e37F);
  check(*state, 1000, -1e6, -180, 2e37F);
}

static void any_count(void **state) {
  static const uint32_t counts[] = {1, 2, 3, 254, 255, 256, 257, 510, 512, 514, 1023};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) check(*state, counts[i], -8, 8, 1);
}

static void check_rows(TestKernels *kernels, uint32_t rows, uint32_t width, uint32_t most) {
  const uint32_t count = rows * width;
  float *gate = test_drawn(count, "gate"), *up = test_drawn(count, "up"), *y = test_poisoned(count);
  act(kernels, gate, up, y, rows, width, most);
  assert_act(gate, up, y, count);
  free(y);
  free(up);
  free(gate);
}

static void any_rows(void **state) {
  for (uint32_t rows = 1; rows <= 17; rows += 4)
    for (uint32_t width = 510; width <= 514; width++) check_rows(*state, rows, width, UINT32_MAX);
}

static void fewer_groups_take_more(void **state) {
  check_rows(*state, 1, 2000, 3);
  check_rows(*state, 3, 4002, 2);
  check_rows(*state, 2, 1003, 1);
}

/* As g / (1 + e^-g) * up gives it; zeros and what is not finite. */
static void ends(void **state) {
  float gate[] = {NAN, 1, INFINITY, INFINITY, -INFINITY, 0, -0.0F, -200, -200, 3, -1, 50, -3.4e38F, -100, 0};
  float up[] = {1, NAN, 2, -2, 1, 5, 5, 1, NAN, INFINITY, INFINITY, -INFINITY, -1, -INFINITY, INFINITY};
  const double expected[] = {NAN, NAN,      INFINITY,  -INFINITY, NAN, 0,        0,  0,
                             NAN, INFINITY, -INFINITY, -INFINITY, 0,   INFINITY, NAN};
  enum { COUNT = sizeof gate / sizeof gate[0] };
  float y[COUNT];
  memset(y, 0x77, sizeof y);
  act(*state, gate, up, y, 1, COUNT, 1);
  for (int i = 0; i < COUNT; i++) assert_true(test_ulps(y[i], expected[i]) == 0);
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(gates_of_any_size, &kernels),
      cmocka_unit_test_prestate(small_gates_times_large_numbers, &kernels),
      cmocka_unit_test_prestate(any_count, &kernels),
      cmocka_unit_test_prestate(any_rows, &kernels),
      cmocka_unit_test_prestate(fewer_groups_take_more, &kernels),
      cmocka_unit_test_prestate(ends, &kernels),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
