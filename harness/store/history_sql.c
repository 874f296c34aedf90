#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "store/history_parts.h"

static DflashStatus fail_system(const DflashHistory *h, DflashError *error) {
  int code = sqlite3_system_errno(h->db);
  return dflash_error_set(error, DFLASH_IO, "%s: %s: %s", h->path, sqlite3_errmsg(h->db),
                          code ? strerror(code) : "the system says no more");
}

DflashStatus dflash_history_fail(const DflashHistory *h, DflashError *error) {
  const char *text = sqlite3_errmsg(h->db);
  switch (sqlite3_errcode(h->db) & 0xff) {
  case SQLITE_NOTADB:
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: is no history: %s", h->path, text);
  case SQLITE_CORRUPT:
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: is damaged: %s", h->path, text);
  case SQLITE_FULL:
  case SQLITE_READONLY:
    return dflash_error_set(error, DFLASH_IO, "%s: cannot write: %s", h->path, text);
  case SQLITE_CANTOPEN:
  case SQLITE_IOERR:
    return fail_system(h, error);
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return dflash_error_set(error, DFLASH_IO, "%s: another program has kept it locked for too long", h->path);
  case SQLITE_NOMEM:
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its history", h->path);
  default:
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: is no history as this program knows it: %s", h->path,
                            text);
  }
}

DflashStatus dflash_history_execute(DflashHistory *h, const char *sql, DflashError *error) {
  return sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK ? DFLASH_OK : dflash_history_fail(h, error);
}

DflashStatus dflash_history_prepare(DflashHistory *h, const char *sql, sqlite3_stmt **statement, DflashError *error) {
  return sqlite3_prepare_v2(h->db, sql, -1, statement, NULL) == SQLITE_OK ? DFLASH_OK : dflash_history_fail(h, error);
}

static void bind_double(sqlite3_stmt *statement, int place, double value) {
  if (isnan(value))
    sqlite3_bind_null(statement, place);
  else
    sqlite3_bind_double(statement, place, value);
}

static void bind_bytes(sqlite3_stmt *statement, int place, const DflashText *bytes) {
  if (bytes)
    sqlite3_bind_blob64(statement, place, bytes->data ? bytes->data : "", bytes->size, SQLITE_STATIC);
  else
    sqlite3_bind_null(statement, place);
}

static void bind_all(sqlite3_stmt *statement, const char *letters, va_list *values) {
  for (int place = 1; letters[place - 1]; place++) {
    switch (letters[place - 1]) {
    case 'i':
      sqlite3_bind_int64(statement, place, va_arg(*values, int64_t));
      break;
    case 'd':
      bind_double(statement, place, va_arg(*values, double));
      break;
    case 't':
      sqlite3_bind_text(statement, place, va_arg(*values, const char *), -1, SQLITE_STATIC);
      break;
    default:
      bind_bytes(statement, place, va_arg(*values, const DflashText *));
    }
  }
}

void dflash_history_bind(sqlite3_stmt *statement, const char *letters, ...) {
  va_list values;
  va_start(values, letters);
  bind_all(statement, letters, &values);
  va_end(values);
}

static DflashStatus run(DflashHistory *h, sqlite3_stmt *statement, int64_t *value, DflashError *error) {
  int result = sqlite3_step(statement);
  if (result == SQLITE_ROW && value) *value = sqlite3_column_int64(statement, 0);
  while (result == SQLITE_ROW) result = sqlite3_step(statement);
  DflashStatus status = result == SQLITE_DONE ? DFLASH_OK : dflash_history_fail(h, error);
  sqlite3_finalize(statement);
  return status;
}

DflashStatus dflash_history_do(DflashHistory *h, DflashError *error, const char *sql, const char *letters, ...) {
  sqlite3_stmt *statement = NULL;
  DflashStatus status = dflash_history_prepare(h, sql, &statement, error);
  if (status != DFLASH_OK) return status;
  va_list values;
  va_start(values, letters);
  bind_all(statement, letters, &values);
  va_end(values);
  return run(h, statement, NULL, error);
}

DflashStatus dflash_history_number(DflashHistory *h, int64_t *value, DflashError *error, const char *sql,
                                   const char *letters, ...) {
  sqlite3_stmt *statement = NULL;
  DflashStatus status = dflash_history_prepare(h, sql, &statement, error);
  if (status != DFLASH_OK) return status;
  va_list values;
  va_start(values, letters);
  bind_all(statement, letters, &values);
  va_end(values);
  return run(h, statement, value, error);
}

DflashStatus dflash_history_begin(DflashHistory *h, DflashError *error) {
  return dflash_history_execute(h, "BEGIN IMMEDIATE", error);
}

DflashStatus dflash_history_end(DflashHistory *h, DflashStatus status, DflashError *error) {
  if (status == DFLASH_OK) status = dflash_history_execute(h, "COMMIT", error);
  if (status != DFLASH_OK && !sqlite3_get_autocommit(h->db)) sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
  return status;
}
