#include "oracle_kernel.h"

#include <string.h>

enum { LANES64 = 8, LANES32 = 16 };
typedef double Lanes64 __attribute__((vector_size(64), may_alias));
typedef float Lanes32 __attribute__((vector_size(64), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* A kernel goes over its 4 x 4 sums in pieces of rows x cols, as many as its registers hold. */
#define DEFINE_PIECE(name, type, vector, lanes)                                                           \
  INLINE void name(const type *a, const type *b, int64_t count, type *out, int rows, int cols) {          \
    vector sum[DFLASH_TILE][DFLASH_TILE];                                                                 \
    for (int r = 0; r < rows; r++)                                                                        \
      for (int c = 0; c < cols; c++) sum[r][c] = (vector){0};                                             \
    for (int64_t k = 0; k < count; k += (lanes)) {                                                        \
      vector left[DFLASH_TILE];                                                                           \
      for (int r = 0; r < rows; r++) left[r] = *(const vector *)(const void *)(a + r * DFLASH_PANEL + k); \
      for (int c = 0; c < cols; c++) {                                                                    \
        vector right = *(const vector *)(const void *)(b + c * DFLASH_PANEL + k);                         \
        for (int r = 0; r < rows; r++) sum[r][c] += left[r] * right;                                      \
      }                                                                                                   \
    }                                                                                                     \
    for (int r = 0; r < rows; r++)                                                                        \
      for (int c = 0; c < cols; c++) {                                                                    \
        type lane[lanes];                                                                                 \
        memcpy(lane, &sum[r][c], sizeof lane);                                                            \
        for (int half = (lanes) / 2; half > 0; half /= 2)                                                 \
          for (int i = 0; i < half; i++) lane[i] += lane[i + half];                                       \
        out[r * DFLASH_TILE + c] = lane[0];                                                               \
      }                                                                                                   \
  }

DEFINE_PIECE(piece64, double, Lanes64, LANES64)
DEFINE_PIECE(piece32, float, Lanes32, LANES32)

#define DEFINE_TILES(suffix, target, rows, cols)                                                           \
  target static void tile64_##suffix(const double *a, const double *b, int64_t count, double out[16]) {    \
    for (int r = 0; r < DFLASH_TILE; r += (rows))                                                          \
      for (int c = 0; c < DFLASH_TILE; c += (cols))                                                        \
        piece64(a + r * DFLASH_PANEL, b + c * DFLASH_PANEL, count, out + r * DFLASH_TILE + c, rows, cols); \
  }                                                                                                        \
  target static void tile32_##suffix(const float *a, const float *b, int64_t count, float out[16]) {       \
    for (int r = 0; r < DFLASH_TILE; r += (rows))                                                          \
      for (int c = 0; c < DFLASH_TILE; c += (cols))                                                        \
        piece32(a + r * DFLASH_PANEL, b + c * DFLASH_PANEL, count, out + r * DFLASH_TILE + c, rows, cols); \
  }

#if defined(__x86_64__)
DEFINE_TILES(wide, __attribute__((target("avx512f"))), 4, 4)
DEFINE_TILES(medium, __attribute__((target("avx2"))), 2, 2)
#endif
DEFINE_TILES(plain, , 2, 1)

DflashTiles dflash_tiles(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return (DflashTiles){tile64_wide, tile32_wide};
  if (__builtin_cpu_supports("avx2")) return (DflashTiles){tile64_medium, tile32_medium};
#endif
  return (DflashTiles){tile64_plain, tile32_plain};
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
