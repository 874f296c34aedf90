#include "oracle_half.h"

#include <float.h>
#include <limits.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "oracle_internal.h"
#include "oracle_kernel.h"
#include "oracle_scale.h"

enum { BF16_BITS = 8, F16_BITS = 11, F16_MIN_EXP = -13 };

double dflash_half_operand(int32_t profile, float value, double shift) {
  if (dflash_half_round_shifted(profile, value, shift) == value) return 0;
  double square = (double)value * value, spacing = 0x1p-24 / shift;
  if (profile == DFLASH_PROFILE_F16 && fabs(value * shift) < 0x1p-14) return fmin(spacing * spacing / 12, square);
  return dflash_half_unit(profile) * square;
}

/* The largest power of two that leaves the largest magnitude at 2^14 or below. */
double dflash_half_shift(int32_t profile, const float *values, int64_t count) {
  float max = 0;
  if (profile != DFLASH_PROFILE_F16) return 1;
  for (int64_t i = 0; i < count; i++) max = fabsf(values[i]) > max ? fabsf(values[i]) : max;
  if (max == 0 || !isfinite(max)) return 1;
  int exponent;
  double mantissa = frexp((double)max, &exponent); /* in [1/2, 1): 1/2 is a power of two, one binade below */
  return ldexp(1, (int)fmin(126, 14 - exponent + (mantissa == 0.5)));
}

double dflash_half_output(const DflashHalf *half, double value) {
  if (!half || !half->output || value == 0) return 0;
  bool narrow = half->profile == DFLASH_PROFILE_BF16;
  int exponent, least = narrow ? FLT_MIN_EXP : F16_MIN_EXP;
  frexp(value, &exponent);
  double spacing = ldexp(1, (exponent < least ? least : exponent) - (narrow ? BF16_BITS : F16_BITS));
  return fmin(spacing * spacing / 12, value * value);
}

bool dflash_half_kept(const DflashHalf *half, double value) {
  return !half->output || dflash_half_round(half->profile, (float)value) == (float)value;
}

double dflash_half_norm(const DflashHalf *half, double y, float gain) {
  return (dflash_half_gain(half, gain) + dflash_half_between(half, 1)) * y * y + dflash_half_output(half, y);
}

double dflash_half_rotated(const DflashHalf *half, double a, double b, float gain_a, float gain_b) {
  double between = dflash_half_between(half, 4);
  double terms =
      (dflash_half_gain(half, gain_a) + between) * a * a + (dflash_half_gain(half, gain_b) + between) * b * b;
  return terms + dflash_half_output(half, a - b);
}

double dflash_half_shrink(const DflashHalf *half, const float *sigma, int64_t n, double r) {
  if (!half || !sigma) return 1;
  return 1 / sqrt(1 + r * r * (dflash_dot(sigma, sigma, n) / (double)n));
}

DflashStatus dflash_oracle_logits_rounded(int32_t profile, const float *logits, int64_t count, float **sigma,
                                          DflashError *error) {
  *sigma = NULL;
  if (profile != DFLASH_PROFILE_BF16) return DFLASH_OK;
  *sigma = dflash_alloc((size_t)count, sizeof **sigma);
  if (!*sigma) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "select: no memory for sigmas");
  for (int64_t i = 0; i < count; i++) (*sigma)[i] = dflash_sigma(dflash_half_operand(profile, logits[i], 1));
  return DFLASH_OK;
}

DflashHalfScore dflash_half_score_open(int32_t profile) {
  return (DflashHalfScore){.half = {.profile = profile, .unit = dflash_half_unit(profile), .output = true}};
}

void dflash_half_score_add(DflashHalfScore *score, double p, float hidden, double c) {
  int32_t profile = score->half.profile;
  if (profile != DFLASH_PROFILE_BF16) return;
  double rounded_p = dflash_half_round(profile, (float)p), rounded_c = dflash_half_round(profile, (float)c);
  double gains = dflash_half_gain(&score->half, (float)p) + dflash_half_gain(&score->half, (float)c);
  score->weights += gains * (p * hidden * c) * (p * hidden * c);
  score->known += (rounded_p * rounded_c - p * c) * hidden;
  score->hidden += p * c * (p * c) * dflash_half_operand(profile, hidden, 1);
}

double dflash_half_score_close(DflashHalfScore *score, float logit, double dot, double squares) {
  if (score->half.profile != DFLASH_PROFILE_BF16) return 0;
  score->logit = dflash_half_operand(score->half.profile, logit, 1);
  double weights = fmax(score->weights, score->known * score->known);
  return weights + dflash_half_between(&score->half, squares + dot * dot) +
         dflash_half_output(&score->half, (double)logit + dot);
}

bool dflash_half_exact(const DflashHalf *half, const DflashExactSum *sum) {
  if (!half || half->profile != DFLASH_PROFILE_BF16 || sum->lowest == INT_MAX) return true;
  return sum->magnitude <= ldexp(1, sum->lowest + BF16_BITS);
}

void dflash_half_put(const DflashOracleCall *call, int64_t at, double value, double own, double rounded,
                     double inherited, bool exact) {
  bool again = call->profile == DFLASH_PROFILE_F16 || !call->sigmas[0]; /* what varies in bf16 is bf16 already */
  DflashOracleCall alone = *call, chain = *call;
  alone.alone = NULL, alone.chain = call->alone;
  chain.alone = NULL;
  dflash_oracle_put(&alone, at, value, own, rounded, exact);
  dflash_oracle_put(&chain, at, value, own, inherited + (again ? rounded : 0), exact);
}

