/* Which size the elements of each drawn tensor have. Private to drawing. */
#ifndef DFLASH_GOLDEN_DRAW_SIZE_H
#define DFLASH_GOLDEN_DRAW_SIZE_H

#include "model/weights.h"

typedef struct DflashDrawSize {
  float mean, deviation; /* of the elements */
  int clustered;         /* every row has the same size, and its elements lie close to the mean */
  int small_rows;        /* every fourth row is 2^-7 as large */
  int zero_groups;       /* some groups of 32 columns are zero */
} DflashDrawSize;

/* `stress`: DFLASH_STRESS_* flags. */
DflashDrawSize dflash_draw_size(const DflashGeometry *geometry, const DflashWeightEntry *entry, int stress);

/* mean / deviation in units of 1 / unit, rounded to nearest: by how much codes that deviate by `unit` shift. */
int dflash_draw_shift(const DflashDrawSize *size, float unit);

static inline int dflash_draw_row_is_small(const DflashDrawSize *size, int64_t row) {
  return size->small_rows && row % 4 == 3;
}

static inline int dflash_draw_group_is_zero(const DflashDrawSize *size, int64_t row, int64_t group) {
  return size->zero_groups && (row + group) % 8 == 5;
}

#endif
