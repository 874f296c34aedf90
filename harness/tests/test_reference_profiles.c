/* The reference backend's profiles i8, f16 and bf16: each stage against what block.md says of its operands. */
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
#include "model/storage.h"
#include "tiny_model.h"

static const DflashBackend *backend;
static DflashError error;

static int load_backend(void **state) {
  (void)state;
  backend = tiny_backend(DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so");
  return backend == NULL;
}

static float to_f16(double x) { return dflash_f16_value(dflash_f16_round((float)x)); }
static float to_bf16(double x) { return dflash_bf16_value(dflash_bf16_round((float)x)); }

/* ---- a stage on drawn inputs ---- */

typedef struct Row {
  int scope, rows, width, inputs[DFLASH_STAGE_INPUTS];
} Row;

#define ROW(id, name, scope, group, rows, width, a, b, c, d, e) \
  {DFLASH_SCOPE_##scope,                                        \
   DFLASH_ROWS_##rows,                                          \
   DFLASH_WIDTH_##width,                                        \
   {DFLASH_STAGE_##a, DFLASH_STAGE_##b, DFLASH_STAGE_##c, DFLASH_STAGE_##d, DFLASH_STAGE_##e}},
static const Row table[DFLASH_STAGE_COUNT] = {DFLASH_STAGES(ROW)};

enum { ROWS = 5, DRAFTS = 4, FIRST = 3, LEN = 40, ANCHOR = 45 };

static int64_t count_of(const DflashGeometry *g, int source) {
  const int64_t widths[] = {g->hidden,
                            g->heads * g->head_dim,
                            g->kv_heads * g->head_dim,
                            dflash_geometry_kernel_width(g),
                            g->intermediate,
                            g->vocab,
                            g->selector_rank,
                            g->selector_top};
  switch (source) {
  case DFLASH_STAGE_NONE:
    return 0;
  case DFLASH_STAGE_TAPS:
    return ROWS * dflash_geometry_tap_width(g);
  case DFLASH_STAGE_RESIDUAL:
  case DFLASH_STAGE_LAST:
    return ROWS * g->hidden;
  case DFLASH_STAGE_HELD_K:
  case DFLASH_STAGE_HELD_V:
    return LEN * g->kv_heads * g->head_dim;
  default:
    return (table[source].rows == DFLASH_ROWS_DRAFT ? DRAFTS : ROWS) * widths[table[source].width];
  }
}

typedef struct Inputs {
  float *at[DFLASH_STAGE_INPUTS];
  int64_t count[DFLASH_STAGE_INPUTS];
} Inputs;

static Inputs draw_inputs(const DflashGeometry *g, int stage) {
  Inputs inputs = {0};
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
    char name[16];
    snprintf(name, sizeof name, "input %d", i);
    inputs.count[i] = count_of(g, table[stage].inputs[i]);
    inputs.at[i] = tiny_draw(name, inputs.count[i]);
  }
  return inputs;
}

static void scale_input(Inputs *inputs, int index, int exponent) {
  for (int64_t i = 0; i < inputs->count[index]; i++) inputs->at[index][i] = ldexpf(inputs->at[index][i], exponent);
}

static void close_inputs(Inputs *inputs) {
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) free(inputs->at[i]);
}

/* The stage's value; of select the scores. free() releases. */
static float *run(DflashModel *model, const DflashGeometry *g, int stage, int64_t layer, const Inputs *inputs) {
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  float *out = calloc((size_t)count_of(g, stage), sizeof *out);
  assert_non_null(out);
  int32_t chosen[DRAFTS], plain[DRAFTS];
  DflashTokens tokens = {sizeof tokens, chosen, plain, NULL, out};
  DflashStageCall call = {.struct_size = sizeof call,
                          .stage = stage,
                          .layer = layer,
                          .rows = ROWS,
                          .position = ANCHOR,
                          .n_draft = DRAFTS,
                          .head_width = g->vocab,
                          .context_first = FIRST,
                          .context_len = LEN,
                          .output = out,
                          .tokens = &tokens};
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) call.inputs[i] = inputs->at[i];
  if (backend->stage(sequence, &call, &error) != DFLASH_OK) fail_msg("%s", error.message);
  backend->sequence_close(sequence);
  return out;
}

