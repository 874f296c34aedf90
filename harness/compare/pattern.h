/* Where differences are and what they look like: names of places, shapes of sets, relations to the golden. */
#ifndef DFLASH_COMPARE_PATTERN_H
#define DFLASH_COMPARE_PATTERN_H

#include <stddef.h>

#include "compare/compare.h"

/* "row 3, head 5, channel 17": row and column in the terms of the stage. */
void dflash_place_name(const DflashGeometry *geometry, int32_t stage, int64_t row, int64_t col, char *text,
                       size_t size);

/* Columns that belong together in a stage: the channels of a head or of a convolution group, the groups of a side and
 * tap. size 1: none do. */
typedef struct DflashUnit {
  int64_t size;
  const char *name, *member; /* "head", "channel" */
} DflashUnit;
DflashUnit dflash_stage_unit(const DflashGeometry *geometry, int32_t stage);

/* Bad elements counted by row and by column. */
typedef struct DflashBadMap {
  int64_t rows, width, total;
  int64_t elements;         /* rows * width, or less where not all rows are there */
  int64_t position;         /* of row 0, for rows of context.* stages */
  int64_t *by_row, *by_col; /* owned */
} DflashBadMap;

bool dflash_bad_map_open(DflashBadMap *map, int64_t rows, int64_t width);
void dflash_bad_map_close(DflashBadMap *map);

/* The shape of a set of rows, or of columns (or units, or the same columns of every unit). */
enum {
  DFLASH_SPAN_ALL,   /* every one, or no shape worth naming */
  DFLASH_SPAN_ONE,   /* a single one */
  DFLASH_SPAN_TAIL,  /* from one on */
  DFLASH_SPAN_HEAD,  /* from the first to one */
  DFLASH_SPAN_RANGE, /* neighbours in the midst */
  DFLASH_SPAN_STEP,  /* every k-th */
  DFLASH_SPAN_FEW    /* up to four, with no rule */
};
enum { DFLASH_BY_COLUMN, DFLASH_BY_UNIT, DFLASH_BY_MEMBER };

typedef struct DflashShape {
  int rows, columns; /* DFLASH_SPAN_* */
  int by;            /* what columns counts: DFLASH_BY_* */
  bool most;         /* more than half of the elements */
} DflashShape;

/* "every element", "one row (3)", "every 2nd head from 1 to 7", "last 12 of 44 columns", "scattered (1.2%)". */
void dflash_pattern_name(const DflashGeometry *geometry, int32_t stage, const DflashBadMap *map, DflashShape *shape,
                         char *text, size_t size);

/* How the bad elements of got follow from the golden. */
enum {
  DFLASH_RELATION_NONE,
  DFLASH_RELATION_ZERO,
  DFLASH_RELATION_NEGATED,
  DFLASH_RELATION_FACTOR,     /* one factor, not -1 */
  DFLASH_RELATION_OFFSET,     /* one number added */
  DFLASH_RELATION_CLIPPED,    /* one magnitude, below the golden's */
  DFLASH_RELATION_ROW_SHIFT,  /* the row before or after */
  DFLASH_RELATION_SHIFT,      /* the column before or after */
  DFLASH_RELATION_HALVES,     /* halves of a unit or row exchanged */
  DFLASH_RELATION_PAIRS,      /* neighbours exchanged */
  DFLASH_RELATION_INTERLEAVE, /* halves and pairs taken for each other */
  DFLASH_RELATION_TRANSPOSED, /* of the value, or of two axes in a row */
  DFLASH_RELATION_TAPS,       /* taps or sides of a kernel exchanged */
  DFLASH_RELATION_ROW,        /* another row */
  DFLASH_RELATION_UNIT,       /* another head or group */
  DFLASH_RELATION_OUTLIERS    /* bad exactly where the golden is largest */
};

/* Tests got against the transformed golden by the score, on at most 4096 of the bad elements, all of them finite. A
 * relation is named only when nearly all that it can predict fit, and fit far better than the golden itself. The text
 * is "" for NONE. */
int dflash_relation_find(const DflashCompareCall *call, const DflashBadMap *map, char *text, size_t size);

/* What such a failure usually comes from, as a static text; "" when nothing is known. */
const char *dflash_pattern_cause(int32_t stage, const DflashShape *shape, int relation);

/* Fills pattern and cause. */
void dflash_pattern_find(const DflashCompareCall *call, const DflashBadMap *map, DflashComparison *out);

#endif
