/* Sums that f32 computes without rounding, in any order: found where they are, and nowhere else. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "golden/oracle_scale.h"
#include "model/storage.h"
#include "test_oracle_f32.h"
#include "test_oracle_model.h"

enum { COLS = 700, ROWS = 3, OUTPUTS = 21, COUNT = ROWS * OUTPUTS };

typedef struct Product {
  DflashGeometry geometry;
  DflashWeights weights;
  float w[OUTPUTS * COLS], x[(ROWS + 1) * COLS], sigma[(ROWS + 1) * COLS];
  float value[COUNT], alone[COUNT], chain[COUNT];
  DflashOracleCall call;
} Product;

static int open_product(void **state) {
  Product *p = calloc(1, sizeof *p);
  p->geometry = (DflashGeometry){.hidden = COLS, .selector_rank = OUTPUTS, .vocab = 5};
  p->weights.selector_hidden = (DflashTensor){.rank = 2, .shape = {OUTPUTS, COLS}};
  p->call = (DflashOracleCall){.geometry = &p->geometry,
                               .weights = &p->weights,
                               .stage = DFLASH_STAGE_SELECTOR_HIDDEN,
                               .sizes = {.rows = ROWS + 1, .n_draft = ROWS, .head_width = 5},
                               .exact = true,
                               .inputs = {p->x},
                               .value = p->value,
                               .alone = p->alone,
                               .chain = p->chain};
  for (int i = 0; i < OUTPUTS * COLS; i++) p->w[i] = (float)(i * 37 % 15 - 7);
  for (int i = 0; i < (ROWS + 1) * COLS; i++) p->x[i] = (float)(i * 53 % 17 - 8) / 4;
  *state = p;
  return 0;
}

static int close_product(void **state) {
  Product *p = *state;
  free((void *)(uintptr_t)p->weights.selector_hidden.data);
  free(p);
  return 0;
}

static void run(Product *p, int32_t storage) {
  DflashError error = {0};
  oracle_tensor_set(&p->weights.selector_hidden, storage, p->w);
  if (dflash_oracle_stage(&p->call, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

/* Outputs with a scale of 0; those must come out the same in every f32 way. */
static int count_exact(Product *p) {
  int exact = 0;
  float got[COUNT];
  for (int way = 0; way < f32_way_count; way++) {
    f32_stage(&f32_ways[way], &p->call, got);
    for (int i = 0; i < COUNT; i++)
      if (p->alone[i] == 0) assert_true(got[i] == p->value[i]);
  }
  for (int i = 0; i < COUNT; i++) exact += p->alone[i] == 0;
  return exact;
}

static void test_integers(void **state) {
  Product *p = *state;
  static const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16};
  for (int s = 0; s < 3; s++) {
    run(p, storages[s]);
    assert_int_equal(count_exact(p), COUNT);
  }
  p->call.exact = false;
  run(p, DFLASH_STORAGE_F32);
  assert_int_equal(count_exact(p), 0);
}

/* Columns 2 to the power of -2 .. 1, rows 2 to the power of 0 .. 2. */
static void test_column_field(void **state) {
  Product *p = *state;
  run(p, DFLASH_STORAGE_Q8_2F);
  DflashTensor *t = &p->weights.selector_hidden;
  int8_t *codes = (int8_t *)(uintptr_t)t->data;
  uint16_t *fields = (uint16_t *)(void *)(codes + OUTPUTS * COLS);
  for (int i = 0; i < OUTPUTS * COLS; i++) codes[i] = (int8_t)(i % 256 - 128);
  for (int i = 0; i < OUTPUTS; i++) fields[i] = dflash_f16_round(ldexpf(1, i % 3));
  for (int i = 0; i < COLS; i++) fields[OUTPUTS + i] = dflash_f16_round(ldexpf(1, i % 4 - 2));
  DflashError error = {0};
  assert_int_equal(dflash_oracle_stage(&p->call, &error), DFLASH_OK);
  assert_int_equal(count_exact(p), COUNT);
}

