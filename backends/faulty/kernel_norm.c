/* Norms, and the rotation of queries and keys that follows theirs. */
#include <math.h>
#include <string.h>

#include "backends/faulty/kernels.h"
#include "base/error.h"
#include "model/storage.h"

enum { LANES = 64, HEADS_A_GROUP = 8 };

/* What one stage norms: `count` vectors a row, each `width` wide. */
typedef struct Norm {
  const FaultCall *call;
  const FaultNorm *knobs;
  const float *gain;
  int64_t count, width; /* heads of a row and head_dim, or 1 and hidden */
  double eps;
} Norm;

static bool of_heads(int32_t stage) {
  return stage == DFLASH_STAGE_CONTEXT_K || stage == DFLASH_STAGE_ATTN_Q || stage == DFLASH_STAGE_ATTN_K;
}

static double sum_half(const float *x, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; i++) sum = dflash_f16_value(dflash_f16_round(sum + x[i] * x[i]));
  return sum;
}

/* 64 partial sums, of which the first `lanes` are added up. */
static double sum_some_lanes(const float *x, int64_t count, int64_t lanes) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++)
    if (i % LANES < lanes) sum += (double)x[i] * x[i];
  return sum;
}

static double sum_of_squares(const FaultNorm *knobs, const float *x, int64_t width) {
  const int64_t count = width > knobs->skip_tail ? width - knobs->skip_tail : 0;
  if (knobs->half_sum) return sum_half(x, count);
  if (knobs->lanes != 0) return sum_some_lanes(x, count, knobs->lanes);
  return fault_sum(x, x, count, knobs->order, knobs->fused);
}

static double mean_of(const float *x, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; i++) sum += x[i];
  return sum / (double)width;
}

/* 12 bits, rounded down. */
static double estimate(double value) {
  int exponent;
  const double fraction = frexp(value, &exponent);
  return ldexp(floor(fraction * 4096) / 4096, exponent);
}

/* The root before it is estimated. */
static double true_root_of(const Norm *norm, const float *x, int64_t width) {
  const FaultNorm *knobs = norm->knobs;
  const double eps = knobs->no_eps ? 0 : norm->eps;
  double sum = sum_of_squares(knobs, x, width);
  if (knobs->eps_on_sum) sum += eps;
  const int64_t divisor = knobs->pad != 0 ? (width + knobs->pad - 1) / knobs->pad * knobs->pad : width;
  const double mean = knobs->no_mean ? sum : sum / (double)divisor;
  if (knobs->eps_outside) return sqrt(mean) + eps;
  return sqrt(knobs->eps_on_sum ? mean : mean + eps);
}

/* What a vector is divided by. */
static double root_of(const Norm *norm, const float *x, int64_t width) {
  const double root = true_root_of(norm, x, width);
  return norm->knobs->root_estimate ? 1 / estimate(1 / root) : root;
}

static float gain_at(const Norm *norm, int64_t index) {
  if (norm->knobs->no_gain) return 1;
  if (norm->knobs->gain != NULL) return norm->knobs->gain(norm->call, norm->gain, index, norm->width);
  return norm->gain[index];
}

/* A vector by the given root. */
static void norm_vector(const Norm *norm, float *x, double root) {
  for (int64_t i = 0; i < norm->width; i++) x[i] = (float)(x[i] / root * gain_at(norm, i));
}

static void centre(float *x, int64_t width) {
  const double mean = mean_of(x, width);
  for (int64_t i = 0; i < width; i++) x[i] = (float)(x[i] - mean);
}

static void norm_once(const Norm *norm, float *x) {
  const FaultNorm *knobs = norm->knobs;
  if (knobs->centred) centre(x, norm->width);
  norm_vector(norm, x, knobs->no_norm ? 1 : root_of(norm, x, norm->width));
}

static void norm_row_whole(const Norm *norm, float *row) {
  const double root = root_of(norm, row, norm->count * norm->width);
  for (int64_t v = 0; v < norm->count; v++) norm_vector(norm, row + v * norm->width, root);
}

/* ---- rotation */

/* Key heads stand behind the query heads in the same launch. */
static bool skipped(const Norm *norm, int64_t head) {
  const DflashGeometry *g = &norm->call->model->geometry;
  const int64_t all = g->heads + g->kv_heads;
  if (!norm->knobs->skip_norm_heads || !of_heads(norm->call->call.stage)) return false;
  if (norm->call->call.stage == DFLASH_STAGE_CONTEXT_K) return false;
  const int64_t index = norm->call->call.stage == DFLASH_STAGE_ATTN_K ? g->heads + head : head;
  return index >= all - all % HEADS_A_GROUP;
}

