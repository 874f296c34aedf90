/* The oracle's values: against definitions in long double, for geometries and cases at the edges. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "golden/oracle_kernel.h"
#include "golden/oracle_math.h"
#include "test_oracle_model.h"
#include "test_oracle_naive.h"

/* ---- functions ---- */

static double units_off(double got, long double exact) {
  long double unit = nextafter(fabs((double)exact), INFINITY) - fabs((double)exact);
  return (double)(fabsl((long double)got - exact) / unit);
}

static void test_exp(void **state) {
  (void)state;
  for (int i = -7080; i <= 7090; i++) {
    double x = i * 0.1 + 0.0137;
    assert_true(units_off(dflash_oracle_exp(x), expl((long double)x)) <= 3);
  }
  assert_true(dflash_oracle_exp(0) == 1);
  assert_true(dflash_oracle_exp(-INFINITY) == 0);
  assert_true(dflash_oracle_exp(INFINITY) == INFINITY);
  assert_true(dflash_oracle_exp(-746) == 0);
  assert_true(dflash_oracle_exp(-744) > 0);
  assert_true(isnan(dflash_oracle_exp(NAN)));
}

static void test_log(void **state) {
  (void)state;
  for (int i = 2; i < 20000; i++) {
    assert_true(units_off(dflash_oracle_log(i), logl((long double)i)) <= 3);
    assert_true(units_off(dflash_oracle_log(ldexp(i, i % 1900 - 1000)), logl(ldexpl(i, i % 1900 - 1000))) <= 3);
  }
  assert_true(dflash_oracle_log(1) == 0);
}

static void check_angle(float angle) {
  double sine, cosine;
  dflash_oracle_sincos(angle, &sine, &cosine);
  assert_true(units_off(sine, sinl((long double)angle)) <= 3);
  assert_true(units_off(cosine, cosl((long double)angle)) <= 3);
}

static void test_sincos(void **state) {
  (void)state;
  uint32_t word = 1;
  for (int i = 0; i < 20000; i++) {
    word = word * 1664525u + 1013904223u;
    float angle = ldexpf((float)(word >> 8), i % 66 - 40);
    check_angle(i % 2 ? angle : -angle);
  }
  for (int quarter = 1; quarter < 2000; quarter++) check_angle((float)(quarter * 1.5707963267948966));
  check_angle(16777216.0f), check_angle(3.1415927f), check_angle(0x1p-140f), check_angle(0x1.fffffep62f);
  double sine, cosine;
  dflash_oracle_sincos(0, &sine, &cosine);
  assert_true(sine == 0 && cosine == 1);
  dflash_oracle_sincos(INFINITY, &sine, &cosine);
  assert_true(isnan(sine) && isnan(cosine));
}

static void fill_panel(double *panel, uint32_t word) {
  for (int i = 0; i < DFLASH_TILE * DFLASH_PANEL; i++) {
    word = word * 1664525u + 1013904223u;
    panel[i] = ldexp((double)word, -31) - 1;
  }
}

/* The order of summation that the kernel promises, written out. */
static double lane_sum(const double *a, const double *b, int64_t count) {
  double lane[8] = {0};
  for (int64_t k = 0; k < count; k++) lane[k % 8] += a[k] * b[k];
  double pair[4] = {lane[0] + lane[4], lane[1] + lane[5], lane[2] + lane[6], lane[3] + lane[7]};
  return (pair[0] + pair[2]) + (pair[1] + pair[3]);
}

static void check_tiles(const DflashTiles *tiles, const double *a, const double *b, int64_t count) {
  double out[16];
  tiles->f64(a, b, count, out);
  for (int i = 0; i < 16; i++)
    assert_true(out[i] == lane_sum(a + i / 4 * DFLASH_PANEL, b + i % 4 * DFLASH_PANEL, count));
}

