/* The matrix and norm kernels of the faulty backend against plain f64 arithmetic: right without knobs, and every knob
 * does what its comment says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "backends/faulty/kernel_matrix.h"
#include "model/storage.h"
#include "tiny_model.h"

enum { ROWS = 3, MOST = 4096 };

typedef struct Bench {
  struct DflashModel model;
  FaultScratch scratch;
  TinyModel tiny;
  FaultCall call;
  DflashError error;
  float got[MOST];
} Bench;

/* A call of a stage on `count` drawn inputs; the model is drawn from the seed. */
static Bench *bench_open(DflashGeometry geometry) {
  Bench *b = calloc(1, sizeof *b);
  assert_non_null(b);
  tiny_open(&b->tiny, geometry, 7);
  b->model.geometry = geometry;
  b->model.kept = b->tiny.weights;
  b->model.kept_layers = b->tiny.layers;
  b->model.scratch = &b->scratch;
  b->call = (FaultCall){.model = &b->model, .error = &b->error};
  b->call.call = (DflashStageCall){.rows = ROWS, .n_draft = 2, .head_width = geometry.selector_top, .output = b->got};
  return b;
}

static void bench_close(Bench *b) {
  for (int slot = 0; slot < FAULT_SLOTS; slot++) free(b->scratch.slots[slot].data);
  tiny_close(&b->tiny);
  free(b);
}

static float *enter(Bench *b, int32_t stage, int64_t layer) {
  b->call.call.stage = stage;
  b->call.call.layer = layer;
  float *x = tiny_draw("x", fault_input_rows(&b->call, 0) * fault_input_width(&b->call, 0));
  b->call.call.inputs[0] = x;
  assert_true(fault_rows(&b->call) * fault_width(&b->call) <= MOST);
  return x;
}

/* ---- sums */

static void sums_of_every_order(void **state) {
  static const int64_t counts[] = {0, 1, 5, 128, 300};
  float *a = tiny_draw("a", 300), *b = tiny_draw("b", 300);
  (void)state;
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
    for (int order = 0; order < FAULT_ORDER_COUNT; order++) {
      double sum = 0, size = 0;
      for (int64_t i = 0; i < counts[c]; i++) {
        sum += (double)a[i] * b[i];
        size += fabs((double)a[i] * b[i]);
      }
      const double bound = order == FAULT_ORDER_F64 ? 0x1p-24 * fabs(sum) : 0x1p-24 * (double)counts[c] * size;
      assert_true(fabs(fault_sum(a, b, counts[c], order, false) - sum) <= bound);
      assert_true(fabs(fault_sum(a, b, counts[c], order, true) - sum) <= bound);
    }
  free(a);
  free(b);
}

/* Terms of which each order keeps others: 1, 2^-24 and -1 in places. */
static void orders_differ(void **state) {
  float ones[300], a[300] = {0};
  (void)state;
  for (int i = 0; i < 300; i++) ones[i] = 1;
  a[0] = 1;
  a[1] = 0x1p-24F;
  a[299] = -1;
  assert_true(fault_sum(a, ones, 300, FAULT_ORDER_FORWARD, false) == 0);
  assert_true(fault_sum(a, ones, 300, FAULT_ORDER_BACKWARD, false) == 0x1p-24F);
  assert_true(fault_sum(a, ones, 300, FAULT_ORDER_LANES, false) == 0x1p-24F); /* 0 and 299 are in lanes 0 and 11 */
  assert_true(fault_sum(a, ones, 300, FAULT_ORDER_F64, false) == 0x1p-24F);
  a[1] = 0;
  a[127] = 0x1p-24F; /* its block ends there; a third ends at 100 */
  a[128] = 0x1p-24F;
  assert_true(fault_sum(a, ones, 300, FAULT_ORDER_BLOCKED, false) == 0);
  assert_true(fault_sum(a, ones, 300, FAULT_ORDER_SPLIT, false) == 0x1p-23F);
  a[299] = 0;
  a[150] = 0x1p-24F; /* the second half's only terms */
  a[151] = 0x1p-24F;
  a[127] = a[128] = 0;
  assert_true(fault_sum(a, ones, 300, FAULT_ORDER_FORWARD, false) == 1);
  assert_true(fault_sum(a, ones, 300, FAULT_ORDER_PAIRWISE, false) == 1 + 0x1p-23F);
  const float x[] = {1 + 0x1p-12F, -1}, y[] = {1 + 0x1p-12F, 1 + 0x1p-11F};
  assert_true(fault_sum(x, y, 2, FAULT_ORDER_BACKWARD, false) == 0);
  assert_true(fault_sum(x, y, 2, FAULT_ORDER_BACKWARD, true) == 0x1p-24F);
}

