#include <cjson/cJSON.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "store/fields.h"
#include "store/history_work.h"
#include "store/store.h"

enum { LINE_MOST = 64 << 20 };

/* NULL when the line is no record of this schema and version. */
static cJSON *parse_line(const char *line, size_t size) {
  const char *end = NULL;
  if (size > LINE_MOST) return NULL;
  cJSON *record = cJSON_ParseWithLengthOpts(line, size, &end, 0);
  if (record && end == line + size && strcmp(dflash_field_text(record, "schema"), DFLASH_RECORD_SCHEMA) == 0 &&
      dflash_field_number(record, "version") == DFLASH_RECORD_VERSION)
    return record;
  cJSON_Delete(record);
  return NULL;
}

static DflashStatus take_line(DflashHistoryWork *work, const char *line, size_t size, DflashError *error) {
  cJSON *record = parse_line(line, size);
  if (!record)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "is no record of schema %s, version %d", DFLASH_RECORD_SCHEMA,
                            DFLASH_RECORD_VERSION);
  DflashStatus status = dflash_history_work_take(work, record, error);
  cJSON_Delete(record);
  return status;
}

/* A line without its end broke off while it was written. */
static DflashStatus take_lines(DflashHistoryWork *work, const char *name, const char *text, uint64_t size,
                               DflashError *error) {
  const char *at = text, *end = text + size, *newline;
  for (int64_t number = 1; at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL; number++) {
    DflashStatus status = take_line(work, at, (size_t)(newline - at), error);
    if (status != DFLASH_OK) {
      dflash_error_prefix(error, "%s: line %lld", name, (long long)number);
      return status;
    }
    at = newline + 1;
  }
  return DFLASH_OK;
}

DflashStatus dflash_history_import_text(DflashHistory *history, const char *name, const char *text, uint64_t size,
                                        DflashHistoryCounts *counts, DflashError *error) {
  DflashHistoryWork work = {.history = history, .in_transaction = true};
  DflashStatus status = dflash_history_begin(history, error);
  if (status != DFLASH_OK) return status;
  status = take_lines(&work, name, text, size, error);
  DflashStatus closed = dflash_history_work_close(&work, status == DFLASH_OK ? error : NULL);
  if (status == DFLASH_OK) status = closed;
  status = dflash_history_end(history, status, error);
  *counts = status == DFLASH_OK ? work.counts : (DflashHistoryCounts){0};
  return status;
}

DflashStatus dflash_history_import(DflashHistory *history, const char *path, DflashHistoryCounts *counts,
                                   DflashError *error) {
  DflashMapping file = {0};
  *counts = (DflashHistoryCounts){0};
  DflashStatus status = dflash_map_file(path, &file, error);
  if (status == DFLASH_OK && file.size > 0)
    status = dflash_history_import_text(history, path, (const char *)file.data, file.size, counts, error);
  dflash_unmap_file(&file);
  return status;
}
