/* The reference backend's parts: rounding, against the model library's, and sums in every order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/reference/reference.h"
#include "model/storage.h"
#include "tiny_model.h"

/* ---- rounding ---- */

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static void check_rounding(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  const float half = reference_f16(x), brain = reference_bf16(x);
  if (isnan(x)) {
    assert_true(isnan(half) && isnan(brain));
    return;
  }
  const float expected_half = dflash_f16_value(dflash_f16_round(x));
  const float expected_brain = dflash_bf16_value(dflash_bf16_round(x));
  if (bits_of(half) != bits_of(expected_half)) fail_msg("f16 of %a is %a", (double)x, (double)half);
  if (bits_of(brain) != bits_of(expected_brain)) fail_msg("bf16 of %a is %a", (double)x, (double)brain);
}

/* Every sign, exponent and high half of a fraction, with low halves at and beside what decides: zero, the ties of both
 * formats and their neighbours. */
static void test_rounding_is_to_nearest_even(void **state) {
  (void)state;
  const uint32_t low[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x2000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xf000, 0xffff};
  for (uint32_t high = 0; high < 0x10000; high++)
    for (size_t i = 0; i < sizeof low / sizeof *low; i++) check_rounding(high << 16 | low[i]);
}

/* ---- sums ---- */

enum { COUNT = 400, ROWS = 19 };

/* Small integers: every order gives the same, and a term lost or taken twice shows. */
static void test_no_order_loses_a_term(void **state) {
  (void)state;
  float a[COUNT], b[COUNT];
  for (int order = 0; order < REFERENCE_ORDER_COUNT; order++)
    for (int fused = 0; fused < 2; fused++) {
      const Summation how = {order, fused};
      int64_t sum = 0;
      for (int64_t count = 0; count < COUNT; count++) {
        assert_true(reference_dot(&how, a, b, count) == (float)sum);
        const int64_t x = count * 37 % 101 - 50, y = count * 61 % 89 - 44;
        a[count] = (float)x;
        b[count] = (float)y;
        sum += x * y;
      }
    }
}

static double bound_of(const float *a, const float *b, int64_t count) {
  double magnitude = 0;
  for (int64_t i = 0; i < count; i++) magnitude += fabs((double)a[i] * b[i]);
  return (double)(count + 1) * 0x1p-24 * magnitude;
}

static void test_each_order_rounds_in_its_own_way(void **state) {
  (void)state;
  enum { WAYS = 2 * REFERENCE_ORDER_COUNT };
  float *a = tiny_draw("a", COUNT), *b = tiny_draw("b", ROWS * COUNT), sums[WAYS][ROWS];
  for (int way = 0; way < WAYS; way++) {
    const Summation how = {way / 2, way % 2};
    for (int r = 0; r < ROWS; r++) {
      const float *row = b + (int64_t)r * COUNT;
      double exact = 0;
      for (int64_t i = 0; i < COUNT; i++) exact += (double)a[i] * row[i];
      sums[way][r] = reference_dot(&how, a, row, COUNT);
      assert_true(fabs(sums[way][r] - exact) <= bound_of(a, row, COUNT));
    }
    for (int other = 0; other < way; other++) assert_memory_not_equal(sums[way], sums[other], sizeof sums[way]);
  }
  free(a);
  free(b);
}

static void test_sums_side_by_side_are_the_same(void **state) {
  (void)state;
  float *a = tiny_draw("a", COUNT), *b = tiny_draw("b", ROWS * COUNT), out[ROWS];
  for (int way = 0; way < 2 * REFERENCE_ORDER_COUNT; way++) {
    const Summation how = {way / 2, way % 2};
    for (int64_t rows = 1; rows <= ROWS; rows++) {
      reference_dots(&how, a, b, COUNT, rows, COUNT - 3, out);
      for (int64_t r = 0; r < rows; r++) assert_true(out[r] == reference_dot(&how, a, b + r * COUNT, COUNT - 3));
    }
  }
  free(a);
  free(b);
}

static void test_forward_is_the_plain_loop(void **state) {
  (void)state;
  float *a = tiny_draw("a", COUNT), *b = tiny_draw("b", COUNT), plain = 0, fused = 0;
  for (int i = 0; i < COUNT; i++) {
    plain += a[i] * b[i];
    fused = fmaf(a[i], b[i], fused);
  }
  assert_true(reference_dot(&(Summation){REFERENCE_ORDER_FORWARD, false}, a, b, COUNT) == plain);
  assert_true(reference_dot(&(Summation){REFERENCE_ORDER_FORWARD, true}, a, b, COUNT) == fused);
  free(a);
  free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rounding_is_to_nearest_even),      cmocka_unit_test(test_no_order_loses_a_term),
      cmocka_unit_test(test_each_order_rounds_in_its_own_way), cmocka_unit_test(test_sums_side_by_side_are_the_same),
      cmocka_unit_test(test_forward_is_the_plain_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
