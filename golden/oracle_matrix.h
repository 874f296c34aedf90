/* What a matrix product is made of, and the scale of one element of it. */
#ifndef DFLASH_GOLDEN_ORACLE_MATRIX_H
#define DFLASH_GOLDEN_ORACLE_MATRIX_H

#include "golden/oracle.h"
#include "oracle_half_matrix.h"
#include "oracle_scale.h"

typedef struct DflashMatrix {
  const DflashOracleCall *call;
  const DflashTensor *weights;
  const float *x, *sigma; /* [rows, cols]; sigma NULL: exact */
  int64_t rows, cols, outputs;
  int64_t segment;       /* columns whose sum is one step of the partial sums that are followed */
  DflashRowFacts *facts; /* [rows], of x */
  double *common;        /* [rows], relative variance that all of a row of x may have in common; NULL: x is exact */
  int *lowest;           /* [rows], lowest bit set in a row of x; only for exact calls */
  DflashHalfMatrix half; /* of a profile of 16 bits */
} DflashMatrix;

typedef struct DflashWeightFacts {
  int lowest;     /* lowest bit set in the row, exact calls only, and how many values are not 0 */
  double nonzero; /* the same */
  double distinct;
} DflashWeightFacts;

typedef struct DflashMatrixElement {
  int64_t row, output;
  const DflashWeightFacts *weight;
  double value, squares, inherited;
  double path;                       /* squares of the partial sums, forwards or backwards, whichever is more */
  double rounded_x, rounded_weights; /* variances, of operands rounded to 16 bits */
} DflashMatrixElement;

DflashStatus dflash_matrix_open(const DflashOracleCall *call, DflashMatrix *matrix, DflashError *error);
void dflash_matrix_close(DflashMatrix *matrix);
void dflash_matrix_finish(const DflashMatrix *matrix, const DflashMatrixElement *element);

#endif
