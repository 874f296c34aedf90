#include "store/history_work.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/fields.h"
#include "store/history_pack.h"

static DflashStatus no_memory(const DflashHistoryWork *work, DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for records", work->history->path);
}

static DflashStatus begin(const DflashHistoryWork *work, DflashError *error) {
  return work->in_transaction ? DFLASH_OK : dflash_history_begin(work->history, error);
}

static DflashStatus end(const DflashHistoryWork *work, DflashStatus status, DflashError *error) {
  return work->in_transaction ? status : dflash_history_end(work->history, status, error);
}

static void forget_lines(DflashHistoryWork *work) {
  work->lines.size = work->kept = 0;
  cJSON_Delete(work->bench);
  cJSON_Delete(work->draw);
  work->bench = work->draw = NULL;
}

static void forget_run(DflashHistoryWork *work) {
  forget_lines(work);
  cJSON_Delete(work->run);
  cJSON_Delete(work->model);
  free(work->head);
  work->run = work->model = NULL;
  work->head = NULL;
  work->id = work->number = 0;
}

static DflashStatus insert_run(DflashHistoryWork *work, const DflashText *uid, const DflashText *head,
                               DflashError *error) {
  const cJSON *run = work->run, *environment = dflash_field(run, "environment");
  char *machine = dflash_history_machine(run);
  if (!machine) return no_memory(work, error);
  DflashStatus status = dflash_history_do(
      work->history, error,
      "INSERT INTO run (uid, time, kind, command, tool, revision, dirty, machine, host, head)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      "bitttttttb", uid, dflash_history_time(run), dflash_history_kind(run), dflash_field_text(run, "command"),
      dflash_field_text(run, "tool"), dflash_field_text(environment, "revision"),
      dflash_field_text(environment, "dirty"), machine, dflash_field_text(environment, "host"), head);
  free(machine);
  if (status == DFLASH_OK) work->id = sqlite3_last_insert_rowid(work->history->db);
  return status;
}

/* The run's row, made when its first result or its end is written. */
static DflashStatus need_run(DflashHistoryWork *work, DflashError *error) {
  if (work->id != 0) return DFLASH_OK;
  DflashText uid = {0}, head = {0};
  size_t size = strlen(work->head);
  DflashStatus status = dflash_history_hash(work->head, size, &uid, error);
  if (status == DFLASH_OK) status = dflash_pack(work->head, size, &head, error);
  if (status == DFLASH_OK)
    status = dflash_history_number(work->history, &work->id, error, "SELECT id FROM run WHERE uid = ?", "b", &uid);
  if (status == DFLASH_OK && work->id != 0)
    work->counts.old_runs++;
  else if (status == DFLASH_OK && (status = insert_run(work, &uid, &head, error)) == DFLASH_OK)
    work->counts.runs++;
  dflash_text_free(&head);
  dflash_text_free(&uid);
  return status;
}

/* A run that another file already told to its end stays as it is. */
static DflashStatus write_end(DflashHistoryWork *work, const cJSON *summary, DflashError *error) {
  DflashText tail = {0};
  if (work->lines.size == 0) return DFLASH_OK;
  DflashStatus status = dflash_pack(work->lines.data, work->lines.size, &tail, error);
  if (status == DFLASH_OK)
    status = dflash_history_do(
        work->history, error, "UPDATE run SET tail = ?, exit = ?, elapsed_s = ? WHERE id = ? AND exit IS NULL", "bddi",
        &tail, dflash_field_number(summary, "exit"), dflash_field_number(summary, "elapsed_s"), work->id);
  dflash_text_free(&tail);
  return status;
}

/* Draws and defects have no cases: what waits of them becomes one result. */
static DflashStatus write_draws(DflashHistoryWork *work, const cJSON *summary, DflashError *error) {
  if (!work->draw) return DFLASH_OK;
  DflashStatus status = dflash_history_put_result(work, summary, &work->lines, error);
  if (status == DFLASH_OK) forget_lines(work);
  return status;
}