/* ---- passes ---- */

typedef struct Passes {
  const DflashOracleCall *call;
  DflashHalf half;
  float *sigmas[DFLASH_STAGE_INPUTS]; /* owned, where an input is rounded on entry */
} Passes;

static int64_t input_count(const DflashOracleCall *call, int i) {
  int32_t source = dflash_stage_row(call->stage)->inputs[i];
  return dflash_stage_rows(call->geometry, &call->sizes, source) *
         dflash_stage_width(call->geometry, &call->sizes, source);
}

/* Deviations of an exact input once it is rounded. */
static bool enter(Passes *p, int i) {
  int64_t count = input_count(p->call, i);
  const float *input = p->call->inputs[i];
  p->sigmas[i] = dflash_alloc((size_t)count, sizeof(float));
  for (int64_t k = 0; p->sigmas[i] && k < count; k++)
    p->sigmas[i][k] = dflash_sigma(dflash_half_operand(p->half.profile, input[k], p->half.shift[i]));
  return p->sigmas[i] != NULL;
}

/* What varies was rounded already by who made it. */
static bool rounds(const DflashOracleCall *call, const float *sigma) {
  return !sigma && (call->profile == DFLASH_PROFILE_BF16 || call->stage == DFLASH_STAGE_ATTN_MIX);
}

/* A stage's output is bf16, or in f16 an operand of attention, which may be held in f16. */
static bool gives_half(const DflashOracleCall *call) {
  switch (call->stage) {
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_CONTEXT_V_PROJ:
  case DFLASH_STAGE_ATTN_Q:
  case DFLASH_STAGE_ATTN_K:
  case DFLASH_STAGE_ATTN_V_PROJ:
    return true;
  default:
    return call->profile == DFLASH_PROFILE_BF16;
  }
}

static bool rounds_gains(const DflashOracleCall *call, const DflashHalf *half) {
  const float *gains = dflash_stage_weight(call->weights, DFLASH_STAGE_CONTEXT_NORM, 0)->data;
  bool rounded = false;
  for (int64_t i = 0; i < call->geometry->hidden; i++) rounded |= dflash_half_gain(half, gains[i]) > 0;
  return rounded;
}

/* The largest share of V's variance that rounding the weights on the way from taps brings: fc, the norm's gains,
 * v_proj. Gains alone are one of three roundings or more: the value before its gain, and fc's, the norm's and V's
 * outputs. */
static double weights_share(const DflashOracleCall *call, const DflashHalf *half) {
  int32_t format = call->profile == DFLASH_PROFILE_BF16 ? DFLASH_STORAGE_BF16 : DFLASH_STORAGE_F16;
  const DflashTensor *fc = dflash_stage_weight(call->weights, DFLASH_STAGE_CONTEXT_FC, 0);
  const DflashTensor *v = dflash_stage_weight(call->weights, DFLASH_STAGE_ATTN_V_PROJ, call->layer);
  if (fc->storage != format || v->storage != format) return 1.0 / 2;
  return rounds_gains(call, half) ? 1.0 / 3 : 0;
}

/* One scale: what the inputs bring counts in full, as it does in the chain. */
static DflashStatus run_pass(Passes *p, const float *const sigmas[], float *value, float *out,
                             DflashStatus (*compute)(const DflashOracleCall *call, DflashError *error),
                             DflashError *error) {
  DflashOracleCall pass = *p->call;
  bool open = true;
  pass.half = &p->half;
  pass.value = value, pass.alone = NULL, pass.chain = out;
  for (int i = 0; open && i < DFLASH_STAGE_INPUTS && pass.inputs[i]; i++) {
    const float *sigma = sigmas ? sigmas[i] : NULL;
    p->half.rounded[i] = rounds(p->call, sigma);
    p->half.shift[i] = 1;
    if (p->call->stage == DFLASH_STAGE_ATTN_MIX && i == 0)
      p->half.shift[i] = dflash_half_shift(p->call->profile, pass.inputs[i], input_count(p->call, i));
    if (p->half.rounded[i]) open = enter(p, i);
    pass.sigmas[i] = p->half.rounded[i] ? p->sigmas[i] : sigma;
  }
  DflashStatus status =
      open ? compute(&pass, error) : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "oracle: no memory for sigmas");
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
    free(p->sigmas[i]);
    p->sigmas[i] = NULL;
  }
  return status;
}

DflashStatus dflash_oracle_half(const DflashOracleCall *call,
                                DflashStatus (*compute)(const DflashOracleCall *call, DflashError *error),
                                DflashError *error) {
  Passes passes = {.call = call, .half = {.profile = call->profile, .unit = dflash_half_unit(call->profile)}};
  passes.half.output = gives_half(call);
  if (call->stage == DFLASH_STAGE_ATTN_MIX) passes.half.shared = weights_share(call, &passes.half);
  if (dflash_stage_is_matrix(call->stage) || (!call->alone && !call->chain)) { /* products keep both scales apart */
    DflashOracleCall copy = *call;
    copy.half = &passes.half;
    return compute(&copy, error);
  }
  DflashStatus status = DFLASH_OK;
  if (call->alone) status = run_pass(&passes, NULL, call->value, call->alone, compute, error);
  if (status == DFLASH_OK && call->chain)
    status = run_pass(&passes, call->sigmas, call->alone ? NULL : call->value, call->chain, compute, error);
  return status;
}
