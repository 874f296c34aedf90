#include "oracle_math.h"

#include <math.h>
#include <stdint.h>

/* Horner's rule over coefficients 1/k!, from the highest power down. */
double dflash_oracle_exp(double x) {
  static const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33, log2e = 0x1.71547652b82fep0;
  if (isnan(x)) return x;
  if (x > 709.8) return INFINITY;
  if (x < -745.2) return 0;
  double turns = floor(x * log2e + 0.5);
  double r = (x - turns * ln2_high) - turns * ln2_low; /* |r| <= ln2 / 2: the rest of the series is below 2^-57 */
  double sum = 0, factorial[15] = {1};
  for (int k = 1; k < 15; k++) factorial[k] = factorial[k - 1] * k;
  for (int k = 14; k >= 2; k--) sum = sum * r + 1 / factorial[k];
  return ldexp(1 + (r + r * r * sum), (int)turns);
}

/* log(m 2^e) = e ln2 + 2 artanh(s), s = (m - 1) / (m + 1), |s| <= 0.172: the rest of the series is below 2^-60. */
double dflash_oracle_log(double x) {
  static const double ln2 = 0x1.62e42fefa39efp-1, half_root = 0x1.6a09e667f3bcdp-1;
  int exponent;
  double m = frexp(x, &exponent);
  if (m < half_root) m *= 2, exponent--;
  double s = (m - 1) / (m + 1), square = s * s, sum = 0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
  return exponent * ln2 + (2 * s + 2 * s * sum);
}

/* Bits s + 1 .. s + 128 after the binary point of 2/pi; those before the point, for s < 0, are zeros. */
static unsigned __int128 two_over_pi(int s) {
  static const uint64_t bits[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561};
  unsigned __int128 top = (unsigned __int128)bits[0] << 64 | bits[1];
  if (s < 0) return top >> -s;
  unsigned __int128 window = 0;
  for (int i = 0; i < 128; i++) {
    int at = s + i;
    window = window << 1 | (bits[at / 64] >> (63 - at % 64) & 1);
  }
  return window;
}

/* angle = quadrant * pi/2 + the result, for finite angle above pi/4. With angle = m * 2^e, m of 24 bits, only the
 * bits of 2/pi from e - 2 on move the angle within a full turn: m times that window, modulo 2^128, is the angle in
 * units of 2^-126 quarter turns. */
static double reduce(float angle, int *quadrant) {
  int exponent;
  uint64_t m = (uint64_t)ldexpf(frexpf(angle, &exponent), 24);
  unsigned __int128 turn = m * two_over_pi(exponent - 24 - 2);
  unsigned __int128 nearest = (turn + ((unsigned __int128)1 << 125)) >> 126;
  *quadrant = (int)(nearest & 3);
  __int128 rest = (__int128)(turn - (nearest << 126));
  return ldexp((double)rest, -126) * 0x1.921fb54442d18p0;
}

/* |r| <= pi/4: the rests of the series are below 2^-60. */
static double sine_series(double r) {
  double square = r * r, sum = 0;
  for (int k = 19; k >= 3; k -= 2) sum = (1 - sum) * square / (double)(k * (k - 1));
  return r - r * sum;
}

static double cosine_series(double r) {
  double square = r * r, sum = 0;
  for (int k = 18; k >= 4; k -= 2) sum = (1 - sum) * square / (double)(k * (k - 1));
  return 1 - (1 - sum) * square / 2;
}

void dflash_oracle_sincos(float angle, double *sine, double *cosine) {
  *sine = *cosine = NAN;
  if (!isfinite(angle)) return;
  float size = fabsf(angle);
  int quadrant = 0;
  double r = size > 0.78f ? reduce(size, &quadrant) : (double)size;
  double s = sine_series(r), c = cosine_series(r);
  double sines[4] = {s, c, -s, -c}, cosines[4] = {c, -s, -c, s};
  *sine = angle < 0 ? -sines[quadrant] : sines[quadrant];
  *cosine = cosines[quadrant];
}
