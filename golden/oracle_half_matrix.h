/* What 16-bit operands bring to a matrix product, beside the sums of oracle_matrix.c and from its panels. */
#ifndef DFLASH_GOLDEN_ORACLE_HALF_MATRIX_H
#define DFLASH_GOLDEN_ORACLE_HALF_MATRIX_H

#include "golden/oracle.h"
#include "oracle_kernel.h"

enum { DFLASH_HALF_OUTPUTS = 64 }; /* rows of weights that a panel holds */

/* A tile's sums. x and weights: w^2 var(x) and x^2 var(w), var the roundings of operands; known_*: the error itself
 * when just that side is rounded. */
typedef struct DflashHalfSums {
  double x[16], weights[16], known_x[16], known_weights[16];
} DflashHalfSums;

/* Rows of panels: values, the errors of rounding them, and the variances of that; scaled by a power of two (variances
 * by its square). */
typedef struct DflashHalfPanels {
  _Alignas(64) float x[DFLASH_TILE * DFLASH_PANEL];
  _Alignas(64) float x_error[DFLASH_TILE * DFLASH_PANEL];
  _Alignas(64) float x_variance[DFLASH_TILE * DFLASH_PANEL];
  _Alignas(64) float w[DFLASH_HALF_OUTPUTS * DFLASH_PANEL];
  _Alignas(64) float w_error[DFLASH_HALF_OUTPUTS * DFLASH_PANEL];
  _Alignas(64) float w_variance[DFLASH_HALF_OUTPUTS * DFLASH_PANEL];
} DflashHalfPanels;

typedef struct DflashHalfMatrix {
  int32_t profile;
  double shift;       /* of the activations */
  float *fields;      /* [cols], owned: a q8_2f tensor's column fields in f16, which may be folded into x; else NULL */
  double field_shift; /* of the activations when they are */
} DflashHalfMatrix;

/* False: no memory. x: all of the call's. */
bool dflash_half_matrix_open(DflashHalfMatrix *half, const DflashOracleCall *call, const float *x, int64_t count,
                             const DflashTensor *weights);
void dflash_half_matrix_close(DflashHalfMatrix *half);

/* Loads columns col .. col + count of row r of a panel; the rest up to `padded` is zeros. unit: of the panel's squares.
 */
void dflash_half_load_x(const DflashHalfMatrix *half, DflashHalfPanels *panels, int r, const float *x, int64_t col,
                        int64_t count, int64_t padded, double unit);
void dflash_half_load_weights(const DflashHalfMatrix *half, DflashHalfPanels *panels, int r, const float *weights,
                              int64_t count, int64_t padded, double unit);

/* Adds the tile of the panel's 4 rows of x and 4 rows of weights from o on. *_squares and *_unit: those rows' own. */
typedef struct DflashHalfTile {
  const float *x_squares, *weight_squares;
  const double *x_unit, *weight_unit;
  int64_t padded;
} DflashHalfTile;
void dflash_half_multiply(const DflashTiles *tiles, const DflashHalfPanels *panels, const DflashHalfTile *tile, int o,
                          DflashHalfSums *sums);

#endif
