#include <cjson/cJSON.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/fields.h"
#include "store/history_parts.h"

typedef struct Found {
  int64_t run, number, id;
} Found;

typedef struct Export {
  DflashHistory *history;
  DflashHistoryEmit emit;
  void *context;
  Found *found; /* what matches */
  size_t count, capacity;
  bool failed; /* memory was out */
} Export;

static int add(void *context, const DflashHistoryResult *r) {
  Export *e = context;
  if (e->count == e->capacity) {
    size_t capacity = e->capacity ? 2 * e->capacity : 256;
    Found *found = realloc(e->found, capacity * sizeof *found);
    e->failed = found == NULL;
    if (e->failed) return 1;
    e->found = found;
    e->capacity = capacity;
  }
  e->found[e->count++] = (Found){r->run, r->number, r->id};
  return 0;
}

static int by_place(const void *a, const void *b) {
  const Found *x = a, *y = b;
  if (x->run != y->run) return x->run < y->run ? -1 : 1;
  if (x->number != y->number) return x->number < y->number ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

/* The records of the array from the first-th on, until emit has enough. */
static bool emit_from(const Export *e, const cJSON *records, int first, int last) {
  int place = 0;
  const cJSON *record;
  cJSON_ArrayForEach(record, records) {
    bool chosen = place >= first && place <= last;
    place++;
    if (chosen && e->emit(e->context, record) != 0) return false;
  }
  return true;
}

/* found .. end: results of one run, none for a run without. *more becomes false when emit has enough. */
static DflashStatus emit_run(const Export *e, int64_t run, const Found *found, const Found *end, bool *more,
                             DflashError *error) {
  cJSON *own = NULL;
  DflashStatus status = dflash_history_run(e->history, run, &own, error);
  if (status != DFLASH_OK) return status;
  *more = emit_from(e, own, 0, 0);
  for (; found < end && *more && status == DFLASH_OK; found++) {
    if (found->id == 0) continue;
    cJSON *records = NULL;
    status = dflash_history_records(e->history, found->id, &records, error);
    *more = status == DFLASH_OK && emit_from(e, records, 0, cJSON_GetArraySize(records));
    cJSON_Delete(records);
  }
  if (status == DFLASH_OK && *more) *more = emit_from(e, own, 1, cJSON_GetArraySize(own));
  cJSON_Delete(own);
  return status;
}

static DflashStatus emit_found(const Export *e, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  bool more = true;
  for (size_t at = 0, next; at < e->count && more && status == DFLASH_OK; at = next) {
    for (next = at + 1; next < e->count && e->found[next].run == e->found[at].run;) next++;
    status = emit_run(e, e->found[at].run, e->found + at, e->found + next, &more, error);
  }
  return status;
}

static bool takes_all(const DflashHistoryFilter *f) {
  const char *const texts[] = {f->kind,    f->backend, f->device, f->profile,  f->case_name,
                               f->outcome, f->machine, f->golden, f->revision, f->dirty};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i] && *texts[i]) return false;
  return f->since == 0 && f->until == 0 && f->series == 0 && f->limit == 0;
}

/* Runs without a result, of --run or all. */
static DflashStatus add_empty_runs(Export *e, const DflashHistoryFilter *filter, DflashError *error) {
  sqlite3_stmt *statement = NULL;
  int found = SQLITE_DONE;
  DflashStatus status = dflash_history_prepare(e->history,
                                               "SELECT id FROM run WHERE (?1 = 0 OR id = ?1) AND NOT EXISTS"
                                               " (SELECT 1 FROM result WHERE result.run = run.id)",
                                               &statement, error);
  if (status != DFLASH_OK) return status;
  dflash_history_bind(statement, "i", filter->run);
  while ((found = sqlite3_step(statement)) == SQLITE_ROW && !e->failed)
    add(e, &(DflashHistoryResult){.run = sqlite3_column_int64(statement, 0)});
  if (found != SQLITE_DONE && found != SQLITE_ROW) status = dflash_history_fail(e->history, error);
  sqlite3_finalize(statement);
  return status;
}

DflashStatus dflash_history_export(DflashHistory *h, const DflashHistoryFilter *filter, DflashHistoryEmit emit,
                                   void *context, int64_t *results, DflashError *error) {
  Export e = {.history = h, .emit = emit, .context = context};
  DflashStatus status = dflash_history_list(h, filter, add, &e, error);
  *results = (int64_t)e.count;
  if (status == DFLASH_OK && takes_all(filter)) status = add_empty_runs(&e, filter, error);
  if (status == DFLASH_OK && e.failed)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory to export it", h->path);
  if (e.count > 0) qsort(e.found, e.count, sizeof *e.found, by_place);
  if (status == DFLASH_OK) status = emit_found(&e, error);
  free(e.found);
  return status;
}