/* The matrix of a stage; NULL when it is no matrix product. */
static const DflashTensor *matrix_of(const TinyModel *tiny, int stage, int64_t layer) {
  const DflashLayerWeights *w = &tiny->layers[layer];
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_FC:
    return &tiny->weights.fc;
  case DFLASH_STAGE_HEAD_LOGITS:
    return &tiny->weights.head;
  case DFLASH_STAGE_SELECTOR_HIDDEN:
    return &tiny->weights.selector_hidden;
  case DFLASH_STAGE_CONTEXT_K_PROJ:
  case DFLASH_STAGE_ATTN_K_PROJ:
    return &w->k_proj;
  case DFLASH_STAGE_CONTEXT_V_PROJ:
  case DFLASH_STAGE_ATTN_V_PROJ:
    return &w->v_proj;
  case DFLASH_STAGE_ATTN_KERNEL:
    return &w->attention_conv_kernel;
  case DFLASH_STAGE_ATTN_Q_PROJ:
    return &w->q_proj;
  case DFLASH_STAGE_ATTN_O_PROJ:
    return &w->o_proj;
  case DFLASH_STAGE_MLP_KERNEL:
    return &w->mlp_conv_kernel;
  case DFLASH_STAGE_MLP_GATE:
    return &w->gate_proj;
  case DFLASH_STAGE_MLP_UP:
    return &w->up_proj;
  case DFLASH_STAGE_MLP_DOWN:
    return &w->down_proj;
  default:
    return NULL;
  }
}

typedef struct Pair {
  TinyModel tiny;
  DflashModel *exact, *model; /* of the same weights; model in the profile of the test */
} Pair;

static void pair_open(Pair *pair, int32_t profile) {
  tiny_open(&pair->tiny, tiny_geometry(), 1);
  pair->exact = tiny_model_open(backend, &pair->tiny, NULL);
  pair->model = tiny_model_open_as(backend, &pair->tiny, profile, NULL, NULL);
}

static void pair_close(Pair *pair) {
  backend->model_close(pair->model);
  backend->model_close(pair->exact);
  tiny_close(&pair->tiny);
}

typedef void (*Visit)(const Pair *pair, int stage, int64_t layer);

static void for_every_stage(const Pair *pair, Visit visit) {
  for (int stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    const int64_t layers = table[stage].scope == DFLASH_SCOPE_LAYER ? pair->tiny.geometry.layers : 1;
    for (int64_t layer = 0; layer < layers; layer++) visit(pair, stage, layer);
  }
}

static void check_equal(const float *got, const float *expected, int64_t count, int stage, int64_t layer) {
  for (int64_t i = 0; i < count; i++)
    if (got[i] != expected[i])
      fail_msg("stage %d of layer %d: element %d is %a, not %a", stage, (int)layer, (int)i, (double)got[i],
               (double)expected[i]);
}

static void check_exact(const Pair *pair, int stage, int64_t layer) {
  const DflashGeometry *g = &pair->tiny.geometry;
  Inputs inputs = draw_inputs(g, stage);
  float *got = run(pair->model, g, stage, layer, &inputs), *expected = run(pair->exact, g, stage, layer, &inputs);
  check_equal(got, expected, count_of(g, stage), stage, layer);
  free(got);
  free(expected);
  close_inputs(&inputs);
}

/* ---- matrices, naively ---- */

typedef struct Product {
  const DflashTensor *matrix;
  const float *x; /* [rows, columns] */
  int64_t rows, cols;
} Product;

