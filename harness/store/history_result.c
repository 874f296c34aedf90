#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/fields.h"
#include "store/history_pack.h"
#include "store/history_work.h"

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The model that this case ran on; NULL when the last one opened is another. */
static const cJSON *model_of(const DflashHistoryWork *work, const cJSON *record) {
  static const char *const names[] = {"file", "backend", "device", "profile"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(dflash_field_text(work->model, names[i]), dflash_field_text(record, names[i])) != 0) return NULL;
  return work->model;
}

/* A summary names no backend: its run does. */
static const char *backend_of(const DflashHistoryWork *work, const cJSON *record) {
  const char *own = dflash_field_text(record, "backend");
  return *own ? own : dflash_field_text(work->run, "backend");
}

static const char *profile_of(const DflashHistoryWork *work, const cJSON *record) {
  return dflash_field_text(dflash_record_is(record, "summary") ? work->draw : record, "profile");
}

static const char *kind_of(const DflashHistoryWork *work, const char *modes) {
  const char *kind = dflash_history_kind(work->run);
  if (strcmp(modes, "bench") == 0) return "bench";
  return *kind ? kind : "verify";
}

/* A golden without a hash is known by its name. */
static char *inputs_of(const cJSON *record) {
  const char *hash = dflash_field_text(record, "inputs_hash"), *file = base_name(dflash_field_text(record, "file"));
  DflashText text = {0};
  dflash_text_append(&text, "%s%s", *hash || !*file ? hash : "file:", *hash ? "" : file);
  return text.data;
}

