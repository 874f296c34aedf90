#include "run/verify_case.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/case_record.h"
#include "run/case_run.h"
#include "run/reproduce.h"
#include "time/clock.h"

/* check: "context" for an operation of the context, "block" for what follows. */
static void production_failed(DflashCaseRun *run, const char *check, const DflashError *error) {
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_NONE, -1, check);
  int outcome = error->status == DFLASH_UNSUPPORTED ? DFLASH_OUTCOME_UNSUPPORTED : DFLASH_OUTCOME_ERROR;
  dflash_verdict_note(verdict, outcome, "%s", error->message);
}

void dflash_verify_production(DflashCaseRun *run) {
  DflashError error = {0};
  dflash_session_check(run->session, DFLASH_MODE_CHAIN, "context");
  if (dflash_case_sequence(run, DFLASH_SEQUENCE_CAPTURE, &run->sequence, &error) != DFLASH_OK) {
    production_failed(run, "context", &error);
    return;
  }
  dflash_session_check(run->session, DFLASH_MODE_CHAIN, "block");
  if (dflash_product_run(run, run->sequence, &run->product, DFLASH_POISON_BITS, &error) != DFLASH_OK) {
    production_failed(run, "block", &error);
    return;
  }
  run->ran = true;
  if (run->modes & 1u << DFLASH_MODE_LOCAL) dflash_verify_local(run);
  if (run->modes & 1u << DFLASH_MODE_CHAIN) dflash_verify_chain(run);
  bool filtered = run->session->options->stages != NULL || run->session->options->layer >= 0;
  if (run->brief && dflash_verdicts_first(&run->verdicts) != NULL && run->session->options->repeat < 2) return;
  if (!filtered || run->session->options->repeat > 1) dflash_verify_laws(run);
}

char *dflash_verify_reproduce(const DflashCaseRun *run, const DflashVerdict *failure) {
  bool is_stage = failure->stage != DFLASH_STAGE_NONE;
  const char *stage = is_stage ? dflash_stage_row(failure->stage)->name : NULL;
  int64_t layer = is_stage && dflash_stage_row(failure->stage)->scope == DFLASH_SCOPE_LAYER ? failure->layer : -1;
  const DflashReproduce what = {.command = "verify",
                                .file = run->session->file,
                                .case_name = run->c.name,
                                .stage = stage,
                                .layer = layer,
                                .mode = dflash_mode_name(failure->mode)};
  return dflash_reproduce_command(run->session->options, &what);
}

static cJSON *case_record(const DflashCaseRun *run, double elapsed_s) {
  char modes[32];
  cJSON *record = dflash_case_record(&run->verdicts, run->c.name, dflash_modes_text(run->modes, modes),
                                     run->session->options->allow_missing);
  if (record == NULL) return NULL;
  const DflashVerdict *first = dflash_verdicts_first(&run->verdicts);
  char *command = first != NULL ? dflash_verify_reproduce(run, first) : NULL;
  if (command != NULL) cJSON_AddStringToObject(record, "reproduce", command);
  free(command);
  cJSON_AddStringToObject(record, "settings", run->session->settings);
  cJSON_AddNumberToObject(record, "elapsed_s", elapsed_s);
  cJSON_AddStringToObject(record, "values_hash", dflash_session_attribute(run->session, "values_hash"));
  return record;
}

/* Those not sent yet. A parent that cannot be told any more ends this child by itself. */
static void send_verdicts(DflashCaseRun *run) {
  for (; run->sent < run->verdicts.count; run->sent++) {
    cJSON *record = dflash_verdict_record(&run->verdicts.at[run->sent]);
    if (record == NULL) return;
    cJSON_AddStringToObject(record, "case", run->c.name);
    if (dflash_session_send(run->session, record) != DFLASH_OK) return;
  }
}

void dflash_verify_modes(DflashCaseRun *run) {
  if (run->modes & 1u << DFLASH_MODE_ALONE) dflash_verify_alone(run);
  if (run->modes & (1u << DFLASH_MODE_CHAIN | 1u << DFLASH_MODE_LOCAL)) dflash_verify_production(run);
  dflash_verdicts_inherit(&run->verdicts);
}

static DflashStatus run_modes(DflashCaseRun *run, uint64_t begin) {
  run->send = send_verdicts;
  dflash_verify_modes(run);
  send_verdicts(run);
  if (run->sent < run->verdicts.count) return DFLASH_OUT_OF_MEMORY;
  return dflash_session_send(run->session, case_record(run, (double)(dflash_clock_ns() - begin) * 1e-9));
}

DflashStatus dflash_verify_case(DflashSession *session, int64_t index, DflashError *error) {
  DflashCaseRun run;
  uint64_t begin = dflash_clock_ns();
  DflashStatus status = dflash_case_run_open(&run, session, index, NULL, error);
  if (status == DFLASH_OK && !run.resumed) {
    status = run_modes(&run, begin);
    if (status != DFLASH_OK) dflash_error_set(error, status, "cannot report the case");
  }
  dflash_case_run_close(&run);
  return status;
}
