#include "test_oracle_half_ways.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/storage.h"

#define F16 DFLASH_PROFILE_F16
#define BF16 DFLASH_PROFILE_BF16

/* name, profile, {name, order, fused, folded, online, apart, slack}, weights, eager, stored, divided */
const HalfWay half_ways[] = {
    {"forward", F16, {"", F32_FORWARD, false, false, false, false, 0}, true, false, true, false},
    {"exact weights", F16, {"", F32_FORWARD, false, false, true, true, 0}, false, false, false, true},
    {"16 lanes, folded", F16, {"", F32_LANES, false, true, false, false, 0}, false, false, false, true},
    {"matrix unit", F16, {"", F32_MATRIX_UNIT, false, false, true, true, 0}, true, false, true, false},
    {"forward", BF16, {"", F32_FORWARD, false, false, false, false, 0}, true, false, false, false},
    {"exact weights", BF16, {"", F32_FORWARD, false, false, true, true, 0}, false, false, false, true},
    {"16 lanes, eager", BF16, {"", F32_LANES, false, false, false, false, 0}, true, true, false, true},
    {"matrix unit, eager", BF16, {"", F32_MATRIX_UNIT, false, false, true, true, 0}, true, true, false, false}};
const int half_way_count = sizeof half_ways / sizeof *half_ways;

static float to_half(const HalfWay *way, float value) {
  return way->profile == F16 ? dflash_f16_value(dflash_f16_round(value)) : dflash_bf16_value(dflash_bf16_round(value));
}

/* Between the operations of an eager engine. */
static float between(const HalfWay *way, float value) { return way->eager ? to_half(way, value) : value; }

static float output(const HalfWay *way, float value) { return way->profile == BF16 ? to_half(way, value) : value; }

static float weight(const HalfWay *way, float value) { return way->weights ? to_half(way, value) : value; }

static float *rounded(const HalfWay *way, const float *x, int64_t count) {
  float *out = dflash_alloc((size_t)count, sizeof *out);
  for (int64_t i = 0; i < count; i++) out[i] = to_half(way, x[i]);
  return out;
}

/* Rounds in place after a power of two that takes the largest to (2^13, 2^14]; returns the inverse. */
static float round_scaled(const HalfWay *way, float *x, int64_t count) {
  float max = 0, scale = 1;
  for (int64_t i = 0; i < count; i++) max = fmaxf(max, fabsf(x[i]));
  if (way->profile == F16 && max > 0) {
    while (max * scale > 0x1p14f) scale /= 2;
    while (max * scale * 2 <= 0x1p14f && scale < 0x1p126f) scale *= 2;
  }
  for (int64_t i = 0; i < count; i++) x[i] = to_half(way, x[i] * scale);
  return 1 / scale;
}

static void load_weights(const HalfWay *way, const DflashTensor *w, int64_t o, bool fold, float *row, float *scale) {
  int64_t cols = dflash_tensor_cols(w), rows = dflash_tensor_rows(w);
  const char *data = w->data;
  double exact[17408];
  uint16_t bits;
  dflash_tensor_row(w, o, 0, cols, exact);
  for (int64_t i = 0; i < cols; i++)
    row[i] = fold ? ((const int8_t *)data)[o * cols + i] : weight(way, (float)exact[i]);
  memcpy(&bits, data + (fold ? rows * cols + o * 2 : 0), sizeof bits);
  *scale = fold ? dflash_f16_value(bits) : 1;
}

static void fold_fields(const DflashTensor *w, float *x, int64_t count) {
  int64_t cols = dflash_tensor_cols(w);
  const char *fields = (const char *)w->data + dflash_tensor_rows(w) * (cols + 2);
  for (int64_t i = 0; i < count; i++) {
    uint16_t bits;
    memcpy(&bits, fields + i % cols * 2, sizeof bits);
    x[i] *= dflash_f16_value(bits);
  }
}