/* ---- matrices */

static const int32_t MATRICES[] = {DFLASH_STAGE_CONTEXT_FC,  DFLASH_STAGE_CONTEXT_K_PROJ, DFLASH_STAGE_CONTEXT_V_PROJ,
                                   DFLASH_STAGE_ATTN_KERNEL, DFLASH_STAGE_ATTN_Q_PROJ,    DFLASH_STAGE_ATTN_O_PROJ,
                                   DFLASH_STAGE_MLP_KERNEL,  DFLASH_STAGE_MLP_GATE,       DFLASH_STAGE_MLP_DOWN,
                                   DFLASH_STAGE_HEAD_LOGITS, DFLASH_STAGE_SELECTOR_HIDDEN};
enum { MATRIX_COUNT = sizeof MATRICES / sizeof *MATRICES };

/* The rows that the stage reads: draft row j reads row j + 1. */
static const float *input_row(const Bench *b, const float *x, int64_t row, int64_t cols) {
  const bool draft =
      b->call.call.stage == DFLASH_STAGE_HEAD_LOGITS || b->call.call.stage == DFLASH_STAGE_SELECTOR_HIDDEN;
  return x + (row + (draft ? 1 : 0)) * cols;
}

static float as_is(float value) { return value; }
static float to_f16(float value) { return dflash_f16_value(dflash_f16_round(value)); }
static float to_bf16(float value) { return dflash_bf16_value(dflash_bf16_round(value)); }

typedef float (*RoundFn)(float value);

/* The output is the product of the rounded operands, itself rounded, within what f32 sums may lose. */
static void expect_product(const Bench *b, const float *x, RoundFn of_x, RoundFn of_w, double slack) {
  const DflashTensor *tensor = fault_weight(&b->model, b->call.call.stage, b->call.call.layer);
  const int64_t width = fault_width(&b->call), cols = tensor->shape[1];
  for (int64_t i = 0; i < fault_rows(&b->call) * width; i++) {
    const float *row = input_row(b, x, i / width, cols);
    double sum = 0, size = 0;
    for (int64_t k = 0; k < cols; k++) {
      const double term = (double)of_x(row[k]) * of_w((float)tiny_at(tensor, i % width, k));
      sum += term;
      size += fabs(term);
    }
    assert_true(fabs(b->got[i] - sum) <= 0x1p-23 * (double)cols * size + slack * fabs(sum));
  }
}

static void run_matrix(Bench *b, const FaultMatrix *knobs) {
  for (int i = 0; i < MOST; i++) b->got[i] = NAN;
  assert_int_equal(fault_kernel_matrix(&b->call, knobs), DFLASH_OK);
}

static void right_without_knobs(void **state) {
  Bench *b = bench_open(tiny_geometry());
  unsigned storages = 0;
  (void)state;
  for (int m = 0; m < MATRIX_COUNT; m++)
    for (int order = 0; order < FAULT_ORDER_COUNT; order++) {
      float *x = enter(b, MATRICES[m], m == 0 || m >= MATRIX_COUNT - 2 ? 0 : order % 3);
      storages |= 1U << fault_weight(&b->model, MATRICES[m], b->call.call.layer)->storage;
      const FaultMatrix knobs = {.order = order, .fused = order % 2 == 1};
      run_matrix(b, &knobs);
      expect_product(b, x, as_is, as_is, 0);
      free(x);
    }
  assert_int_equal(storages, 1U << DFLASH_STORAGE_F32 | 1U << DFLASH_STORAGE_F16 | 1U << DFLASH_STORAGE_BF16 |
                                 1U << DFLASH_STORAGE_Q8_2F | 1U << DFLASH_STORAGE_Q4TP);
  bench_close(b);
}

