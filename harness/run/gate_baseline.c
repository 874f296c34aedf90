/* What is judged, what it is held against, and what becomes the next baseline. */
#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "run/gate_parts.h"
#include "run/runs_history.h"
#include "run/runs_report.h"
#include "store/fields.h"

static bool is_branch(const char *baseline) { return strncmp(baseline, "branch:", 7) == 0; }

static DflashStatus read_baseline(DflashGate *gate, DflashError *error) {
  const DflashGateOptions *o = gate->options;
  if (strcmp(o->baseline, "none") == 0) return DFLASH_OK;
  if (strcmp(o->baseline, "last-good") != 0 && !is_branch(o->baseline))
    return dflash_runs_read(&gate->baseline, o->baseline, error);
  if (o->history == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "--baseline %s is looked up in a history: --history is missing", o->baseline);
  return dflash_runs_read_before(&gate->baseline, o->history, &gate->results,
                                 is_branch(o->baseline) ? o->baseline + 7 : NULL, error);
}

DflashStatus dflash_gate_read(DflashGate *gate, DflashError *error) {
  const DflashGateOptions *o = gate->options;
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; i < o->result_count && status == DFLASH_OK; i++)
    status = dflash_runs_read(&gate->results, o->results[i], error);
  if (status == DFLASH_OK && o->result_count == 0) status = dflash_runs_read_newest(&gate->results, o->history, error);
  return status == DFLASH_OK ? read_baseline(gate, error) : status;
}

/* A time that may be a baseline: undisturbed, and of the side that is judged. */
static bool is_acceptable(const DflashGate *gate, const DflashResult *result) {
  char text[DFLASH_KEY_TEXT];
  if (result->bench == NULL || strcmp(dflash_field_text(result->bench, "side"), "A") == 0) return false;
  return *dflash_result_disturbed(result, false, gate->options->rule.load, text) == '\0';
}

static bool is_replaced(const DflashGate *gate, const DflashResult *old) {
  for (int64_t i = 0; i < gate->results.count; i++) {
    const DflashResult *result = &gate->results.results[i];
    if (is_acceptable(gate, result) && dflash_result_differs(old, result) == 0) return true;
  }
  return false;
}

/* Each process begins with its `run`; a baseline's times are of no side. */
static void append_result(DflashText *out, const DflashResult *result) {
  cJSON *bench = cJSON_Duplicate(result->bench, 1);
  cJSON_DeleteItemFromObjectCaseSensitive(bench, "side");
  cJSON_DeleteItemFromObjectCaseSensitive(bench, "pair");
  if (result->run != NULL) dflash_runs_append(out, result->run);
  if (result->model != NULL) dflash_runs_append(out, result->model);
  dflash_runs_append(out, bench);
  dflash_runs_append(out, result->done);
  cJSON_Delete(bench);
}

/* The file's other devices and goldens stay. */
static DflashStatus write_accepted(const DflashGate *gate, const DflashRuns *old, DflashError *error) {
  const char *path = gate->options->accept;
  DflashText out = {0};
  int64_t accepted = 0;
  for (int64_t i = 0; i < old->count; i++)
    if (old->results[i].bench != NULL && !is_replaced(gate, &old->results[i])) append_result(&out, &old->results[i]);
  for (int64_t i = 0; i < gate->results.count; i++) {
    if (!is_acceptable(gate, &gate->results.results[i])) continue;
    append_result(&out, &gate->results.results[i]);
    accepted++;
  }
  DflashStatus status = DFLASH_OK;
  if (out.failed) status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory", path);
  if (accepted == 0) dflash_log(DFLASH_LOG_WARNING, "%s: not written: no undisturbed time is among the results", path);
  if (status == DFLASH_OK && accepted > 0) status = dflash_write_file(path, out.data, out.size, error);
  dflash_text_free(&out);
  return status;
}

DflashStatus dflash_gate_accept(const DflashGate *gate, DflashError *error) {
  DflashRuns old = {0};
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; i < gate->finding_count; i++) {
    if (gate->findings[i].verdict != DFLASH_GATE_FAILED) continue;
    dflash_log(DFLASH_LOG_WARNING, "%s: not written: the gate fails", gate->options->accept);
    return DFLASH_OK;
  }
  if (access(gate->options->accept, F_OK) == 0) status = dflash_runs_read(&old, gate->options->accept, error);
  if (status == DFLASH_OK) status = write_accepted(gate, &old, error);
  dflash_runs_close(&old);
  return status;
}
