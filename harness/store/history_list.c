#include <math.h>
#include <string.h>

#include "base/error.h"
#include "store/history_parts.h"

/* The order is that of take_row. */
static const char columns[] =
    "r.id, r.run, r.number, r.series, r.time, s.kind, s.backend, s.device, s.device_name, s.profile, s.case_name,"
    " r.golden, s.inputs_hash, r.values_hash, s.modes, s.settings, s.machine, n.host, r.revision, r.dirty, n.tool,"
    " n.command, r.backend_version, r.backend_file, r.driver, r.outcome, r.passed, r.failed, r.other, r.largest_score,"
    " r.elapsed_s, r.stopped_by, r.samples, r.median_ns, r.low_ns, r.high_ns, r.wall_ns, r.cpu_ns, r.load, "
    "r.other_users, r.throttle, r.side, r.pair";

/* A condition with one parameter, which stands where it says ?. */
typedef struct Conditions {
  DflashText sql;
  const char *texts[32];
  int64_t numbers[32];
  int count;
} Conditions;

static void add_text(Conditions *c, const char *sql, const char *value) {
  if (!value || !*value) return;
  dflash_text_append(&c->sql, "%s%s", c->count > 0 ? " AND " : " WHERE ", sql);
  c->texts[c->count++] = value;
}

static void add_number(Conditions *c, const char *sql, int64_t value) {
  if (value == 0) return;
  dflash_text_append(&c->sql, "%s%s", c->count > 0 ? " AND " : " WHERE ", sql);
  c->numbers[c->count++] = value;
}

/* A parameter that is named twice in its condition is bound once: ?N. */
static void add_conditions(Conditions *c, const DflashHistoryFilter *f) {
  char golden[160], revision[120];
  add_text(c, "matches(?, s.kind)", f->kind);
  add_text(c, "matches(?, s.backend)", f->backend);
  add_text(c, "matches(?, s.device)", f->device);
  add_text(c, "matches(?, s.profile)", f->profile);
  add_text(c, "matches(?, s.case_name)", f->case_name);
  add_text(c, "matches(?, s.machine)", f->machine);
  add_text(c, "matches(?, r.outcome)", f->outcome);
  add_text(c, "r.dirty = ?", f->dirty);
  sqlite3_snprintf(sizeof golden, golden,
                   "(matches(?%d, r.golden) OR length(?%d) >= 8 AND substr(s.inputs_hash, 1, length(?%d)) = ?%d)",
                   c->count + 1, c->count + 1, c->count + 1, c->count + 1);
  add_text(c, golden, f->golden);
  sqlite3_snprintf(sizeof revision, revision, "substr(r.revision, 1, length(?%d)) = ?%d", c->count + 1, c->count + 1);
  add_text(c, revision, f->revision);
  add_number(c, "r.time >= ?", f->since);
  add_number(c, "r.time < ?", f->until);
  add_number(c, "r.run = ?", f->run);
  add_number(c, "r.series = ?", f->series);
}

static DflashStatus prepare(DflashHistory *h, const DflashHistoryFilter *f, sqlite3_stmt **statement,
                            DflashError *error) {
  Conditions c = {0};
  DflashText sql = {0};
  add_conditions(&c, f);
  dflash_text_append(&sql, "%sSELECT %s FROM result r JOIN series s ON s.id = r.series JOIN run n ON n.id = r.run%s",
                     f->oldest_first ? "SELECT * FROM (" : "", columns, c.sql.data ? c.sql.data : "");
  dflash_text_append(&sql, " ORDER BY r.time DESC, r.id DESC LIMIT %lld%s", f->limit > 0 ? (long long)f->limit : -1LL,
                     f->oldest_first ? ") ORDER BY 5, 1" : "");
  DflashStatus status = DFLASH_OK;
  if (sql.failed || c.sql.failed)
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory to list it", h->path);
  else
    status = dflash_history_prepare(h, sql.data, statement, error);
  for (int i = 0; status == DFLASH_OK && i < c.count; i++) {
    if (c.texts[i])
      sqlite3_bind_text(*statement, i + 1, c.texts[i], -1, SQLITE_TRANSIENT);
    else
      sqlite3_bind_int64(*statement, i + 1, c.numbers[i]);
  }
  dflash_text_free(&c.sql);
  dflash_text_free(&sql);
  return status;
}

typedef struct Row {
  sqlite3_stmt *statement;
  int next;
} Row;

static int64_t number(Row *row) { return sqlite3_column_int64(row->statement, row->next++); }

static double real(Row *row) {
  int i = row->next++;
  return sqlite3_column_type(row->statement, i) == SQLITE_NULL ? NAN : sqlite3_column_double(row->statement, i);
}

static const char *text(Row *row) {
  const char *value = (const char *)sqlite3_column_text(row->statement, row->next++);
  return value ? value : "";
}

/* Initialisers are not evaluated in order: one statement a column. */
static void take_row(sqlite3_stmt *statement, DflashHistoryResult *r) {
  Row row = {.statement = statement};
  int64_t *const numbers[] = {&r->id, &r->run, &r->number, &r->series, &r->time};
  const char **const texts[] = {
      &r->kind,        &r->backend,     &r->device,  &r->device_name,     &r->profile,      &r->case_name, &r->golden,
      &r->inputs_hash, &r->values_hash, &r->modes,   &r->settings,        &r->machine,      &r->host,      &r->revision,
      &r->dirty,       &r->tool,        &r->command, &r->backend_version, &r->backend_file, &r->driver,    &r->outcome};
  int64_t *const counts[] = {&r->passed, &r->failed, &r->other};
  double *const times[] = {&r->median_ns, &r->low_ns, &r->high_ns,     &r->wall_ns,
                           &r->cpu_ns,    &r->load,   &r->other_users, &r->throttle};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) *numbers[i] = number(&row);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) *texts[i] = text(&row);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) *counts[i] = number(&row);
  r->largest_score = real(&row);
  r->elapsed_s = real(&row);
  r->stopped_by = text(&row);
  r->samples = number(&row);
  for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) *times[i] = real(&row);
  r->side = text(&row);
  r->pair = number(&row);
}

DflashStatus dflash_history_list(DflashHistory *h, const DflashHistoryFilter *filter, DflashHistoryTake take,
                                 void *context, DflashError *error) {
  sqlite3_stmt *statement = NULL;
  DflashHistoryResult result;
  DflashStatus status = prepare(h, filter, &statement, error);
  int found = status == DFLASH_OK ? SQLITE_ROW : SQLITE_DONE, stop = 0;
  while (found == SQLITE_ROW && !stop) {
    found = sqlite3_step(statement);
    if (found != SQLITE_ROW) break;
    take_row(statement, &result);
    stop = take(context, &result);
  }
  if (status == DFLASH_OK && found != SQLITE_ROW && found != SQLITE_DONE) status = dflash_history_fail(h, error);
  sqlite3_finalize(statement);
  return status;
}
