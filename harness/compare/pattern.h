/* Where differences are: names of places, shapes of sets. */
#ifndef DFLASH_COMPARE_PATTERN_H
#define DFLASH_COMPARE_PATTERN_H

#include <stddef.h>

#include "compare/compare.h"

/* "row 3, head 5, channel 17": row and column in the terms of the stage. */
void dflash_place_name(const DflashGeometry *geometry, int32_t stage, int64_t row, int64_t col, char *text,
                       size_t size);

/* Bad elements counted by row and by column. */
typedef struct DflashBadMap {
  int64_t rows, width, total;
  int64_t *by_row, *by_col; /* owned */
} DflashBadMap;

bool dflash_bad_map_open(DflashBadMap *map, int64_t rows, int64_t width);
void dflash_bad_map_close(DflashBadMap *map);

/* "every element", "one row (3)", "every 2nd head from 1", "columns from 1008 on", "scattered (1.2%)". */
void dflash_pattern_name(const DflashGeometry *geometry, int32_t stage, const DflashBadMap *map, char *text,
                         size_t size);

#endif
