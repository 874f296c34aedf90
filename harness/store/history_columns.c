#include "store/history_columns.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 0, FROM_CENTRE = 16, WORD = 8, CENTRE_FROM = 16 };

/* Strings hold what looks like numbers; one before a ':' is a name. */
static void skip_string(DflashPackWalk *walk) {
  const char *start = walk->at + 1, *at = start;
  while (at < walk->end && *at != '"') at += *at == '\\' && at + 1 < walk->end ? 2 : 1;
  walk->at = at < walk->end ? at + 1 : walk->end;
  if (walk->at == walk->end || *walk->at != ':') return;
  walk->name = start;
  walk->length = (size_t)(at - start);
}

bool dflash_pack_walk(DflashPackWalk *walk) {
  while (walk->at < walk->end) {
    char c = *walk->at;
    if (c == DFLASH_PACK_MARK || c == '-' || (c >= '0' && c <= '9')) return true;
    if (c == '"')
      skip_string(walk);
    else
      walk->at++;
  }
  return false;
}

static bool is_of(const DflashColumn *column, const DflashPackWalk *walk) {
  return column->length == walk->length && (walk->length == 0 || memcmp(column->name, walk->name, walk->length) == 0);
}

DflashColumn *dflash_columns_of(DflashColumns *columns, const DflashPackWalk *walk) {
  if (columns->count > 0 && is_of(&columns->at[columns->last], walk)) return &columns->at[columns->last];
  for (size_t i = 0; i < columns->count; i++)
    if (is_of(&columns->at[i], walk)) return &columns->at[columns->last = i];
  if (columns->count == columns->capacity) {
    size_t capacity = columns->capacity ? 2 * columns->capacity : 64;
    DflashColumn *at = capacity <= DFLASH_COLUMNS_MOST ? realloc(columns->at, capacity * sizeof *at) : NULL;
    if (!at) return NULL;
    columns->at = at;
    columns->capacity = capacity;
  }
  columns->last = columns->count++;
  columns->at[columns->last] = (DflashColumn){.name = walk->name, .length = walk->length};
  return &columns->at[columns->last];
}

bool dflash_column_add(DflashColumn *column, double value) {
  if (column->count == column->capacity) {
    size_t capacity = column->capacity ? 2 * column->capacity : 16;
    double *values = realloc(column->values, capacity * sizeof *values);
    if (!values) return false;
    column->values = values;
    column->capacity = capacity;
  }
  column->values[column->count++] = value;
  return true;
}

void dflash_columns_free(DflashColumns *columns) {
  for (size_t i = 0; i < columns->count; i++) free(columns->at[i].values);
  free(columns->at);
  *columns = (DflashColumns){0};
}

/* -0 is none: its sign would be lost. */
static bool is_whole(double value) {
  return fabs(value) < 0x1p53 && value == floor(value) && (value != 0 || !signbit(value));
}

static bool are_whole(const DflashColumn *column) {
  for (size_t i = 0; i < column->count; i++)
    if (!is_whole(column->values[i])) return false;
  return true;
}

static uint64_t zigzag(uint64_t difference) { return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0); }
static uint64_t unzigzag(uint64_t coded) { return coded >> 1 ^ (coded & 1 ? UINT64_MAX : 0); }

static int bits_of(uint64_t word) { return word ? 64 - __builtin_clzll(word) : 0; }

/* Differences of whole numbers from the one before, or all from `before`; the bits that they need in sum. */
static uint64_t differ(const DflashColumn *column, int64_t before, bool from_centre, uint64_t *words) {
  uint64_t bits = 0, last = (uint64_t)before;
  for (size_t i = 0; i < column->count; i++) {
    uint64_t value = (uint64_t)(int64_t)column->values[i];
    words[i] = zigzag(value - last);
    bits += (uint64_t)bits_of(words[i]);
    if (!from_centre) last = value;
  }
  return bits;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* words: room for the column, used as scratch. */
static int64_t median_of(const DflashColumn *column, uint64_t *words) {
  double *sorted = (double *)words;
  memcpy(sorted, column->values, column->count * sizeof *sorted);
  qsort(sorted, column->count, sizeof *sorted, by_value);
  return (int64_t)sorted[column->count / 2];
}

static void put_planes(DflashText *out, const uint64_t *words, size_t count, size_t width) {
  char *plane = malloc(count + 1);
  if (!plane) out->failed = true;
  for (size_t p = 0; plane && p < width; p++) {
    for (size_t i = 0; i < count; i++) plane[i] = (char)(words[i] >> 8 * (width - 1 - p));
    dflash_text_bytes(out, plane, count);
  }
  free(plane);
}

static size_t width_of(const uint64_t *words, size_t count) {
  uint64_t all = 1; /* one plane at least */
  for (size_t i = 0; i < count; i++) all |= words[i];
  return (size_t)(bits_of(all) + 7) / 8;
}

static void put_whole(const DflashColumn *column, uint64_t *words, DflashText *out) {
  int64_t centre = 0;
  bool from_centre = false;
  if (column->count >= CENTRE_FROM) {
    centre = median_of(column, words);
    from_centre = differ(column, centre, true, words) < differ(column, 0, false, words);
  }
  differ(column, centre * from_centre, from_centre, words);
  size_t width = width_of(words, column->count);
  char head[1 + WORD] = {(char)(width + (from_centre ? FROM_CENTRE : 0))};
  for (int i = 0; i < WORD; i++) head[1 + i] = (char)((uint64_t)centre >> 8 * i);
  dflash_text_bytes(out, head, from_centre ? sizeof head : 1);
  put_planes(out, words, column->count, width);
}

void dflash_column_encode(const DflashColumn *column, DflashText *out) {
  uint64_t *words = malloc((column->count + 1) * sizeof *words);
  if (!words) {
    out->failed = true;
  } else if (are_whole(column)) {
    put_whole(column, words, out);
  } else {
    char kind = FLOATS;
    memcpy(words, column->values, column->count * sizeof *words);
    dflash_text_bytes(out, &kind, 1);
    put_planes(out, words, column->count, WORD);
  }
  free(words);
}

static uint64_t word_at(const unsigned char *planes, size_t i, size_t count, size_t width) {
  uint64_t word = 0;
  for (size_t p = 0; p < width; p++) word = word << 8 | planes[p * count + i];
  return word;
}

static void take_planes(DflashColumn *column, const unsigned char *planes, size_t width, int kind, uint64_t before) {
  for (size_t i = 0; i < column->count; i++) {
    uint64_t word = word_at(planes, i, column->count, width);
    if (kind == FLOATS) {
      memcpy(&column->values[i], &word, sizeof word);
      continue;
    }
    word = before + unzigzag(word);
    column->values[i] = (double)(int64_t)word;
    if (kind < FROM_CENTRE) before = word;
  }
}

size_t dflash_column_decode(DflashColumn *column, const unsigned char *data, size_t size) {
  if (size < 1 + WORD && (size < 1 || data[0] > FROM_CENTRE)) return 0;
  int kind = data[0];
  size_t head = kind > FROM_CENTRE ? 1 + WORD : 1, width = kind == FLOATS ? WORD : (size_t)kind & 15;
  if (kind > FROM_CENTRE + WORD || width < 1 || width > WORD || (size - head) / width < column->count) return 0;
  uint64_t before = 0;
  for (int i = WORD; head > 1 && i > 0; i--) before = before << 8 | data[i];
  take_planes(column, data + head, width, kind, before);
  return head + width * column->count;
}
