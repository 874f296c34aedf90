#include "store/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const colours[] = {"", "\033[32m", "\033[33m", "\033[31m", "\033[1m"};

static bool reserve(DflashTable *table) {
  if (table->count < table->capacity) return true;
  size_t capacity = table->capacity ? 2 * table->capacity : 64;
  DflashTableCell *cells = realloc(table->cells, capacity * sizeof *cells);
  if (!cells) return false;
  table->cells = cells;
  table->capacity = capacity;
  return true;
}

void dflash_table_cell(DflashTable *table, int colour, const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0 || !reserve(table)) {
    if (length >= 0) free(text);
    table->failed = true;
    return;
  }
  dflash_text_clean(text);
  table->cells[table->count++] = (DflashTableCell){.text = text, .colour = colour};
}

void dflash_table_head(DflashTable *table, const char *names) {
  for (size_t column = 0; table->columns[column]; column++) {
    size_t length = strcspn(names, ",");
    dflash_table_cell(table, DFLASH_COLOUR_HEAD, "%.*s", (int)length, names);
    names += length + (names[length] == ',');
  }
}

/* In characters: continuation bytes of UTF-8 take no room. */
static int width_of(const char *text) {
  int width = 0;
  for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

static int column_width(const DflashTable *table, size_t column, size_t columns) {
  int width = 0;
  for (size_t i = column; i < table->count; i += columns) {
    int own = width_of(table->cells[i].text);
    if (own > width) width = own;
  }
  return width;
}

static void print_coloured(FILE *file, bool coloured, int colour, const char *text) {
  bool colours_it = coloured && colour != DFLASH_COLOUR_NONE && *text;
  fprintf(file, "%s%s%s", colours_it ? colours[colour] : "", text, colours_it ? "\033[0m" : "");
}

/* Blanks are printed only before what follows them, so that no line ends in blanks. */
static void print_row(const DflashTable *table, const DflashTableCell *row, const int *widths, FILE *file, int blanks,
                      bool coloured) {
  for (size_t column = 0; table->columns[column]; column++) {
    int padding = widths[column] - width_of(row[column].text);
    if (table->columns[column] == 'r') blanks += padding;
    if (*row[column].text) {
      fprintf(file, "%*s", blanks, "");
      print_coloured(file, coloured, row[column].colour, row[column].text);
      blanks = 0;
    }
    blanks += 2;
    if (table->columns[column] != 'r') blanks += padding;
  }
  fputc('\n', file);
}

void dflash_table_print(DflashTable *table, FILE *file, int indent, bool coloured) {
  size_t columns = strlen(table->columns);
  int *widths = calloc(columns, sizeof *widths);
  for (size_t column = 0; widths && column < columns; column++) widths[column] = column_width(table, column, columns);
  for (size_t i = 0; widths && i + columns <= table->count; i += columns)
    print_row(table, table->cells + i, widths, file, indent, coloured);
  free(widths);
  for (size_t i = 0; i < table->count; i++) free(table->cells[i].text);
  free(table->cells);
  *table = (DflashTable){.columns = table->columns};
}

void dflash_table_text(FILE *file, bool coloured, int colour, const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  dflash_text_clean(text);
  print_coloured(file, coloured, colour, text);
  free(text);
}
