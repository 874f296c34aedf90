#include "oracle_kernel.h"

#include <string.h>

enum { LANES64 = 8, LANES32 = 16 };

#define INLINE static inline __attribute__((always_inline))

INLINE void add_halves64(const double *lanes, int vectors, double *out) {
  for (int v = 0; v < vectors; v++) {
    double lane[LANES64];
    memcpy(lane, lanes + v * LANES64, sizeof lane);
    for (int half = LANES64 / 2; half > 0; half /= 2)
      for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    out[v] = lane[0];
  }
}

INLINE void add_halves32(const float *lanes, int vectors, float *out) {
  for (int v = 0; v < vectors; v++) {
    float lane[LANES32];
    memcpy(lane, lanes + v * LANES32, sizeof lane);
    for (int half = LANES32 / 2; half > 0; half /= 2)
      for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    out[v] = lane[0];
  }
}

/* 4 x 4 sums, rows x cols of them at a time: as many as the registers hold, each in lanes / width vectors. */
#define DEFINE_TILE(name, target, type, vector, width, lanes, rows, cols, add)                     \
  target static void name(const type *a, const type *b, int64_t count, type out[16]) {             \
    for (int r0 = 0; r0 < DFLASH_TILE; r0 += (rows))                                               \
      for (int c0 = 0; c0 < DFLASH_TILE; c0 += (cols)) {                                           \
        vector sum[rows][cols][(lanes) / (width)];                                                 \
        memset(sum, 0, sizeof sum);                                                                \
        for (int64_t k = 0; k < count; k += (lanes))                                               \
          for (int part = 0; part < (lanes) / (width); part++) {                                   \
            const type *left = a + r0 * DFLASH_PANEL + k + part * (width);                         \
            const type *right = b + c0 * DFLASH_PANEL + k + part * (width);                        \
            for (int r = 0; r < (rows); r++)                                                       \
              for (int c = 0; c < (cols); c++)                                                     \
                sum[r][c][part] += *(const vector *)(const void *)(left + r * DFLASH_PANEL) *      \
                                   *(const vector *)(const void *)(right + c * DFLASH_PANEL);      \
          }                                                                                        \
        type lane[rows][cols][lanes];                                                              \
        memcpy(lane, sum, sizeof lane);                                                            \
        for (int r = 0; r < (rows); r++) add(lane[r][0], cols, out + (r0 + r) * DFLASH_TILE + c0); \
      }                                                                                            \
  }

/* The same on the way through the columns of a panel. */
#define DEFINE_FOLLOW(name, target, tile)                                                                          \
  target static void name(const double *a, const double *b, int64_t cols, int64_t segment, DflashTileSums *sums) { \
    for (int64_t k = 0; k < cols; k += segment) {                                                                  \
      double pieces[16], count = (double)(cols - k < segment ? cols - k : segment);                                \
      tile(a + k, b + k, dflash_panel_round((int64_t)count), pieces);                                              \
      for (int i = 0; i < 16; i++) {                                                                               \
        double before = sums->value[i], after = before + pieces[i];                                                \
        sums->value[i] = after;                                                                                    \
        sums->drift[i] += count / 2 * (before + after);                                                            \
        sums->path[i] += count / 3 * (before * before + before * after + after * after);                           \
      }                                                                                                            \
    }                                                                                                              \
  }

#if defined(__x86_64__)
typedef double Wide64 __attribute__((vector_size(64), may_alias));
typedef float Wide32 __attribute__((vector_size(64), may_alias));
typedef double Medium64 __attribute__((vector_size(32), may_alias));
typedef float Medium32 __attribute__((vector_size(32), may_alias));

/* Halves of two vectors, added: the next level of the tree for both at once. */
#define FOLD(a, b, i0, i1, i2, i3, i4, i5, i6, i7, o)                                                                \
  (__builtin_shufflevector(a, b, i0, i1, i2, i3, i4, i5, i6, i7) +                                                   \
   __builtin_shufflevector(a, b, (i0) + (o), (i1) + (o), (i2) + (o), (i3) + (o), (i4) + (o), (i5) + (o), (i6) + (o), \
                           (i7) + (o)))

/* add_halves64 for 4 vectors: lanes i and i + 4, then i and i + 2, then i and i + 1. */
__attribute__((target("avx512f"))) INLINE void fold64(const double *lanes, int vectors, double *out) {
  const Wide64 *in = (const Wide64 *)(const void *)lanes;
  (void)vectors;
  Wide64 left = FOLD(in[0], in[1], 0, 1, 2, 3, 8, 9, 10, 11, 4),
         right = FOLD(in[2], in[3], 0, 1, 2, 3, 8, 9, 10, 11, 4);
  Wide64 pairs = FOLD(left, right, 0, 1, 4, 5, 8, 9, 12, 13, 2);
  Wide64 sums = FOLD(pairs, pairs, 0, 2, 4, 6, 8, 10, 12, 14, 1);
  memcpy(out, &sums, DFLASH_TILE * sizeof *out);
}