/* A product with full mantissas differs from that of rounded operands by far more than the sum's rounding. */
static void profiles_round_operands(void **state) {
  Bench *b = bench_open(tiny_geometry());
  (void)state;
  for (int m = 0; m < MATRIX_COUNT; m++) {
    float *x = enter(b, MATRICES[m], 0);
    const int32_t storage = fault_weight(&b->model, MATRICES[m], 0)->storage;
    const bool codes = storage == DFLASH_STORAGE_Q4TP || storage == DFLASH_STORAGE_Q8_2F;
    run_matrix(b, &(FaultMatrix){.profile = DFLASH_PROFILE_F16});
    expect_product(b, x, to_f16, codes ? as_is : to_f16, 0);
    run_matrix(b, &(FaultMatrix){.profile = DFLASH_PROFILE_BF16});
    expect_product(b, x, to_bf16, to_bf16, 0x1p-8);
    for (int64_t i = 0; i < fault_rows(&b->call) * fault_width(&b->call); i++)
      assert_true(b->got[i] == to_bf16(b->got[i]));
    free(x);
  }
  bench_close(b);
}

/* Past f16's range on their own, rows are scaled by a power of two first. */
static void f16_scales_large_rows(void **state) {
  Bench *b = bench_open(tiny_geometry());
  float *x = enter(b, DFLASH_STAGE_CONTEXT_FC, 0);
  (void)state;
  x[0] = 70000;
  run_matrix(b, &(FaultMatrix){.profile = DFLASH_PROFILE_F16});
  for (int64_t i = 0; i < ROWS * fault_width(&b->call); i++) assert_true(isfinite(b->got[i]));
  free(x);
  bench_close(b);
}

static void double_weights(const FaultCall *call, int64_t row, float *w, int64_t count) {
  (void)call;
  for (int64_t i = 0; i < count; i++) w[i] = row == 1 ? 0 : 2 * w[i];
}

static void ones_in_row_1(const FaultCall *call, int64_t row, float *x, int64_t count) {
  (void)call;
  for (int64_t i = 0; row == 1 && i < count; i++) x[i] = 1;
}

static float index_of(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  (void)call, (void)w;
  return (float)(1000 * out + count) + x[0];
}

static void hooks_of_matrices(void **state) {
  Bench *b = bench_open(tiny_geometry());
  float *x = enter(b, DFLASH_STAGE_HEAD_LOGITS, 0), right[MOST];
  const int64_t hidden = b->model.geometry.hidden, width = fault_width(&b->call);
  (void)state;
  run_matrix(b, &(FaultMatrix){0});
  memcpy(right, b->got, sizeof right);
  run_matrix(b, &(FaultMatrix){.weights = double_weights});
  for (int64_t i = 0; i < 2 * width; i++) assert_true(b->got[i] == (i % width == 1 ? 0 : 2 * right[i]));
  run_matrix(b, &(FaultMatrix){.input = ones_in_row_1, .sum = index_of});
  for (int64_t i = 0; i < 2 * width; i++)
    assert_true(b->got[i] == (float)(1000 * (i % width) + hidden) + (i < width ? x[hidden] : 1));
  float *before = tiny_draw("x", ROWS * hidden);
  assert_memory_equal(x, before, (size_t)(ROWS * hidden) * sizeof *x); /* inputs belong to others */
  free(before);
  free(x);
  b->call.call.stage = DFLASH_STAGE_CONTEXT_FC;
  b->model.kept.fc.data = NULL;
  assert_int_equal(fault_kernel_matrix(&b->call, &(FaultMatrix){0}), DFLASH_INTERNAL);
  bench_close(b);
}

/* ---- profile i8, on one q4tp row of two groups: all nibbles 9 in the first group, 7 in the second, rungs 1 */

enum { GROUPS = 2, COLS = 64 };

typedef struct Int8 {
  Bench *bench;
  unsigned char data[GROUPS * 16 + 4 + 2];
  float x[2 * COLS];
} Int8;

