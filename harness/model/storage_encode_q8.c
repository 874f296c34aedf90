/* q8_2f: column fields follow the columns' norms relative to their rows', so that an outlying column does not cost
 * the others their bits; then each row takes the smallest scale that clips nothing. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage_encode.h"

/* Fields lie in 2^-10 .. 1 times a common power of two, which is at least 2^-4: normal f16 all of them. */
static const double smallest_field = 0x1p-10;
enum { LEAST_EXPONENT = -4, LARGEST_EXPONENT = 15 };

static double largest_magnitude(const float *values, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)values[i]));
  return largest;
}

static double mean_magnitude(const float *values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += fabs((double)values[i]);
  return sum / (double)count;
}

/* fields[i] becomes the column's norm over the largest such norm, every row counted relative to its mean magnitude:
 * unlike the row's norm or maximum, one outlying column hardly moves that. */
static void relative_fields(const float *values, int64_t rows, int64_t cols, double *fields) {
  for (int64_t row = 0; row < rows; row++) {
    const float *line = values + row * cols;
    double mean = mean_magnitude(line, cols), inverse = mean > 0 ? 1 / mean : 0;
    for (int64_t i = 0; i < cols; i++) fields[i] += (line[i] * inverse) * (line[i] * inverse);
  }
  double most = 0;
  for (int64_t i = 0; i < cols; i++) most = fmax(most, fields[i]);
  for (int64_t i = 0; i < cols; i++) {
    double field = most > 0 ? fmax(sqrt(fields[i] / most), smallest_field) : 1;
    fields[i] = (double)dflash_f16_decode(dflash_f16_round((float)field));
  }
}

/* The scale at which the row's codes just stay within -127 .. 127. */
static double reaching_scale(const float *line, const double *fields, int64_t cols) {
  double largest = 0;
  for (int64_t i = 0; i < cols; i++) largest = fmax(largest, fabs((double)line[i]) / fields[i]);
  return largest / 127;
}

static int8_t quantise(double value, double scale) {
  double code = value / scale;
  code += code < 0 ? -0.5 : 0.5;
  return (int8_t)(code > 127 ? 127 : code < -127 ? -127 : (int)code);
}

static void write_codes(const float *line, const double *fields, double scale, int64_t cols, int8_t *codes) {
  for (int64_t i = 0; i < cols; i++) codes[i] = scale > 0 ? quantise((double)line[i], scale * fields[i]) : 0;
}

/* The power of two that moves from the row scales into the fields, so that the largest row scale is near 1. */
static int common_exponent(double largest_scale) {
  int exponent = largest_scale > 0 ? ilogb(largest_scale) + 1 : 0;
  return exponent < LEAST_EXPONENT ? LEAST_EXPONENT : exponent > LARGEST_EXPONENT ? LARGEST_EXPONENT : exponent;
}

static DflashStatus encode(const float *values, int64_t rows, int64_t cols, double *fields, double *scales,
                           unsigned char *out, DflashError *error) {
  unsigned char *row_at = out + rows * cols, *field_at = row_at + 2 * rows;
  double largest = 0;
  relative_fields(values, rows, cols, fields);
  for (int64_t row = 0; row < rows; row++) {
    scales[row] = reaching_scale(values + row * cols, fields, cols);
    largest = fmax(largest, scales[row]);
  }
  double common = ldexp(1, common_exponent(largest));
  for (int64_t i = 0; i < cols; i++) {
    fields[i] *= common;
    dflash_store_u16(field_at + 2 * i, dflash_f16_round((float)fields[i]));
  }
  for (int64_t row = 0; row < rows; row++) {
    uint16_t bits = dflash_f16_round_up(scales[row] / common);
    double scale = (double)dflash_f16_decode(bits);
    if (!isfinite(scale))
      return dflash_error_set(error, DFLASH_NONFINITE, "row %" PRId64 " holds %g, beyond what q8_2f reaches", row,
                              largest_magnitude(values + row * cols, cols));
    dflash_store_u16(row_at + 2 * row, bits);
    write_codes(values + row * cols, fields, scale, cols, (int8_t *)out + row * cols);
  }
  return DFLASH_OK;
}

DflashStatus dflash_encode_q8(const float *values, int64_t rows, int64_t cols, unsigned char *out, DflashError *error) {
  DflashStatus status = DFLASH_OUT_OF_MEMORY;
  double *fields = dflash_alloc((size_t)cols, sizeof *fields), *scales = dflash_alloc((size_t)rows, sizeof *scales);
  if (fields && scales)
    status = encode(values, rows, cols, fields, scales, out, error);
  else
    dflash_error_set(error, status, "no memory to encode %" PRId64 " x %" PRId64 " as q8_2f", rows, cols);
  free(fields);
  free(scales);
  return status;
}
