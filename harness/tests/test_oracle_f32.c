#include "test_oracle_f32.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/storage.h"

const F32Way f32_ways[] = {{"forward", F32_FORWARD, false, false, false, false, 0},
                           {"forward fma", F32_FORWARD, true, false, false, true, 0},
                           {"backward folded", F32_BACKWARD, false, true, true, true, 0},
                           {"pairwise", F32_PAIRWISE, false, true, false, false, 0},
                           {"16 lanes fma", F32_LANES, true, false, true, false, 0},
                           {"blocks of 128", F32_BLOCKS, true, true, true, true, 0},
                           {"matrix unit", F32_MATRIX_UNIT, true, false, true, false, 0},
                           {"forward slack", F32_FORWARD, false, true, true, true, 1}};
const int f32_way_count = sizeof f32_ways / sizeof *f32_ways;

static float step(const F32Way *way, float a, float b, float sum) { return way->fused ? fmaf(a, b, sum) : sum + a * b; }

static float range(const F32Way *way, const float *a, const float *b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; i++) sum = step(way, a[i], b[i], sum);
  return sum;
}

static float pairwise(const F32Way *way, const float *a, const float *b, int64_t count) {
  if (count <= 4) return range(way, a, b, count);
  int64_t half = count / 2;
  return pairwise(way, a, b, half) + pairwise(way, a + half, b + half, count - half);
}

static float lanes(const F32Way *way, const float *a, const float *b, int64_t count) {
  float lane[16] = {0};
  for (int64_t i = 0; i < count; i++) lane[i % 16] = step(way, a[i], b[i], lane[i % 16]);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; i++) lane[i] += lane[i + half];
  return lane[0];
}

static float truncate(double value) {
  float rounded = (float)value;
  return fabs((double)rounded) > fabs(value) ? nextafterf(rounded, 0) : rounded;
}

/* Eight products at a time, exactly, into an accumulator that truncates. */
static float matrix_unit(const float *a, const float *b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; i += 8) {
    double step = sum;
    for (int64_t k = i; k < i + 8 && k < count; k++) step += (double)a[k] * b[k];
    sum = truncate(step);
  }
  return sum;
}

float f32_dot(const F32Way *way, const float *a, const float *b, int64_t count) {
  float sum = 0;
  switch (way->order) {
  case F32_PAIRWISE:
    return pairwise(way, a, b, count);
  case F32_LANES:
    return lanes(way, a, b, count);
  case F32_BACKWARD:
    for (int64_t i = count - 1; i >= 0; i--) sum = step(way, a[i], b[i], sum);
    return sum;
  case F32_BLOCKS:
    for (int64_t i = 0; i < count; i += 128) sum += range(way, a + i, b + i, count - i < 128 ? count - i : 128);
    return sum;
  case F32_MATRIX_UNIT:
    for (int64_t i = 0; i < count; i += 128) sum += matrix_unit(a + i, b + i, count - i < 128 ? count - i : 128);
    return sum;
  default:
    return range(way, a, b, count);
  }
}

/* A value off by up to `units` of its last place, by a hash of its bits: the same for the same argument. */
static float off(const F32Way *way, float value, double units) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits = (bits ^ bits >> 16) * 0x7feb352du;
  bits = (bits ^ bits >> 15) * 0x846ca68bu;
  double share = ldexp((double)(bits ^ bits >> 16), -31) - 1;
  double unit = (double)nextafterf(fabsf(value), INFINITY) - (double)fabsf(value);
  return way->slack > 0 ? (float)(value + way->slack * units * share * unit) : value;
}

/* exp(0) is 1 in every library. */
static float f32_exp(const F32Way *way, float x) { return x == 0 ? 1 : off(way, expf(x), 3.5); }
static float f32_rsqrt(const F32Way *way, float x) {
  return way->slack > 0 ? off(way, (float)(1 / sqrt((double)x)), 3.5) : 1 / sqrtf(x);
}

static void fold_row(const DflashTensor *w, int64_t o, float *row, float *scale) {
  const int8_t *q = w->data;
  int64_t rows = dflash_tensor_rows(w), cols = dflash_tensor_cols(w);
  const uint16_t *fields = (const uint16_t *)(const void *)((const char *)w->data + rows * cols);
  for (int64_t i = 0; i < cols; i++) row[i] = q[o * cols + i];
  *scale = dflash_f16_value(fields[o]);
}