/* The last piece is shorter than a segment. */
static void check_follow(const DflashTiles *tiles, const double *a, const double *b) {
  DflashTileSums sums;
  memset(&sums, 0, sizeof sums);
  sums.value[5] = 2;
  tiles->follow(a, b, 100, 64, &sums);
  const double *left = a + DFLASH_PANEL, *right = b + DFLASH_PANEL;
  double middle = 2 + lane_sum(left, right, 64), end = middle + lane_sum(left + 64, right + 64, 48);
  assert_true(sums.value[5] == end);
  assert_true(fabs(sums.drift[5] - 32 * (2 + middle) - 18 * (middle + end)) < 1e-9);
  double path = 64 * (4 + 2 * middle + middle * middle) + 36 * (middle * middle + middle * end + end * end);
  assert_true(fabs(sums.path[5] - path / 3) < 1e-9);
}

/* Every width of registers gives the promised sums, and all give the same f32 sums. */
static void test_tiles(void **state) {
  (void)state;
  double *a = dflash_alloc(DFLASH_TILE * DFLASH_PANEL, sizeof *a),
         *b = dflash_alloc(DFLASH_TILE * DFLASH_PANEL, sizeof *b);
  float *left = dflash_alloc(DFLASH_TILE * DFLASH_PANEL, sizeof *left);
  float first[16], out[16];
  DflashTiles tiles[3];
  int tile_count = dflash_tiles_list(tiles);
  fill_panel(a, 1);
  fill_panel(b, 2);
  for (int i = 0; i < DFLASH_TILE * DFLASH_PANEL; i++) left[i] = (float)a[i];
  for (int t = 0; t < tile_count; t++) {
    for (int64_t count = 16; count <= DFLASH_PANEL; count += 16) check_tiles(&tiles[t], a, b, count);
    check_follow(&tiles[t], a, b);
    tiles[t].f32(left, left, DFLASH_PANEL, out);
    if (t == 0) memcpy(first, out, sizeof first);
    assert_memory_equal(out, first, sizeof out);
  }
  free(a);
  free(b);
  free(left);
}

/* ---- stages ---- */