/* Group 0 holds 127 and -0.5, 1.5, -2.5; group 1 holds 254 and zeros. The second row is all zeros. */
static Int8 *int8_open(void) {
  Int8 *i8 = calloc(1, sizeof *i8);
  assert_non_null(i8);
  i8->bench = bench_open(tiny_geometry());
  memset(i8->data, 0x99, 16);
  memset(i8->data + 16, 0x77, 16);
  i8->data[34] = 0x00;
  i8->data[35] = 0x3c; /* step 1: rung c is 2^c */
  i8->data[36] = 1 << 5 & 0xff;
  i8->bench->model.kept.fc = (DflashTensor){
      .storage = DFLASH_STORAGE_Q4TP, .rank = 2, .shape = {1, COLS}, .bytes = sizeof i8->data, .data = i8->data};
  i8->bench->model.geometry.hidden = 1;
  i8->bench->call.call.rows = 2;
  i8->bench->call.call.stage = DFLASH_STAGE_CONTEXT_FC;
  i8->bench->call.call.inputs[0] = i8->x;
  const float group[] = {127, -0.5F, 1.5F, -2.5F};
  memcpy(i8->x, group, sizeof group);
  i8->x[FAULT_Q4TP_GROUP] = 254;
  return i8;
}

static void int8_close(Int8 *i8) {
  bench_close(i8->bench);
  free(i8);
}

static float int8_run(Int8 *i8, FaultInt8 knobs) {
  run_matrix(i8->bench, &(FaultMatrix){.profile = DFLASH_PROFILE_I8, .int8 = knobs});
  return i8->bench->got[0];
}

/* Group 0: s 1, scale 1, weights 1: the sum of its codes. Group 1: code 127, s 2, scale 2, weights -1: -508. */
static void int8_knobs(void **state) {
  Int8 *i8 = int8_open();
  (void)state;
  assert_true(int8_run(i8, (FaultInt8){0}) == 127 + 0 + 2 - 2 - 508);
  assert_true(i8->bench->got[1] == 0);
  assert_true(int8_run(i8, (FaultInt8){.rounding = FAULT_ROUND_AWAY}) == 127 - 1 + 2 - 3 - 508);
  assert_true(int8_run(i8, (FaultInt8){.rounding = FAULT_ROUND_UP}) == 127 + 0 + 2 - 2 - 508);
  assert_true(int8_run(i8, (FaultInt8){.rounding = FAULT_ROUND_ZERO}) == 127 + 0 + 1 - 2 - 508);
  assert_true(int8_run(i8, (FaultInt8){.scale_group = 1}) == 2 * 127 - 254);
  assert_true(int8_run(i8, (FaultInt8){.rung_group = 1}) == 2 * 127 - 254);
  assert_true(int8_run(i8, (FaultInt8){.whole_row = true}) == 2 * (64 + 0 + 1 - 1) - 508);
  /* group 0 by 254: codes 63.5 to 64, -0.25, 0.75, -1.25; group 1 by 127: 254 is held at 127, s 1, scale 2 */
  assert_true(int8_run(i8, (FaultInt8){.absmax_group = 1}) == 2 * (64 + 0 + 1 - 1) - 254);
  assert_true(int8_run(i8, (FaultInt8){.absmax_group = 1, .wrap = true}) == 2 * (64 + 0 + 1 - 1) - 2 * -2);
  assert_true(int8_run(i8, (FaultInt8){.sum_unscaled = true}) == 127 + 9 * 254 * 0 - 508 + 8 * 127 * 2 * (2 - 1));
  assert_true(int8_run(i8, (FaultInt8){.int16_sum = true}) == 127 - 508);
  int8_close(i8);
}

