#include "compare/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/stage_table.h"

enum { FEW = 4 };

bool dflash_bad_map_open(DflashBadMap *map, int64_t rows, int64_t width) {
  *map = (DflashBadMap){.rows = rows,
                        .width = width,
                        .elements = rows * width,
                        .by_row = calloc((size_t)rows + 1, sizeof *map->by_row),
                        .by_col = calloc((size_t)width + 1, sizeof *map->by_col)};
  if (map->by_row != NULL && map->by_col != NULL) return true;
  dflash_bad_map_close(map);
  return false;
}

void dflash_bad_map_close(DflashBadMap *map) {
  free(map->by_row);
  free(map->by_col);
  map->by_row = map->by_col = NULL;
}

/* The set of units that hold something bad, described by first, last, step and count. */
typedef struct Span {
  int64_t count, first, last, step, of;
  int64_t few[FEW]; /* the first ones */
  bool regular;     /* first, first + step, ... last */
} Span;

static void span_add(Span *s, int64_t at) {
  if (s->count < FEW) s->few[s->count] = at;
  if (s->count == 0) s->first = at;
  if (s->count == 1) s->step = at - s->first;
  if (s->count > 1 && at - s->last != s->step) s->regular = false;
  s->last = at;
  s->count++;
}

static Span span_open(int64_t of) { return (Span){.first = -1, .last = -1, .regular = true, .of = of}; }

static Span find_span(const int64_t *bad, int64_t count, int64_t unit) {
  Span s = span_open((count + unit - 1) / unit);
  for (int64_t u = 0; u < s.of; u++) {
    int64_t any = 0;
    for (int64_t i = u * unit; i < (u + 1) * unit && i < count; i++) any |= bad[i];
    if (any != 0) span_add(&s, u);
  }
  return s;
}

/* Members (channels of a head) that are bad in any unit. */
static Span find_members(const int64_t *bad, int64_t count, int64_t unit) {
  Span s = span_open(unit);
  for (int64_t m = 0; m < unit; m++) {
    int64_t any = 0;
    for (int64_t i = m; i < count; i += unit) any |= bad[i];
    if (any != 0) span_add(&s, m);
  }
  return s;
}

static int span_kind(const Span *s) {
  if (s->count == 1) return DFLASH_SPAN_ONE;
  if (s->count == s->of) return DFLASH_SPAN_ALL;
  if (s->regular && s->step == 1)
    return s->last == s->of - 1 ? DFLASH_SPAN_TAIL : s->first == 0 ? DFLASH_SPAN_HEAD : DFLASH_SPAN_RANGE;
  if (s->regular && s->count > 2) return DFLASH_SPAN_STEP;
  return s->count <= FEW ? DFLASH_SPAN_FEW : DFLASH_SPAN_ALL;
}

static const char *ordinal(int64_t step) { return step == 2 ? "nd" : step == 3 ? "rd" : "th"; }

static void name_few(const Span *s, const char *unit, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "%lld %ss (", (long long)s->count, unit);
  for (int64_t i = 0; i < s->count && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? ", " : "", (long long)s->few[i]);
  if (used < size) snprintf(text + used, size - used, ")");
}

/* A span in words; returns its kind, and "" for DFLASH_SPAN_ALL. */
static int name_span(const Span *s, const char *unit, char *text, size_t size) {
  long long first = s->first, last = s->last;
  int kind = span_kind(s);
  text[0] = '\0';
  switch (kind) {
  case DFLASH_SPAN_ONE:
    snprintf(text, size, "one %s (%lld)", unit, first);
    break;
  case DFLASH_SPAN_TAIL:
    snprintf(text, size, "last %lld of %lld %ss", (long long)s->count, (long long)s->of, unit);
    break;
  case DFLASH_SPAN_HEAD:
  case DFLASH_SPAN_RANGE:
    snprintf(text, size, "%ss %lld to %lld", unit, first, last);
    break;
  case DFLASH_SPAN_STEP:
    snprintf(text, size, "every %lld%s %s from %lld to %lld", (long long)s->step, ordinal(s->step), unit, first, last);
    break;
  case DFLASH_SPAN_FEW:
    name_few(s, unit, text, size);
    break;
  default:
    break;
  }
  return kind;
}

