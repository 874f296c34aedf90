/* Profile i8: values against a naive computation, evaluation of whole cases, and the error scale against f32
 * implementations. DFLASH_TABLE=1 prints the tables that docs/error-scale.md shows. */
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
#include "base/random.h"
#include "compare/compare.h"
#include "dflash/backend.h"
#include "golden/oracle_i8.h"
#include "model/storage.h"
#include "test_oracle_i8_naive.h"
#include "test_oracle_model.h"

static void run_oracle(const DflashOracleCall *call) {
  DflashError error = {0};
  if (dflash_oracle_stage(call, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static double spacing(float value) {
  float size = fabsf(value);
  return (double)nextafterf(size, INFINITY) - (double)size;
}

/* ---- values ---- */

enum { ROWS = 5, OUTPUTS = 24 };

typedef struct Product {
  DflashGeometry geometry;
  DflashWeights weights; /* only selector_hidden */
  unsigned char *data;
  float *x; /* [ROWS + 1, cols] */
  DflashOracleCall call;
  float value[ROWS * OUTPUTS], alone[ROWS * OUTPUTS], chain[ROWS * OUTPUTS];
} Product;

/* Random nibbles, -8 among them, and random rungs of ladders around 2^-5. */
static void draw_q4tp(Product *p, int64_t cols, uint64_t seed) {
  DflashTensor *tensor = &p->weights.selector_hidden;
  DflashError error = {0};
  *tensor = (DflashTensor){.rank = 2, .shape = {OUTPUTS, cols}, .storage = DFLASH_STORAGE_Q4TP};
  assert_int_equal(dflash_storage_bytes(DFLASH_STORAGE_Q4TP, OUTPUTS, cols, &tensor->bytes, &error), DFLASH_OK);
  tensor->data = p->data = dflash_alloc((size_t)tensor->bytes, 1);
  assert_non_null(p->data);
  DflashRandom random = dflash_random_stream(seed, "q4tp");
  for (uint64_t i = 0; i < tensor->bytes; i++) p->data[i] = (unsigned char)dflash_random_below(random, i, 256);
  for (int64_t row = 0; row < OUTPUTS; row++) {
    uint16_t ladder[2] = {dflash_f16_round(-6), dflash_f16_round(0.0625f)};
    memcpy(p->data + OUTPUTS * cols / 2 + row * 4, ladder, sizeof ladder);
  }
  memset(p->data, 0, (size_t)cols / 2); /* a row of -8 */
}

static void product_open(Product *p, int64_t cols, uint64_t seed) {
  *p = (Product){.geometry = {.hidden = cols, .selector_rank = OUTPUTS, .vocab = 5}};
  draw_q4tp(p, cols, seed);
  p->x = oracle_draw(seed, "x", (ROWS + 1) * cols, 1);
  p->call = (DflashOracleCall){.geometry = &p->geometry,
                               .weights = &p->weights,
                               .profile = DFLASH_PROFILE_I8,
                               .stage = DFLASH_STAGE_SELECTOR_HIDDEN,
                               .sizes = {.rows = ROWS + 1, .n_draft = ROWS, .head_width = 5},
                               .inputs = {p->x},
                               .value = p->value,
                               .alone = p->alone};
}

static void product_close(Product *p) {
  free(p->x);
  free(p->data);
}

static void agree(const Product *p) {
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t o = 0; o < OUTPUTS; o++) {
      long double expected = i8_element(&p->call, row, o);
      float got = p->value[row * OUTPUTS + o];
      if (fabsl((long double)got - expected) > 0.501L * (long double)spacing(got))
        fail_msg("row %d, output %d: %.9g, expected %.9Lg", (int)row, (int)o, (double)got, expected);
    }
}

static void test_values(void **state) {
  (void)state;
  static const int64_t widths[] = {32, 64, 160, 416, 1056};
  for (int i = 0; i < 5; i++) {
    Product p;
    product_open(&p, widths[i], 40 + (uint64_t)i);
    run_oracle(&p.call);
    agree(&p);
    product_close(&p);
  }
}

/* Row r of the products reads row r + 1 of x. */
static float *x_row(const Product *p, int64_t row) { return p->x + (row + 1) * p->geometry.hidden; }

static void test_groups(void **state) {
  (void)state;
  Product p;
  product_open(&p, 160, 50);
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
  run_oracle(&p.call);
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
  product_close(&p);
}

/* NaN and infinity reach every output of the row, and no other row. */
static void test_nonfinite(void **state) {
  (void)state;
  Product p;
  product_open(&p, 64, 51);
  x_row(&p, 1)[40] = NAN;
  x_row(&p, 3)[2] = -INFINITY;
  run_oracle(&p.call);
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t o = 0; o < OUTPUTS; o++)
      assert_int_equal(isnan(p.value[row * OUTPUTS + o]) != 0, row == 1 || row == 3);
  product_close(&p);
}

/* Other storages and other stages are exact's. */
static void test_other_matrices(void **state) {
  (void)state;
  Product p;
  float exact[ROWS * OUTPUTS];
  product_open(&p, 64, 52);
  free(p.data);
  p.data = NULL;
  p.weights.selector_hidden.data = NULL;
  float *w = oracle_draw(9, "w", OUTPUTS * 64, 1);
  oracle_tensor_set(&p.weights.selector_hidden, DFLASH_STORAGE_Q8_2F, w);
  run_oracle(&p.call);
  memcpy(exact, p.value, sizeof exact);
  p.call.profile = DFLASH_PROFILE_EXACT;
  run_oracle(&p.call);
  assert_memory_equal(exact, p.value, sizeof exact);
  free(w);
  free((void *)(uintptr_t)p.weights.selector_hidden.data);
  product_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_groups),
                                     cmocka_unit_test(test_nonfinite), cmocka_unit_test(test_other_matrices)};
  return cmocka_run_group_tests_name("oracle_i8", tests, NULL, NULL);
}