/* s of the largest 3: 3 / 127 is no f16. */
static void int8_scale_of_16_bits(void **state) {
  Int8 *i8 = int8_open();
  (void)state;
  memset(i8->x, 0, sizeof i8->x);
  i8->x[0] = 3;
  assert_true(int8_run(i8, (FaultInt8){0}) == 127 * (3.0F / 127));
  assert_true(int8_run(i8, (FaultInt8){.scale_f16 = true}) == 127 * to_f16(3.0F / 127));
  assert_true(int8_run(i8, (FaultInt8){.levels = 128}) == 127 * (3.0F / 128));
  assert_true(int8_run(i8, (FaultInt8){.levels = 128, .wrap = true}) == -3);
  const float sum = 127 * (3.0F / 127);
  assert_true(fabsf(int8_run(i8, (FaultInt8){.sum_f16 = true}) - (9 * sum - 8 * to_f16(sum))) < 1e-5F);
  assert_true(to_f16(sum) == sum || int8_run(i8, (FaultInt8){.sum_f16 = true}) != sum);
  int8_close(i8);
}

/* A large group's sum takes more than 16 bits when codes stand 16 times as high. */
static void int8_overflow(void **state) {
  Int8 *i8 = int8_open();
  (void)state;
  for (int i = 0; i < FAULT_Q4TP_GROUP; i++) i8->x[i] = 127;
  assert_true(int8_run(i8, (FaultInt8){0}) == 32 * 127 - 508);
  assert_true(int8_run(i8, (FaultInt8){.int16_sum = true}) == 32 * 127 - 4096 - 508);
  int8_close(i8);
}

static void int8_groups_of_zeros(void **state) {
  Int8 *i8 = int8_open();
  (void)state;
  i8->x[FAULT_Q4TP_GROUP] = 0x1p-101F; /* below 2^-100: zero */
  assert_true(int8_run(i8, (FaultInt8){0}) == 127);
  int8_run(i8, (FaultInt8){.no_floor = true});
  assert_true(isnan(i8->bench->got[1])); /* a row of zeros: 0 / 0 */
  int8_close(i8);
}

/* ---- norms */

typedef struct RootCase {
  FaultNorm knobs;
  double root; /* of the row (3, 4), eps 1, sum of squares 25 */
} RootCase;

/* A geometry whose rows have two channels; gains are 1 and 2. */
static Bench *norm_open(void) {
  Bench *b = bench_open(tiny_geometry());
  static const float gain[] = {1, 2}, row[] = {3, 4};
  b->model.geometry.hidden = 2;
  b->model.geometry.eps = 1;
  b->model.kept.norm = (DflashTensor){.storage = DFLASH_STORAGE_F32, .rank = 1, .shape = {2}, .bytes = 8, .data = gain};
  b->call.call.stage = DFLASH_STAGE_FINAL_NORM;
  b->call.call.rows = 1;
  b->call.call.inputs[0] = row;
  return b;
}

static void run_norm(Bench *b, const FaultNorm *knobs) {
  for (int i = 0; i < MOST; i++) b->got[i] = NAN;
  assert_int_equal(fault_kernel_norm(&b->call, knobs), DFLASH_OK);
}

static void assert_close(double got, double expected) {
  if (!(fabs(got - expected) <= 3e-7 * fabs(expected) + 1e-12)) fail_msg("%.9g, expected %.9g", got, expected);
}

static void roots_of_knobs(void **state) {
  static const RootCase cases[] = {{{0}, 3.6742346141747673}, /* sqrt(12.5 + 1) */
                                   {{.no_eps = true}, 3.5355339059327378},
                                   {{.eps_outside = true}, 4.5355339059327378},
                                   {{.eps_on_sum = true}, 3.6055512754639891},
                                   {{.eps = 3}, 3.9370039370059056},
                                   {{.no_mean = true}, 5.0990195135927845},
                                   {{.skip_tail = 1}, 2.3452078799117149},
                                   {{.lanes = 1}, 2.3452078799117149},
                                   {{.pad = 4}, 2.6925824035672519},
                                   {{.half_sum = true}, 3.6742346141747673},
                                   {{.no_norm = true}, 1},
                                   {{.order = FAULT_ORDER_BACKWARD, .fused = true}, 3.6742346141747673}};
  Bench *b = norm_open();
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_norm(b, &cases[i].knobs);
    assert_close(b->got[0], 3 / cases[i].root);
    assert_close(b->got[1], 4 / cases[i].root * 2);
  }
  bench_close(b);
}

