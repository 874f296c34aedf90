/* Numbers apart from the text around them: the columns of a pack (docs/history.md). Internal to the history. */
#ifndef DFLASH_STORE_HISTORY_COLUMNS_H
#define DFLASH_STORE_HISTORY_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define DFLASH_PACK_MARK '\001'  /* stands for a number; JSON text holds it nowhere else */
#define DFLASH_COLUMNS_MOST 4096 /* names of members with numbers in one pack */

typedef struct DflashColumn {
  const char *name; /* in the text that is walked */
  size_t length;
  double *values;
  size_t count, capacity, next;
} DflashColumn;

typedef struct DflashColumns {
  DflashColumn *at;
  size_t count, capacity, last;
} DflashColumns;

/* From number to number, or mark to mark, through JSON lines without blanks. */
typedef struct DflashPackWalk {
  const char *at, *end;
  const char *name; /* the last member name before it; NULL: none yet */
  size_t length;
} DflashPackWalk;
bool dflash_pack_walk(DflashPackWalk *walk); /* true: at stands on the next number or mark */

/* The column of the walk's name, a new one at its end. NULL: memory is out, or there are too many. */
DflashColumn *dflash_columns_of(DflashColumns *columns, const DflashPackWalk *walk);
bool dflash_column_add(DflashColumn *column, double value);
void dflash_columns_free(DflashColumns *columns);

/* Appends the column's bytes. */
void dflash_column_encode(const DflashColumn *column, DflashText *out);
/* Fills values (of count) from data; the bytes taken, 0 when data is none or too short. */
size_t dflash_column_decode(DflashColumn *column, const unsigned char *data, size_t size);

#endif
