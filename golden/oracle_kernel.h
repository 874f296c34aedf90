/* Sums of products, 4 x 4 at a time, in an order that no machine changes: column k of a panel goes to lane
 * k % lanes, a lane adds its products one after the other, and lanes are added in halves: i and i + n/2, then i and
 * i + n/4, and so on. There are 8 lanes of f64 and 16 of f32; processors with narrower registers compute the same
 * sums in parts. */
#ifndef DFLASH_GOLDEN_ORACLE_KERNEL_H
#define DFLASH_GOLDEN_ORACLE_KERNEL_H

#include <stdint.h>

enum {
  DFLASH_TILE = 4,          /* rows on either side */
  DFLASH_PANEL = 512,       /* columns that a panel holds, and the stride of its rows */
  DFLASH_PANEL_QUANTUM = 16 /* counts are multiples of this; the rest is filled with zeros */
};

/* 16 sums that grow panel by panel, with what their partial sums did on the way: value in steps of a segment of
 * columns, drift the integral of the partial sum over the columns, path that of its square. */
typedef struct DflashTileSums {
  double value[16], drift[16], path[16];
} DflashTileSums;

/* out[4 * r + c] = sum over k of a[r][k] * b[c][k], k < count, count a multiple of the quantum. a and b are 64-byte
 * aligned. follow adds `cols` columns to sums, segment (a multiple of the quantum) by segment. */
typedef struct DflashTiles {
  void (*f64)(const double *a, const double *b, int64_t count, double out[16]);
  void (*f32)(const float *a, const float *b, int64_t count, float out[16]);
  void (*follow)(const double *a, const double *b, int64_t cols, int64_t segment, DflashTileSums *sums);
} DflashTiles;

/* The kernels that this processor can run, widest registers first; returns how many, at most 3. All give the same
 * bits. */
int dflash_tiles_list(DflashTiles out[3]);
DflashTiles dflash_tiles(void); /* the first of them */

static inline int64_t dflash_panel_round(int64_t count) {
  return (count + DFLASH_PANEL_QUANTUM - 1) / DFLASH_PANEL_QUANTUM * DFLASH_PANEL_QUANTUM;
}

/* sum a[i] * b[i] in 8 lanes, added in halves. */
double dflash_dot(const float *a, const float *b, int64_t count);
/* sum (a[i] * b[i])^2, the same way. */
double dflash_dot_squares(const float *a, const float *b, int64_t count);

#endif
