#include "compare/score.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "compare/compare.h"

double dflash_spacing(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t exponent = bits >> 23 & 0xff;
  if (exponent == 0) exponent = 1;
  uint64_t power = (exponent - 150 + 1023) << 52; /* 2^(exponent - 127 - 23) as an f64 */
  double spacing;
  memcpy(&spacing, &power, sizeof spacing);
  return spacing;
}

/* The smaller of the distances to the two neighbours: below a power of two they are half as far. */
static double nearest_spacing(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bool power = (bits & 0x7fffff) == 0 && (bits >> 23 & 0xff) > 1;
  return power ? 0.5 * dflash_spacing(x) : dflash_spacing(x);
}

static double floor_of(double golden, double sigma) {
  double floor = 0.5 * nearest_spacing((float)golden);
  return sigma > 0 ? floor + 0x1p-149 : floor;
}

double dflash_score(double got, double golden, double sigma) {
  double difference = fabs(got - golden);
  if (difference == 0) return 0;
  if (!(sigma >= 0) || isinf(sigma)) return INFINITY;
  return difference / (DFLASH_LAMBDA * sigma + floor_of(golden, sigma));
}

double dflash_score_lambda(double got, double golden, double sigma) {
  if (!(sigma > 0) || isinf(sigma)) return 0;
  double beyond = fabs(got - golden) - floor_of(golden, sigma);
  return beyond > 0 ? beyond / sigma : 0;
}
