#include "run/runs.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "model/json.h"
#include "run/runs_history.h"
#include "store/fields.h"
#include "store/store.h"

#define FILE_LIMIT (UINT64_C(1) << 30)

static DflashStatus no_memory(DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for records");
}

/* One more place in an array of `size` bytes each; false when memory is out. */
static bool grow(void **array, int64_t count, int64_t *capacity, size_t size) {
  if (count < *capacity) return true;
  const int64_t wanted = *capacity > 0 ? 2 * *capacity : 64;
  void *larger = realloc(*array, (size_t)wanted * size);
  if (larger == NULL) return false;
  *array = larger;
  *capacity = wanted;
  return true;
}

static const char *keep_source(DflashRuns *runs, const char *source) {
  char **larger = realloc(runs->sources, (size_t)(runs->source_count + 1) * sizeof *larger);
  if (larger == NULL) return NULL;
  runs->sources = larger;
  larger[runs->source_count] = strdup(source);
  return larger[runs->source_count] != NULL ? larger[runs->source_count++] : NULL;
}

/* What came since the last complete case. */
typedef struct Open {
  const char *source;
  const cJSON *run, *model, *bench;
  int64_t first;
} Open;

static bool complete(DflashRuns *runs, Open *open, const cJSON *done) {
  if (!grow((void **)&runs->results, runs->count, &runs->capacity, sizeof *runs->results)) return false;
  runs->results[runs->count++] = (DflashResult){.source = open->source,
                                                .run = open->run,
                                                .model = open->model,
                                                .bench = open->bench,
                                                .done = done,
                                                .first = open->first,
                                                .end = runs->record_count};
  open->bench = NULL;
  open->first = runs->record_count;
  return true;
}

/* Takes the record over. Another `run` begins another process: what it left unfinished is none of this one's. */
static DflashStatus add(DflashRuns *runs, Open *open, cJSON *record, DflashError *error) {
  if (!grow((void **)&runs->records, runs->record_count, &runs->record_capacity, sizeof(cJSON *))) {
    cJSON_Delete(record);
    return no_memory(error);
  }
  runs->records[runs->record_count++] = record;
  if (dflash_record_is(record, "run"))
    *open = (Open){.source = open->source, .run = record, .first = runs->record_count};
  if (dflash_record_is(record, "model")) open->model = record;
  if (dflash_record_is(record, "bench")) open->bench = record;
  return !dflash_record_is(record, "case") || complete(runs, open, record) ? DFLASH_OK : no_memory(error);
}

DflashStatus dflash_runs_take(DflashRuns *runs, const char *source, cJSON *array, DflashError *error) {
  Open open = {.source = keep_source(runs, source), .first = runs->record_count};
  DflashStatus status = open.source != NULL ? DFLASH_OK : no_memory(error);
  while (status == DFLASH_OK && cJSON_GetArraySize(array) > 0)
    status = add(runs, &open, cJSON_DetachItemFromArray(array, 0), error);
  return status;
}

static bool is_record(const cJSON *line) {
  return strcmp(dflash_field_text(line, "schema"), DFLASH_RECORD_SCHEMA) == 0 &&
         dflash_field_number(line, "version") == DFLASH_RECORD_VERSION;
}

static DflashStatus parse_line(DflashRuns *runs, Open *open, const char *line, uint64_t size, DflashError *error) {
  cJSON *record = NULL;
  DflashStatus status = dflash_json_parse(line, size, "the line", &record, error);
  if (status != DFLASH_OK) return status;
  if (is_record(record)) return add(runs, open, record, error);
  cJSON_Delete(record);
  return dflash_error_set(error, DFLASH_INVALID_DATA, "no record of schema " DFLASH_RECORD_SCHEMA ", version %d",
                          DFLASH_RECORD_VERSION);
}

DflashStatus dflash_runs_parse(DflashRuns *runs, const char *text, uint64_t size, const char *source,
                               DflashError *error) {
  Open open = {.source = keep_source(runs, source), .first = runs->record_count};
  DflashStatus status = open.source != NULL ? DFLASH_OK : no_memory(error);
  int64_t number = 0;
  for (uint64_t at = 0; at < size && status == DFLASH_OK;) {
    const char *end = memchr(text + at, '\n', size - at);
    const uint64_t length = end != NULL ? (uint64_t)(end - text) - at : size - at;
    number++;
    if (length > 0) status = parse_line(runs, &open, text + at, length, error);
    at += length + 1;
  }
  if (status != DFLASH_OK && number > 0) dflash_error_prefix(error, "%s: line %lld", source, (long long)number);
  return status;
}

static DflashStatus read_one(DflashRuns *runs, const char *path, DflashError *error) {
  const char *hash = strrchr(path, '#');
  if (hash != NULL && access(path, F_OK) != 0) return dflash_runs_read_history(runs, path, hash, error);
  char *text = NULL;
  uint64_t size = 0;
  DflashStatus status = dflash_read_file(path, FILE_LIMIT, &text, &size, error);
  if (status == DFLASH_OK) status = dflash_runs_parse(runs, text, size, path, error);
  free(text);
  return status;
}

DflashStatus dflash_runs_read(DflashRuns *runs, const char *place, DflashError *error) {
  if (strchr(place, ',') == NULL || access(place, F_OK) == 0) return read_one(runs, place, error);
  char *list = strdup(place), *rest = NULL;
  DflashStatus status = list != NULL ? DFLASH_OK : no_memory(error);
  for (char *word = list != NULL ? strtok_r(list, ",", &rest) : NULL; word != NULL && status == DFLASH_OK;
       word = strtok_r(NULL, ",", &rest))
    status = read_one(runs, word, error);
  free(list);
  return status;
}

void dflash_runs_close(DflashRuns *runs) {
  for (int64_t i = 0; i < runs->record_count; i++) cJSON_Delete(runs->records[i]);
  for (int64_t i = 0; i < runs->source_count; i++) free(runs->sources[i]);
  free(runs->records);
  free(runs->results);
  free(runs->sources);
  *runs = (DflashRuns){0};
}