static void matrix(const HalfWay *way, const DflashOracleCall *call, float *out) {
  const DflashTensor *w = dflash_stage_weight(call->weights, call->stage, call->layer);
  int64_t cols = dflash_tensor_cols(w), rows = dflash_stage_rows(call->geometry, &call->sizes, call->stage);
  int64_t outputs = dflash_stage_width(call->geometry, &call->sizes, call->stage);
  int64_t skip = dflash_stage_row(call->stage)->rows == DFLASH_ROWS_DRAFT ? 1 : 0;
  bool fold = way->f32.folded && w->storage == DFLASH_STORAGE_Q8_2F;
  float *x = dflash_alloc((size_t)((rows + skip) * cols), sizeof *x), *row = dflash_alloc((size_t)cols, sizeof *row);
  memcpy(x, call->inputs[0], (size_t)((rows + skip) * cols) * sizeof *x);
  if (fold) fold_fields(w, x, (rows + skip) * cols);
  float inverse = round_scaled(way, x, (rows + skip) * cols);
  for (int64_t o = 0; o < outputs; o++) {
    float scale;
    load_weights(way, w, o, fold, row, &scale);
    for (int64_t r = 0; r < rows; r++)
      out[r * outputs + o] = output(way, f32_dot(&way->f32, row, x + (r + skip) * cols, cols) * inverse * scale);
  }
  free(x);
  free(row);
}

static void norm_row(const HalfWay *way, const DflashOracleCall *call, const float *x, const float *w, int64_t n,
                     float *out) {
  float *in = rounded(way, x, n), r = 1 / sqrtf(f32_dot(&way->f32, in, in, n) / (float)n + (float)call->geometry->eps);
  for (int64_t i = 0; i < n; i++) out[i] = between(way, in[i] * r) * weight(way, w[i]);
  free(in);
}

static void rotate(const HalfWay *way, const DflashOracleCall *call, int64_t position, float *x) {
  int64_t half = call->geometry->head_dim / 2;
  for (int64_t i = 0; i < half; i++) {
    float angle = (float)position * call->weights->inv_freq[i], lo = between(way, x[i]), hi = between(way, x[i + half]);
    float c = between(way, cosf(angle)), s = between(way, sinf(angle));
    x[i] = between(way, lo * c) - between(way, hi * s);
    x[i + half] = between(way, hi * c) + between(way, lo * s);
  }
}

static void norms(const HalfWay *way, const DflashOracleCall *call, int64_t heads, int64_t n, bool turn, float *out) {
  const float *w = dflash_stage_weight(call->weights, call->stage, call->layer)->data;
  int64_t rows = dflash_stage_rows(call->geometry, &call->sizes, call->stage);
  for (int64_t i = 0; i < rows * heads; i++) {
    norm_row(way, call, call->inputs[0] + i * n, w, n, out + i * n);
    if (turn) rotate(way, call, call->position + i / heads, out + i * n);
    for (int64_t k = 0; k < n; k++) out[i * n + k] = output(way, out[i * n + k]);
  }
}

static float conv_at(const HalfWay *way, const DflashOracleCall *call, const float *base, int side, int64_t r,
                     int64_t i) {
  const DflashGeometry *g = call->geometry;
  float sum = 0;
  for (int64_t o = 0; o < g->conv_kernel && o <= r; o++) {
    int64_t column = (side * g->conv_kernel + o) * dflash_geometry_groups(g) + i / g->conv_group;
    float b = weight(way, base[(side * g->conv_kernel + o) * g->hidden + i]);
    float d = to_half(way, call->inputs[side + 1][r * dflash_geometry_kernel_width(g) + column]);
    float x = to_half(way, call->inputs[side][(r - o) * g->hidden + i]);
    float term = way->f32.apart ? between(way, b * x) + between(way, d * x) : between(way, b + d) * x;
    sum = between(way, sum + between(way, term));
  }
  return sum;
}

