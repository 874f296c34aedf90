/* act: y = silu(gate) * up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "values.h"

static void act(TestKernels *kernels, float *gate, float *up, float *y, uint32_t count, uint32_t groups) {
  const size_t bytes = count * sizeof(float);
  const TestArray arrays[] = {{gate, bytes}, {up, bytes}, {y, bytes}};
  const ActPush push = {count};
  test_launch(kernels, &(TestLaunch){VULKAN_KERNEL_ACT, NULL, 0, arrays, &push, {groups, 1, 1}});
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
  act(kernels, gate, up, y, count, (count + 255) / 256);
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
  static const uint32_t counts[] = {1, 2, 255, 256, 257, 1023};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) check(*state, counts[i], -8, 8, 1);
}

static void fewer_groups_take_more(void **state) {
  enum { COUNT = 2000 };
  float *gate = test_drawn(COUNT, "gate"), *up = test_drawn(COUNT, "up"), *y = test_poisoned(COUNT);
  act(*state, gate, up, y, COUNT, 3);
  assert_act(gate, up, y, COUNT);
  free(y);
  free(up);
  free(gate);
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
  act(*state, gate, up, y, COUNT, 1);
  for (int i = 0; i < COUNT; i++) assert_true(test_ulps(y[i], expected[i]) == 0);
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(gates_of_any_size, &kernels),
      cmocka_unit_test_prestate(small_gates_times_large_numbers, &kernels),
      cmocka_unit_test_prestate(any_count, &kernels),
      cmocka_unit_test_prestate(fewer_groups_take_more, &kernels),
      cmocka_unit_test_prestate(ends, &kernels),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