/* One element, summed forward in f32. */
typedef float (*Element)(const Product *product, int64_t row, int64_t out);

static void check_matrix(const Pair *pair, int stage, int64_t layer, const Inputs *inputs, Element element) {
  const DflashGeometry *g = &pair->tiny.geometry;
  const bool draft = table[stage].rows == DFLASH_ROWS_DRAFT;
  const DflashTensor *matrix = matrix_of(&pair->tiny, stage, layer);
  const Product product = {matrix, inputs->at[0] + (draft ? g->hidden : 0), draft ? DRAFTS : ROWS, matrix->shape[1]};
  const int64_t outs = matrix->shape[0];
  float *got = run(pair->model, g, stage, layer, inputs);
  float *expected = calloc((size_t)(product.rows * outs), sizeof *expected);
  for (int64_t r = 0; r < product.rows; r++)
    for (int64_t o = 0; o < outs; o++) expected[r * outs + o] = element(&product, r, o);
  check_equal(got, expected, product.rows * outs, stage, layer);
  free(expected);
  free(got);
}

/* ---- i8 ---- */

static int round_half_even(double x) {
  const double low = floor(x), rest = x - low;
  return (int)low + (rest > 0.5 || (rest == 0.5 && fmod(low, 2) != 0));
}

static int nibble_of(const DflashTensor *matrix, int64_t row, int64_t col) {
  const int byte = ((const unsigned char *)matrix->data)[(row * matrix->shape[1] + col) / 2];
  return col % 2 ? byte >> 4 : byte & 15;
}

/* A group without any weight but zero has no scale that counts. */
static float scale_of(const DflashTensor *matrix, int64_t row, int64_t begin) {
  for (int64_t i = begin; i < begin + 32; i++)
    if (nibble_of(matrix, row, i) != 8) return (float)(tiny_at(matrix, row, i) / (nibble_of(matrix, row, i) - 8));
  return 1;
}

static float i8_element(const Product *product, int64_t row, int64_t out) {
  float sum = 0;
  for (int64_t begin = 0; begin < product->cols; begin += 32) {
    const float *x = product->x + row * product->cols + begin;
    double absmax = 0;
    for (int i = 0; i < 32; i++) absmax = fmax(absmax, fabs((double)x[i]));
    if (absmax < 0x1p-100) continue;
    const float step = (float)(absmax / 127), r = (float)(127 / absmax);
    int dot = 0;
    for (int i = 0; i < 32; i++)
      dot += round_half_even((float)((double)x[i] * r)) * (nibble_of(product->matrix, out, begin + i) - 8);
    const float scaled = (float)dot * scale_of(product->matrix, out, begin);
    sum += scaled * step;
  }
  return sum;
}

/* Rows: as drawn; all groups below 2^-100 but one at it; halves of integers beside 127, so that many are ties; groups
 * of very different size; large. */
static void shape_rows(Inputs *inputs, int64_t cols) {
  for (int64_t i = 0; i < cols; i++) {
    float *x = inputs->at[0] + i;
    x[cols] = ldexpf(x[cols], -100);
    x[2 * cols] = i % 32 == 5 ? 127 : rintf(x[2 * cols] * 250) / 2;
    x[3 * cols] = ldexpf(x[3 * cols], (int)(i / 32 % 5 * 20 - 40));
    x[4 * cols] *= 1e30f;
  }
  inputs->at[0][cols + 1] = -0x1p-100f;
}

static void check_i8(const Pair *pair, int stage, int64_t layer) {
  const DflashTensor *matrix = matrix_of(&pair->tiny, stage, layer);
  if (matrix == NULL || matrix->storage != DFLASH_STORAGE_Q4TP) {
    check_exact(pair, stage, layer);
    return;
  }
  Inputs inputs = draw_inputs(&pair->tiny.geometry, stage);
  shape_rows(&inputs, matrix->shape[1]);
  check_matrix(pair, stage, layer, &inputs, i8_element);
  close_inputs(&inputs);
}

