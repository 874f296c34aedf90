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

/* Loops over columns, for the widest registers of the processor: the same bits in any of them. */
#define INLINE static inline __attribute__((always_inline))

/* scale: the panel's. Variances are u^2/3 of the square, below f16's normal numbers that of the smallest of them, and
 * never more than the square; 0 for numbers of the format. */
INLINE void load_format(int32_t profile, const float *in, int64_t count, double shift, double scale, Row row) {
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

INLINE void load_any(int32_t profile, const float *in, int64_t count, double shift, double scale, Row row) {
  if (profile == DFLASH_PROFILE_F16)
    load_format(DFLASH_PROFILE_F16, in, count, shift, scale, row);
  else
    load_format(DFLASH_PROFILE_BF16, in, count, shift, scale, row);
}

/* Rounding x * field in f16 (dflash_half_operand), seen from x, where it is more. */
INLINE void fold_any(const DflashHalfMatrix *half, const float *x, int64_t col, int64_t count, double unit,
                     float *restrict variance) {
  const double shift = half->field_shift, back = 1 / shift, spacing = 0x1p-24 / shift,
               one = dflash_half_unit(half->profile);
  const float *fields = half->fields + col;
  for (int64_t k = 0; k < count; k++) {
    float value = x[k] * fields[k], shifted = (float)(value * shift);
    float kept = (float)(dflash_half_round(DFLASH_PROFILE_F16, shifted) * back);
    double square = (double)value * value, field = (double)fields[k] * fields[k], fixed = spacing * spacing / 12;
    fixed = fixed < square ? fixed : square;
    double rounded = fabs(value * shift) < 0x1p-14 ? fixed : one * square;
    rounded = kept == value || field == 0 ? 0 : rounded / field;
    float folded = (float)(rounded / unit);
    variance[k] = folded > variance[k] ? folded : variance[k];
  }
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void load_wide(int32_t profile, const float *in, int64_t count, double shift,
                                                         double scale, Row row) {
  load_any(profile, in, count, shift, scale, row);
}
__attribute__((target("avx512f"))) static void fold_wide(const DflashHalfMatrix *half, const float *x, int64_t col,
                                                         int64_t count, double unit, float *variance) {
  fold_any(half, x, col, count, unit, variance);
}
static bool is_wide(void) { return __builtin_cpu_supports("avx512f"); }
#else
#define load_wide load_any
#define fold_wide fold_any
static bool is_wide(void) { return false; }
#endif

static void load(int32_t profile, const float *in, int64_t count, int64_t padded, double shift, double scale, Row row) {
  if (is_wide())
    load_wide(profile, in, count, shift, scale, row);
  else
    load_any(profile, in, count, shift, scale, row);
  for (int64_t k = count; k < padded; k++) row.value[k] = row.error[k] = row.variance[k] = 0;
}

void dflash_half_load_x(const DflashHalfMatrix *half, DflashHalfPanels *panels, int r, const float *x, int64_t col,
                        int64_t count, int64_t padded, double unit) {
  int at = r * DFLASH_PANEL;
  Row row = {panels->x + at, panels->x_error + at, panels->x_variance + at};
  load(half->profile, x, count, padded, half->shift, 1 / sqrt(unit), row);
  if (!half->fields) return;
  if (is_wide())
    fold_wide(half, x, col, count, unit, row.variance);
  else
    fold_any(half, x, col, count, unit, row.variance);
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
