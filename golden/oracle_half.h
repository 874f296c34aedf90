/* Profiles f16 and bf16: the scales of arithmetic that rounds operands (and in bf16 every stage's output) to 16 bits.
 * Values stay exact. docs/error-scale.md derives what is added to the scale of f32 arithmetic. */
#ifndef DFLASH_GOLDEN_ORACLE_HALF_H
#define DFLASH_GOLDEN_ORACLE_HALF_H

#include <math.h>
#include <string.h>

#include "golden/oracle.h"
#include "oracle_attention.h"
#include "oracle_scale.h"

/* What stages read through DflashOracleCall.half while a profile of 16 bits is computed. */
typedef struct DflashHalf {
  int32_t profile;
  double unit;                       /* dflash_half_unit */
  bool output;                       /* the stage gives values of 16 bits */
  double shared;                     /* share of what varies in V that rounded weights bring, the same for every key */
  bool rounded[DFLASH_STAGE_INPUTS]; /* this pass's implementation rounds the input on entry */
  double shift[DFLASH_STAGE_INPUTS]; /* ... after it multiplied by this power of two */
} DflashHalf;

static inline bool dflash_half_profile(int32_t profile) {
  return profile == DFLASH_PROFILE_F16 || profile == DFLASH_PROFILE_BF16;
}

/* Runs `compute` so that alone and chain become the profile's. */
DflashStatus dflash_oracle_half(const DflashOracleCall *call,
                                DflashStatus (*compute)(const DflashOracleCall *call, DflashError *error),
                                DflashError *error);

/* Variance of one rounding to 16 bits of a value of size 1, in full: u^2 / 3. */
static inline double dflash_half_unit(int32_t profile) {
  return (profile == DFLASH_PROFILE_BF16 ? 0x1p-16 : 0x1p-22) / 3;
}

/* An f32 without its lowest bits, to the nearest, even ones in the middle. */
static inline float dflash_half_drop(float value, int count) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits += (1u << (count - 1)) - 1 + (bits >> count & 1);
  bits &= ~((1u << count) - 1);
  memcpy(&value, &bits, sizeof value);
  return value;
}
/* A finite value to the nearest number of the profile's format; past f16's range 11 bits are kept. Below 2^-14 f16 has
 * a fixed spacing of 2^-24, which is that of f32 between 1/2 and 1. */
static inline float dflash_half_round(int32_t profile, float value) {
  if (profile == DFLASH_PROFILE_BF16) return dflash_half_drop(value, 16);
  return fabsf(value) < 0x1p-14f ? (value + 0.75f) - 0.75f : dflash_half_drop(value, 13);
}
/* The same after a product with a power of two, which is taken back. */
static inline float dflash_half_round_shifted(int32_t profile, float value, double shift) {
  return (float)(dflash_half_round(profile, (float)(value * shift)) / shift);
}
/* Variance of that rounding of an operand, at most value^2; 0 for a number of the format. */
double dflash_half_operand(int32_t profile, float value, double shift);
/* The power of two by which f16 multiplies a call's activations; 1 in bf16. */
double dflash_half_shift(int32_t profile, const float *values, int64_t count);

/* dflash_oracle_put for a matrix product, whose scales are computed in one pass. rounded: of the input on entry. */
void dflash_half_put(const DflashOracleCall *call, int64_t at, double value, double own, double rounded,
                     double inherited, bool exact);

/* Variance of rounding a stage's output, where it is: spacing^2 / 12. */
double dflash_half_output(const DflashHalf *half, double value);
/* That rounding leaves the value as it is. */
bool dflash_half_kept(const DflashHalf *half, double value);
/* Of operations in between that an engine may run one by one, on values of 16 bits: 0 in f16. */
static inline double dflash_half_between(const DflashHalf *half, double squares) {
  return half && half->profile == DFLASH_PROFILE_BF16 ? half->unit * squares : 0;
}
/* Rounding of a weight that is held as f32, relative to its square. */
static inline double dflash_half_gain(const DflashHalf *half, float weight) {
  bool kept = !half || half->profile != DFLASH_PROFILE_BF16 || dflash_half_round(half->profile, weight) == weight;
  return kept ? 0 : half->unit;
}

/* What bf16 adds to a norm's output y, and to a rotated one a - b, each with its gain: the gains' rounding, the normed
 * value before its gain; before the rotation, cosine or sine, the product; the output. */
double dflash_half_norm(const DflashHalf *half, double y, float gain);
double dflash_half_rotated(const DflashHalf *half, double a, double b, float gain_a, float gain_b);

/* What bf16 brings to a score: open, add every term P * hp * C, close. All 0 in other profiles. */
typedef struct DflashHalfScore {
  DflashHalf half;
  double logit, hidden;  /* variances, of rounding the inputs on entry */
  double weights, known; /* of rounding both codebooks, and the error of it */
} DflashHalfScore;
DflashHalfScore dflash_half_score_open(int32_t profile);
void dflash_half_score_add(DflashHalfScore *score, double p, float hidden, double c);
/* Returns the score's own: codebooks, products and the sum rounded before the logit joins, the score. */
double dflash_half_score_close(DflashHalfScore *score, float logit, double dot, double squares);

/* Sums of such terms are exact in any order on values of the format, too. */
bool dflash_half_exact(const DflashHalf *half, const DflashExactSum *sum);

/* How a norm's r, 1 / sqrt(mean(x^2) + eps), shrinks when x varies: to 1 / sqrt(mean(x^2) + mean(sigma^2) + eps). 1
 * where there is no half or no sigma. */
double dflash_half_shrink(const DflashHalf *half, const float *sigma, int64_t n, double r);

/* Variance that a sum's terms bring to it, given the terms' squares. Errors as large as the terms are not independent:
 * below f16's numbers everything is lost at once. So the share that is lost also counts in the sum as a whole. */
static inline double dflash_half_lost(const DflashHalf *half, double inherited, double squares, double sum) {
  if (half->profile != DFLASH_PROFILE_F16) return inherited;
  double share = squares > 0 ? fmin(1, inherited / squares) : 0;
  return fmax(inherited, share * share * sum * sum);
}

/* Stretches score and query variances past the first order. */
void dflash_half_scores(DflashHeadScale *scale, const DflashHead *head);
/* Adds what 16 bits bring to attention's output, after everything else; takes the channel sums as its own. */
void dflash_half_attention(DflashHeadScale *scale, const DflashHead *head);

#endif