#define FOLD16(a, b, i0, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15, o)                        \
  (__builtin_shufflevector(a, b, i0, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15) +             \
   __builtin_shufflevector(a, b, (i0) + (o), (i1) + (o), (i2) + (o), (i3) + (o), (i4) + (o), (i5) + (o), (i6) + (o), \
                           (i7) + (o), (i8) + (o), (i9) + (o), (i10) + (o), (i11) + (o), (i12) + (o), (i13) + (o),   \
                           (i14) + (o), (i15) + (o)))

/* add_halves32 for 4 vectors: lanes i and i + 8, then i + 4, i + 2, i + 1. */
__attribute__((target("avx512f"))) INLINE void fold32(const float *lanes, int vectors, float *out) {
  const Wide32 *in = (const Wide32 *)(const void *)lanes;
  (void)vectors;
  Wide32 left = FOLD16(in[0], in[1], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8),
         right = FOLD16(in[2], in[3], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8);
  Wide32 fours = FOLD16(left, right, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27, 4);
  Wide32 pairs = FOLD16(fours, fours, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29, 2);
  Wide32 sums = FOLD16(pairs, pairs, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 1);
  memcpy(out, &sums, DFLASH_TILE * sizeof *out);
}

DEFINE_TILE(tile64_wide, __attribute__((target("avx512f"))), double, Wide64, 8, LANES64, 4, 4, fold64)
DEFINE_TILE(tile32_wide, __attribute__((target("avx512f"))), float, Wide32, 16, LANES32, 4, 4, fold32)
DEFINE_TILE(tile64_medium, __attribute__((target("avx2"))), double, Medium64, 4, LANES64, 2, 2, add_halves64)
DEFINE_TILE(tile32_medium, __attribute__((target("avx2"))), float, Medium32, 8, LANES32, 2, 2, add_halves32)
DEFINE_FOLLOW(follow_wide, __attribute__((target("avx512f"))), tile64_wide)
DEFINE_FOLLOW(follow_medium, __attribute__((target("avx2"))), tile64_medium)
#endif

typedef double Plain64 __attribute__((vector_size(16), may_alias));
typedef float Plain32 __attribute__((vector_size(16), may_alias));
DEFINE_TILE(tile64_plain, , double, Plain64, 2, LANES64, 2, 1, add_halves64)
DEFINE_TILE(tile32_plain, , float, Plain32, 4, LANES32, 2, 1, add_halves32)
DEFINE_FOLLOW(follow_plain, , tile64_plain)

int dflash_tiles_list(DflashTiles out[3]) {
  int count = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) out[count++] = (DflashTiles){tile64_wide, tile32_wide, follow_wide};
  if (__builtin_cpu_supports("avx2")) out[count++] = (DflashTiles){tile64_medium, tile32_medium, follow_medium};
#endif
  out[count++] = (DflashTiles){tile64_plain, tile32_plain, follow_plain};
  return count;
}

DflashTiles dflash_tiles(void) {
  DflashTiles list[3];
  dflash_tiles_list(list);
  return list[0];
}

static double halves(double lane[LANES64]) {
  for (int half = LANES64 / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) lane[i] += lane[i + half];
  return lane[0];
}

double dflash_dot(const float *a, const float *b, int64_t count) {
  double lane[LANES64] = {0};
  int64_t whole = count - count % LANES64;
  for (int64_t k = 0; k < whole; k += LANES64)
    for (int i = 0; i < LANES64; i++) lane[i] += (double)a[k + i] * b[k + i];
  for (int64_t k = whole; k < count; k++) lane[k - whole] += (double)a[k] * b[k];
  return halves(lane);
}

double dflash_dot_squares(const float *a, const float *b, int64_t count) {
  double lane[LANES64] = {0};
  int64_t whole = count - count % LANES64;
  for (int64_t k = 0; k < whole; k += LANES64)
    for (int i = 0; i < LANES64; i++) lane[i] += ((double)a[k + i] * b[k + i]) * ((double)a[k + i] * b[k + i]);
  for (int64_t k = whole; k < count; k++) lane[k - whole] += ((double)a[k] * b[k]) * ((double)a[k] * b[k]);
  return halves(lane);
}