static void test_one_bit(void **state) {
  Product *p = *state;
  p->x[2 * COLS + 3] = 1 + 0x1p-23f; /* row 2 of x is row 1 of the output */
  run(p, DFLASH_STORAGE_F32);
  count_exact(p);
  for (int i = 0; i < COUNT; i++) {
    int row = i / OUTPUTS, output = i % OUTPUTS;
    bool touched = row == 1 && p->w[output * COLS + 3] != 0;
    assert_int_equal(p->alone[i] == 0, !touched);
  }
}

/* All 24 bits of the activations against one power of two a row, whose column walks. */
static void test_walk(void **state) {
  Product *p = *state;
  memset(p->w, 0, sizeof p->w);
  for (int o = 0; o < OUTPUTS; o++) p->w[o * COLS + o * 33 % COLS] = ldexpf(1, o % 9 - 4);
  for (int i = 0; i < (ROWS + 1) * COLS; i++) p->x[i] = ldexpf((float)(0xffffff - i % 7 * 2), -20);
  run(p, DFLASH_STORAGE_F32);
  assert_int_equal(count_exact(p), COUNT);
  for (int o = 0; o < OUTPUTS; o++) p->w[o * COLS] = 1; /* a second term */
  run(p, DFLASH_STORAGE_F32);
  assert_true(count_exact(p) < 3 * ROWS);
}

/* 2^24 units and no more. */
static void test_limit(void **state) {
  Product *p = *state;
  for (int extra = 0; extra < 2; extra++) {
    memset(p->w, 0, sizeof p->w);
    p->w[0] = 1, p->w[1] = 1;
    for (int r = 0; r <= ROWS; r++) p->x[r * COLS] = 0xffffff, p->x[r * COLS + 1] = (float)(1 + extra);
    run(p, DFLASH_STORAGE_F32);
    for (int r = 0; r < ROWS; r++) assert_int_equal(p->alone[r * OUTPUTS] == 0, !extra);
  }
  p->x[COLS] = 0x1p-100f, p->x[COLS + 1] = 0x1p-100f; /* exact, but products of 2^-140 may be flushed */
  p->w[0] = p->w[1] = 0x1p-40f;
  run(p, DFLASH_STORAGE_F32);
  assert_true(p->alone[0] > 0);
}

/* In the chain an exact sum has the variance of its inputs, and its own where they vary. */
static void test_chain(void **state) {
  Product *p = *state;
  p->sigma[COLS + 5] = 0.25f;
  p->w[5] = 3;
  p->call.sigmas[0] = p->sigma;
  run(p, DFLASH_STORAGE_F32);
  assert_true(fabs(p->chain[0] - 0.75) < 0.01);
  assert_true(p->alone[0] == 0);
  assert_true(p->chain[OUTPUTS] == 0);
}

static void test_nan(void **state) {
  Product *p = *state;
  p->x[COLS + 9] = NAN;
  run(p, DFLASH_STORAGE_F32);
  for (int i = 0; i < OUTPUTS; i++) assert_true(isnan(p->value[i]));
  assert_true(p->alone[OUTPUTS] == 0);
}

/* ---- the convolution ---- */

