#include "base/error.h"
#include "store/history_parts.h"

#define APPLICATION 0x44464831 /* "DFH1" */

#define VERSION_1                                                                                                  \
  "CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, uid BLOB NOT NULL UNIQUE, time INTEGER NOT NULL,"       \
  " kind TEXT NOT NULL, command TEXT NOT NULL, tool TEXT NOT NULL, revision TEXT NOT NULL, dirty TEXT NOT NULL,"   \
  " machine TEXT NOT NULL, host TEXT NOT NULL, head BLOB NOT NULL, tail BLOB, exit INTEGER, elapsed_s REAL);"      \
  "CREATE INDEX run_time ON run (time);"                                                                           \
  "CREATE INDEX run_revision ON run (revision);"                                                                   \
  "CREATE TABLE series (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, backend TEXT NOT NULL, device TEXT NOT NULL,"  \
  " device_name TEXT NOT NULL, profile TEXT NOT NULL, case_name TEXT NOT NULL, inputs_hash TEXT NOT NULL,"         \
  " modes TEXT NOT NULL, settings TEXT NOT NULL, machine TEXT NOT NULL,"                                           \
  " UNIQUE (inputs_hash, kind, backend, device, device_name, profile, case_name, modes, settings, machine));"      \
  "CREATE TABLE result (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,"            \
  " number INTEGER NOT NULL, uid BLOB NOT NULL, series INTEGER NOT NULL REFERENCES series, time INTEGER NOT NULL," \
  " golden TEXT NOT NULL, values_hash TEXT NOT NULL, backend_version TEXT NOT NULL, driver TEXT NOT NULL,"         \
  " backend_file TEXT NOT NULL, outcome TEXT NOT NULL, passed INTEGER, failed INTEGER, other INTEGER,"             \
  " largest_score REAL, elapsed_s REAL, stopped_by TEXT NOT NULL, samples INTEGER, median_ns REAL, low_ns REAL,"   \
  " high_ns REAL, wall_ns REAL, cpu_ns REAL, UNIQUE (run, uid));"                                                  \
  "CREATE INDEX result_series ON result (series, time);"                                                           \
  "CREATE INDEX result_time ON result (time);"                                                                     \
  "CREATE TABLE records (result INTEGER PRIMARY KEY REFERENCES result ON DELETE CASCADE, pack BLOB NOT NULL);"     \
  "CREATE TABLE group_time (result INTEGER NOT NULL REFERENCES result ON DELETE CASCADE, name TEXT NOT NULL,"      \
  " ns REAL NOT NULL, PRIMARY KEY (result, name)) WITHOUT ROWID;"

/* Version 2: which side of a pair, whose build, and what disturbed it stand with the result; goldens without a hash are
 * told apart by their names. */
#define VERSION_2                                                                                                 \
  "ALTER TABLE result ADD COLUMN side TEXT NOT NULL DEFAULT '';"                                                  \
  "ALTER TABLE result ADD COLUMN pair INTEGER;"                                                                   \
  "ALTER TABLE result ADD COLUMN revision TEXT NOT NULL DEFAULT '';"                                              \
  "ALTER TABLE result ADD COLUMN dirty TEXT NOT NULL DEFAULT '';"                                                 \
  "ALTER TABLE result ADD COLUMN load REAL;"                                                                      \
  "ALTER TABLE result ADD COLUMN other_users INTEGER;"                                                            \
  "ALTER TABLE result ADD COLUMN throttle INTEGER;"                                                               \
  "DROP INDEX run_revision;"                                                                                      \
  "INSERT OR IGNORE INTO series (kind, backend, device, device_name, profile, case_name, inputs_hash, modes, "    \
  "settings,"                                                                                                     \
  " machine) SELECT kind, backend, device, device_name, profile, case_name, 'file:' || golden, modes, settings, " \
  "machine"                                                                                                       \
  " FROM result JOIN series ON series.id = result.series WHERE inputs_hash = '' AND golden <> '';"                \
  "UPDATE result SET series = (SELECT new.id FROM series new JOIN series old ON old.id = result.series"           \
  " WHERE new.inputs_hash = 'file:' || result.golden AND new.kind = old.kind AND new.backend = old.backend"       \
  " AND new.device = old.device AND new.device_name = old.device_name AND new.profile = old.profile"              \
  " AND new.case_name = old.case_name AND new.modes = old.modes AND new.settings = old.settings"                  \
  " AND new.machine = old.machine)"                                                                               \
  " WHERE golden <> '' AND series IN (SELECT id FROM series WHERE inputs_hash = '');"                             \
  "DELETE FROM series WHERE id NOT IN (SELECT series FROM result)"

