#include "golden/oracle_likeness.h"

#include <math.h>

/* 1 / |row|, scaled so that no square leaves the range of f64; 0 for a row of zeros. */
static double inverse_length(const float *row, int64_t width) {
  double squares = 0;
  for (int64_t i = 0; i < width; i++) squares += (double)row[i] * row[i];
  return squares > 0 ? 1 / sqrt(squares) : 0;
}

void dflash_likeness(const float *values, int64_t rows, int64_t width, double *out) {
  double mean_squares = 0;
  for (int64_t r = 0; r < rows; r++) out[r] = 0;
  for (int64_t r = 0; r < rows; r++) {
    const float *row = values + r * width;
    double scale_r = inverse_length(row, width);
    for (int64_t s = 0; s < rows; s++) {
      const float *other = values + s * width;
      double dot = 0, scale = scale_r * inverse_length(other, width);
      for (int64_t i = 0; scale > 0 && i < width; i++) dot += (double)row[i] * other[i];
      out[r] += dot * scale; /* the row's direction times the sum of all directions */
    }
    mean_squares += out[r];
  }
  double length = mean_squares > 0 ? sqrt(mean_squares) : 0; /* of the sum of all directions */
  for (int64_t r = 0; r < rows; r++) out[r] = length > 0 && out[r] > 0 ? fmin(1, out[r] / length) : 0;
}
