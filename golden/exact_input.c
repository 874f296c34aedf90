/* Inputs of exact goldens, and the base kernels that follow from the kernel projections. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "golden/exact.h"
#include "model/storage.h"

/* Channels 1 .. 4 of an embedding (0 .. 3 of a context row) complete the sum of squares. INPUT_SCALE makes eps
 * vanish: beside a mean square of 2^20 and more the largest that is allowed moves a root by 2^-27 of itself, which
 * no f32 shows. */
enum { BALANCED = 4, LEAST_HIDDEN = 16 };
static const float INPUT_SCALE = 1024.0f;

DflashStatus dflash_exact_check(int kind, const DflashGeometry *geometry, DflashError *error) {
  if (kind != DFLASH_EXACT_INTEGER) return DFLASH_OK;
  if (geometry->hidden < LEAST_HIDDEN)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "exact-integer: hidden is %lld, needed are at least %d",
                            (long long)geometry->hidden, LEAST_HIDDEN);
  if (geometry->eps > 1e-2)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "exact-integer: eps is %g, too large to vanish beside the rows (at most 1e-2)",
                            geometry->eps);
  return DFLASH_OK;
}

/* The two smallest of four squares are at most a quarter, and a third of the rest; so the search is complete. */
static int two_squares(uint64_t n, uint64_t out[2]) {
  for (uint64_t c = dflash_draw_root(n / 2) + 1; c-- > 0;) {
    uint64_t d = dflash_draw_root(n - c * c);
    if (c * c + d * d == n) return out[0] = c, out[1] = d, 1;
  }
  return 0;
}

void dflash_exact_four_squares(uint64_t n, uint64_t squares[4]) {
  for (uint64_t a = dflash_draw_root(n / 4) + 1; a-- > 0;)
    for (uint64_t b = dflash_draw_root((n - a * a) / 3) + 1; b-- > 0;) {
      squares[0] = a;
      squares[1] = b;
      if (two_squares(n - a * a - b * b, squares + 2)) return;
    }
}

/* All 24 bits of the mantissa, the lowest set, in [0.5, 2) of either sign. */
static float full_mantissa(uint32_t word) {
  uint32_t bits = (word & 0x807fffffu) | 1u | (126u + (word >> 24 & 1u)) << 23;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static int small_integer(uint32_t word) {
  static const int magnitudes[8] = {1, 1, 1, 1, 2, 2, 2, 3};
  int magnitude = magnitudes[word & 7];
  return word & 8 ? -magnitude : magnitude;
}

/* One row of integers with the sum of squares 4 * hidden, channel 0 being 2. */
static void balanced_row(DflashRandom stream, uint64_t at, int64_t hidden, float *row) {
  uint64_t left = 4 * (uint64_t)hidden - 4, squares[BALANCED] = {0};
  row[0] = 2.0f;
  for (int64_t i = hidden - 1; i > BALANCED; i--) {
    int value = small_integer(dflash_random_u32(stream, at + (uint64_t)i));
    uint64_t reserve = (uint64_t)(i - BALANCED - 1); /* ones for the channels that are still to come */
    if ((uint64_t)(value * value) + reserve > left) value = value < 0 ? -1 : 1;
    left -= (uint64_t)(value * value);
    row[i] = (float)value;
  }
  dflash_exact_four_squares(left, squares);
  for (int i = 0; i < BALANCED; i++) row[1 + i] = (float)squares[i];
}

void dflash_exact_embeddings(int kind, const DflashGeometry *geometry, DflashRandom stream, int64_t rows, float *h) {
  int64_t hidden = geometry->hidden, count = rows * hidden;
  if (kind == DFLASH_EXACT_24BIT) {
    for (int64_t i = 0; i < count; i++) h[i] = full_mantissa(dflash_random_u32(stream, (uint64_t)i));
    return;
  }
  for (int64_t row = 0; row < rows; row++) balanced_row(stream, (uint64_t)(row * hidden), hidden, h + row * hidden);
  for (int64_t i = 0; i < count; i++) h[i] *= INPUT_SCALE;
}

/* Sum of squares of what fc makes of a row, its copied channels left out, in units of fc's smallest element. */
static uint64_t row_squares(const DflashTensor *fc, const float *taps, double *weights) {
  int64_t hidden = dflash_tensor_rows(fc), width = dflash_tensor_cols(fc);
  double unit = dflash_tensor_at(fc, 0, 0);
  uint64_t sum = 0;
  for (int64_t row = BALANCED; row < hidden; row++) {
    double value = 0.0;
    dflash_tensor_row(fc, row, 0, width, weights);
    for (int64_t i = BALANCED; i < width; i++) value += weights[i] * (double)taps[i];
    int64_t integer = (int64_t)(value / unit);
    sum += (uint64_t)(integer * integer);
  }
  return sum;
}

static void balance_taps(const DflashTensor *fc, float *taps, double *weights) {
  uint64_t sum = row_squares(fc, taps, weights), whole = (uint64_t)dflash_tensor_rows(fc), squares[BALANCED] = {0};
  while (whole < sum) whole *= 4;
  dflash_exact_four_squares(whole - sum, squares);
  for (int i = 0; i < BALANCED; i++) taps[i] = (float)squares[i];
}

DflashStatus dflash_exact_taps(int kind, const DflashGeometry *geometry, const DflashTensor *fc, DflashRandom stream,
                               int64_t rows, float *taps, DflashError *error) {
  int64_t width = dflash_geometry_tap_width(geometry), count = rows * width;
  int integers = kind == DFLASH_EXACT_INTEGER;
  for (int64_t i = 0; i < count; i++) {
    uint32_t word = dflash_random_u32(stream, (uint64_t)i);
    taps[i] = integers ? (float)small_integer(word) : full_mantissa(word);
  }
  if (!integers) return DFLASH_OK;
  double *weights = dflash_alloc((size_t)width, sizeof *weights);
  if (!weights) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a row of taps");
  for (int64_t row = 0; row < rows; row++) balance_taps(fc, taps + row * width, weights);
  for (int64_t i = 0; i < count; i++) taps[i] *= INPUT_SCALE;
  free(weights);
  return DFLASH_OK;
}

/* base[1, o, i] = -d[r, (conv_kernel + o) * groups + i / conv_group], and d there is the projection's first column. */
static void cancel_side(const DflashGeometry *g, const DflashTensor *projection, const DflashTensor *base) {
  float *side = (float *)(uintptr_t)base->data + g->conv_kernel * g->hidden;
  int64_t groups = dflash_geometry_groups(g);
  for (int64_t tap = 0; tap < g->conv_kernel; tap++)
    for (int64_t i = 0; i < g->hidden; i++)
      side[tap * g->hidden + i] =
          -(float)dflash_tensor_at(projection, (g->conv_kernel + tap) * groups + i / g->conv_group, 0);
}

void dflash_exact_base(const DflashGeometry *geometry, const DflashWeights *weights) {
  for (int64_t layer = 0; layer < geometry->layers; layer++) {
    const DflashLayerWeights *l = &weights->layers[layer];
    cancel_side(geometry, &l->attention_conv_kernel, &l->attention_conv_base);
    cancel_side(geometry, &l->mlp_conv_kernel, &l->mlp_conv_base);
  }
}