typedef struct Step {
  const char *sql;
  DflashStatus (*then)(DflashHistory *history, DflashError *error); /* what SQL cannot see; NULL: nothing */
} Step;

/* Step v makes version v of version v - 1; a new file takes all of them. docs/history.md tells what they come to. */
static const Step steps[] = {{NULL, NULL}, {VERSION_1, NULL}, {VERSION_2, dflash_history_state_again}};
_Static_assert(sizeof steps / sizeof steps[0] == DFLASH_HISTORY_VERSION + 1, "a step a version");

typedef struct Found {
  int64_t application, version, tables;
} Found;

static DflashStatus look(DflashHistory *h, Found *found, DflashError *error) {
  *found = (Found){0};
  DflashStatus status = dflash_history_number(h, &found->application, error, "PRAGMA application_id", "");
  if (status == DFLASH_OK) status = dflash_history_number(h, &found->version, error, "PRAGMA user_version", "");
  if (status == DFLASH_OK)
    status = dflash_history_number(h, &found->tables, error, "SELECT count(*) FROM sqlite_master", "");
  return status;
}

static DflashStatus judge(const DflashHistory *h, const Found *found, DflashHistoryAccess access, DflashError *error) {
  bool empty = found->application == 0 && found->version == 0 && found->tables == 0;
  if (empty && access == DFLASH_HISTORY_WRITE) return DFLASH_OK;
  if (found->application != APPLICATION || found->version < 1)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: is %s, but no history", h->path,
                            empty ? "an empty file" : "a database");
  if (found->version > DFLASH_HISTORY_VERSION)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "%s: is a history of version %lld; this program knows versions up to %d", h->path,
                            (long long)found->version, DFLASH_HISTORY_VERSION);
  return DFLASH_OK;
}

/* Under the lock that writing needs, and looked at again: another program may have been faster. */
static DflashStatus update(DflashHistory *h, DflashHistoryAccess access, DflashError *error) {
  char last[80];
  Found found;
  DflashStatus status = dflash_history_begin(h, error);
  if (status != DFLASH_OK) return status;
  status = look(h, &found, error);
  if (status == DFLASH_OK) status = judge(h, &found, access, error);
  for (int64_t v = found.version + 1; v <= DFLASH_HISTORY_VERSION && status == DFLASH_OK; v++) {
    status = dflash_history_execute(h, steps[v].sql, error);
    if (status == DFLASH_OK && steps[v].then) status = steps[v].then(h, error);
  }
  sqlite3_snprintf(sizeof last, last, "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION,
                   DFLASH_HISTORY_VERSION);
  if (status == DFLASH_OK) status = dflash_history_execute(h, last, error);
  return dflash_history_end(h, status, error);
}

/* A file that is to be written is locked for writing once: a folder that is read-only is found before anything runs. */
static DflashStatus try_to_write(DflashHistory *h, DflashError *error) {
  DflashStatus status = dflash_history_begin(h, error);
  if (status != DFLASH_OK) return status;
  status = dflash_history_do(h, error, "DELETE FROM group_time WHERE result < 0", "");
  return dflash_history_end(h, status, error);
}

DflashStatus dflash_history_check(DflashHistory *h, DflashHistoryAccess access, DflashError *error) {
  Found found;
  DflashStatus status = look(h, &found, error);
  if (status == DFLASH_OK) status = judge(h, &found, access, error);
  if (status != DFLASH_OK) return status;
  if (found.version < DFLASH_HISTORY_VERSION) return update(h, access, error);
  return access == DFLASH_HISTORY_WRITE ? try_to_write(h, error) : DFLASH_OK;
}