static float gain_and_index(const FaultCall *call, const float *gain, int64_t index, int64_t count) {
  (void)call;
  return gain[index] + (float)(10 * index + count);
}

static void other_knobs_of_norms(void **state) {
  Bench *b = norm_open();
  const double root = sqrt(13.5);
  (void)state;
  run_norm(b, &(FaultNorm){.no_gain = true});
  assert_close(b->got[1], 4 / root);
  run_norm(b, &(FaultNorm){.gain = gain_and_index});
  assert_close(b->got[0], 3 / root * 3);
  assert_close(b->got[1], 4 / root * 14);
  run_norm(b, &(FaultNorm){.centred = true});
  assert_close(b->got[0], -0.5 / sqrt(1.25));
  assert_close(b->got[1], 0.5 / sqrt(1.25) * 2);
  run_norm(b, &(FaultNorm){.twice = true});
  const double x = 3 / root, y = 8 / root, again = sqrt((x * x + y * y) / 2 + 1);
  assert_close(b->got[0], x / again);
  assert_close(b->got[1], y / again * 2);
  run_norm(b, &(FaultNorm){.root_estimate = true});
  const double estimate = b->got[0] / 3.0;
  assert_true(estimate < 1 / root && estimate > (1 - 0x1p-11) / root);
  const float large[] = {300, 0};
  b->call.call.inputs[0] = large;
  run_norm(b, &(FaultNorm){.half_sum = true}); /* 90000 is past f16 */
  assert_true(b->got[0] == 0);
  bench_close(b);
}

/* ---- norms of heads, and rotation */

enum { HEADS = 5, HEAD_DIM = 4, HALF = 2 };
static const float FREQUENCIES[HALF] = {1, 0.01F}, HEAD_GAINS[HEAD_DIM] = {1, 0.5F, 2, 1.5F};

static Bench *heads_open(int64_t position) {
  Bench *b = bench_open(tiny_geometry());
  b->model.geometry.heads = HEADS;
  b->model.geometry.kv_heads = HEADS;
  b->model.geometry.head_dim = HEAD_DIM;
  b->model.geometry.rope_theta = 1e4;
  b->model.geometry.no_rope = (DflashList){.count = 1, .at = {1}};
  b->model.kept.inv_freq = FREQUENCIES;
  for (int64_t layer = 0; layer < b->model.geometry.layers; layer++) {
    DflashTensor *gain = &b->tiny.layers[layer].k_norm;
    free((void *)gain->data);
    float *gains = malloc(sizeof HEAD_GAINS);
    assert_non_null(gains);
    memcpy(gains, HEAD_GAINS, sizeof HEAD_GAINS);
    *gain = (DflashTensor){.storage = DFLASH_STORAGE_F32, .rank = 1, .shape = {HEAD_DIM}, .bytes = 16, .data = gains};
  }
  b->call.call.stage = DFLASH_STAGE_ATTN_K;
  b->call.call.position = position;
  return b;
}

/* What is expected of a row: the normed head turned by the angles of a position, or as knobs have it. */
typedef struct Turn {
  FaultNorm knobs;
  int64_t layer, position;
  double angle[ROWS][HALF];
} Turn;

static void expect_turn(Bench *b, const Turn *turn) {
  float *x = tiny_draw("heads", (int64_t)ROWS * HEADS * HEAD_DIM);
  b->call.call.inputs[0] = x;
  b->call.call.layer = turn->layer;
  b->call.call.position = turn->position;
  run_norm(b, &turn->knobs);
  for (int i = 0; i < ROWS * HEADS; i++) {
    const float *head = x + (size_t)i * HEAD_DIM;
    double sum = 0;
    for (int k = 0; k < HEAD_DIM; k++) sum += (double)head[k] * head[k];
    const double root = sqrt(sum / HEAD_DIM + b->model.geometry.eps);
    for (int pair = 0; pair < HALF; pair++) {
      const double angle = turn->angle[i / HEADS][pair], lo = head[pair] / root * HEAD_GAINS[pair],
                   hi = head[pair + HALF] / root * HEAD_GAINS[pair + HALF];
      const double size = 1e-6 * (fabs(lo) + fabs(hi));
      assert_true(fabs(b->got[i * HEAD_DIM + pair] - (lo * cos(angle) - hi * sin(angle))) <= size);
      assert_true(fabs(b->got[i * HEAD_DIM + pair + HALF] - (hi * cos(angle) + lo * sin(angle))) <= size);
    }
  }
  free(x);
}