static void test_i8_rounds_activations_of_q4tp_matrices(void **state) {
  (void)state;
  Pair pair;
  pair_open(&pair, DFLASH_PROFILE_I8);
  assert_int_equal(pair.tiny.weights.fc.storage, DFLASH_STORAGE_Q4TP);
  for_every_stage(&pair, check_i8);
  pair_close(&pair);
}

/* ---- f16 ---- */

static int f16_exponent(const float *x, int64_t count) {
  double absmax = 0;
  int exponent = -200;
  for (int64_t i = 0; i < count; i++) absmax = fmax(absmax, fabs((double)x[i]));
  while (ldexp(absmax, exponent + 1) <= 0x1p14) exponent++;
  return exponent;
}

static float f16_element(const Product *product, int64_t row, int64_t out) {
  const int exponent = f16_exponent(product->x, product->rows * product->cols);
  float sum = 0;
  for (int64_t i = 0; i < product->cols; i++) {
    const float x = to_f16(ldexp(product->x[row * product->cols + i], exponent));
    sum += to_f16(tiny_at(product->matrix, out, i)) * x;
  }
  return ldexpf(sum, -exponent);
}

/* As drawn; tiny and huge; an absmax that is a power of two; a row far below the others, where f16 is subnormal. */
static void check_f16(const Pair *pair, int stage, int64_t layer) {
  const DflashTensor *matrix = matrix_of(&pair->tiny, stage, layer);
  if (stage == DFLASH_STAGE_ATTN_MIX) return;
  if (matrix == NULL) {
    check_exact(pair, stage, layer);
    return;
  }
  const int exponents[] = {0, -110, 110};
  for (int i = 0; i < 3; i++) {
    Inputs inputs = draw_inputs(&pair->tiny.geometry, stage);
    if (i == 0) inputs.at[0][2 * matrix->shape[1]] = -4;
    for (int64_t c = 0; i == 0 && c < matrix->shape[1]; c++) inputs.at[0][3 * matrix->shape[1] + c] *= 0x1p-28f;
    scale_input(&inputs, 0, exponents[i]);
    check_matrix(pair, stage, layer, &inputs, f16_element);
    close_inputs(&inputs);
  }
}

static void test_f16_rounds_operands_of_matrices(void **state) {
  (void)state;
  Pair pair;
  pair_open(&pair, DFLASH_PROFILE_F16);
  for_every_stage(&pair, check_f16);
  pair_close(&pair);
}

/* ---- attention in f16 ---- */

enum { ROUND_Q = 1, ROUND_K = 2, ROUND_P = 4, ROUND_V = 8, ROUND_ALL = 15 };

typedef struct Attention {
  const DflashGeometry *geometry;
  const Inputs *inputs;
  int rounded; /* ROUND_* */
} Attention;

static double rounded(const Attention *a, int which, double x) { return a->rounded & which ? (double)to_f16(x) : x; }

/* Key j of the context, then of the block: k where `which` is 0, v where it is 1. */
static double key_at(const Attention *a, int which, int64_t j, int64_t kv_head, int64_t i) {
  const DflashGeometry *g = a->geometry;
  const float *from = a->inputs->at[j < LEN ? 3 + which : 1 + which];
  return rounded(a, which ? ROUND_V : ROUND_K,
                 from[((j < LEN ? j : j - LEN) * g->kv_heads + kv_head) * g->head_dim + i]);
}

