/* Half-width floats and the ladder's exponential. */
#include <math.h>

#include "model/storage_layout.h"

static uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

float dflash_f16_value(uint16_t bits) { return dflash_f16_decode(bits); }

float dflash_bf16_value(uint16_t bits) { return dflash_bf16_decode(bits); }

/* Drops the low `shift` bits of a magnitude, nearest even. The carry may run into the exponent: that is right. */
static uint32_t round_shift(uint32_t magnitude, int shift) {
  uint32_t half = 1u << (shift - 1), odd = magnitude >> shift & 1;
  return (magnitude + half - 1 + odd) >> shift;
}

uint16_t dflash_f16_round(float value) {
  uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7c00); /* 2^16 and above */
  if (magnitude >= 0x38800000) return (uint16_t)(sign | (round_shift(magnitude, 13) - (112u << 10)));
  if (magnitude < 0x33000000) return (uint16_t)sign; /* below 2^-25, half of the smallest f16 */
  int exponent = (int)(magnitude >> 23);             /* 102 .. 112 */
  uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  return (uint16_t)(sign | round_shift(significand, 126 - exponent));
}

uint16_t dflash_bf16_round(float value) {
  uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits & 0x80000000) >> 16 | round_shift(bits & 0x7fffffff, 16));
}

/* f64 exp2 errs by less than one of its ulps, and no finite f16 has a power of two that close to the middle of two
 * f32 (a test walks all of them), so the second rounding is the only one that counts. */
float dflash_exp2_f32(float x) { return (float)exp2((double)x); }

void dflash_q4tp_ladder(uint16_t lo, uint16_t step, float rungs[DFLASH_Q4TP_RUNGS]) {
  float factor = dflash_exp2_f32(dflash_f16_value(step));
  rungs[0] = dflash_exp2_f32(dflash_f16_value(lo));
  for (int c = 1; c < DFLASH_Q4TP_RUNGS; c++) rungs[c] = rungs[c - 1] * factor;
}
