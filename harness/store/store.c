#include "store/store.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/fields.h"
#include "store/writer.h"

enum { CONSOLE, JSON_LINES, JUNIT, HISTORY, WRITERS };

struct DflashStore {
  DflashWriter writers[WRITERS];
  DflashResume *resume;
};

static DflashStatus open_writers(DflashStore *store, const DflashStoreOptions *options, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  if (options->resume && options->json_path) status = dflash_resume_open(options->json_path, &store->resume, error);
  if (status == DFLASH_OK && options->console)
    status = dflash_console_open(options->console, options->verbose, &store->writers[CONSOLE], error);
  if (status == DFLASH_OK && options->json_path)
    status = dflash_json_lines_open(options->json_path, store->resume, &store->writers[JSON_LINES], error);
  if (status == DFLASH_OK && options->junit_path)
    status = dflash_junit_open(options->junit_path, store->resume, options->json_path, &store->writers[JUNIT], error);
  if (status == DFLASH_OK && options->history_path)
    status = dflash_history_writer_open(options->history_path, &store->writers[HISTORY], error);
  return status;
}

DflashStatus dflash_store_open(const DflashStoreOptions *options, DflashStore **store, DflashError *error) {
  *store = calloc(1, sizeof **store);
  if (!*store) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a store");
  DflashStatus status = open_writers(*store, options, error);
  if (status == DFLASH_OK) return DFLASH_OK;
  dflash_store_close(*store, NULL);
  *store = NULL;
  return status;
}

/* In front, where a reader looks first. */
static int add_in_front(cJSON *record, const char *name, cJSON *value) {
  if (dflash_field(record, name)) {
    cJSON_Delete(value);
    return 1;
  }
  if (!cJSON_AddItemToObject(record, name, value)) {
    cJSON_Delete(value);
    return 0;
  }
  return cJSON_InsertItemInArray(record, 0, cJSON_DetachItemViaPointer(record, value));
}

DflashStatus dflash_store_record(DflashStore *store, cJSON *record, DflashError *error) {
  if (!cJSON_IsObject(record)) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "a record must be an object");
  if (!add_in_front(record, "version", cJSON_CreateNumber(DFLASH_RECORD_VERSION)) ||
      !add_in_front(record, "schema", cJSON_CreateString(DFLASH_RECORD_SCHEMA)))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a record");
  DflashStatus first = DFLASH_OK;
  for (int i = 0; i < WRITERS; i++) { /* one that fails does not keep the others from it */
    DflashWriter *writer = &store->writers[i];
    if (!writer->self) continue;
    DflashStatus status = writer->record(writer->self, record, first == DFLASH_OK ? error : NULL);
    if (first == DFLASH_OK) first = status;
  }
  return first;
}

const cJSON *dflash_store_find(const DflashStore *store, const cJSON *key) {
  return dflash_resume_find(store->resume, key);
}

int dflash_store_has(const DflashStore *store, const cJSON *key) { return dflash_store_find(store, key) != NULL; }

DflashStatus dflash_store_close(DflashStore *store, DflashError *error) {
  if (!store) return DFLASH_OK;
  DflashStatus first = DFLASH_OK;
  for (int i = 0; i < WRITERS; i++) {
    DflashWriter *writer = &store->writers[i];
    if (!writer->self) continue;
    DflashStatus status = writer->close(writer->self, first == DFLASH_OK ? error : NULL);
    if (first == DFLASH_OK) first = status;
  }
  dflash_resume_close(store->resume);
  free(store);
  return first;
}