static DflashStatus finish_run(DflashHistoryWork *work, const cJSON *summary, const char *line, DflashError *error) {
  if (!work->head) return DFLASH_OK;
  DflashStatus status = begin(work, error);
  if (status != DFLASH_OK) return status;
  status = need_run(work, error);
  if (status == DFLASH_OK && summary) status = write_draws(work, summary, error);
  work->lines.size = work->kept; /* not of a case that will never end */
  if (line) dflash_text_append(&work->lines, "%s\n", line);
  if (status == DFLASH_OK && work->lines.failed) status = no_memory(work, error);
  if (status == DFLASH_OK) status = write_end(work, summary, error);
  status = end(work, status, error);
  forget_run(work);
  return status;
}

static DflashStatus start_run(DflashHistoryWork *work, const cJSON *record, const char *line, DflashError *error) {
  DflashStatus status = finish_run(work, NULL, NULL, error); /* one that broke off before */
  if (status != DFLASH_OK) return status;
  work->run = cJSON_Duplicate(record, 1);
  DflashText head = {0};
  dflash_text_append(&head, "%s\n", line);
  work->head = head.data;
  return work->run && work->head && !head.failed ? DFLASH_OK : no_memory(work, error);
}

static DflashStatus complete_case(DflashHistoryWork *work, const cJSON *record, DflashError *error) {
  DflashStatus status = begin(work, error);
  if (status != DFLASH_OK) return status;
  int64_t before = work->id;
  status = need_run(work, error);
  if (status == DFLASH_OK) status = dflash_history_put_result(work, record, &work->lines, error);
  status = end(work, status, error);
  if (status == DFLASH_OK)
    forget_lines(work);
  else
    work->id = before; /* rolled back with the rest */
  return status;
}

static DflashStatus keep(cJSON **place, const cJSON *record, const DflashHistoryWork *work, DflashError *error) {
  cJSON_Delete(*place);
  *place = cJSON_Duplicate(record, 1);
  return *place ? DFLASH_OK : no_memory(work, error);
}

/* `verdict` and `bench` stay with the `case` that completes them, or go; so does what comes between. */
static DflashStatus add_line(DflashHistoryWork *work, const cJSON *record, const char *line, DflashError *error) {
  bool waits = dflash_record_is(record, "verdict") || dflash_record_is(record, "bench");
  bool alone = !waits && work->lines.size == work->kept;
  dflash_text_append(&work->lines, "%s\n", line);
  if (work->lines.failed) return no_memory(work, error);
  if (alone) work->kept = work->lines.size;
  if (dflash_record_is(record, "draw") || dflash_record_is(record, "defect"))
    return keep(&work->draw, record, work, error);
  if (dflash_record_is(record, "bench")) return keep(&work->bench, record, work, error);
  if (dflash_record_is(record, "model")) return keep(&work->model, record, work, error);
  return dflash_record_is(record, "case") ? complete_case(work, record, error) : DFLASH_OK;
}

DflashStatus dflash_history_work_take(DflashHistoryWork *work, const cJSON *record, DflashError *error) {
  char *line = dflash_record_line(record);
  if (!line) return no_memory(work, error);
  DflashStatus status;
  if (dflash_record_is(record, "run"))
    status = start_run(work, record, line, error);
  else if (!work->head)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "a record of type '%s' stands before any of type 'run'",
                              dflash_field_text(record, "type"));
  else if (dflash_record_is(record, "summary"))
    status = finish_run(work, record, line, error);
  else
    status = add_line(work, record, line, error);
  free(line);
  return status;
}

DflashStatus dflash_history_work_close(DflashHistoryWork *work, DflashError *error) {
  DflashStatus status = finish_run(work, NULL, NULL, error);
  forget_run(work);
  dflash_text_free(&work->lines);
  return status;
}
