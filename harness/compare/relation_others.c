/* Rows that hold another row of the golden; heads and groups that hold another one. */
#include <stdio.h>

#include "compare/relation.h"

enum { MOST_PARTS = 8, MOST_SOURCES = 4096, MOST_OF_PART = 64 };

/* How a value is cut into parts: rows (size: width), or units of a row (size: unit). */
typedef struct Cut {
  const DflashCompareCall *call;
  int64_t size, count;
  bool rows;
} Cut;

static int64_t part_of(const Cut *cut, int64_t at) {
  return cut->rows ? at / cut->call->width : at % cut->call->width / cut->size;
}

static int64_t in_part(const Cut *cut, int64_t at, int64_t part) { return at + (part - part_of(cut, at)) * cut->size; }

typedef struct Members {
  int64_t at[MOST_OF_PART], count;
} Members;

static void take_members(const DflashBadSample *sample, const Cut *cut, int64_t part, Members *members) {
  members->count = 0;
  for (int64_t i = 0; i < sample->count && members->count < MOST_OF_PART; i++)
    if (part_of(cut, sample->at[i]) == part) members->at[members->count++] = sample->at[i];
}

static bool holds(const DflashBadSample *sample, const Cut *cut, const Members *members, int64_t source) {
  DflashTrial trial = {0};
  for (int64_t i = 0; i < members->count && trial.misfits < 2; i++) {
    int64_t from = in_part(cut, members->at[i], source);
    dflash_trial_add(&trial, sample, members->at[i], (double)sample->call->golden[from],
                     dflash_sample_sigma(sample, from));
  }
  return dflash_trial_convinces(&trial, members->count);
}

/* The part of the golden that `part` holds; -1 when none. */
static int64_t find_source(const DflashBadSample *sample, const Cut *cut, int64_t part, const Members *members) {
  int64_t most = cut->count < MOST_SOURCES ? cut->count : MOST_SOURCES;
  for (int64_t source = 0; source < most; source++)
    if (source != part && holds(sample, cut, members, source)) return source;
  return -1;
}

static int64_t next_part(const DflashBadSample *sample, const Cut *cut, int64_t after) {
  int64_t next = INT64_MAX;
  for (int64_t i = 0; i < sample->count; i++) {
    int64_t part = part_of(cut, sample->at[i]);
    if (part > after && part < next) next = part;
  }
  return next;
}

/* Of the first bad parts each must hold some other one. */
static bool find_parts(const DflashBadSample *sample, const Cut *cut, const char *name, char *text, size_t size) {
  int64_t parts = 0, first = -1, first_source = -1;
  bool same = true;
  Members members;
  int64_t part = next_part(sample, cut, -1);
  for (; part != INT64_MAX && parts < MOST_PARTS; part = next_part(sample, cut, part), parts++) {
    take_members(sample, cut, part, &members);
    int64_t source = find_source(sample, cut, part, &members);
    if (source < 0) return false;
    if (parts == 0) first = part, first_source = source;
    same &= source == first_source;
  }
  if (parts == 0) return false;
  if (parts == 1)
    snprintf(text, size, "%s %lld holds golden's %s %lld", name, (long long)first, name, (long long)first_source);
  else if (same)
    snprintf(text, size, "each holds golden's %s %lld", name, (long long)first_source);
  else
    snprintf(text, size, "each %s holds another one of golden's (%lld holds %lld, ...)", name, (long long)first,
             (long long)first_source);
  return true;
}

int dflash_relation_others(const DflashBadSample *sample, char *text, size_t size) {
  const DflashCompareCall *call = sample->call;
  DflashUnit unit = dflash_stage_unit(call->geometry, call->stage);
  const Cut rows = {call, call->width, call->rows, true};
  const Cut units = {call, unit.size, call->width / unit.size, false};
  if (call->row_ids == NULL && call->rows > 1 && find_parts(sample, &rows, "row", text, size))
    return DFLASH_RELATION_ROW;
  bool whole = unit.size > 1 && call->width % unit.size == 0;
  if (whole && find_parts(sample, &units, unit.name, text, size)) return DFLASH_RELATION_UNIT;
  return DFLASH_RELATION_NONE;
}
