#include "compare/score.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "compare/compare.h"

/* 2^(exponent of |x| - bits), the exponent at least `least`. */
static double spacing(float x, int bits, int least) {
  uint32_t pattern;
  memcpy(&pattern, &x, sizeof pattern);
  int exponent = (int)(pattern >> 23 & 0xff) - 127;
  if (exponent < least) exponent = least;
  uint64_t power = (uint64_t)(exponent - bits + 1023) << 52;
  double result;
  memcpy(&result, &power, sizeof result);
  return result;
}

double dflash_spacing(float x) { return spacing(x, 23, -126); }

double dflash_storage_spacing(float x, int storage) {
  if (storage == DFLASH_STORED_F16) return spacing(x, 10, -14);
  return storage == DFLASH_STORED_BF16 ? spacing(x, 7, -126) : dflash_spacing(x);
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

double dflash_score_stored(double got, double golden, double sigma, int storage) {
  double difference = fabs(got - golden);
  if (storage == DFLASH_STORED_F32 || difference == 0) return dflash_score(got, golden, sigma);
  if (!(sigma >= 0) || isinf(sigma)) return INFINITY;
  double step = dflash_storage_spacing((float)golden, storage);
  return difference / (DFLASH_LAMBDA * sqrt(sigma * sigma + step * step / 12) + 0.5 * step);
}

double dflash_score_lambda(double got, double golden, double sigma) {
  if (!(sigma > 0) || isinf(sigma)) return 0;
  double beyond = fabs(got - golden) - floor_of(golden, sigma);
  return beyond > 0 ? beyond / sigma : 0;
}
