#include "run/runs_history.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "run/git_revisions.h"
#include "store/fields.h"
#include "store/history.h"

enum { NIGHT_S = 86400, CANDIDATES = 4096 };

static int append(void *context, const cJSON *record) {
  cJSON *copy = cJSON_Duplicate(record, 1);
  return copy == NULL || !cJSON_AddItemToArray(context, copy);
}

/* All records of one run. */
static DflashStatus take_run(DflashRuns *runs, DflashHistory *history, const char *path, int64_t run,
                             DflashError *error) {
  char source[400];
  int64_t results = 0;
  cJSON *records = cJSON_CreateArray();
  snprintf(source, sizeof source, "%s#%lld", path, (long long)run);
  DflashStatus status =
      dflash_history_export(history, &(DflashHistoryFilter){.run = run}, append, records, &results, error);
  if (status == DFLASH_OK && results == 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: has no result of run %lld", path, (long long)run);
  if (status == DFLASH_OK) status = dflash_runs_take(runs, source, records, error);
  cJSON_Delete(records);
  return status;
}

DflashStatus dflash_runs_read_history(DflashRuns *runs, const char *path, const char *hash, DflashError *error) {
  char *file = strndup(path, (size_t)(hash - path)), *end = NULL;
  const int64_t run = strtoll(hash + 1, &end, 10);
  DflashHistory *history = NULL;
  DflashStatus status = DFLASH_OK;
  if (file == NULL)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a file's name");
  else if (run < 1 || *end != '\0')
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: '%s' is no number of a run", file, hash + 1);
  if (status == DFLASH_OK) status = dflash_history_open(file, DFLASH_HISTORY_READ, &history, error);
  if (status == DFLASH_OK) status = take_run(runs, history, file, run, error);
  dflash_history_close(history);
  free(file);
  return status;
}

/* ---- what a history has, newest first ---- */

typedef struct Candidate {
  int64_t id, run, time;
  char revision[48];
} Candidate;

typedef struct Found {
  Candidate *at;
  int64_t count, most;
} Found;

/* The base of a pair is another build's. */
static int find(void *context, const DflashHistoryResult *r) {
  Found *found = context;
  if (strcmp(r->side, "A") == 0) return 0;
  Candidate *one = &found->at[found->count++];
  *one = (Candidate){.id = r->id, .run = r->run, .time = r->time};
  snprintf(one->revision, sizeof one->revision, "%s", r->revision);
  return found->count == found->most;
}

static DflashStatus list(DflashHistory *history, const DflashHistoryFilter *filter, int64_t most, Found *found,
                         DflashError *error) {
  *found = (Found){.at = calloc((size_t)most, sizeof *found->at), .most = most};
  if (found->at == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for results of a history");
  return dflash_history_list(history, filter, find, found, error);
}

static bool is_same_night(const Candidate *first, const Candidate *other) {
  return first->time - other->time < NIGHT_S && strcmp(first->revision, other->revision) == 0;
}

DflashStatus dflash_runs_read_newest(DflashRuns *runs, const char *path, DflashError *error) {
  DflashHistory *history = NULL;
  Found found = {0};
  int64_t last = 0;
  DflashStatus status = dflash_history_open(path, DFLASH_HISTORY_READ, &history, error);
  if (status == DFLASH_OK) status = list(history, &(DflashHistoryFilter){0}, CANDIDATES, &found, error);
  for (int64_t i = 0; i < found.count && status == DFLASH_OK; i++) {
    if (!is_same_night(&found.at[0], &found.at[i]) || found.at[i].run == last) continue;
    last = found.at[i].run; /* results of a run stand together: one time, ids in a row */
    status = take_run(runs, history, path, last, error);
  }
  free(found.at);
  dflash_history_close(history);
  return status;
}

/* ---- the night before ---- */

typedef struct Before {
  DflashRuns *runs;
  DflashHistory *history;
  const char *path, *revisions; /* NULL: any revision */
  int64_t until;
} Before;

static int64_t time_of(const DflashResult *result) {
  struct tm utc = {0};
  const char *text = dflash_field_text(dflash_field(result->run, "environment"), "time");
  const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return end != NULL && *end == '\0' ? (int64_t)timegm(&utc) : 0;
}

static int64_t begin_of(const DflashRuns *now) {
  int64_t begin = 0;
  for (int64_t i = 0; i < now->count; i++) {
    const int64_t own = time_of(&now->results[i]);
    if (own > 0 && (begin == 0 || own < begin)) begin = own;
  }
  return begin;
}

/* Adds the candidate when it is the same thing timed; *same says whether. */
static DflashStatus try_one(const Before *b, const Candidate *one, const DflashResult *now, bool *same,
                            DflashError *error) {
  char source[400];
  cJSON *records = NULL, *own = NULL;
  DflashRuns read = {0};
  snprintf(source, sizeof source, "%s#%lld", b->path, (long long)one->run);
  DflashStatus status = dflash_history_records(b->history, one->id, &records, error);
  if (status == DFLASH_OK) status = dflash_history_run(b->history, one->run, &own, error);
  if (status == DFLASH_OK) cJSON_InsertItemInArray(records, 0, cJSON_DetachItemFromArray(own, 0));
  cJSON *copy = status == DFLASH_OK ? cJSON_Duplicate(records, 1) : NULL;
  if (status == DFLASH_OK) status = dflash_runs_take(&read, source, copy, error);
  *same = status == DFLASH_OK && read.count == 1 && read.results[0].bench != NULL &&
          dflash_result_differs(&read.results[0], now) == 0;
  if (*same) status = dflash_runs_take(b->runs, source, records, error);
  dflash_runs_close(&read);
  cJSON_Delete(copy);
  cJSON_Delete(own);
  cJSON_Delete(records);
  return status;
}

static DflashStatus read_one(const Before *b, const DflashResult *now, DflashError *error) {
  const char *inputs = dflash_field_text(now->bench, "inputs_hash");
  const DflashHistoryFilter filter = {.kind = "bench",
                                      .backend = dflash_field_text(now->bench, "backend"),
                                      .device = dflash_field_text(now->bench, "device"),
                                      .profile = dflash_field_text(now->bench, "profile"),
                                      .case_name = dflash_field_text(now->bench, "case"),
                                      .golden = strlen(inputs) >= 8 ? inputs : NULL,
                                      .outcome = "pass",
                                      .until = b->until};
  Found found = {0};
  const Candidate *night = NULL;
  DflashStatus status = list(b->history, &filter, CANDIDATES, &found, error);
  for (int64_t i = 0; i < found.count && status == DFLASH_OK; i++) {
    const Candidate *one = &found.at[i];
    bool same = false;
    if (night != NULL && !is_same_night(night, one)) continue;
    if (b->revisions != NULL && !dflash_revisions_have(b->revisions, one->revision)) continue;
    status = try_one(b, one, now, &same, error);
    if (same && night == NULL) night = one;
  }
  free(found.at);
  return status;
}

static bool was_seen(const DflashRuns *now, int64_t place) {
  for (int64_t i = 0; i < place; i++)
    if (now->results[i].bench != NULL && dflash_result_differs(&now->results[i], &now->results[place]) == 0)
      return true;
  return false;
}

DflashStatus dflash_runs_read_before(DflashRuns *runs, const char *path, const DflashRuns *now, const char *branch,
                                     DflashError *error) {
  Before b = {.runs = runs, .path = path, .until = begin_of(now)};
  char *revisions = NULL;
  DflashStatus status = branch != NULL ? dflash_revisions_of(branch, &revisions, error) : DFLASH_OK;
  b.revisions = revisions;
  if (status == DFLASH_OK) status = dflash_history_open(path, DFLASH_HISTORY_READ, &b.history, error);
  for (int64_t i = 0; i < now->count && status == DFLASH_OK; i++) {
    const DflashResult *result = &now->results[i];
    const char *side = dflash_field_text(result->bench, "side");
    if (result->bench == NULL || *side != '\0' || was_seen(now, i)) continue;
    status = read_one(&b, result, error);
  }
  dflash_history_close(b.history);
  free(revisions);
  return status;
}
