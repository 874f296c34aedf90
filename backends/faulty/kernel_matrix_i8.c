/* q4tp by int8 activations: sum over groups of dot(q, nibble - 8) * scale * s. */
#include <math.h>

#include "backends/faulty/kernel_matrix.h"
#include "model/storage.h"

static uint16_t u16_at(const uint8_t *data) { return (uint16_t)(data[0] | data[1] << 8); }

FaultQ4tp fault_q4tp(const DflashTensor *tensor, const void *data) {
  FaultQ4tp view = {.nibbles = data, .rows = tensor->shape[0], .groups = tensor->shape[1] / FAULT_Q4TP_GROUP};
  view.ladders = view.nibbles + view.rows * view.groups * (FAULT_Q4TP_GROUP / 2);
  view.codes = view.ladders + 4 * view.rows;
  view.code_bytes = (view.groups * 5 + 7) / 8;
  return view;
}

void fault_q4tp_ladder(const FaultQ4tp *view, int64_t row, float rungs[FAULT_Q4TP_RUNGS]) {
  dflash_q4tp_ladder(u16_at(view->ladders + 4 * row), u16_at(view->ladders + 4 * row + 2), rungs);
}

int fault_q4tp_code(const FaultQ4tp *view, int64_t row, int64_t group) {
  const uint8_t *codes = view->codes + row * view->code_bytes;
  const int64_t bit = group * 5;
  const int high = bit / 8 + 1 < view->code_bytes ? codes[bit / 8 + 1] : 0;
  return (codes[bit / 8] | high << 8) >> (bit % 8) & (FAULT_Q4TP_RUNGS - 1);
}

int fault_q4tp_value(const FaultQ4tp *view, int64_t row, int64_t index) {
  const int pair = view->nibbles[(row * view->groups * FAULT_Q4TP_GROUP + index) / 2];
  return (index % 2 == 0 ? pair & 15 : pair >> 4) - 8;
}

static float absmax(const float *x, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(x[i]));
  return largest;
}

static float round_code(float x, int rounding) {
  switch (rounding) {
  case FAULT_ROUND_AWAY:
    return roundf(x);
  case FAULT_ROUND_UP:
    return floorf(x + 0.5F);
  case FAULT_ROUND_ZERO:
    return truncf(x);
  default:
    return rintf(x);
  }
}

/* A code in int8: held at +-127, or its lower 8 bits. What is no number stays so. */
static float hold_code(float code, bool wrap) {
  if (isnan(code)) return code;
  return wrap ? code - 256 * floorf((code + 128) / 256) : fmaxf(-127, fminf(127, code));
}

static void quantise_group(const FaultInt8 *knobs, const float *x, float largest, float *q, float *scale) {
  const float levels = knobs->levels != 0 ? knobs->levels : 127;
  const bool zero = largest < 0x1p-100F && !knobs->no_floor;
  const float r = levels / largest;
  *scale = zero ? 0 : largest / levels;
  if (knobs->scale_f16) *scale = dflash_f16_value(dflash_f16_round(*scale));
  for (int i = 0; i < FAULT_Q4TP_GROUP; i++)
    q[i] = zero ? 0 : hold_code(round_code(x[i] * r, knobs->rounding), knobs->wrap);
}

/* Codes of a row, exact integers in f32, and a scale a group. */
static void quantise_row(const FaultInt8 *knobs, const float *x, int64_t groups, float *q, float *scales) {
  const float whole = absmax(x, groups * FAULT_Q4TP_GROUP);
  for (int64_t g = 0; g < groups; g++) {
    const float *from = x + (g + knobs->absmax_group) % groups * FAULT_Q4TP_GROUP;
    quantise_group(knobs, x + g * FAULT_Q4TP_GROUP, knobs->whole_row ? whole : absmax(from, FAULT_Q4TP_GROUP),
                   q + g * FAULT_Q4TP_GROUP, scales + g);
  }
}

/* dot(q, nibble - 8), an exact integer unless 16 bits are too few. */
static float dot_group(const FaultInt8 *knobs, const float *w, const float *q) {
  float sum = 0;
  for (int i = 0; i < FAULT_Q4TP_GROUP; i++) sum += w[i] * q[i];
  if (!knobs->int16_sum || isnan(sum)) return sum;
  return (float)(int16_t)(uint16_t)(16 * (int)sum) / 16;
}

/* A group's part of the sum before its weight scale. */
static float part_of_group(const FaultInt8 *knobs, const float *w, const float *q, float s) {
  const float dot = dot_group(knobs, w, q);
  if (!knobs->sum_unscaled && !knobs->sum_f16) return dot * s;
  float sum = 0;
  for (int i = 0; i < FAULT_Q4TP_GROUP; i++) sum += q[i];
  if (knobs->sum_unscaled) return (dot + 8 * sum) * s - 8 * sum;
  return (dot + 8 * sum) * s - 8 * dflash_f16_value(dflash_f16_round(sum * s));
}

/* The product of one weight row and one row of codes. */
static float dot_row(const FaultMatrix *knobs, int64_t groups, const float *w, const float *rungs, const float *q,
                     const float *scales, float *parts) {
  const FaultInt8 *int8 = &knobs->int8;
  for (int64_t g = 0; g < groups; g++)
    parts[g] = part_of_group(int8, w + g * FAULT_Q4TP_GROUP, q + g * FAULT_Q4TP_GROUP,
                             scales[(g + int8->scale_group) % groups]);
  return fault_sum(parts, rungs, groups, knobs->order, knobs->fused);
}

/* nibble - 8 of a row, and its groups' scales. */
static void take_weights(const FaultInt8 *knobs, const FaultQ4tp *view, int64_t row, float *w, float *rungs) {
  float ladder[FAULT_Q4TP_RUNGS];
  fault_q4tp_ladder(view, row, ladder);
  for (int64_t i = 0; i < view->groups * FAULT_Q4TP_GROUP; i++) w[i] = (float)fault_q4tp_value(view, row, i);
  for (int64_t g = 0; g < view->groups; g++)
    rungs[g] = ladder[fault_q4tp_code(view, row, (g + knobs->rung_group) % view->groups)];
}

DflashStatus fault_matrix_i8(FaultCall *call, const FaultMatrix *knobs, const DflashTensor *tensor, const float *x) {
  const FaultQ4tp view = fault_q4tp(tensor, tensor->data);
  const int64_t rows = fault_rows(call), width = fault_width(call), cols = tensor->shape[1];
  float *w = fault_scratch(call, 1, cols + 2 * view.groups);
  float *q = fault_scratch(call, 2, rows * cols);
  float *scales = fault_scratch(call, 3, rows * view.groups);
  if (w == NULL || q == NULL || scales == NULL) return DFLASH_OUT_OF_MEMORY;
  float *rungs = w + cols, *parts = rungs + view.groups;
  for (int64_t r = 0; r < rows; r++)
    quantise_row(&knobs->int8, x + r * cols, view.groups, q + r * cols, scales + r * view.groups);
  for (int64_t o = 0; o < width; o++) {
    take_weights(&knobs->int8, &view, o, w, rungs);
    for (int64_t r = 0; r < rows; r++)
      call->call.output[r * width + o] =
          dot_row(knobs, view.groups, w, rungs, q + r * cols, scales + r * view.groups, parts);
  }
  return DFLASH_OK;
}
