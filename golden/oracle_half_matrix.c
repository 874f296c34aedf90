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
  frexp(widest, &exponent);
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

static void clear(float *value, float *error, float *variance, int64_t from, int64_t to) {
  for (int64_t k = from; k < to; k++) value[k] = error[k] = variance[k] = 0;
}

/* Rounding x * field, seen from x. */
static double folded_variance(const DflashHalfMatrix *half, float x, float field) {
  return field == 0 ? 0 : dflash_half_operand(half->profile, x * field, half->field_shift) / ((double)field * field);
}

void dflash_half_load_x(const DflashHalfMatrix *half, DflashHalfPanels *panels, int r, const float *x, int64_t col,
                        int64_t count, int64_t padded, double unit) {
  double scale = 1 / sqrt(unit);
  float *value = panels->x + r * DFLASH_PANEL, *error = panels->x_error + r * DFLASH_PANEL;
  float *variance = panels->x_variance + r * DFLASH_PANEL;
  for (int64_t k = 0; k < count; k++) {
    double from = dflash_half_operand(half->profile, x[k], half->shift);
    if (half->fields) from = fmax(from, folded_variance(half, x[k], half->fields[col + k]));
    value[k] = (float)(x[k] * scale);
    error[k] = (float)(((double)dflash_half_round_shifted(half->profile, x[k], half->shift) - x[k]) * scale);
    variance[k] = (float)(from * scale * scale);
  }
  clear(value, error, variance, count, padded);
}

void dflash_half_load_weights(const DflashHalfMatrix *half, DflashHalfPanels *panels, int r, const float *weights,
                              int64_t count, int64_t padded, double unit) {
  double scale = 1 / sqrt(unit);
  float *value = panels->w + r * DFLASH_PANEL, *error = panels->w_error + r * DFLASH_PANEL;
  float *variance = panels->w_variance + r * DFLASH_PANEL;
  for (int64_t k = 0; k < count; k++) {
    value[k] = (float)(weights[k] * scale);
    error[k] = (float)(((double)dflash_half_round(half->profile, weights[k]) - weights[k]) * scale);
    variance[k] = (float)(dflash_half_operand(half->profile, weights[k], 1) * scale * scale);
  }
  clear(value, error, variance, count, padded);
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