static void matrix(const F32Way *way, const DflashOracleCall *call, float *out) {
  const DflashTensor *w = dflash_stage_weight(call->weights, call->stage, call->layer);
  int64_t cols = dflash_tensor_cols(w), rows = dflash_stage_rows(call->geometry, &call->sizes, call->stage);
  int64_t outputs = dflash_stage_width(call->geometry, &call->sizes, call->stage);
  const float *x = call->inputs[0] + (dflash_stage_row(call->stage)->rows == DFLASH_ROWS_DRAFT ? cols : 0);
  bool fold = way->folded && w->storage == DFLASH_STORAGE_Q8_2F && cols % 2 == 0;
  float *row = dflash_alloc((size_t)cols, sizeof *row), *folded = dflash_alloc((size_t)(rows * cols), sizeof *folded);
  double *exact = dflash_alloc((size_t)cols, sizeof *exact);
  memcpy(folded, x, (size_t)(rows * cols) * sizeof *folded);
  if (fold) {
    const char *fields = (const char *)w->data + dflash_tensor_rows(w) * (cols + 2);
    for (int64_t i = 0; i < rows * cols; i++)
      folded[i] *= dflash_f16_value(((const uint16_t *)(const void *)fields)[i % cols]);
  }
  for (int64_t o = 0; o < outputs; o++) {
    float scale = 1;
    dflash_tensor_row(w, o, 0, cols, exact);
    for (int64_t i = 0; i < cols; i++) row[i] = (float)exact[i];
    if (fold) fold_row(w, o, row, &scale);
    for (int64_t r = 0; r < rows; r++) out[r * outputs + o] = scale * f32_dot(way, row, folded + r * cols, cols);
  }
  free(row);
  free(folded);
  free(exact);
}

static void norm_row(const F32Way *way, const DflashOracleCall *call, const float *x, const float *w, int64_t n,
                     float *out) {
  float r = f32_rsqrt(way, f32_dot(way, x, x, n) / (float)n + (float)call->geometry->eps);
  for (int64_t i = 0; i < n; i++) out[i] = way->apart ? x[i] * (r * w[i]) : x[i] * r * w[i];
}

static void norm(const F32Way *way, const DflashOracleCall *call, float *out) {
  const float *w = dflash_stage_weight(call->weights, call->stage, call->layer)->data;
  int64_t n = call->geometry->hidden, rows = dflash_stage_rows(call->geometry, &call->sizes, call->stage);
  for (int64_t r = 0; r < rows; r++) norm_row(way, call, call->inputs[0] + r * n, w, n, out + r * n);
}

static void rotate(const F32Way *way, const DflashOracleCall *call, int64_t position, float *x) {
  int64_t half = call->geometry->head_dim / 2;
  for (int64_t i = 0; i < half; i++) {
    float angle = (float)position * call->weights->inv_freq[i], lo = x[i], hi = x[i + half];
    float c = off(way, cosf(angle), 1.5), s = off(way, sinf(angle), 1.5);
    x[i] = way->fused ? fmaf(lo, c, -(hi * s)) : lo * c - hi * s;
    x[i + half] = way->fused ? fmaf(hi, c, lo * s) : hi * c + lo * s;
  }
}

static void head_norm(const F32Way *way, const DflashOracleCall *call, float *out) {
  const DflashGeometry *g = call->geometry;
  const float *w = dflash_stage_weight(call->weights, call->stage, call->layer)->data;
  int64_t n = g->head_dim, heads = call->stage == DFLASH_STAGE_ATTN_Q ? g->heads : g->kv_heads;
  int64_t rows = dflash_stage_rows(g, &call->sizes, call->stage);
  for (int64_t i = 0; i < rows * heads; i++) {
    norm_row(way, call, call->inputs[0] + i * n, w, n, out + i * n);
    if (dflash_geometry_rotary(g, call->layer)) rotate(way, call, call->position + i / heads, out + i * n);
  }
}

static float conv_at(const F32Way *way, const DflashOracleCall *call, const float *base, const float *x, const float *d,
                     int side, int64_t r, int64_t i, float sum) {
  const DflashGeometry *g = call->geometry;
  for (int64_t o = 0; o < g->conv_kernel && o <= r; o++) {
    int64_t column = (side * g->conv_kernel + o) * dflash_geometry_groups(g) + i / g->conv_group;
    float b = base[(side * g->conv_kernel + o) * g->hidden + i];
    float dynamic = d[r * dflash_geometry_kernel_width(g) + column], value = x[(r - o) * g->hidden + i];
    if (way->apart)
      sum = step(way, dynamic, value, step(way, b, value, sum));
    else
      sum = step(way, b + dynamic, value, sum);
  }
  return sum;
}

static void conv(const F32Way *way, const DflashOracleCall *call, float *out) {
  const DflashGeometry *g = call->geometry;
  int side = call->stage == DFLASH_STAGE_ATTN_OUT || call->stage == DFLASH_STAGE_MLP_OUT;
  const float *base = dflash_stage_weight(call->weights, call->stage, call->layer)->data;
  for (int64_t at = 0; at < call->sizes.rows * g->hidden; at++) {
    float start = side && way->apart ? call->inputs[0][at] : 0;
    float y = conv_at(way, call, base, call->inputs[side], call->inputs[side + 1], side, at / g->hidden, at % g->hidden,
                      start);
    out[at] = side && !way->apart ? call->inputs[0][at] + y : y;
  }
}

static void act(const F32Way *way, const DflashOracleCall *call, float *out) {
  for (int64_t i = 0; i < call->sizes.rows * call->geometry->intermediate; i++) {
    float gate = call->inputs[0][i], up = call->inputs[1][i], e = f32_exp(way, -gate);
    out[i] = way->apart ? gate / (1 + e) * up : gate * (1 / (1 + e)) * up;
  }
}