static void naive_head(const Attention *a, int64_t row, int64_t head, double *out) {
  const DflashGeometry *g = a->geometry;
  const int64_t kv_head = head / dflash_geometry_rep(g), at = (row * g->heads + head) * g->head_dim;
  double scores[LEN + ROWS], largest = -INFINITY, total = 0;
  for (int64_t j = 0; j < LEN + ROWS; j++) {
    double dot = 0;
    for (int64_t i = 0; i < g->head_dim; i++)
      dot += rounded(a, ROUND_Q, a->inputs->at[0][at + i]) * key_at(a, 0, j, kv_head, i);
    scores[j] = dot / sqrt((double)g->head_dim);
    largest = fmax(largest, scores[j]);
  }
  for (int64_t i = 0; i < g->head_dim; i++) out[at + i] = 0;
  for (int64_t j = 0; j < LEN + ROWS; j++) {
    const double p = exp(scores[j] - largest);
    total += p;
    for (int64_t i = 0; i < g->head_dim; i++) out[at + i] += rounded(a, ROUND_P, p) * key_at(a, 1, j, kv_head, i);
  }
  for (int64_t i = 0; i < g->head_dim; i++) out[at + i] /= total;
}

static double *naive_attention(const DflashGeometry *g, const Inputs *inputs, int which) {
  const Attention a = {g, inputs, which};
  double *out = calloc((size_t)count_of(g, DFLASH_STAGE_ATTN_MIX), sizeof *out);
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t head = 0; head < g->heads; head++) naive_head(&a, row, head, out);
  return out;
}

static double distance(const double *a, const double *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sqrt(sum);
}

/* Far nearer to attention with all four rounded than that is to one with any of them left out. */
static void test_f16_rounds_operands_of_attention(void **state) {
  (void)state;
  Pair pair;
  pair_open(&pair, DFLASH_PROFILE_F16);
  const DflashGeometry *g = &pair.tiny.geometry;
  const int64_t count = count_of(g, DFLASH_STAGE_ATTN_MIX);
  Inputs inputs = draw_inputs(g, DFLASH_STAGE_ATTN_MIX);
  scale_input(&inputs, 0, 2);
  float *got = run(pair.model, g, DFLASH_STAGE_ATTN_MIX, 0, &inputs);
  double *wide = calloc((size_t)count, sizeof *wide), *all = naive_attention(g, &inputs, ROUND_ALL);
  for (int64_t i = 0; i < count; i++) wide[i] = got[i];
  for (int left_out = 1; left_out < ROUND_ALL; left_out *= 2) {
    double *other = naive_attention(g, &inputs, ROUND_ALL & ~left_out);
    assert_true(distance(other, all, count) > 0);
    assert_true(distance(wide, all, count) < distance(other, all, count) / 20);
    free(other);
  }
  free(all);
  free(wide);
  free(got);
  close_inputs(&inputs);
  pair_close(&pair);
}

/* Powers of two that f16 could not hold change nothing, and come back out of the mix. */
static void test_f16_scales_operands_of_attention(void **state) {
  (void)state;
  Pair pair;
  pair_open(&pair, DFLASH_PROFILE_F16);
  const DflashGeometry *g = &pair.tiny.geometry;
  Inputs inputs = draw_inputs(g, DFLASH_STAGE_ATTN_MIX);
  float *got = run(pair.model, g, DFLASH_STAGE_ATTN_MIX, 0, &inputs);
  const int exponents[] = {30, -30, 40, -30, 40}; /* q, the block's k and v, the held ones */
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) scale_input(&inputs, i, exponents[i]);
  float *scaled = run(pair.model, g, DFLASH_STAGE_ATTN_MIX, 0, &inputs);
  for (int64_t i = 0; i < count_of(g, DFLASH_STAGE_ATTN_MIX); i++) assert_true(scaled[i] == ldexpf(got[i], 40));
  free(scaled);
  free(got);
  close_inputs(&inputs);
  pair_close(&pair);
}

/* ---- bf16 ---- */

