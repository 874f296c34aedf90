/* Profile i8: values against a naive computation, and whole cases. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "dflash/backend.h"
#include "golden/oracle_i8.h"
#include "test_oracle_i8_model.h"
#include "test_oracle_i8_naive.h"

static double spacing(float value) {
  float size = fabsf(value);
  return (double)nextafterf(size, INFINITY) - (double)size;
}

/* ---- values ---- */

static void agree(const I8Product *p) {
  for (int64_t row = 0; row < I8_ROWS; row++)
    for (int64_t o = 0; o < I8_OUTPUTS; o++) {
      long double expected = i8_element(&p->call, row, o);
      float got = p->value[row * I8_OUTPUTS + o];
      if (fabsl((long double)got - expected) > 0.501L * (long double)spacing(got))
        fail_msg("row %d, output %d: %.9g, expected %.9Lg", (int)row, (int)o, (double)got, expected);
    }
}

static void test_values(void **state) {
  (void)state;
  static const int64_t widths[] = {32, 64, 160, 416, 1056};
  for (int i = 0; i < 5; i++) {
    I8Product p;
    i8_product_open(&p, widths[i], 40 + (uint64_t)i);
    i8_run(&p.call);
    agree(&p);
    i8_product_close(&p);
  }
}

/* Row r of the products reads row r + 1 of x. */
static float *x_row(const I8Product *p, int64_t row) { return p->x + (row + 1) * p->geometry.hidden; }

static void test_groups(void **state) {
  (void)state;
  I8Product p;
  i8_product_open(&p, 160, 50);
  float *zero = x_row(&p, 0) + 32, *small = x_row(&p, 1), *ties = x_row(&p, 2), *negative = x_row(&p, 3);
  for (int k = 0; k < 32; k++) {
    zero[k] = 0;
    small[k] = ldexpf((float)(k - 16), -140);              /* denormal: zero */
    small[32 + k] = ldexpf((float)(k % 2 ? k : -k), -106); /* 31 * 2^-106 is below 2^-100: zero */
    small[64 + k] = ldexpf(k == 7 ? -1 : 0.25f, -100);     /* the limit itself is not */
    ties[k] = (float)(k - 16) + 0.5f;                      /* codes to even */
    negative[k] = -fabsf(negative[k]);
    x_row(&p, 4)[k] = ldexpf(x_row(&p, 4)[k], 100);
  }
  ties[0] = 127;
  negative[5] = -9;
  i8_run(&p.call);
  agree(&p);
  int16_t codes[DFLASH_I8_GROUP];
  assert_true(dflash_i8_quantise(zero, codes) == 0);
  assert_true(dflash_i8_quantise(small, codes) == 0);
  assert_true(dflash_i8_quantise(small + 32, codes) == 0);
  assert_true(dflash_i8_quantise(small + 64, codes) == (double)(0x1p-100f / 127));
  assert_int_equal(codes[7], -127);
  assert_true(dflash_i8_quantise(ties, codes) == 1);
  assert_int_equal(codes[15], 0);  /* -0.5 */
  assert_int_equal(codes[17], 2);  /* 1.5 */
  assert_int_equal(codes[18], 2);  /* 2.5 */
  assert_int_equal(codes[14], -2); /* -1.5 */
  assert_int_equal(codes[13], -2); /* -2.5 */
  dflash_i8_quantise(negative, codes);
  assert_int_equal(codes[5], -127);
  i8_product_close(&p);
}

/* NaN and infinity reach every output of the row, and no other row. */
static void test_nonfinite(void **state) {
  (void)state;
  I8Product p;
  i8_product_open(&p, 64, 51);
  x_row(&p, 1)[40] = NAN;
  x_row(&p, 3)[2] = -INFINITY;
  i8_run(&p.call);
  for (int64_t row = 0; row < I8_ROWS; row++)
    for (int64_t o = 0; o < I8_OUTPUTS; o++)
      assert_int_equal(isnan(p.value[row * I8_OUTPUTS + o]) != 0, row == 1 || row == 3);
  i8_product_close(&p);
}

/* Other storages and other stages are exact's. */
static void test_other_matrices(void **state) {
  (void)state;
  I8Product p;
  float exact[I8_ROWS * I8_OUTPUTS];
  i8_product_open(&p, 64, 52);
  free(p.data);
  p.data = NULL;
  p.weights.selector_hidden.data = NULL;
  float *w = oracle_draw(9, "w", I8_OUTPUTS * 64, 1);
  oracle_tensor_set(&p.weights.selector_hidden, DFLASH_STORAGE_Q8_2F, w);
  i8_run(&p.call);
  memcpy(exact, p.value, sizeof exact);
  p.call.profile = DFLASH_PROFILE_EXACT;
  i8_run(&p.call);
  assert_memory_equal(exact, p.value, sizeof exact);
  free(w);
  free((void *)(uintptr_t)p.weights.selector_hidden.data);
  i8_product_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_groups),
                                     cmocka_unit_test(test_nonfinite), cmocka_unit_test(test_other_matrices)};
  return cmocka_run_group_tests_name("oracle_i8", tests, NULL, NULL);
}