/* Rows of the context are known by their positions. */
static int name_rows(int32_t stage, const DflashBadMap *map, char *text, size_t size) {
  Span rows = find_span(map->by_row, map->rows, 1);
  int kind = name_span(&rows, "row", text, size);
  bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  if (kind == DFLASH_SPAN_TAIL && context)
    snprintf(text, size, "position %lld and all after it", (long long)map->position + (long long)rows.first);
  else if (kind == DFLASH_SPAN_TAIL)
    snprintf(text, size, "row %lld and all after it", (long long)rows.first);
  return kind;
}

/* The same members in every unit: "one channel (3) of every head". */
static int name_members(const DflashBadMap *map, const DflashUnit *unit, const Span *cols, char *text, size_t size) {
  if (unit->size < 2 || map->width < 2 * unit->size || map->width % unit->size != 0) return DFLASH_SPAN_ALL;
  Span members = find_members(map->by_col, map->width, unit->size);
  if (cols->count != members.count * (map->width / unit->size)) return DFLASH_SPAN_ALL;
  int kind = name_span(&members, unit->member, text, size);
  size_t used = strlen(text);
  if (kind != DFLASH_SPAN_ALL) snprintf(text + used, size - used, " of every %s", unit->name);
  return kind;
}

/* A few single columns say more than the units that they lie in; many columns less. */
static void name_columns(const DflashUnit *unit, const DflashBadMap *map, DflashShape *shape, char *text, size_t size) {
  Span cols = find_span(map->by_col, map->width, 1), units = find_span(map->by_col, map->width, unit->size);
  bool single = cols.count <= 2 || (cols.regular && cols.step > 1 && cols.step < unit->size);
  shape->by = DFLASH_BY_COLUMN;
  shape->columns = single ? name_span(&cols, "column", text, size) : DFLASH_SPAN_ALL;
  if (shape->columns != DFLASH_SPAN_ALL) return;
  shape->by = DFLASH_BY_UNIT;
  shape->columns = unit->size > 1 ? name_span(&units, unit->name, text, size) : DFLASH_SPAN_ALL;
  if (shape->columns != DFLASH_SPAN_ALL) return;
  shape->by = DFLASH_BY_MEMBER;
  shape->columns = name_members(map, unit, &cols, text, size);
  if (shape->columns != DFLASH_SPAN_ALL) return;
  shape->by = DFLASH_BY_COLUMN;
  shape->columns = name_span(&cols, "column", text, size);
}

void dflash_pattern_name(const DflashGeometry *g, int32_t stage, const DflashBadMap *map, DflashShape *shape,
                         char *text, size_t size) {
  *shape = (DflashShape){0};
  shape->most = 2 * map->total > map->elements;
  if (map->total == map->elements) {
    snprintf(text, size, "every element");
    return;
  }
  char rows[96] = "", columns[128] = "";
  DflashUnit unit = dflash_stage_unit(g, stage);
  shape->rows = name_rows(stage, map, rows, sizeof rows);
  name_columns(&unit, map, shape, columns, sizeof columns);
  double share = 100.0 * (double)map->total / (double)map->elements;
  if (share > 99.9) share = 99.9; /* not every element: that is said in other words */
  if (rows[0] != '\0' || columns[0] != '\0')
    snprintf(text, size, "%s%s%s", rows, rows[0] != '\0' && columns[0] != '\0' ? ", " : "", columns);
  else
    snprintf(text, size, share < 10 ? "%s (%.2g%%)" : "%s (%.3g%%)", shape->most ? "most elements" : "scattered",
             share);
}

void dflash_pattern_find(const DflashCompareCall *call, const DflashBadMap *map, DflashComparison *out) {
  DflashShape shape;
  char where[160], relation[96] = "";
  dflash_pattern_name(call->geometry, call->stage, map, &shape, where, sizeof where);
  bool finite = out->outcome == DFLASH_OUTCOME_MISMATCH;
  int found = finite ? dflash_relation_find(call, map, relation, sizeof relation) : DFLASH_RELATION_NONE;
  int length =
      snprintf(out->pattern, sizeof out->pattern, "%s%s%s", where, found != DFLASH_RELATION_NONE ? ": " : "", relation);
  if (length >= (int)sizeof out->pattern) out->pattern[sizeof out->pattern - 1] = '\0';
  if (finite) snprintf(out->cause, sizeof out->cause, "%s", dflash_pattern_cause(call->stage, &shape, found));
}
