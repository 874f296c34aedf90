#include "oracle_scale.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

double dflash_golden_rounding(double value) {
  if (!isfinite(value)) return NAN;
  int exponent = FLT_MIN_EXP;
  if (fabs(value) >= (double)FLT_MIN) frexp(value, &exponent);
  double spacing = ldexp(1, exponent - FLT_MANT_DIG);
  return value == 0 ? 0 : spacing * spacing / 12;
}

double dflash_power_scale(double max) {
  if (!isfinite(max) || max <= 0) return 1;
  int exponent;
  frexp(max, &exponent);
  return ldexp(1, -exponent);
}

float dflash_sigma(double variance) { return (float)sqrt(variance); }

void dflash_distinct_add(DflashDistinct *set, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits &= 0x7fffffff;
  if (bits == 0 || dflash_distinct_full(set)) return;
  uint32_t at = bits * 2654435761u >> 21;
  while (set->slots[at] != 0 && set->slots[at] != bits) at = (at + 1) % DFLASH_DISTINCT_SLOTS;
  if (set->slots[at] == 0) set->count++;
  set->slots[at] = bits;
}

double dflash_distinct_values(const DflashDistinct *set) {
  return dflash_distinct_full(set) ? INFINITY : (double)set->count;
}

int dflash_lowest_bit(double value) {
  if (value == 0 || !isfinite(value)) return INT_MAX;
  int exponent;
  int64_t mantissa = (int64_t)ldexp(frexp(value, &exponent), DBL_MANT_DIG);
  return exponent - DBL_MANT_DIG + __builtin_ctzll((unsigned long long)mantissa);
}

DflashRowFacts dflash_row_facts(const float *values, int64_t count, DflashDistinct *scratch) {
  DflashRowFacts facts = {0, 0};
  memset(scratch, 0, sizeof *scratch);
  for (int64_t i = 0; i < count; i++) {
    if (values[i] == 0) continue;
    facts.nonzero++;
    dflash_distinct_add(scratch, values[i]);
  }
  facts.distinct = dflash_distinct_values(scratch);
  return facts;
}

void dflash_exact_add(DflashExactSum *sum, double a, double b) {
  if (a == 0 || b == 0) return;
  int low_a = dflash_lowest_bit(a), low_b = dflash_lowest_bit(b);
  int lowest = low_a == INT_MAX || low_b == INT_MAX ? INT_MIN : low_a + low_b;
  if (lowest < sum->lowest) sum->lowest = lowest;
  sum->magnitude += fabs(a * b);
}

bool dflash_exact_holds(const DflashExactSum *sum) {
  if (sum->lowest == INT_MAX) return true;
  if (sum->lowest < FLT_MIN_EXP - 1 || sum->lowest > FLT_MAX_EXP - FLT_MANT_DIG - 1) return false;
  return sum->magnitude <= ldexp(1, sum->lowest + FLT_MANT_DIG);
}

double dflash_row_common(const float *values, const float *sigma, int64_t count) {
  double least = INFINITY;
  for (int64_t i = 0; i < count; i++) {
    if (values[i] == 0) continue;
    double relative = (double)sigma[i] / values[i];
    least = fmin(least, relative * relative);
  }
  return isfinite(least) ? least : 0;
}
