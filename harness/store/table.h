/* Aligned columns of text. Internal to store. */
#ifndef DFLASH_STORE_TABLE_H
#define DFLASH_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { DFLASH_COLOUR_NONE, DFLASH_COLOUR_GOOD, DFLASH_COLOUR_WARNING, DFLASH_COLOUR_BAD, DFLASH_COLOUR_HEAD };

typedef struct DflashTableCell {
  char *text;
  int colour; /* DFLASH_COLOUR_* */
} DflashTableCell;

typedef struct DflashTable {
  const char *columns; /* one letter a column: 'l' left, 'r' right; static */
  DflashTableCell *cells;
  size_t count, capacity;
  bool failed; /* memory was out: rows are missing */
} DflashTable;

/* The next cell, row by row. Control characters are replaced: names come from untrusted files. */
void dflash_table_cell(DflashTable *table, int colour, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Head cells, one a column, from a list with ',' between. */
void dflash_table_head(DflashTable *table, const char *names);
/* Prints whole rows, with `indent` blanks before each, and empties the table. */
void dflash_table_print(DflashTable *table, FILE *file, int indent, bool coloured);

/* One line of text, cleaned like a cell; no newline is added. */
void dflash_table_text(FILE *file, bool coloured, int colour, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
