#include "values.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "fixture.h"

uint32_t test_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

float test_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

float *test_drawn(size_t count, const char *name) {
  const DflashRandom random = dflash_random_stream(1, name);
  float *x = dflash_alloc(count, sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < count; i++) {
    uint32_t words[4];
    double sum = 0;
    dflash_random_block(random, i, words);
    for (int j = 0; j < 4; j++) sum += words[j] * 0x1p-32 - 0.5;
    x[i] = (float)(sum * sqrt(3)); /* the variance of each is 1 / 12 */
  }
  return x;
}

float *test_poisoned(size_t count) {
  float *x = dflash_alloc(count, sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < count; i++) x[i] = test_float(DFLASH_POISON_BITS);
  return x;
}

double test_ulps(float got, double exact) {
  const float rounded = (float)exact;
  if (isnan(got) || isnan(exact)) return isnan(got) && isnan(exact) ? 0 : INFINITY;
  if (isinf(got) || isinf(rounded)) return got == rounded ? 0 : INFINITY;
  const double size = fabs(exact);
  if (size < 0x1p-126) return got == 0 ? 0 : fabs(got - exact) / 0x1p-149;
  return fabs(got - exact) / ldexp(1, ilogb(size) - 23);
}
