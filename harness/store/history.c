#include "store/history.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "store/fields.h"
#include "store/history_pack.h"
#include "store/history_parts.h"

enum { WAIT_MS = 60000, MOST_BYTES = 300 << 20 };

static DflashStatus check_place(const char *path, DflashHistoryAccess access, DflashError *error) {
  struct stat about;
  if (path[0] == '\0') return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "a history needs a file's name");
  if (stat(path, &about) != 0) {
    if (errno == ENOENT && access == DFLASH_HISTORY_WRITE) return DFLASH_OK;
    return dflash_error_set(error, DFLASH_IO, "%s: cannot open: %s", path, strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) return dflash_error_set(error, DFLASH_IO, "%s: is no regular file", path);
  if (about.st_size != 1) return DFLASH_OK; /* of that size SQLite takes any file for an empty one */
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: is no history: file is not a database", path);
}

/* SQL function matches(patterns, name): as in --case. */
static void matches(sqlite3_context *context, int count, sqlite3_value **values) {
  const char *patterns = (const char *)sqlite3_value_text(values[0]),
             *name = (const char *)sqlite3_value_text(values[1]);
  (void)count;
  sqlite3_result_int(context, dflash_glob_match(patterns, name ? name : ""));
}

/* The file may come from anywhere: nothing that it defines is run. */
static void distrust(sqlite3 *db) {
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MOST_BYTES);
}

static DflashStatus open_database(DflashHistory *h, DflashHistoryAccess access, DflashError *error) {
  int flags = SQLITE_OPEN_READWRITE | (access == DFLASH_HISTORY_WRITE ? SQLITE_OPEN_CREATE : 0);
  char *name = sqlite3_mprintf("%s%s", h->path[0] == '/' ? "" : "./", h->path); /* ":memory:" is a file's name here */
  int result = name ? sqlite3_open_v2(name, &h->db, flags, NULL) : SQLITE_NOMEM;
  sqlite3_free(name);
  if (!h->db) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory to open it", h->path);
  if (result != SQLITE_OK) return dflash_history_fail(h, error);
  distrust(h->db);
  sqlite3_busy_timeout(h->db, WAIT_MS);
  if (sqlite3_create_function(h->db, "matches", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, matches, NULL, NULL) !=
      SQLITE_OK)
    return dflash_history_fail(h, error);
  return dflash_history_execute(h, "PRAGMA foreign_keys = 1; PRAGMA cell_size_check = 1; PRAGMA cache_size = -65536",
                                error);
}

DflashStatus dflash_history_open(const char *path, DflashHistoryAccess access, DflashHistory **history,
                                 DflashError *error) {
  *history = NULL;
  DflashStatus status = check_place(path, access, error);
  if (status != DFLASH_OK) return status;
  DflashHistory *h = calloc(1, sizeof *h);
  if (h) h->path = strdup(path);
  if (!h || !h->path) {
    dflash_history_close(h);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory to open it", path);
  }
  status = open_database(h, access, error);
  if (status == DFLASH_OK) status = dflash_history_check(h, access, error);
  if (status == DFLASH_OK)
    *history = h;
  else
    dflash_history_close(h);
  return status;
}

void dflash_history_close(DflashHistory *h) {
  if (!h) return;
  sqlite3_close(h->db);
  free(h->path);
  free(h);
}

static DflashStatus add_line(cJSON *records, const char *line, size_t size, DflashError *error) {
  const char *end = NULL;
  cJSON *record = cJSON_ParseWithLengthOpts(line, size, &end, 0);
  if (record && end == line + size && cJSON_IsObject(record) && cJSON_AddItemToArray(records, record)) return DFLASH_OK;
  cJSON_Delete(record);
  return dflash_error_set(error, DFLASH_INVALID_DATA, "records are damaged: what they hold is no JSON");
}

