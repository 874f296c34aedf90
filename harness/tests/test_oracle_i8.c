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
#include "model/storage.h"
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

/* Activations of at most 127 with a 127 in each group: steps are 1, so that every order gives the same bits. */
static void test_exact_sums(void **state) {
  (void)state;
  I8Product p;
  float got[I8_ROWS * I8_OUTPUTS];
  i8_product_open(&p, 160, 53);
  const uint16_t ladder[2] = {dflash_f16_round(-6), 0}; /* one scale, 2^-6 */
  for (int64_t row = 0; row < I8_OUTPUTS; row++) memcpy(p.data + I8_OUTPUTS * 80 + row * 4, ladder, sizeof ladder);
  for (int64_t k = 0; k < (I8_ROWS + 1) * 160; k++) p.x[k] = k % 32 == 3 ? -127 : (float)(k * 37 % 101 - 50);
  i8_run(&p.call);
  for (int64_t k = 0; k < I8_ROWS * I8_OUTPUTS; k++) assert_true(p.alone[k] > 0);
  p.call.exact = true;
  i8_run(&p.call);
  for (int64_t k = 0; k < I8_ROWS * I8_OUTPUTS; k++) assert_true(p.alone[k] == 0);
  for (int way = 0; way < f32_way_count; way++) {
    i8_stage(&f32_ways[way], &p.call, got);
    assert_memory_equal(got, p.value, sizeof got);
  }
  x_row(&p, 2)[3] = -126; /* its step is not a power of two */
  i8_run(&p.call);
  for (int64_t k = 0; k < I8_ROWS * I8_OUTPUTS; k++) assert_int_equal(p.alone[k] > 0, k / I8_OUTPUTS == 2);
  i8_product_close(&p);
}

/* ---- whole cases ---- */

static const float *source_of(const DflashCase *c, const DflashGeometry *g, int32_t source, int64_t layer) {
  if (source == DFLASH_STAGE_TAPS) return c->taps + c->ops[c->op_count - 1].first_row * dflash_geometry_tap_width(g);
  if (source == DFLASH_STAGE_RESIDUAL) return c->h;
  if (source == DFLASH_STAGE_HELD_K) return c->held_k[layer].data;
  if (source == DFLASH_STAGE_HELD_V) return c->held_v[layer].data;
  return dflash_case_value(c, source, layer)->data;
}

static void check_matrix(const DflashOracleCall *call, const DflashValue *value) {
  for (int64_t i = 0; i < value->rows * value->width; i += 7) {
    long double expected = i8_element(call, i / value->width, i % value->width);
    if (fabsl((long double)value->data[i] - expected) > 0.501L * (long double)spacing(value->data[i]))
      fail_msg("%s/%d element %d: %.9g, expected %.9Lg", dflash_stage_row(call->stage)->name, (int)call->layer, (int)i,
               (double)value->data[i], expected);
  }
}

/* One stage of a case from the inputs that the case holds: q4tp matrices take codes, everything else is exact's. */
static bool check_stage(const OracleModel *model, const DflashCase *c, int32_t stage, int64_t layer) {
  const DflashGeometry *g = &model->geometry;
  const DflashValue *value = dflash_case_value(c, stage, layer);
  const DflashContextOp *last = &c->ops[c->op_count - 1];
  bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  DflashOracleCall call = {.geometry = g,
                           .weights = &model->set.weights,
                           .stage = stage,
                           .layer = layer,
                           .sizes = c->sizes,
                           .position = context ? last->pos : c->anchor_pos,
                           .context_first = c->context_first};
  for (int i = 0; i < DFLASH_STAGE_INPUTS && dflash_stage_row(stage)->inputs[i] != DFLASH_STAGE_NONE; i++) {
    int64_t source_layer;
    int32_t source = dflash_stage_source(g, stage, layer, i, &source_layer);
    call.inputs[i] = source_of(c, g, source, source_layer);
  }
  if (i8_takes_codes(&call)) {
    check_matrix(&call, value);
    return true;
  }
  size_t count = (size_t)(value->rows * value->width);
  call.value = dflash_alloc(count, sizeof *call.value);
  assert_non_null(call.value);
  i8_run(&call);
  assert_memory_equal(call.value, value->data, count * sizeof *call.value);
  free(call.value);
  return false;
}

