#include "compare/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/stage_table.h"

/* Columns that belong together in a stage, and what they are called. */
typedef struct Unit {
  int64_t size;
  const char *name;
} Unit;

static Unit stage_unit(const DflashGeometry *g, int32_t stage) {
  switch (dflash_stage_row(stage)->width) {
  case DFLASH_WIDTH_Q:
    return (Unit){g->head_dim, "head"};
  case DFLASH_WIDTH_KV:
    return (Unit){g->head_dim, "kv head"};
  case DFLASH_WIDTH_KERNEL:
    return (Unit){dflash_geometry_groups(g), "side and tap"};
  case DFLASH_WIDTH_HIDDEN:
    return (Unit){g->conv_group, "group"};
  default:
    return (Unit){1, "column"};
  }
}

void dflash_place_name(const DflashGeometry *g, int32_t stage, int64_t row, int64_t col, char *text, size_t size) {
  long long r = row, c = col;
  switch (dflash_stage_row(stage)->width) {
  case DFLASH_WIDTH_Q:
  case DFLASH_WIDTH_KV:
    snprintf(text, size, "row %lld, %s %lld, channel %lld", r, stage_unit(g, stage).name, c / g->head_dim,
             c % g->head_dim);
    break;
  case DFLASH_WIDTH_KERNEL: {
    long long groups = dflash_geometry_groups(g);
    snprintf(text, size, "row %lld, side %lld, tap %lld, group %lld", r, c / groups / g->conv_kernel,
             c / groups % g->conv_kernel, c % groups);
    break;
  }
  case DFLASH_WIDTH_HEAD:
    snprintf(text, size, "draft row %lld, token %lld", r, c);
    break;
  case DFLASH_WIDTH_RANK:
    snprintf(text, size, "draft row %lld, rank %lld", r, c);
    break;
  case DFLASH_WIDTH_TOP:
    snprintf(text, size, "draft row %lld, candidate %lld", r, c);
    break;
  case DFLASH_WIDTH_HIDDEN:
    snprintf(text, size, "row %lld, channel %lld (group %lld)", r, c, c / (long long)g->conv_group);
    break;
  default:
    snprintf(text, size, "row %lld, channel %lld", r, c);
    break;
  }
}

bool dflash_bad_map_open(DflashBadMap *map, int64_t rows, int64_t width) {
  *map = (DflashBadMap){.rows = rows,
                        .width = width,
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
  bool regular; /* first, first + step, ... last */
} Span;

static Span find_span(const int64_t *bad, int64_t count, int64_t unit) {
  Span s = {.first = -1, .last = -1, .regular = true, .of = (count + unit - 1) / unit};
  for (int64_t u = 0; u < s.of; u++) {
    int64_t any = 0;
    for (int64_t i = u * unit; i < (u + 1) * unit && i < count; i++) any |= bad[i];
    if (any == 0) continue;
    if (s.count == 0) s.first = u;
    if (s.count == 1) s.step = u - s.first;
    if (s.count > 1 && u - s.last != s.step) s.regular = false;
    s.last = u;
    s.count++;
  }
  return s;
}

/* A regular span in words; false when the set has no shape worth naming. */
static bool name_span(const Span *s, const char *unit, char *text, size_t size) {
  long long first = s->first, last = s->last, step = s->step;
  bool shaped = s->count == 1 || (s->regular && s->count < s->of && (step == 1 || s->count > 2));
  if (!shaped) return false;
  if (s->count == 1)
    snprintf(text, size, "one %s (%lld)", unit, first);
  else if (step > 1)
    snprintf(text, size, "every %lld%s %s from %lld to %lld", step,
             step == 2   ? "nd"
             : step == 3 ? "rd"
                         : "th",
             unit, first, last);
  else if (s->last == s->of - 1)
    snprintf(text, size, "%s %lld and all after it", unit, first);
  else
    snprintf(text, size, "%ss %lld to %lld", unit, first, last);
  return true;
}

void dflash_pattern_name(const DflashGeometry *g, int32_t stage, const DflashBadMap *map, char *text, size_t size) {
  if (map->total == map->rows * map->width) {
    snprintf(text, size, "every element");
    return;
  }
  Unit unit = stage_unit(g, stage);
  Span rows = find_span(map->by_row, map->rows, 1), cols = find_span(map->by_col, map->width, 1);
  Span units = find_span(map->by_col, map->width, unit.size);
  char row_text[64] = "", col_text[64] = "";
  bool by_row = name_span(&rows, "row", row_text, sizeof row_text);
  /* a few single columns say more than the units that they lie in; many columns less */
  bool by_col = cols.count <= 2 && name_span(&cols, "column", col_text, sizeof col_text);
  by_col = by_col || name_span(&units, unit.name, col_text, sizeof col_text) ||
           name_span(&cols, "column", col_text, sizeof col_text);
  double share = 100.0 * (double)map->total / ((double)map->rows * (double)map->width);
  if (by_row || by_col)
    snprintf(text, size, "%s%s%s", row_text, by_row && by_col ? ", " : "", col_text);
  else
    snprintf(text, size, "scattered (%.2g%%)", share);
}