static float turn_by_place(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle) {
  (void)call, (void)head;
  return angle + (float)(10 * row + pair);
}

#define STEPS(a, b, c, f)                                  \
  {                                                        \
    {(a), (a) * (f)}, {(b), (b) * (f)}, { (c), (c) * (f) } \
  }

static void rotation_of_knobs(void **state) {
  const double f = (double)0.01F;
  const Turn turns[] = {
      {{0}, 0, 5, STEPS(5, 6, 7, f)},
      {{.fused = true}, 0, 5, STEPS(5, 6, 7, f)},
      {{0}, 1, 5, STEPS(0, 0, 0, f)}, /* a layer without rotation */
      {{.rotate_always = true}, 1, 5, STEPS(5, 6, 7, f)},
      {{.no_rotate = true}, 0, 5, STEPS(0, 0, 0, f)},
      {{.backwards = true}, 0, 5, STEPS(-5, -6, -7, f)},
      {{.position_add = 3}, 0, 5, STEPS(8, 9, 10, f)},
      {{.position_first = true}, 0, 5, STEPS(5, 5, 5, f)},
      {{.position_bf16 = true}, 0, 257, STEPS(256, 258, 260, f)}, /* 257 and 259 are ties, to even */
      {{.position_f16 = true}, 0, 2049, STEPS(2048, 2050, 2052, f)},
      {{.turn = turn_by_place}, 0, 5, {{5, 5 * f + 1}, {16, 6 * f + 11}, {27, 7 * f + 21}}},
  };
  Bench *b = heads_open(0);
  (void)state;
  for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) expect_turn(b, &turns[i]);
  bench_close(b);
}

/* Knobs whose angles differ by a rounding are told apart where positions are large. */
static void roundings_of_angles(void **state) {
  const int64_t far = INT64_C(1) << 24;
  const float position = (float)(far + 1), angle = (float)(far + 2) * FREQUENCIES[1];
  Bench *b = heads_open(0);
  (void)state;
  assert_true(position == (float)far);
  const double f = (double)FREQUENCIES[1], a0 = (float)far * FREQUENCIES[1];
  const double e = (double)far;
  const Turn plain = {{0}, 0, far, {{e, a0}, {e, a0}, {e + 2, angle}}};
  const Turn steps = {{.position_f32_steps = true}, 0, far + 1, {{e, a0}, {e, a0}, {e + 2, angle}}};
  const Turn exact = {{.angle_f64 = true}, 0, far, {{e, e * f}, {e, e * f}, {e + 2, (e + 2) * f}}};
  const Turn bf16 = {{.angle_bf16 = true}, 0, 257, STEPS(256, 258, 260, 0)};
  Turn rounded = bf16;
  for (int r = 0; r < ROWS; r++) rounded.angle[r][1] = to_bf16((float)(257 + r) * FREQUENCIES[1]);
  expect_turn(b, &plain);
  expect_turn(b, &steps);
  expect_turn(b, &exact);
  expect_turn(b, &rounded);
  Turn power = {{.frequency_f32 = true}, 0, 5, STEPS(5, 6, 7, 0)};
  for (int r = 0; r < ROWS; r++) power.angle[r][1] = (float)(5 + r) * powf(1e4F, -0.5F);
  b->model.kept.inv_freq = (const float[HALF]){3, 4}; /* are not read */
  expect_turn(b, &power);
  bench_close(b);
}

/* Runs the kernel on one drawn input and gives its output, to be compared with another way to compute the same. */
static void run_heads(Bench *b, const float *x, FaultNorm knobs, float *out) {
  b->call.call.inputs[0] = x;
  run_norm(b, &knobs);
  memcpy(out, b->got, (size_t)(ROWS * HEADS * HEAD_DIM) * sizeof *out);
}