static void evaluate(const OracleModel *model, DflashCase *c, DflashPool *pool) {
  DflashEvaluate options = {.geometry = &model->geometry,
                            .weights = &model->set.weights,
                            .pool = pool,
                            .values = true,
                            .scales_alone = true,
                            .scales_chain = true};
  DflashError error = {0};
  if (dflash_evaluate_case(&options, c, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static const float *input_of(const DflashCase *c, int32_t source, int64_t layer) {
  switch (source) {
  case DFLASH_STAGE_TAPS:
    return c->taps;
  case DFLASH_STAGE_RESIDUAL:
    return c->h;
  case DFLASH_STAGE_HELD_K:
    return c->held_k[layer].data;
  case DFLASH_STAGE_HELD_V:
    return c->held_v[layer].data;
  default:
    return dflash_case_value(c, source, layer)->data;
  }
}

static DflashOracleCall call_of(const OracleModel *model, const DflashCase *c, int32_t stage, int64_t layer) {
  bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  DflashOracleCall call = {.geometry = &model->geometry,
                           .weights = &model->set.weights,
                           .stage = stage,
                           .layer = layer,
                           .sizes = c->sizes,
                           .position = context ? c->ops[0].pos : c->anchor_pos,
                           .context_first = c->context_first};
  for (int i = 0; i < DFLASH_STAGE_INPUTS && dflash_stage_row(stage)->inputs[i] != DFLASH_STAGE_NONE; i++) {
    int64_t source_layer;
    int32_t source = dflash_stage_source(&model->geometry, stage, layer, i, &source_layer);
    call.inputs[i] = input_of(c, source, source_layer);
  }
  return call;
}

/* Rounded correctly, but for the last digits of float64. */
static void check_stage(const OracleModel *model, const DflashCase *c, int32_t stage, int64_t layer) {
  const DflashValue *value = dflash_case_value(c, stage, layer);
  DflashOracleCall call = call_of(model, c, stage, layer);
  for (int64_t i = 0; i < value->rows * value->width; i++) {
    long double exact = naive_element(&call, i / value->width, i % value->width);
    float size = fabsf(value->data[i]);
    double unit = (double)nextafterf(size, INFINITY) - (double)size;
    if (!(fabsl(exact - (long double)value->data[i]) <= 0.50001L * unit))
      fail_msg("%s/%lld element %lld: %.9g, exactly %.17Lg", dflash_stage_row(stage)->name, (long long)layer,
               (long long)i, (double)value->data[i], exact);
    assert_true(isfinite(value->alone[i]) && value->alone[i] >= 0);
    assert_true(isfinite(value->chain[i]) && value->chain[i] >= value->alone[i] * 0.999f);
  }
}

static void check_case(const DflashGeometry *g, int32_t storage, int64_t first, int64_t context, int64_t anchor_pos) {
  OracleModel model;
  DflashCase c;
  oracle_model_open(&model, g, storage, 11);
  oracle_case_open(&c, g, first, context, anchor_pos, 12);
  evaluate(&model, &c, NULL);
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++)
    if (stage != DFLASH_STAGE_SELECT && dflash_stage_rows(g, &c.sizes, stage) > 0)
      check_stage(&model, &c, stage, layer);
  dflash_case_close(&c);
  oracle_model_close(&model);
}

static void test_definitions(void **state) {
  (void)state;
  DflashGeometry g = oracle_geometry();
  check_case(&g, ORACLE_MIXED, 40, 13, 53);
  check_case(&g, DFLASH_STORAGE_F32, 40, 13, 53);
}

static void test_context_edges(void **state) {
  (void)state;
  DflashGeometry g = oracle_geometry();
  check_case(&g, ORACLE_MIXED, 0, 0, 0);     /* empty */
  check_case(&g, ORACLE_MIXED, 7, 1, 8);     /* one row */
  check_case(&g, ORACLE_MIXED, 20, 12, 26);  /* anchor before the context's end */
  check_case(&g, ORACLE_MIXED, 20, 12, 20);  /* anchor at its first row */
  check_case(&g, ORACLE_MIXED, 20, 12, 11);  /* anchor before its first row */
  check_case(&g, ORACLE_MIXED, 20, 12, 35);  /* a hole that the window of layer 1 still sees across */
  check_case(&g, ORACLE_MIXED, 20, 12, 500); /* a hole wider than the window */
}

static void test_far_positions(void **state) {
  (void)state;
  DflashGeometry g = oracle_geometry();
  check_case(&g, DFLASH_STORAGE_BF16, (1 << 24) - 4, 9, (1 << 24) + 5);
  check_case(&g, DFLASH_STORAGE_BF16, INT64_C(1) << 40, 3, (INT64_C(1) << 40) + 3);
}

static void test_geometry_edges(void **state) {
  (void)state;
  DflashGeometry g = oracle_geometry();
  g.kv_heads = 1, g.conv_kernel = 9, g.conv_group = 1; /* kernel longer than the block */
  check_case(&g, ORACLE_MIXED, 0, 6, 6);
  g = oracle_geometry();
  g.kv_heads = 6, g.conv_kernel = 1, g.conv_group = 96, g.head_dim = 2, g.layers = 1, g.windows.count = 0;
  g.no_rope.count = 0, g.window = 1; /* only the block */
  check_case(&g, ORACLE_MIXED, 0, 6, 6);
  g = oracle_geometry();
  g.hidden = 1031, g.conv_group = 1031, g.taps.count = 1, g.layers = 1, g.windows.count = g.no_rope.count = 0;
  check_case(&g, DFLASH_STORAGE_F16, 0, 2, 2); /* columns no multiple of a panel */
}

static void test_threads(void **state) {
  (void)state;
  DflashGeometry g = oracle_geometry();
  OracleModel model;
  DflashCase one, three;
  DflashPool *pool = dflash_pool_open(3);
  assert_non_null(pool);
  oracle_model_open(&model, &g, ORACLE_MIXED, 11);
  oracle_case_open(&one, &g, 40, 13, 53, 12);
  oracle_case_open(&three, &g, 40, 13, 53, 12);
  evaluate(&model, &one, NULL);
  evaluate(&model, &three, pool);
  for (int64_t i = 0; i < DFLASH_STAGE_COUNT * g.layers; i++) {
    const DflashValue *a = &one.stages[i], *b = &three.stages[i];
    size_t bytes = (size_t)(a->rows * a->width) * sizeof(float);
    if (!a->data) continue;
    assert_memory_equal(a->data, b->data, bytes);
    assert_memory_equal(a->alone, b->alone, bytes);
    assert_memory_equal(a->chain, b->chain, bytes);
  }
  assert_memory_equal(one.tokens.scores, three.tokens.scores,
                      (size_t)(one.sizes.n_draft * g.selector_top) * sizeof(double));
  dflash_pool_close(pool);
  dflash_case_close(&one);
  dflash_case_close(&three);
  oracle_model_close(&model);
}

/* ---- what is refused, and values that are no numbers ---- */

typedef struct Fixture {
  OracleModel model;
  DflashCase c;
} Fixture;

static int open_fixture(void **state) {
  Fixture *f = calloc(1, sizeof *f);
  DflashGeometry g = oracle_geometry();
  oracle_model_open(&f->model, &g, ORACLE_MIXED, 11);
  oracle_case_open(&f->c, &g, 40, 13, 53, 12);
  evaluate(&f->model, &f->c, NULL);
  *state = f;
  return 0;
}

static int close_fixture(void **state) {
  Fixture *f = *state;
  dflash_case_close(&f->c);
  oracle_model_close(&f->model);
  free(f);
  return 0;
}

static void expect(const DflashOracleCall *call, DflashStatus status, const char *words) {
  DflashError error = {0};
  assert_int_equal(dflash_oracle_stage(call, &error), status);
  if (status != DFLASH_OK && !strstr(error.message, words)) fail_msg("%s", error.message);
}

static void test_refusals(void **state) {
  Fixture *f = *state;
  DflashOracleCall good = call_of(&f->model, &f->c, DFLASH_STAGE_MLP_ACT, 1), call = good;
  expect(&call, DFLASH_OK, "");
  call.profile = DFLASH_PROFILE_COUNT;
  expect(&call, DFLASH_UNSUPPORTED, "profile 4");
  call = good, call.stage = DFLASH_STAGE_SELECT;
  expect(&call, DFLASH_INVALID_ARGUMENT, "no stage");
  call = good, call.stage = 99;
  expect(&call, DFLASH_INVALID_ARGUMENT, "99");
  call = good, call.layer = 2;
  expect(&call, DFLASH_INVALID_ARGUMENT, "layer");
  call = good, call.inputs[1] = NULL;
  expect(&call, DFLASH_INVALID_ARGUMENT, "input");
  call = good, call.sizes.rows = 0;
  expect(&call, DFLASH_INVALID_ARGUMENT, "rows");
  call = good, call.position = INT64_MAX - 3;
  expect(&call, DFLASH_INVALID_ARGUMENT, "position");
  call = call_of(&f->model, &f->c, DFLASH_STAGE_HEAD_LOGITS, 0);
  call.sizes.head_width = 132;
  expect(&call, DFLASH_INVALID_ARGUMENT, "head_width");
  call = call_of(&f->model, &f->c, DFLASH_STAGE_HEAD_LOGITS, 0);
  DflashWeights headless = *call.weights;
  headless.head = (DflashTensor){0};
  call.weights = &headless;
  expect(&call, DFLASH_INVALID_ARGUMENT, "head.logits has no weights");
}

/* NaN in one input reaches the outputs that read it, and no other. */
static void check_poisoned(Fixture *f, int32_t stage, int input, int64_t at, int64_t bad_row, float poison) {
  DflashOracleCall call = call_of(&f->model, &f->c, stage, 0);
  const DflashGeometry *g = &f->model.geometry;
  int32_t source = dflash_stage_row(stage)->inputs[input];
  int64_t count = dflash_stage_rows(g, &f->c.sizes, source) * dflash_stage_width(g, &f->c.sizes, source);
  int64_t rows = dflash_stage_rows(g, &f->c.sizes, stage), width = dflash_stage_width(g, &f->c.sizes, stage);
  float *copy = dflash_alloc((size_t)count, sizeof *copy), *out = dflash_alloc((size_t)(rows * width), 3 * sizeof *out);
  memcpy(copy, call.inputs[input], (size_t)count * sizeof *copy);
  copy[at] = poison;
  call.inputs[input] = copy;
  call.sigmas[0] = dflash_case_value(&f->c, stage, 0)->chain;
  call.sigmas[0] = NULL;
  call.value = out, call.alone = out + rows * width, call.chain = call.alone + rows * width;
  expect(&call, DFLASH_OK, "");
  bool found = false;
  for (int64_t i = 0; i < rows * width; i++) {
    if (i / width == bad_row)
      found |= !isfinite(out[i]);
    else
      assert_true(isfinite(out[i]));
  }
  assert_true(found);
  free(copy);
  free(out);
}

static void test_nonfinite(void **state) {
  Fixture *f = *state;
  int64_t hidden = f->model.geometry.hidden, q = f->model.geometry.heads * f->model.geometry.head_dim;
  check_poisoned(f, DFLASH_STAGE_ATTN_Q_PROJ, 0, 2 * hidden + 5, 2, NAN);
  check_poisoned(f, DFLASH_STAGE_ATTN_Q_PROJ, 0, 2 * hidden + 5, 2, INFINITY);
  check_poisoned(f, DFLASH_STAGE_ATTN_NORM, 0, 3 * hidden, 3, NAN);
  check_poisoned(f, DFLASH_STAGE_ATTN_Q, 0, q + 1, 1, NAN);
  check_poisoned(f, DFLASH_STAGE_ATTN_CONV_IN, 0, 6 * hidden + 1, 6, NAN);
  check_poisoned(f, DFLASH_STAGE_ATTN_MIX, 0, 4 * q + 3, 4, NAN);
  check_poisoned(f, DFLASH_STAGE_MLP_ACT, 0, 5, 0, NAN);
  check_poisoned(f, DFLASH_STAGE_HEAD_LOGITS, 0, 3 * hidden + 9, 2, NAN);
}

/* silu far out: no overflow on the way to a value that f32 holds. */
static void test_act_far(void **state) {
  Fixture *f = *state;
  DflashOracleCall call = call_of(&f->model, &f->c, DFLASH_STAGE_MLP_ACT, 0);
  int64_t count = call.sizes.rows * f->model.geometry.intermediate;
  float *gate = dflash_alloc((size_t)count, 5 * sizeof *gate), *up = gate + count, *out = up + count;
  static const float gates[] = {100, -100, 88.8f, -88.8f, 0, -0.0f, 1e30f, -1e30f};
  for (int64_t i = 0; i < count; i++) gate[i] = gates[i % 8], up[i] = 2;
  call.inputs[0] = gate, call.inputs[1] = up;
  call.value = out, call.alone = out + count, call.chain = out + 2 * count;
  expect(&call, DFLASH_OK, "");
  assert_true(out[0] == 200 && out[4] == 0 && out[5] == 0 && out[6] == 2e30f && out[7] == 0);
  assert_true(out[1] < 0 && out[1] > -1e-40f);
  for (int64_t i = 0; i < 8; i++) assert_true(isfinite(call.alone[i]));
  assert_true(call.alone[1] * 7 > -out[1]); /* flushed to zero is lawful */
  assert_true(call.alone[4] == 0);
  free(gate);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exp),
                                     cmocka_unit_test(test_log),
                                     cmocka_unit_test(test_sincos),
                                     cmocka_unit_test(test_tiles),
                                     cmocka_unit_test(test_definitions),
                                     cmocka_unit_test(test_context_edges),
                                     cmocka_unit_test(test_far_positions),
                                     cmocka_unit_test(test_geometry_edges),
                                     cmocka_unit_test(test_threads),
                                     cmocka_unit_test_setup_teardown(test_refusals, open_fixture, close_fixture),
                                     cmocka_unit_test_setup_teardown(test_nonfinite, open_fixture, close_fixture),
                                     cmocka_unit_test_setup_teardown(test_act_far, open_fixture, close_fixture)};
  return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
