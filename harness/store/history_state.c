#include <cjson/cJSON.h>
#include <math.h>

#include "store/fields.h"
#include "store/history_work.h"

static double larger(double a, double b) { return isnan(a) || b > a ? b : a; }

/* Bits of both, as far as numbers hold them exactly. */
static double joined(double a, double b) {
  if (isnan(a) || isnan(b)) return larger(a, b);
  if (!(a >= 0 && a < 0x1p53 && b >= 0 && b < 0x1p53)) return larger(a, b);
  return (double)((uint64_t)a | (uint64_t)b);
}

DflashHistoryState dflash_history_state(const cJSON *bench) {
  const cJSON *before = dflash_field(bench, "state_before"), *after = dflash_field(bench, "state_after");
  const cJSON *load = cJSON_GetArrayItem(dflash_field(dflash_field(bench, "environment"), "load"), 0);
  return (DflashHistoryState){
      .load = cJSON_IsNumber(load) ? load->valuedouble : NAN,
      .other_users = larger(dflash_field_number(before, "other_users"), dflash_field_number(after, "other_users")),
      .throttle = joined(dflash_field_number(before, "throttle"), dflash_field_number(after, "throttle"))};
}

static DflashStatus read_again(DflashHistory *h, int64_t result, DflashError *error) {
  cJSON *bench = NULL;
  DflashStatus status = dflash_history_record(h, result, "bench", &bench, error);
  if (status != DFLASH_OK) return status;
  const DflashHistoryState state = dflash_history_state(bench);
  const cJSON *environment = dflash_field(bench, "environment");
  status =
      dflash_history_do(h, error,
                        "UPDATE result SET load = ?, other_users = ?, throttle = ?, side = ?, pair = ?,"
                        " revision = ?, dirty = ? WHERE id = ?",
                        "dddtdtti", state.load, state.other_users, state.throttle, dflash_field_text(bench, "side"),
                        dflash_field_number(bench, "pair"), dflash_field_text(environment, "revision"),
                        dflash_field_text(environment, "dirty"), result);
  cJSON_Delete(bench);
  return status;
}

DflashStatus dflash_history_state_again(DflashHistory *h, DflashError *error) {
  sqlite3_stmt *statement = NULL;
  DflashStatus status = dflash_history_prepare(h, "SELECT id FROM result WHERE samples > 0", &statement, error);
  int found = SQLITE_DONE;
  while (status == DFLASH_OK && (found = sqlite3_step(statement)) == SQLITE_ROW)
    status = read_again(h, sqlite3_column_int64(statement, 0), error);
  if (status == DFLASH_OK && found != SQLITE_DONE) status = dflash_history_fail(h, error);
  sqlite3_finalize(statement);
  if (status != DFLASH_OK) return status;
  return dflash_history_execute(h,
                                "UPDATE result SET (revision, dirty) = (SELECT run.revision, run.dirty FROM run"
                                " WHERE run.id = result.run) WHERE revision = ''",
                                error);
}
