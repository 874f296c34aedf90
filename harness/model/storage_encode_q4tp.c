/* q4tp: a row's ladder spans the scales that its groups ask for; then every group takes the rung that leaves it the
 * least squared error. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage_encode.h"

/* A group whose scale is this far below the row's largest gains nothing from a rung of its own: letting it go
 * keeps the steps of the ladder below 0.4 octaves. */
static const double widest_range = 0x1p-12;

/* A little clipping often costs less than the coarser steps that avoid it: scales down to this share of the one that
 * clips nothing are tried. */
static const double least_share = 0.8;
enum { TRIALS = 3 };

/* The smallest scale at which -8 .. 7 reaches every value of the group. */
static double reaching_scale(const float *values) {
  double high = 0, low = 0;
  for (int i = 0; i < DFLASH_Q4TP_GROUP; i++) {
    double value = (double)values[i];
    if (value > high) high = value;
    if (value < low) low = value;
  }
  return fmax(high / 7, -low / 8);
}

/* log2 of a positive value by the series of atanh: unlike libm's it gives the same bits everywhere, and with them the
 * same encoding. |t| is at most 0.172, so what follows the last term is below 2^-60. */
static double portable_log2(double value) {
  int exponent;
  double mantissa = frexp(value, &exponent); /* 0.5 .. 1 */
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    exponent--;
  }
  double t = (mantissa - 1) / (mantissa + 1), sum = 0;
  for (int k = 23; k > 0; k -= 2) sum = sum * (t * t) + 1.0 / k;
  return exponent + 2.8853900817779268 * t * sum; /* 2 / ln 2 */
}

static void choose_ladder(const double *scales, int64_t groups, uint16_t *lo, uint16_t *step) {
  double largest = 0, smallest = INFINITY;
  for (int64_t g = 0; g < groups; g++) {
    if (scales[g] > largest) largest = scales[g];
    if (scales[g] > 0 && scales[g] < smallest) smallest = scales[g];
  }
  *lo = *step = 0;
  if (largest == 0) return;
  smallest = fmax(smallest * least_share, largest * widest_range);
  *lo = dflash_f16_round((float)fmax(portable_log2(smallest), -149)); /* the first rung never underflows to 0 */
  double distance = portable_log2(largest) - (double)dflash_f16_decode(*lo);
  if (distance > 0) *step = dflash_f16_round_up(distance / (DFLASH_Q4TP_RUNGS - 1));
}

static int first_rung_reaching(const float rungs[DFLASH_Q4TP_RUNGS], double scale) {
  int code = 0;
  while (code < DFLASH_Q4TP_RUNGS - 1 && (double)rungs[code] < scale) code++;
  return code;
}

/* Nearest code 0 .. 15 at a scale with this inverse. Clamped before the conversion, which makes it free of branches. */
static int quantise(double value, double inverse) {
  double code = value * inverse + 8.5;
  code = code > 0 ? code : 0;
  code = code < 15 ? code : 15;
  return (int)code;
}

/* Four sums, so that one addition need not wait for the one before it. */
static double squared_error(const float *values, double scale) {
  double sums[4] = {0}, inverse = 1 / scale;
  for (int i = 0; i < DFLASH_Q4TP_GROUP; i += 4)
    for (int k = 0; k < 4; k++) {
      double value = (double)values[i + k], difference = value - (quantise(value, inverse) - 8) * scale;
      sums[k] += difference * difference;
    }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* The rungs from the one that clips nothing down to least_share of it, at most TRIALS of them, evenly spread; the one
 * next below is always among them, for it may be the nearer one. */
static int choose_code(const float *values, double scale, const float rungs[DFLASH_Q4TP_RUNGS]) {
  int high = first_rung_reaching(rungs, scale), low = first_rung_reaching(rungs, scale * least_share);
  if (low == high && high > 0) low = high - 1;
  int stride = (high - low) / TRIALS + 1, best = high;
  double least = squared_error(values, (double)rungs[high]);
  for (int code = high - 1; code >= low; code -= stride) {
    double sum = squared_error(values, (double)rungs[code]);
    if (sum < least) least = sum, best = code;
  }
  return best;
}

static void write_group(const float *values, double scale, unsigned char nibbles[16]) {
  double inverse = 1 / scale;
  for (int k = 0; k < DFLASH_Q4TP_GROUP / 2; k++) {
    int low = quantise((double)values[2 * k], inverse), high = quantise((double)values[2 * k + 1], inverse);
    nibbles[k] = (unsigned char)(low | high << 4);
  }
}

static void write_code(unsigned char *codes, int64_t group, unsigned code) {
  unsigned char *at = codes + group * 5 / 8;
  int shift = (int)(group * 5 % 8);
  at[0] |= (unsigned char)(code << shift);
  if (shift > 3) at[1] |= (unsigned char)(code >> (8 - shift));
}

static void encode_row(const float *values, int64_t groups, double *scales, unsigned char *nibbles,
                       unsigned char *ladder, unsigned char *codes) {
  for (int64_t g = 0; g < groups; g++) scales[g] = reaching_scale(values + g * DFLASH_Q4TP_GROUP);
  uint16_t lo, step;
  float rungs[DFLASH_Q4TP_RUNGS];
  choose_ladder(scales, groups, &lo, &step);
  dflash_q4tp_ladder(lo, step, rungs);
  dflash_store_u16(ladder, lo);
  dflash_store_u16(ladder + 2, step);
  for (int64_t g = 0; g < groups; g++) {
    const float *group = values + g * DFLASH_Q4TP_GROUP;
    int code = scales[g] > 0 ? choose_code(group, scales[g], rungs) : 0;
    write_group(group, (double)rungs[code], nibbles + g * 16);
    write_code(codes, g, (unsigned)code);
  }
}

DflashStatus dflash_encode_q4tp(const float *values, int64_t rows, int64_t cols, unsigned char *out,
                                DflashError *error) {
  int64_t groups = cols / DFLASH_Q4TP_GROUP, code_bytes = (groups * 5 + 7) / 8;
  double *scales = dflash_alloc((size_t)groups, sizeof *scales);
  if (!scales) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to encode a q4tp row");
  unsigned char *ladders = out + rows * groups * 16, *codes = ladders + rows * 4;
  memset(codes, 0, (size_t)(rows * code_bytes));
  for (int64_t row = 0; row < rows; row++)
    encode_row(values + row * cols, groups, scales, out + row * groups * 16, ladders + row * 4,
               codes + row * code_bytes);
  free(scales);
  return DFLASH_OK;
}
