/* Matrix products by a chosen order of the sum. */
#include "backends/faulty/kernel_matrix.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "model/storage.h"

enum { LANES = 16, BLOCK = 128, PARTS = 3 };

static float step(float sum, float a, float b, bool fused) { return fused ? fmaf(a, b, sum) : sum + a * b; }

static float sum_forward(const float *a, const float *b, int64_t count, bool fused) {
  float sum = 0;
  for (int64_t i = 0; i < count; i++) sum = step(sum, a[i], b[i], fused);
  return sum;
}

static float sum_backward(const float *a, const float *b, int64_t count, bool fused) {
  float sum = 0;
  for (int64_t i = count; i-- > 0;) sum = step(sum, a[i], b[i], fused);
  return sum;
}

static float sum_pairwise(const float *a, const float *b, int64_t count) {
  if (count <= 1) return count == 1 ? a[0] * b[0] : 0;
  const int64_t half = count / 2;
  return sum_pairwise(a, b, half) + sum_pairwise(a + half, b + half, count - half);
}

static float sum_lanes(const float *a, const float *b, int64_t count, bool fused) {
  float sum[LANES] = {0};
  for (int64_t i = 0; i < count; i++) sum[i % LANES] = step(sum[i % LANES], a[i], b[i], fused);
  for (int width = LANES / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; lane++) sum[lane] += sum[lane + width];
  return sum[0];
}

/* Pieces of `piece` terms, each in order, then added in order. */
static float sum_pieces(const float *a, const float *b, int64_t count, int64_t piece, bool fused) {
  float sum = 0;
  for (int64_t i = 0; i < count; i += piece)
    sum += sum_forward(a + i, b + i, count - i < piece ? count - i : piece, fused);
  return sum;
}

static float sum_f64(const float *a, const float *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)a[i] * b[i];
  return (float)sum;
}

float fault_sum(const float *a, const float *b, int64_t count, int order, bool fused) {
  switch (order) {
  case FAULT_ORDER_BACKWARD:
    return sum_backward(a, b, count, fused);
  case FAULT_ORDER_PAIRWISE:
    return sum_pairwise(a, b, count);
  case FAULT_ORDER_LANES:
    return sum_lanes(a, b, count, fused);
  case FAULT_ORDER_BLOCKED:
    return sum_pieces(a, b, count, BLOCK, fused);
  case FAULT_ORDER_SPLIT:
    return sum_pieces(a, b, count, (count + PARTS - 1) / PARTS, fused);
  case FAULT_ORDER_F64:
    return sum_f64(a, b, count);
  default:
    return sum_forward(a, b, count, fused);
  }
}

/* The largest power of two 2^k with absmax * 2^k <= 2^14; 1 when all are zero. */
static float scale_f16(const float *x, int64_t count) {
  float absmax = 0;
  for (int64_t i = 0; i < count; i++) absmax = fmaxf(absmax, fabsf(x[i]));
  if (absmax == 0) return 1;
  int exponent;
  const float fraction = frexpf(absmax, &exponent);
  const int power = 14 - (fraction == 0.5F ? exponent - 1 : exponent);
  return ldexpf(1, power < 127 ? power : 127);
}

static void round_all(float *x, int64_t count, int32_t profile) {
  for (int64_t i = 0; i < count; i++)
    x[i] = profile == DFLASH_PROFILE_BF16 ? dflash_bf16_value(dflash_bf16_round(x[i]))
                                          : dflash_f16_value(dflash_f16_round(x[i]));
}

/* Rounds all activations of the call; returns what sums are divided by. */
static float round_inputs(float *x, int64_t count, int32_t profile) {
  if (profile != DFLASH_PROFILE_F16 && profile != DFLASH_PROFILE_BF16) return 1;
  const float scale = profile == DFLASH_PROFILE_F16 ? scale_f16(x, count) : 1;
  for (int64_t i = 0; i < count; i++) x[i] *= scale;
  round_all(x, count, profile);
  return scale;
}

/* Codes of a quantised matrix are exact integers in f16, their scales stay as they are. */
static bool rounds_weights(const DflashTensor *tensor, int32_t profile) {
  const bool codes = tensor->storage == DFLASH_STORAGE_Q4TP || tensor->storage == DFLASH_STORAGE_Q8_2F;
  return profile == DFLASH_PROFILE_BF16 || (profile == DFLASH_PROFILE_F16 && !codes);
}

/* Draft row j reads block row j + 1. */
static int64_t first_input(const FaultCall *call) {
  const int32_t stage = call->call.stage;
  return stage == DFLASH_STAGE_HEAD_LOGITS || stage == DFLASH_STAGE_SELECTOR_HIDDEN ? 1 : 0;
}

static float *copy_inputs(FaultCall *call, const FaultMatrix *knobs, int64_t rows, int64_t cols) {
  float *x = fault_scratch(call, 0, rows * cols);
  if (x == NULL) return NULL;
  memcpy(x, call->call.inputs[0] + first_input(call) * cols, (size_t)(rows * cols) * sizeof *x);
  for (int64_t r = 0; knobs->input != NULL && r < rows; r++) knobs->input(call, r, x + r * cols, cols);
  return x;
}

static DflashStatus multiply(FaultCall *call, const FaultMatrix *knobs, const DflashTensor *tensor, float *x) {
  const int64_t rows = fault_rows(call), width = fault_width(call), cols = tensor->shape[1];
  float *w = fault_scratch(call, 1, cols);
  if (w == NULL) return DFLASH_OUT_OF_MEMORY;
  const float scale = round_inputs(x, rows * cols, knobs->profile);
  for (int64_t o = 0; o < width; o++) {
    fault_decode_row(tensor, o, w);
    if (knobs->weights != NULL) knobs->weights(call, o, w, cols);
    if (rounds_weights(tensor, knobs->profile)) round_all(w, cols, knobs->profile);
    for (int64_t r = 0; r < rows; r++) {
      const float *row = x + r * cols;
      const float sum =
          knobs->sum != NULL ? knobs->sum(call, o, w, row, cols) : fault_sum(w, row, cols, knobs->order, knobs->fused);
      call->call.output[r * width + o] = sum / scale;
    }
  }
  if (knobs->profile == DFLASH_PROFILE_BF16) round_all(call->call.output, rows * width, knobs->profile);
  return DFLASH_OK;
}

DflashStatus fault_kernel_matrix(FaultCall *call, const FaultMatrix *knobs) {
  const DflashTensor *tensor = fault_weight(call->model, call->call.stage, call->call.layer);
  if (tensor == NULL || tensor->data == NULL)
    return dflash_error_set(call->error, DFLASH_INTERNAL, "faulty: the matrix of stage %d is not kept",
                            (int)call->call.stage);
  float *x = copy_inputs(call, knobs, fault_rows(call), tensor->shape[1]);
  if (x == NULL) return DFLASH_OUT_OF_MEMORY;
  if (knobs->profile == DFLASH_PROFILE_I8 && tensor->storage == DFLASH_STORAGE_Q4TP)
    return fault_matrix_i8(call, knobs, tensor, x);
  return multiply(call, knobs, tensor, x);
}
