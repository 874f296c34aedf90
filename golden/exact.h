/* Data on which linear stages do not round, whatever the order of their sums.
 *
 * Integer: matrices hold small integers times a power of two. Norms give exact values too: the sum of squares of
 * every row of embeddings, and of every row that fc makes of the taps, is hidden * 4^m, by four channels that are
 * chosen for it; norm gains are powers of two; and the second convolution adds nothing (its base kernel cancels its
 * dynamic part), so that the same rows enter every layer. o_proj and down_proj, whose inputs no choice of data can
 * make short, have a single power of two a row.
 *
 * 24 bit: embeddings and taps use every bit of their mantissas, and every matrix has a single power of two a row,
 * in a column that walks over the whole width: an activation split into too few parts shows. */
#ifndef DFLASH_GOLDEN_EXACT_H
#define DFLASH_GOLDEN_EXACT_H

#include "golden/draw.h"

enum { DFLASH_EXACT_NONE, DFLASH_EXACT_INTEGER, DFLASH_EXACT_24BIT };

/* hidden is too small for the four channels: DFLASH_INVALID_ARGUMENT. */
DflashStatus dflash_exact_check(int kind, const DflashGeometry *geometry, DflashError *error);

DflashStatus dflash_exact_weight(int kind, const DflashGeometry *geometry, const DflashWeightEntry *entry,
                                 int32_t storage, uint64_t seed, DflashPool *pool, DflashTensor *tensor,
                                 DflashError *error);

/* Integer: base kernels of the second side from the kernel projections; once all weights are there. */
void dflash_exact_base(const DflashGeometry *geometry, const DflashWeights *weights);

/* rows x hidden embeddings, rows x tap_width taps. */
void dflash_exact_embeddings(int kind, const DflashGeometry *geometry, DflashRandom stream, int64_t rows, float *h);
DflashStatus dflash_exact_taps(int kind, const DflashGeometry *geometry, const DflashTensor *fc, DflashRandom stream,
                               int64_t rows, float *taps, DflashError *error);

/* n = a*a + b*b + c*c + d*d. */
void dflash_exact_four_squares(uint64_t n, uint64_t squares[4]);

#endif