static float position_of(const Norm *norm, int64_t row) {
  const FaultNorm *knobs = norm->knobs;
  const int64_t first = norm->call->call.position + knobs->position_add;
  if (knobs->position_first) return (float)first;
  if (knobs->position_f32_steps) return (float)first + (float)row;
  const float position = (float)(first + row);
  if (knobs->position_bf16) return dflash_bf16_value(dflash_bf16_round(position));
  if (knobs->position_f16) return dflash_f16_value(dflash_f16_round(position));
  return position;
}

static float frequency_of(const Norm *norm, int64_t pair) {
  const DflashModel *model = norm->call->model;
  if (!norm->knobs->frequency_f32) return model->kept.inv_freq[pair];
  return powf((float)model->geometry.rope_theta, (float)(-2 * pair) / (float)norm->width);
}

static double angle_of(const Norm *norm, int64_t row, int64_t head, int64_t pair) {
  const FaultNorm *knobs = norm->knobs;
  const float position = position_of(norm, row), frequency = frequency_of(norm, pair), angle = position * frequency;
  if (knobs->angle_f64) return (double)position * frequency;
  if (knobs->angle_bf16) return dflash_bf16_value(dflash_bf16_round(angle));
  return knobs->turn != NULL ? knobs->turn(norm->call, row, head, pair, angle) : angle;
}

static void turn_pair(const FaultNorm *knobs, float *lo, float *hi, double angle) {
  const float cosine = (float)cos(angle), sine = (float)(knobs->backwards ? -sin(angle) : sin(angle));
  const float x = *lo, y = *hi;
  *lo = knobs->fused ? fmaf(x, cosine, -(y * sine)) : x * cosine - y * sine;
  *hi = knobs->fused ? fmaf(y, cosine, x * sine) : y * cosine + x * sine;
}

static void rotate_vector(const Norm *norm, int64_t row, int64_t head, float *x) {
  const FaultNorm *knobs = norm->knobs;
  const int64_t dims = knobs->rotate_dims != 0 ? knobs->rotate_dims : norm->width, half = dims / 2;
  for (int64_t pair = 0; pair < half; pair++) {
    float *lo = x + (knobs->interleaved ? 2 * pair : pair);
    turn_pair(knobs, lo, knobs->interleaved ? lo + 1 : lo + half, angle_of(norm, row, head, pair));
  }
}

static void rotate_row(const Norm *norm, int64_t row, float *x) {
  for (int64_t head = 0; head < norm->count; head++)
    if (!skipped(norm, head)) rotate_vector(norm, row, head, x + head * norm->width);
}

static bool rotates(const Norm *norm) {
  const DflashStageCall *call = &norm->call->call;
  if (!of_heads(call->stage) || norm->knobs->no_rotate) return false;
  return norm->knobs->rotate_always || dflash_geometry_rotary(&norm->call->model->geometry, call->layer);
}

/* ---- a row */

static void norm_row(const Norm *norm, float *row) {
  for (int turn = 0; turn < (norm->knobs->twice ? 2 : 1); turn++) {
    if (norm->knobs->whole_row) {
      norm_row_whole(norm, row);
      continue;
    }
    for (int64_t v = 0; v < norm->count; v++)
      if (!skipped(norm, v)) norm_once(norm, row + v * norm->width);
  }
}

static void run_row(const Norm *norm, int64_t row, float *x) {
  const bool rotate = rotates(norm), first = norm->knobs->rotate_before_norm;
  if (rotate && first) rotate_row(norm, row, x);
  norm_row(norm, x);
  if (rotate && !first) rotate_row(norm, row, x);
}

DflashStatus fault_kernel_norm(FaultCall *call, const FaultNorm *knobs) {
  const DflashGeometry *g = &call->model->geometry;
  const DflashTensor *gain = fault_weight(call->model, call->call.stage, call->call.layer);
  if (gain == NULL || gain->data == NULL)
    return dflash_error_set(call->error, DFLASH_INTERNAL, "faulty: the gain of stage %d is not kept",
                            (int)call->call.stage);
  const bool heads = of_heads(call->call.stage);
  const int64_t rows = fault_rows(call), width = fault_width(call), vector = heads ? g->head_dim : width;
  const Norm norm = {call, knobs, gain->data, width / vector, vector, knobs->eps != 0 ? knobs->eps : g->eps};
  memcpy(call->call.output, call->call.inputs[0], (size_t)(rows * width) * sizeof(float));
  for (int64_t r = 0; r < rows; r++) run_row(&norm, r, call->call.output + r * width);
  return DFLASH_OK;
}