static DflashStatus find_series(DflashHistoryWork *work, const cJSON *record, int64_t *series, DflashError *error) {
  static const char values[] = "tttttttttt";
  const char *modes = dflash_field_text(record, "modes");
  char *settings = dflash_history_settings(dflash_field_text(record, "settings"));
  char *machine = dflash_history_machine(work->run), *inputs = inputs_of(record);
  DflashStatus status = DFLASH_OK;
  if (!settings || !machine || !inputs)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for a series", work->history->path);
#define KEYS                                                                              \
  kind_of(work, modes), backend_of(work, record), dflash_field_text(record, "device"),    \
      dflash_field_text(model_of(work, record), "device_name"), profile_of(work, record), \
      dflash_field_text(record, "case"), inputs, modes, settings, machine
  if (status == DFLASH_OK)
    status = dflash_history_do(work->history, error,
                               "INSERT OR IGNORE INTO series (kind, backend, device, device_name, profile, case_name,"
                               " inputs_hash, modes, settings, machine) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                               values, KEYS);
  if (status == DFLASH_OK)
    status = dflash_history_number(work->history, series, error,
                                   "SELECT id FROM series WHERE kind = ? AND backend = ? AND device = ?"
                                   " AND device_name = ? AND profile = ? AND case_name = ? AND inputs_hash = ?"
                                   " AND modes = ? AND settings = ? AND machine = ?",
                                   values, KEYS);
#undef KEYS
  free(inputs);
  free(machine);
  free(settings);
  return status;
}

/* A sweep has an exit status and no outcome. */
static const char *outcome_of(const cJSON *record) {
  const char *own = dflash_field_text(record, "outcome");
  if (*own || !dflash_record_is(record, "summary")) return own;
  double status = dflash_field_number(record, "exit");
  return status == 0 ? "pass" : status == 1 ? "mismatch" : "not run";
}

/* The build that was timed; one that drives another program is not it. */
static const char *build_of(const DflashHistoryWork *work, const char *name) {
  const char *own = dflash_field_text(dflash_field(work->bench, "environment"), name);
  return *own ? own : dflash_field_text(dflash_field(work->run, "environment"), name);
}

static DflashStatus insert_result(DflashHistoryWork *work, const cJSON *record, int64_t series, const DflashText *uid,
                                  DflashError *error) {
  const cJSON *model = model_of(work, record), *bench = work->bench, *block = dflash_field(bench, "block");
  const cJSON *device = dflash_field(block, "device");
  const DflashHistoryState state = dflash_history_state(bench);
  char backend_file[65];
  dflash_history_setting(dflash_field_text(record, "settings"), "backend_file", backend_file, sizeof backend_file);
  return dflash_history_do(
      work->history, error,
      "INSERT OR IGNORE INTO result (run, number, uid, series, time, golden, values_hash, backend_version, driver,"
      " backend_file, outcome, revision, dirty, passed, failed, other, largest_score, elapsed_s, stopped_by, side, "
      "pair,"
      " samples, median_ns, low_ns, high_ns, wall_ns, cpu_ns, load, other_users, throttle)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      "iibiittttttttdddddttdddddddddd", work->id, work->number, uid, series, dflash_history_time(work->run),
      base_name(dflash_field_text(record, "file")), dflash_field_text(record, "values_hash"),
      dflash_field_text(model, "backend_version"), dflash_field_text(model, "driver"), backend_file, outcome_of(record),
      build_of(work, "revision"), build_of(work, "dirty"), dflash_field_number(record, "passed"),
      dflash_field_number(record, "failed"), dflash_field_number(record, "other"),
      dflash_field_number(record, "largest_score"), dflash_field_number(record, "elapsed_s"),
      dflash_field_text(bench, "stopped_by"), dflash_field_text(bench, "side"), dflash_field_number(bench, "pair"),
      dflash_field_number(device, "n"), dflash_field_number(device, "median"), dflash_field_number(device, "low"),
      dflash_field_number(device, "high"), dflash_field_number(dflash_field(block, "wall"), "median"),
      dflash_field_number(dflash_field(block, "cpu"), "median"), state.load, state.other_users, state.throttle);
}

static DflashStatus insert_groups(DflashHistoryWork *work, int64_t result, DflashError *error) {
  sqlite3_stmt *statement = NULL;
  const cJSON *group;
  if (!dflash_field(work->bench, "groups")) return DFLASH_OK;
  DflashStatus status = dflash_history_prepare(
      work->history, "INSERT OR REPLACE INTO group_time (result, name, ns) VALUES (?, ?, ?)", &statement, error);
  cJSON_ArrayForEach(group, dflash_field(work->bench, "groups")) {
    double ns = dflash_field_number(group, "ns");
    if (status != DFLASH_OK || isnan(ns)) continue;
    dflash_history_bind(statement, "itd", result, dflash_field_text(group, "group"), ns);
    if (sqlite3_step(statement) != SQLITE_DONE) status = dflash_history_fail(work->history, error);
    sqlite3_reset(statement);
  }
  sqlite3_finalize(statement);
  return status;
}

static DflashStatus insert_records(DflashHistoryWork *work, int64_t result, const DflashText *lines,
                                   DflashError *error) {
  DflashText pack = {0};
  DflashStatus status = dflash_pack(lines->data, lines->size, &pack, error);
  if (status == DFLASH_OK)
    status = dflash_history_do(work->history, error, "INSERT INTO records (result, pack) VALUES (?, ?)", "ib", result,
                               &pack);
  dflash_text_free(&pack);
  return status;
}

DflashStatus dflash_history_put_result(DflashHistoryWork *work, const cJSON *record, const DflashText *lines,
                                       DflashError *error) {
  DflashText uid = {0};
  int64_t series = 0;
  DflashStatus status = dflash_history_hash(lines->data, lines->size, &uid, error);
  if (status == DFLASH_OK) status = find_series(work, record, &series, error);
  if (status == DFLASH_OK) status = insert_result(work, record, series, &uid, error);
  dflash_text_free(&uid);
  if (status != DFLASH_OK) return status;
  work->number++;
  if (sqlite3_changes(work->history->db) == 0) {
    work->counts.old_results++;
    return DFLASH_OK;
  }
  int64_t result = sqlite3_last_insert_rowid(work->history->db);
  work->counts.results++;
  status = insert_groups(work, result, error);
  return status == DFLASH_OK ? insert_records(work, result, lines, error) : status;
}