/* The same tensor as f32, every value rounded to bf16. */
static void round_tensor(DflashTensor *tensor) {
  if (tensor->rank == 2) {
    const int64_t rows = tensor->shape[0], cols = tensor->shape[1];
    float *values = dflash_alloc((size_t)(rows * cols), sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < rows * cols; i++) values[i] = (float)tiny_at(tensor, i / cols, i % cols);
    free((void *)tensor->data);
    tensor->data = values;
    tensor->storage = DFLASH_STORAGE_F32;
    tensor->bytes = (uint64_t)(rows * cols) * sizeof *values;
  }
  float *values = (float *)tensor->data;
  for (uint64_t i = 0; i < tensor->bytes / sizeof *values; i++) values[i] = to_bf16(values[i]);
}

static void round_weights(TinyModel *tiny) {
  DflashWeights *w = &tiny->weights;
  DflashTensor *shared[] = {&w->fc,          &w->hidden_norm, &w->norm, &w->selector_hidden,
                            &w->predecessor, &w->successor,   &w->head};
  for (size_t i = 0; i < sizeof shared / sizeof(DflashTensor *); i++) round_tensor(shared[i]);
  for (int64_t l = 0; l < tiny->geometry.layers; l++) {
    DflashTensor *own = (DflashTensor *)&tiny->layers[l];
    for (size_t i = 0; i < sizeof tiny->layers[l] / sizeof *own; i++) round_tensor(&own[i]);
  }
}

/* model on inputs as drawn is exact on rounded weights and rounded inputs, and then rounded; scores are not. */
static void check_bf16(const Pair *pair, int stage, int64_t layer) {
  const DflashGeometry *g = &pair->tiny.geometry;
  const int64_t count = count_of(g, stage);
  Inputs inputs = draw_inputs(g, stage);
  float *got = run(pair->model, g, stage, layer, &inputs);
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++)
    for (int64_t n = 0; n < inputs.count[i]; n++) inputs.at[i][n] = to_bf16(inputs.at[i][n]);
  float *expected = run(pair->exact, g, stage, layer, &inputs);
  for (int64_t i = 0; stage != DFLASH_STAGE_SELECT && i < count; i++) expected[i] = to_bf16(expected[i]);
  check_equal(got, expected, count, stage, layer);
  free(expected);
  free(got);
  close_inputs(&inputs);
}

static void test_bf16_rounds_at_stage_boundaries(void **state) {
  (void)state;
  Pair pair;
  pair_open(&pair, DFLASH_PROFILE_BF16);
  backend->model_close(pair.exact);
  round_weights(&pair.tiny);
  pair.exact = tiny_model_open(backend, &pair.tiny, NULL);
  for_every_stage(&pair, check_bf16);
  pair_close(&pair);
}

/* Embeddings and taps are rounded on entry: what a caller rounds before changes nothing. Logits and K, V are bf16. */
static void test_bf16_blocks_hold_bf16_values(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  const int64_t taps_count = LEN * dflash_geometry_tap_width(&g), kv = g.kv_heads * g.head_dim;
  DflashModel *model = tiny_model_as(backend, g, DFLASH_PROFILE_BF16, NULL, NULL);
  float *taps = tiny_draw("taps", taps_count), *k[2], *v[2];
  for (int round = 0; round < 2; round++) {
    DflashSequence *sequence = tiny_sequence(backend, model, 0);
    k[round] = tiny_draw("k", LEN * kv);
    v[round] = tiny_draw("v", LEN * kv);
    assert_int_equal(backend->push(sequence, 0, taps, LEN, &error), DFLASH_OK);
    assert_int_equal(backend->read_context(sequence, 1, 0, LEN, k[round], v[round], &error), DFLASH_OK);
    for (int64_t i = 0; i < LEN * kv; i++)
      assert_true(k[round][i] == to_bf16(k[round][i]) && v[round][i] == to_bf16(v[round][i]));
    TinyAnswer answer = tiny_block(backend, &g, sequence, LEN, "h", 0);
    for (int64_t i = 0; i < answer.n_draft * answer.head_width; i++)
      assert_true(answer.logits[i] == to_bf16(answer.logits[i]));
    for (int64_t i = 0; i < answer.n_draft * answer.rank; i++)
      assert_true(answer.selector[i] == to_bf16(answer.selector[i]));
    tiny_answer_close(&answer);
    backend->sequence_close(sequence);
    for (int64_t i = 0; i < taps_count; i++) taps[i] = to_bf16(taps[i]);
  }
  assert_memory_equal(k[0], k[1], (size_t)(LEN * kv) * sizeof(float));
  assert_memory_equal(v[0], v[1], (size_t)(LEN * kv) * sizeof(float));
  for (int round = 0; round < 2; round++) {
    free(k[round]);
    free(v[round]);
  }
  free(taps);
  backend->model_close(model);
}