static void conv(const HalfWay *way, const DflashOracleCall *call, float *out) {
  int side = call->stage == DFLASH_STAGE_ATTN_OUT || call->stage == DFLASH_STAGE_MLP_OUT;
  const float *base = dflash_stage_weight(call->weights, call->stage, call->layer)->data;
  int64_t hidden = call->geometry->hidden;
  for (int64_t at = 0; at < call->sizes.rows * hidden; at++) {
    float y = conv_at(way, call, base, side, at / hidden, at % hidden);
    out[at] = output(way, side ? to_half(way, call->inputs[0][at]) + y : y);
  }
}

static void act(const HalfWay *way, const DflashOracleCall *call, float *out) {
  for (int64_t i = 0; i < call->sizes.rows * call->geometry->intermediate; i++) {
    float gate = to_half(way, call->inputs[0][i]), up = to_half(way, call->inputs[1][i]);
    out[i] = output(way, between(way, gate / (1 + expf(-gate))) * up);
  }
}

/* One query over its keys, rows of n: scores, then p rounded for the product with v. */
typedef struct Head {
  int64_t keys, n;
  const float **v;
  float *scores;
} Head;

static void mix_plain(const HalfWay *way, Head *h, float *out) {
  float max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < h->keys; j++) max = fmaxf(max, h->scores[j]);
  for (int64_t j = 0; j < h->keys; j++) {
    float e = expf(h->scores[j] - max), part = to_half(way, e);
    h->scores[j] = way->divided ? e : part;
    sum += h->scores[j];
  }
  for (int64_t i = 0; i < h->n; i++) out[i] = 0;
  for (int64_t j = 0; j < h->keys; j++) {
    float p = way->divided ? to_half(way, h->scores[j] / sum) : h->scores[j];
    for (int64_t i = 0; i < h->n; i++) out[i] = fmaf(p, to_half(way, h->v[j][i]), out[i]);
  }
  for (int64_t i = 0; i < h->n; i++) out[i] = way->divided ? out[i] : out[i] / sum;
}

/* p is relative to the largest score so far, and the sum is of unrounded p. */
static void mix_online(const HalfWay *way, Head *h, float *out) {
  float max = -INFINITY, sum = 0;
  for (int64_t i = 0; i < h->n; i++) out[i] = 0;
  for (int64_t j = 0; j < h->keys; j++) {
    float above = fmaxf(max, h->scores[j]), old = expf(max - above), e = expf(h->scores[j] - above);
    max = above;
    sum = sum * old + e;
    for (int64_t i = 0; i < h->n; i++) out[i] = out[i] * old + to_half(way, e) * to_half(way, h->v[j][i]);
  }
  for (int64_t i = 0; i < h->n; i++) out[i] /= sum;
}

static void attend(const HalfWay *way, const DflashOracleCall *call, const float *q, int64_t item, float inverse,
                   Head *h) {
  const DflashGeometry *g = call->geometry;
  int64_t n = g->head_dim, width = g->kv_heads * n, held = call->sizes.context_len, all = held + call->sizes.rows;
  int64_t window = dflash_geometry_window(g, call->layer), own = call->position + item / g->heads;
  int64_t kv = item % g->heads / dflash_geometry_rep(g) * n;
  float scale = inverse / sqrtf((float)n), query[256];
  for (int64_t i = 0; i < n; i++) query[i] = way->eager ? to_half(way, q[item * n + i] * scale) : q[item * n + i];
  h->keys = 0;
  for (int64_t j = 0; j < all; j++) {
    int64_t position = call->context_first + j, offset = (j < held ? j : j - held) * width + kv;
    if (j < held && (position >= call->position || (window > 0 && position < own + 1 - window))) continue;
    float *k = rounded(way, call->inputs[j < held ? 3 : 1] + offset, n);
    h->v[h->keys] = call->inputs[j < held ? 4 : 2] + offset;
    h->scores[h->keys++] = f32_dot(&way->f32, query, k, n) * (way->eager ? 1 : scale);
    free(k);
  }
}