/* Running softmax over keys begin .. end: maximum, sum and mix so far. */
typedef struct Running {
  float max, sum, mix[256];
} Running;

static void run_keys(const F32Way *way, const float *scores, const float *const *v, int64_t n, int64_t begin,
                     int64_t end, Running *s) {
  *s = (Running){.max = -INFINITY};
  for (int64_t j = begin; j < end; j++) {
    float max = fmaxf(s->max, scores[j]), old = f32_exp(way, s->max - max), p = f32_exp(way, scores[j] - max);
    s->max = max;
    s->sum = step(way, s->sum, old, p);
    for (int64_t i = 0; i < n; i++) s->mix[i] = step(way, p, v[j][i], s->mix[i] * old);
  }
}

static void merge(const F32Way *way, Running *a, const Running *b, int64_t n) {
  float max = fmaxf(a->max, b->max), left = f32_exp(way, a->max - max), right = f32_exp(way, b->max - max);
  a->max = max;
  a->sum = a->sum * left + b->sum * right;
  for (int64_t i = 0; i < n; i++) a->mix[i] = a->mix[i] * left + b->mix[i] * right;
}

static void mix_online(const F32Way *way, const float *scores, const float *const *v, int64_t keys, int64_t n,
                       float *out) {
  Running whole, part;
  run_keys(way, scores, v, n, 0, (keys + 2) / 3, &whole);
  for (int split = 1; split < 3; split++) {
    int64_t begin = (keys + 2) / 3 * split, end = (keys + 2) / 3 * (split + 1);
    if (begin >= keys) break;
    run_keys(way, scores, v, n, begin, end < keys ? end : keys, &part);
    merge(way, &whole, &part, n);
  }
  for (int64_t i = 0; i < n; i++) out[i] = whole.mix[i] / whole.sum;
}

static void mix_plain(const F32Way *way, float *scores, const float *const *v, int64_t keys, int64_t n, float *out) {
  float max = -INFINITY, *column = dflash_alloc((size_t)keys, 2 * sizeof *column), *ones = column + keys;
  for (int64_t j = 0; j < keys; j++) max = fmaxf(max, scores[j]);
  for (int64_t j = 0; j < keys; j++) scores[j] = f32_exp(way, scores[j] - max), ones[j] = 1;
  float inverse = 1 / f32_dot(way, scores, ones, keys);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < keys; j++) column[j] = v[j][i];
    out[i] = f32_dot(way, scores, column, keys) * inverse;
  }
  free(column);
}

static void attention(const F32Way *way, const DflashOracleCall *call, float *out) {
  const DflashGeometry *g = call->geometry;
  int64_t n = g->head_dim, width = g->kv_heads * n, all = call->sizes.context_len + call->sizes.rows;
  int64_t window = dflash_geometry_window(g, call->layer);
  const float **v = dflash_alloc((size_t)all, sizeof *v);
  float *scores = dflash_alloc((size_t)all, sizeof *scores), scaled[256], scale = 1 / sqrtf((float)n);
  for (int64_t item = 0; item < call->sizes.rows * g->heads; item++) {
    int64_t kv = item % g->heads / dflash_geometry_rep(g) * n, keys = 0;
    for (int64_t i = 0; i < n; i++) scaled[i] = call->inputs[0][item * n + i] * (way->apart ? scale : 1);
    for (int64_t j = 0; j < all; j++) {
      bool held = j < call->sizes.context_len;
      int64_t position = call->context_first + j, own = call->position + item / g->heads;
      if (held && (position >= call->position || (window > 0 && position < own + 1 - window))) continue;
      int64_t offset = (held ? j : j - call->sizes.context_len) * width + kv;
      v[keys] = call->inputs[held ? 4 : 2] + offset;
      scores[keys++] = f32_dot(way, scaled, call->inputs[held ? 3 : 1] + offset, n) * (way->apart ? 1 : scale);
    }
    if (way->online)
      mix_online(way, scores, v, keys, n, out + item * n);
    else
      mix_plain(way, scores, v, keys, n, out + item * n);
  }
  free(v);
  free(scores);
}

void f32_stage(const F32Way *way, const DflashOracleCall *call, float *out) {
  switch (call->stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
  case DFLASH_STAGE_ATTN_NORM:
  case DFLASH_STAGE_MLP_NORM:
  case DFLASH_STAGE_FINAL_NORM:
    norm(way, call, out);
    return;
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_Q:
  case DFLASH_STAGE_ATTN_K:
    head_norm(way, call, out);
    return;
  case DFLASH_STAGE_ATTN_CONV_IN:
  case DFLASH_STAGE_ATTN_OUT:
  case DFLASH_STAGE_MLP_CONV_IN:
  case DFLASH_STAGE_MLP_OUT:
    conv(way, call, out);
    return;
  case DFLASH_STAGE_ATTN_MIX:
    attention(way, call, out);
    return;
  case DFLASH_STAGE_MLP_ACT:
    act(way, call, out);
    return;
  default:
    matrix(way, call, out);
  }
}
