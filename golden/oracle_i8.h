/* Profile i8: activations as int8 codes, one step for every group of 32 columns of a row, and what the inputs' errors
 * do to codes and steps. docs/error-scale.md derives it. */
#ifndef DFLASH_GOLDEN_ORACLE_I8_H
#define DFLASH_GOLDEN_ORACLE_I8_H

#include "oracle_matrix.h"

enum { DFLASH_I8_GROUP = 32 };

/* Scores divide by so many sigmas (the project's lambda): what adds linearly enters sigma divided by it. */
#define DFLASH_I8_LAMBDA 10.0

typedef struct DflashI8 {
  int64_t rows, cols, groups;
  int16_t *codes; /* [rows, cols] */
  double *steps;  /* [rows, groups] s; 0: the group is zero; NaN: not all its values are finite */
  /* Only with the chain's sigmas, NULL otherwise. How the rounded activation moves, in units of move: */
  double *moves;    /* [rows, groups] size of a move; 0: nothing in the group moves */
  float *counts;    /* [rows, cols] expected number of moves */
  float *squares;   /* [rows, cols] expected square of the sum of moves */
  float *reach;     /* [rows, cols] moves within reach */
  int16_t *movable; /* [rows, cols] all bits where some are, else 0 */
  double *sway;     /* [rows, groups] relative variance of the step */
} DflashI8;

DflashStatus dflash_i8_open(const DflashMatrix *matrix, DflashPool *pool, DflashI8 *i8, DflashError *error);
void dflash_i8_close(DflashI8 *i8);

/* One group's codes; returns its step. */
double dflash_i8_quantise(const float x[DFLASH_I8_GROUP], int16_t codes[DFLASH_I8_GROUP]);

/* Fills what moves in group `group` of row `row`. x and sigma: its 32 values. */
void dflash_i8_moves(DflashI8 *i8, int64_t row, int64_t group, const float *x, const float *sigma);

#endif