/* Appends the records of a pack. */
static DflashStatus add_pack(cJSON *records, const void *pack, size_t size, DflashError *error) {
  DflashText lines = {0};
  DflashStatus status = dflash_unpack(pack, size, &lines, error);
  for (size_t at = 0; status == DFLASH_OK && at < lines.size;) {
    size_t length = strcspn(lines.data + at, "\n");
    status = add_line(records, lines.data + at, length, error);
    at += length + 1;
  }
  dflash_text_free(&lines);
  return status;
}

/* A run that has not ended has no second pack. */
static DflashStatus add_columns(cJSON *records, sqlite3_stmt *statement, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int i = 0; status == DFLASH_OK && i < sqlite3_column_count(statement); i++) {
    if (i > 0 && sqlite3_column_type(statement, i) == SQLITE_NULL) continue;
    const void *pack = sqlite3_column_blob(statement, i);
    status = add_pack(records, pack ? pack : "", (size_t)sqlite3_column_bytes(statement, i), error);
  }
  return status;
}

/* The packs of the one row that sql gives. */
static DflashStatus read_packs(DflashHistory *h, const char *sql, const char *what, int64_t id, cJSON **records,
                               DflashError *error) {
  sqlite3_stmt *statement = NULL;
  *records = cJSON_CreateArray();
  if (!*records) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for records", h->path);
  DflashStatus status = dflash_history_prepare(h, sql, &statement, error);
  if (status == DFLASH_OK) {
    dflash_history_bind(statement, "i", id);
    int found = sqlite3_step(statement);
    if (found == SQLITE_ROW) {
      status = add_columns(*records, statement, error);
      if (status != DFLASH_OK) dflash_error_prefix(error, "%s: %s %lld", h->path, what, (long long)id);
    } else if (found == SQLITE_DONE) {
      status =
          dflash_error_set(error, DFLASH_INVALID_DATA, "%s: has no records of %s %lld", h->path, what, (long long)id);
    } else {
      status = dflash_history_fail(h, error);
    }
  }
  sqlite3_finalize(statement);
  if (status == DFLASH_OK) return DFLASH_OK;
  cJSON_Delete(*records);
  *records = NULL;
  return status;
}

DflashStatus dflash_history_records(DflashHistory *h, int64_t result, cJSON **records, DflashError *error) {
  return read_packs(h, "SELECT pack FROM records WHERE result = ?", "result", result, records, error);
}

DflashStatus dflash_history_run(DflashHistory *h, int64_t run, cJSON **records, DflashError *error) {
  return read_packs(h, "SELECT head, tail FROM run WHERE id = ?", "run", run, records, error);
}

DflashStatus dflash_history_record(DflashHistory *h, int64_t result, const char *type, cJSON **record,
                                   DflashError *error) {
  cJSON *records, *found = NULL, *each;
  *record = NULL;
  DflashStatus status = dflash_history_records(h, result, &records, error);
  if (status != DFLASH_OK) return status;
  cJSON_ArrayForEach(each, records) {
    if (dflash_record_is(each, type)) found = each;
  }
  if (found) *record = cJSON_DetachItemViaPointer(records, found);
  cJSON_Delete(records);
  return DFLASH_OK;
}

DflashStatus dflash_history_samples(DflashHistory *h, int64_t result, double **samples, int64_t *count,
                                    DflashError *error) {
  cJSON *bench;
  *samples = NULL;
  *count = 0;
  DflashStatus status = dflash_history_record(h, result, "bench", &bench, error);
  const cJSON *array = dflash_field(bench, "samples"), *each;
  size_t size = (size_t)cJSON_GetArraySize(array);
  if (status == DFLASH_OK) *samples = malloc((size + 1) * sizeof **samples);
  if (status == DFLASH_OK && !*samples)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for samples", h->path);
  cJSON_ArrayForEach(each, array) {
    if (*samples && cJSON_IsNumber(each)) (*samples)[(*count)++] = each->valuedouble;
  }
  cJSON_Delete(bench);
  return status;
}