/* ---- all ---- */

static void test_a_loaded_context_is_kept_bit_for_bit(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  const int64_t count = LEN * g.kv_heads * g.head_dim;
  float *k = tiny_draw("k", count), *v = tiny_draw("v", count);
  float *got_k = tiny_draw("x", count), *got_v = tiny_draw("y", count);
  const float *all_k[3] = {k, k, k}, *all_v[3] = {v, v, v};
  for (int32_t profile = 0; profile < DFLASH_PROFILE_COUNT; profile++) {
    DflashModel *model = tiny_model_as(backend, g, profile, NULL, NULL);
    DflashSequence *sequence = tiny_sequence(backend, model, 0);
    assert_int_equal(backend->load(sequence, FIRST, LEN, all_k, all_v, &error), DFLASH_OK);
    TinyAnswer answer = tiny_block(backend, &g, sequence, ANCHOR, "h", 0);
    assert_int_equal(backend->read_context(sequence, 2, FIRST, LEN, got_k, got_v, &error), DFLASH_OK);
    assert_memory_equal(got_k, k, (size_t)count * sizeof *k);
    assert_memory_equal(got_v, v, (size_t)count * sizeof *v);
    tiny_answer_close(&answer);
    backend->sequence_close(sequence);
    backend->model_close(model);
  }
  free(got_v);
  free(got_k);
  free(v);
  free(k);
}

/* What is not finite comes out as such, in its row and in no other; a row of zeros gives zeros. */
static void test_nothing_hides_what_is_not_finite(void **state) {
  (void)state;
  const float values[] = {NAN, INFINITY, -INFINITY};
  for (int32_t profile = 0; profile < DFLASH_PROFILE_COUNT; profile++)
    for (int n = 0; n < 3; n++) {
      Pair pair;
      pair_open(&pair, profile);
      const DflashGeometry *g = &pair.tiny.geometry;
      const int64_t width = dflash_geometry_tap_width(g);
      Inputs inputs = draw_inputs(g, DFLASH_STAGE_CONTEXT_FC);
      inputs.at[0][2 * width + 70] = values[n];
      memset(inputs.at[0] + 4 * width, 0, (size_t)width * sizeof(float));
      float *out = run(pair.model, g, DFLASH_STAGE_CONTEXT_FC, 0, &inputs);
      for (int64_t i = 0; i < ROWS * g->hidden; i++) {
        assert_int_equal(isfinite(out[i]) != 0, i / g->hidden != 2);
        if (i / g->hidden == 4) assert_true(out[i] == 0);
      }
      free(out);
      close_inputs(&inputs);
      pair_close(&pair);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_i8_rounds_activations_of_q4tp_matrices),
      cmocka_unit_test(test_f16_rounds_operands_of_matrices),
      cmocka_unit_test(test_f16_rounds_operands_of_attention),
      cmocka_unit_test(test_f16_scales_operands_of_attention),
      cmocka_unit_test(test_bf16_rounds_at_stage_boundaries),
      cmocka_unit_test(test_bf16_blocks_hold_bf16_values),
      cmocka_unit_test(test_a_loaded_context_is_kept_bit_for_bit),
      cmocka_unit_test(test_nothing_hides_what_is_not_finite),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