static void attention(const HalfWay *way, const DflashOracleCall *call, float *out) {
  const DflashGeometry *g = call->geometry;
  int64_t all = call->sizes.context_len + call->sizes.rows, count = call->sizes.rows * g->heads * g->head_dim;
  Head h = {0, g->head_dim, dflash_alloc((size_t)all, sizeof *h.v), dflash_alloc((size_t)all, sizeof *h.scores)};
  float *q = dflash_alloc((size_t)count, sizeof *q);
  memcpy(q, call->inputs[0], (size_t)count * sizeof *q);
  float inverse = round_scaled(way, q, count);
  for (int64_t item = 0; item < call->sizes.rows * g->heads; item++) {
    attend(way, call, q, item, inverse, &h);
    if (way->f32.online)
      mix_online(way, &h, out + item * h.n);
    else
      mix_plain(way, &h, out + item * h.n);
  }
  for (int64_t i = 0; i < count; i++) out[i] = output(way, out[i]);
  free(h.v);
  free(h.scores);
  free(q);
}

static void in_bf16(const HalfWay *way, const DflashOracleCall *call, float *out) {
  const DflashGeometry *g = call->geometry;
  switch (call->stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
  case DFLASH_STAGE_ATTN_NORM:
  case DFLASH_STAGE_MLP_NORM:
  case DFLASH_STAGE_FINAL_NORM:
    norms(way, call, 1, g->hidden, false, out);
    return;
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_K:
    norms(way, call, g->kv_heads, g->head_dim, dflash_geometry_rotary(g, call->layer), out);
    return;
  case DFLASH_STAGE_ATTN_Q:
    norms(way, call, g->heads, g->head_dim, dflash_geometry_rotary(g, call->layer), out);
    return;
  case DFLASH_STAGE_MLP_ACT:
    act(way, call, out);
    return;
  default:
    conv(way, call, out);
  }
}

static bool read_by_attention(int32_t stage) {
  return stage == DFLASH_STAGE_CONTEXT_K || stage == DFLASH_STAGE_CONTEXT_V_PROJ || stage == DFLASH_STAGE_ATTN_Q ||
         stage == DFLASH_STAGE_ATTN_K || stage == DFLASH_STAGE_ATTN_V_PROJ;
}

void half_stage(const HalfWay *way, const DflashOracleCall *call, float *out) {
  if (dflash_stage_is_matrix(call->stage))
    matrix(way, call, out);
  else if (call->stage == DFLASH_STAGE_ATTN_MIX)
    attention(way, call, out);
  else if (way->profile == BF16)
    in_bf16(way, call, out);
  else
    f32_stage(&way->f32, call, out);
  int64_t count = dflash_stage_rows(call->geometry, &call->sizes, call->stage) *
                  dflash_stage_width(call->geometry, &call->sizes, call->stage);
  for (int64_t i = 0; way->stored && read_by_attention(call->stage) && i < count; i++) out[i] = to_half(way, out[i]);
}

float half_score(const HalfWay *way, const DflashWeights *weights, float logit, const float *hidden, int64_t rank,
                 int32_t previous, int32_t candidate) {
  float first = output(way, logit), sum = way->f32.apart && !way->eager ? first : 0;
  for (int64_t i = 0; i < rank; i++) {
    float p = (float)dflash_tensor_at(&weights->predecessor, previous, i);
    float c = (float)dflash_tensor_at(&weights->successor, candidate, i);
    float h = output(way, hidden[i]);
    if (way->profile == BF16) p = weight(way, p), c = weight(way, c);
    sum = fmaf(between(way, p * h), c, sum);
  }
  return output(way, way->f32.apart && !way->eager ? sum : first + between(way, sum));
}
