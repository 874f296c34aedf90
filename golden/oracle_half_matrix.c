#include "oracle_half_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/storage.h"
#include "oracle_half.h"

/* The fields follow the codes and the rows' scales. */
static bool read_fields(DflashHalfMatrix *half, const DflashTensor *weights) {
  int64_t rows = dflash_tensor_rows(weights), cols = dflash_tensor_cols(weights);
  const unsigned char *at = (const unsigned char *)weights->data + rows * cols + rows * (int64_t)sizeof(uint16_t);
  float widest = 0;
  half->fields = dflash_alloc((size_t)cols, sizeof *half->fields);
  if (!half->fields) return false;
  for (int64_t i = 0; i < cols; i++) {
    uint16_t bits;
    memcpy(&bits, at + i * (int64_t)sizeof bits, sizeof bits);
    half->fields[i] = fabsf(dflash_f16_value(bits));
    widest = fmaxf(widest, half->fields[i]);
  }
  int exponent;
  frexp((double)widest, &exponent);
  half->field_shift = ldexp(half->shift, -exponent); /* the largest product is at most the largest x times widest */
  return true;
}

bool dflash_half_matrix_open(DflashHalfMatrix *half, const DflashOracleCall *call, const float *x, int64_t count,
                             const DflashTensor *weights) {
  *half = (DflashHalfMatrix){.profile = call->profile, .shift = dflash_half_shift(call->profile, x, count)};
  bool fold = call->profile == DFLASH_PROFILE_F16 && weights->storage == DFLASH_STORAGE_Q8_2F;
  return !fold || read_fields(half, weights);
}

void dflash_half_matrix_close(DflashHalfMatrix *half) {
  free(half->fields);
  half->fields = NULL;
}

/* A row of a panel; x or weights. */
typedef struct Row {
  float *restrict value, *restrict error, *restrict variance;
} Row;

/* scale: the panel's. Variances are u^2/3 of the square, below f16's normal numbers that of the smallest of them, and
 * never more than the square; 0 for numbers of the format. */
static inline void load_format(int32_t profile, const float *in, int64_t count, double shift, double scale, Row row) {
  float unit = (float)dflash_half_unit(profile), before = (float)shift, after = (float)(scale / shift);
  float least = profile == DFLASH_PROFILE_F16 ? 0x1p-14f * after : 0;
  for (int64_t k = 0; k < count; k++) {
    float shifted = in[k] * before, error = dflash_half_round(profile, shifted) - shifted;
    float value = (float)(in[k] * scale), square = value * value, size = fabsf(value);
    size = size > least ? size : least;
    float variance = unit * size * size;
    variance = variance < square ? variance : square;
    row.value[k] = value;
    row.error[k] = error * after;
    row.variance[k] = error == 0 ? 0 : variance;
  }
}

static void load(int32_t profile, const float *in, int64_t count, int64_t padded, double shift, double scale, Row row) {
  if (profile == DFLASH_PROFILE_F16)
    load_format(DFLASH_PROFILE_F16, in, count, shift, scale, row);
  else
    load_format(DFLASH_PROFILE_BF16, in, count, shift, scale, row);
  for (int64_t k = count; k < padded; k++) row.value[k] = row.error[k] = row.variance[k] = 0;
}

/* Rounding x * field, seen from x. */
static double folded_variance(const DflashHalfMatrix *half, float x, float field) {
  return field == 0 ? 0 : dflash_half_operand(half->profile, x * field, half->field_shift) / ((double)field * field);
}

void dflash_half_load_x(const DflashHalfMatrix *half, DflashHalfPanels *panels, int r, const float *x, int64_t col,
                        int64_t count, int64_t padded, double unit) {
  int at = r * DFLASH_PANEL;
  Row row = {panels->x + at, panels->x_error + at, panels->x_variance + at};
  load(half->profile, x, count, padded, half->shift, 1 / sqrt(unit), row);
  for (int64_t k = 0; half->fields && k < count; k++)
    row.variance[k] = fmaxf(row.variance[k], (float)(folded_variance(half, x[k], half->fields[col + k]) / unit));
}

void dflash_half_load_weights(const DflashHalfMatrix *half, DflashHalfPanels *panels, int r, const float *weights,
                              int64_t count, int64_t padded, double unit) {
  int at = r * DFLASH_PANEL;
  Row row = {panels->w + at, panels->w_error + at, panels->w_variance + at};
  load(half->profile, weights, count, padded, 1, 1 / sqrt(unit), row);
}

void dflash_half_multiply(const DflashTiles *tiles, const DflashHalfPanels *panels, const DflashHalfTile *tile, int o,
                          DflashHalfSums *sums) {
  int64_t at = (int64_t)o * DFLASH_PANEL;
  float x[16], weights[16], known_x[16], known_weights[16];
  tiles->f32(panels->x_variance, tile->weight_squares, tile->padded, x);
  tiles->f32(tile->x_squares, panels->w_variance + at, tile->padded, weights);
  tiles->f32(panels->x_error, panels->w + at, tile->padded, known_x);
  tiles->f32(panels->x, panels->w_error + at, tile->padded, known_weights);
  for (int i = 0; i < 16; i++) {
    double unit = tile->x_unit[i / DFLASH_TILE] * tile->weight_unit[i % DFLASH_TILE], root = sqrt(unit);
    sums->x[i] += (double)x[i] * unit;
    sums->weights[i] += (double)weights[i] * unit;
    sums->known_x[i] += (double)known_x[i] * root;
    sums->known_weights[i] += (double)known_weights[i] * root;
  }
}