static void open_case(DflashCase *c, const DflashGeometry *g, int pushes) {
  oracle_case_open(c, g, 40, 13, 53, 5);
  if (pushes == 1) return;
  free(c->ops);
  c->ops = dflash_alloc(2, sizeof *c->ops);
  assert_non_null(c->ops);
  c->ops[0] = (DflashContextOp){DFLASH_OP_PUSH, 40, 0, 9};
  c->ops[1] = (DflashContextOp){DFLASH_OP_PUSH, 49, 9, 4};
  c->op_count = 2;
}

static void open_model(OracleModel *model) {
  DflashGeometry g = oracle_geometry();
  g.heads = 4, g.kv_heads = 2, g.head_dim = 16;
  oracle_model_open(model, &g, ORACLE_MIXED, 31);
}

static void test_case(void **state) {
  (void)state;
  OracleModel model;
  DflashCase c;
  int matrices = 0, others = 0;
  open_model(&model);
  open_case(&c, &model.geometry, 2);
  i8_turn(&c, &model.geometry);
  i8_evaluate(&model, DFLASH_PROFILE_I8, &c);
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(&model.geometry, i, &stage, &layer); i++) {
    if (stage == DFLASH_STAGE_SELECT) continue;
    bool codes = check_stage(&model, &c, stage, layer);
    matrices += codes, others += !codes;
    const DflashValue *value = dflash_case_value(&c, stage, layer);
    for (int64_t k = 0; k < value->rows * value->width; k++)
      assert_true(isfinite(value->chain[k]) && value->alone[k] > 0 && value->chain[k] >= value->alone[k] * 0.999f);
  }
  assert_true(matrices >= 3 && others >= 20);
  assert_true(c.tokens.chosen && c.tokens.scores && c.tokens.chain[0] > c.tokens.alone[0]);
  dflash_case_close(&c);
  oracle_model_close(&model);
}

/* Rows of earlier pushes are projected from codes as well. */
static void test_pushes(void **state) {
  (void)state;
  OracleModel model;
  DflashCase whole, pieces, exact;
  open_model(&model);
  DflashTensor *k_proj = (DflashTensor *)(uintptr_t)&model.set.layers[0].k_proj;
  float *values = oracle_draw(8, "k", dflash_tensor_rows(k_proj) * dflash_tensor_cols(k_proj), 0.1);
  oracle_tensor_set(k_proj, DFLASH_STORAGE_Q4TP, values);
  free(values);
  open_case(&whole, &model.geometry, 1);
  open_case(&pieces, &model.geometry, 2);
  open_case(&exact, &model.geometry, 2);
  i8_turn(&whole, &model.geometry);
  i8_turn(&pieces, &model.geometry);
  i8_evaluate(&model, DFLASH_PROFILE_I8, &whole);
  i8_evaluate(&model, DFLASH_PROFILE_I8, &pieces);
  i8_evaluate(&model, DFLASH_PROFILE_EXACT, &exact);
  size_t width = (size_t)(model.geometry.kv_heads * model.geometry.head_dim), bytes = 13 * width * sizeof(float);
  for (int64_t layer = 0; layer < model.geometry.layers; layer++) {
    assert_memory_equal(whole.held_k[layer].data, pieces.held_k[layer].data, bytes);
    assert_memory_equal(whole.held_v[layer].data, pieces.held_v[layer].data, bytes);
    assert_memory_equal(whole.held_k[layer].chain, pieces.held_k[layer].chain, bytes);
  }
  assert_memory_not_equal(pieces.held_k[0].data, exact.held_k[0].data, 9 * width * sizeof(float));
  dflash_case_close(&whole);
  dflash_case_close(&pieces);
  dflash_case_close(&exact);
  oracle_model_close(&model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),     cmocka_unit_test(test_groups),
                                     cmocka_unit_test(test_nonfinite),  cmocka_unit_test(test_other_matrices),
                                     cmocka_unit_test(test_exact_sums), cmocka_unit_test(test_case),
                                     cmocka_unit_test(test_pushes)};
  return cmocka_run_group_tests_name("oracle_i8", tests, NULL, NULL);
}
