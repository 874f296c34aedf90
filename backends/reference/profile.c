/* Where the arithmetic profiles differ: what is rounded, and when. Called by every profile; where one has nothing to
 * round, nothing happens. Profile i8 has its own matrix product (matrix_i8.c) and is exact elsewhere. */
#include "reference.h"

#include <math.h>
#include <string.h>

/* Nearest, ties to even, with the fraction's last `dropped` bits gone: a carry out of the fraction raises the
 * exponent, and past the largest number gives infinity. */
static float drop_bits(float x, int dropped) {
  if (isnan(x)) return x;
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits += (1u << (dropped - 1)) - 1 + (bits >> dropped & 1);
  bits &= ~((1u << dropped) - 1);
  memcpy(&x, &bits, sizeof x);
  return x;
}

float reference_bf16(float x) { return drop_bits(x, 16); }

/* Below 2^-14 f16 is subnormal, its step 2^-24: that of f32 from 0.5 to 1, where the sum is rounded to it. */
float reference_f16(float x) {
  if (fabsf(x) < 0x1p-14f) return copysignf((fabsf(x) + 0.5f) - 0.5f, x);
  const float rounded = drop_bits(x, 13);
  return fabsf(rounded) > 65504 ? copysignf(INFINITY, x) : rounded;
}

void reference_round_value(const DflashModel *model, float *values, int64_t count) {
  if (model->profile != DFLASH_PROFILE_BF16) return;
  for (int64_t i = 0; i < count; i++) values[i] = reference_bf16(values[i]);
}

void reference_round_operand(const DflashModel *model, float *values, int64_t count) {
  if (model->profile != DFLASH_PROFILE_F16) return;
  for (int64_t i = 0; i < count; i++) values[i] = reference_f16(values[i]);
}

/* k of the largest 2^k with absmax * 2^k <= 2^14. Nothing to scale, 0: all zero, or an infinity among them. */
static int scale_exponent(const float *values, int64_t count) {
  float absmax = 0;
  for (int64_t i = 0; i < count; i++) absmax = fmaxf(absmax, fabsf(values[i]));
  if (absmax == 0 || isinf(absmax)) return 0;
  int exponent; /* absmax = fraction * 2^exponent, fraction in [0.5, 1) */
  const float fraction = frexpf(absmax, &exponent);
  return (fraction == 0.5f ? 15 : 14) - exponent;
}

int reference_scale_operand(const DflashModel *model, float *values, int64_t count) {
  if (model->profile != DFLASH_PROFILE_F16) return 0;
  const int exponent = scale_exponent(values, count);
  for (int64_t i = 0; i < count; i++) values[i] = reference_f16(ldexpf(values[i], exponent));
  return exponent;
}

const float *reference_activations(DflashModel *model, const float *x, int64_t count, int *exponent) {
  *exponent = 0;
  if (model->profile != DFLASH_PROFILE_F16) return x;
  memcpy(model->scratch.inputs, x, (size_t)count * sizeof *x);
  *exponent = reference_scale_operand(model, model->scratch.inputs, count);
  return model->scratch.inputs;
}

/* The inputs of a call as a stage of profile bf16 reads them: copies in scratch. */
static void round_inputs(DflashModel *model, DflashStageCall *call) {
  const Sizes sizes = reference_call_sizes(call);
  float *place = model->scratch.inputs;
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
    int64_t count;
    if (!reference_stage_input(&model->geometry, &sizes, call->stage, i, &count) || count == 0) continue;
    memcpy(place, call->inputs[i], (size_t)count * sizeof *place);
    reference_round_value(model, place, count);
    call->inputs[i] = place;
    place += count;
  }
}

DflashStageCall reference_call_rounded(DflashModel *model, const DflashStageCall *call) {
  DflashStageCall rounded = *call;
  if (model->profile == DFLASH_PROFILE_BF16) round_inputs(model, &rounded);
  return rounded;
}

const char *reference_profile_text(int32_t profile) {
  switch (profile) {
  case DFLASH_PROFILE_I8:
    return "f32, int8 activations where weights are q4tp";
  case DFLASH_PROFILE_F16:
    return "f16 operands of matrices and attention, f32 sums";
  case DFLASH_PROFILE_BF16:
    return "bf16 at stage boundaries, f32 inside";
  default:
    return "f32";
  }
}