static void knobs_of_heads(void **state) {
  enum { COUNT = ROWS * HEADS * HEAD_DIM };
  Bench *b = heads_open(5);
  float *x = tiny_draw("heads", COUNT), right[COUNT], other[COUNT];
  (void)state;
  run_heads(b, x, (FaultNorm){0}, right);
  /* ten heads are one group of eight and two more: the last two key heads of the block */
  run_heads(b, x, (FaultNorm){.skip_norm_heads = true}, other);
  for (int i = 0; i < COUNT; i++) assert_true(other[i] == (i / HEAD_DIM % HEADS < HEADS - 2 ? right[i] : x[i]));
  /* neighbours turn: the channels of a head that was spread are spread the same way */
  run_heads(b, x, (FaultNorm){.interleaved = true, .no_gain = true, .no_norm = true}, other);
  float spread[COUNT];
  for (int i = 0; i < COUNT; i++) spread[i] = x[i - i % HEAD_DIM + (i % HEAD_DIM % HALF) * 2 + i % HEAD_DIM / HALF];
  run_heads(b, spread, (FaultNorm){.no_gain = true, .no_norm = true}, right);
  for (int i = 0; i < COUNT; i++)
    assert_true(other[i - i % HEAD_DIM + (i % HEAD_DIM % HALF) * 2 + i % HEAD_DIM / HALF] == right[i]);
  /* one pair of two dimensions, the others only normed */
  run_heads(b, x, (FaultNorm){.rotate_dims = 2, .no_gain = true, .no_norm = true}, other);
  for (int i = 0; i < COUNT; i++) assert_true((other[i] == x[i]) == (i % HEAD_DIM >= 2));
  /* a rotation keeps a head's length: without gains its place does not matter */
  run_heads(b, x, (FaultNorm){.no_gain = true}, right);
  run_heads(b, x, (FaultNorm){.no_gain = true, .rotate_before_norm = true}, other);
  for (int i = 0; i < COUNT; i++) assert_true(fabsf(other[i] - right[i]) < 1e-6F);
  run_heads(b, x, (FaultNorm){.rotate_before_norm = true}, other);
  run_heads(b, x, (FaultNorm){0}, right);
  assert_true(fabsf(other[0] - right[0]) > 1e-3F);
  free(x);
  bench_close(b);
}

static void whole_rows_of_heads(void **state) {
  enum { COUNT = ROWS * HEADS * HEAD_DIM, WIDTH = HEADS * HEAD_DIM };
  Bench *b = heads_open(5);
  float *x = tiny_draw("heads", COUNT), got[COUNT];
  (void)state;
  run_heads(b, x, (FaultNorm){.whole_row = true, .no_rotate = true}, got);
  for (int r = 0; r < ROWS; r++) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += (double)x[r * WIDTH + i] * x[r * WIDTH + i];
    const double root = sqrt(sum / WIDTH + b->model.geometry.eps);
    for (int i = 0; i < WIDTH; i++)
      assert_close(got[r * WIDTH + i], x[r * WIDTH + i] / root * HEAD_GAINS[i % HEAD_DIM]);
  }
  free(x);
  bench_close(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_of_every_order),
      cmocka_unit_test(orders_differ),
      cmocka_unit_test(right_without_knobs),
      cmocka_unit_test(profiles_round_operands),
      cmocka_unit_test(f16_scales_large_rows),
      cmocka_unit_test(hooks_of_matrices),
      cmocka_unit_test(int8_knobs),
      cmocka_unit_test(int8_scale_of_16_bits),
      cmocka_unit_test(int8_overflow),
      cmocka_unit_test(int8_groups_of_zeros),
      cmocka_unit_test(roots_of_knobs),
      cmocka_unit_test(other_knobs_of_norms),
      cmocka_unit_test(rotation_of_knobs),
      cmocka_unit_test(roundings_of_angles),
      cmocka_unit_test(knobs_of_heads),
      cmocka_unit_test(whole_rows_of_heads),
  };
  return cmocka_run_group_tests_name("faulty_kernels_a", tests, NULL, NULL);
}