static void test_conv(void **state) {
  (void)state;
  DflashGeometry g = oracle_geometry();
  OracleModel model;
  oracle_model_open(&model, &g, DFLASH_STORAGE_F32, 4);
  int64_t n = g.hidden, rows = g.block, width = dflash_geometry_kernel_width(&g), count = rows * n;
  float *base = (float *)(uintptr_t)model.set.layers[0].attention_conv_base.data;
  for (int64_t i = 0; i < 2 * g.conv_kernel * n; i++) base[i] = (float)(i % 9 - 4);
  float *x = dflash_alloc((size_t)(4 * count + rows * width), sizeof *x), *h = x + count, *d = h + count;
  float *out = d + rows * width, *alone = out + count;
  for (int64_t i = 0; i < count; i++) x[i] = (float)(i % 31 - 15), h[i] = (float)(i % 1021) / 2;
  for (int64_t i = 0; i < rows * width; i++) d[i] = (float)(i % 13 - 6) / 8;
  DflashOracleCall call = {.geometry = &g,
                           .weights = &model.set.weights,
                           .stage = DFLASH_STAGE_ATTN_OUT,
                           .sizes = {.rows = rows, .n_draft = 1, .head_width = 5},
                           .exact = true,
                           .inputs = {h, x, d},
                           .value = out,
                           .alone = alone};
  for (int pass = 0; pass < 2; pass++) {
    DflashError error = {0};
    assert_int_equal(dflash_oracle_stage(&call, &error), DFLASH_OK);
    for (int64_t i = 0; i < count; i++) assert_int_equal(alone[i] == 0, !(pass == 1 && i == 2 * n + 7));
    h[2 * n + 7] = 1 + 0x1p-23f;
  }
  free(x);
  oracle_model_close(&model);
}

/* ---- parts ---- */

static void test_lowest_bit(void **state) {
  (void)state;
  assert_int_equal(dflash_lowest_bit(1), 0);
  assert_int_equal(dflash_lowest_bit(-6), 1);
  assert_int_equal(dflash_lowest_bit(0x1.8p-30), -31);
  assert_int_equal(dflash_lowest_bit((double)0x1p-149f), -149);
  assert_int_equal(dflash_lowest_bit((double)(1 + 0x1p-23f)), -23);
}

static void test_rounding(void **state) {
  (void)state;
  assert_true(dflash_golden_rounding(0) == 0);
  assert_true(dflash_golden_rounding(1) == 0x1p-46 / 12);
  assert_true(dflash_golden_rounding(-1.99) == 0x1p-46 / 12);
  assert_true(dflash_golden_rounding(1e-42) == 0x1p-298 / 12);
  assert_true(isnan(dflash_golden_rounding(NAN)));
}

static void test_distinct(void **state) {
  (void)state;
  DflashDistinct set;
  float values[6000];
  for (int i = 0; i < 6000; i++) values[i] = i % 3 == 0 ? 0 : (i % 2 ? -1 : 1) * (float)(i % 50);
  DflashRowFacts facts = dflash_row_facts(values, 6000, &set);
  int zeros = 0;
  for (int i = 0; i < 6000; i++) zeros += values[i] == 0;
  assert_true(facts.nonzero == 6000 - zeros);
  assert_true(facts.distinct == 49);
  for (int i = 0; i < 6000; i++) values[i] = (float)i;
  facts = dflash_row_facts(values, 6000, &set);
  assert_true(facts.nonzero == 5999 && isinf(facts.distinct));
  assert_true(dflash_repeats(100, 5) == 20 && dflash_repeats(100, 0) == 100 && dflash_repeats(100, INFINITY) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_integers, open_product, close_product),
                                     cmocka_unit_test_setup_teardown(test_column_field, open_product, close_product),
                                     cmocka_unit_test_setup_teardown(test_one_bit, open_product, close_product),
                                     cmocka_unit_test_setup_teardown(test_walk, open_product, close_product),
                                     cmocka_unit_test_setup_teardown(test_limit, open_product, close_product),
                                     cmocka_unit_test_setup_teardown(test_chain, open_product, close_product),
                                     cmocka_unit_test_setup_teardown(test_nan, open_product, close_product),
                                     cmocka_unit_test(test_conv),
                                     cmocka_unit_test(test_lowest_bit),
                                     cmocka_unit_test(test_rounding),
                                     cmocka_unit_test(test_distinct)};
  return cmocka_run_group_tests_name("oracle_exact", tests, NULL, NULL);
}
