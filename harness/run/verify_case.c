#include "run/verify_case.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "run/case_run.h"
#include "time/clock.h"

static void append_quoted(DflashText *text, const char *word) {
  if (word[0] != '\0' &&
      strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+,:=%") == strlen(word)) {
    dflash_text_append(text, " %s", word);
    return;
  }
  dflash_text_append(text, " '");
  for (const char *at = word; *at != '\0'; at++)
    if (*at == '\'')
      dflash_text_append(text, "'\\''");
    else
      dflash_text_bytes(text, at, 1);
  dflash_text_append(text, "'");
}

char *dflash_reproduce_command(const DflashRunOptions *o, const char *file, const char *case_name, const char *stage,
                               int64_t layer, const char *mode) {
  DflashText text = {0};
  dflash_text_append(&text, "dflash-harness verify");
  append_quoted(&text, file);
  dflash_text_append(&text, " --backend");
  append_quoted(&text, o->backend);
  if (o->backend_path != NULL) {
    dflash_text_append(&text, " --backend-path");
    append_quoted(&text, o->backend_path);
  }
  if (o->device != NULL) {
    dflash_text_append(&text, " --device");
    append_quoted(&text, o->device);
  }
  for (uint32_t i = 0; i < o->option_count; i++)
    dflash_text_append(&text, " --option %s=%s", o->options[i].key, o->options[i].value);
  dflash_text_append(&text, " --profile %s --case", dflash_profile_name(o->profile));
  append_quoted(&text, case_name);
  if (stage != NULL) dflash_text_append(&text, " --stage %s", stage);
  if (stage != NULL && layer >= 0) dflash_text_append(&text, " --layer %lld", (long long)layer);
  if (mode != NULL) dflash_text_append(&text, " --mode %s", mode);
  if (o->load_context) dflash_text_append(&text, " --context load");
  if (o->repeat > 1) dflash_text_append(&text, " --repeat %lld", (long long)o->repeat);
  return text.data;
}

static void production_failed(DflashCaseRun *run, const DflashError *error) {
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_CHAIN, DFLASH_STAGE_NONE, -1, "block");
  int outcome = error->status == DFLASH_UNSUPPORTED ? DFLASH_OUTCOME_UNSUPPORTED : DFLASH_OUTCOME_ERROR;
  dflash_verdict_note(verdict, outcome, "%s", error->message);
}

void dflash_verify_production(DflashCaseRun *run) {
  DflashError error = {0};
  DflashStatus status = dflash_case_sequence(run, DFLASH_SEQUENCE_CAPTURE, &run->sequence, &error);
  if (status == DFLASH_OK) status = dflash_product_run(run, run->sequence, &run->product, DFLASH_POISON_BITS, &error);
  if (status != DFLASH_OK) {
    production_failed(run, &error);
    return;
  }
  run->ran = true;
  if (run->modes & 1u << DFLASH_MODE_LOCAL) dflash_verify_local(run);
  if (run->modes & 1u << DFLASH_MODE_CHAIN) dflash_verify_chain(run);
  bool filtered = run->session->options->stages != NULL || run->session->options->layer >= 0;
  if (!filtered || run->session->options->repeat > 1) dflash_verify_laws(run);
}

static void add_modes(cJSON *record, unsigned modes) {
  DflashText text = {0};
  for (int mode = 0; mode < DFLASH_MODE_COUNT; mode++)
    if (modes & 1u << mode) dflash_text_append(&text, "%s%s", text.size > 0 ? "," : "", dflash_mode_name(mode));
  cJSON_AddStringToObject(record, "modes", text.data != NULL ? text.data : "");
  dflash_text_free(&text);
}

static void add_first(DflashCaseRun *run, cJSON *record, const DflashVerdict *first) {
  char message[900];
  dflash_verdict_message(first, message, sizeof message);
  cJSON_AddStringToObject(record, "message", message);
  cJSON *place = dflash_verdict_record(first);
  cJSON_DeleteItemFromObject(place, "type");
  cJSON_AddItemToObject(record, "first", place);
  bool is_stage = first->stage != DFLASH_STAGE_NONE;
  const char *stage = is_stage ? dflash_stage_row(first->stage)->name : NULL;
  int64_t layer = is_stage && dflash_stage_row(first->stage)->scope == DFLASH_SCOPE_LAYER ? first->layer : -1;
  char *command = dflash_reproduce_command(run->session->options, run->session->file, run->c.name, stage, layer,
                                           dflash_mode_name(first->mode));
  if (command != NULL) cJSON_AddStringToObject(record, "reproduce", command);
  free(command);
}

static cJSON *case_record(DflashCaseRun *run, double elapsed_s) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  int64_t passed = 0, failed = 0, other = 0;
  double largest = 0;
  for (int64_t i = 0; i < run->verdicts.count; i++) {
    const DflashVerdict *v = &run->verdicts.at[i];
    bool pass = v->outcome == DFLASH_OUTCOME_PASS || v->outcome == DFLASH_OUTCOME_NEAR_TIE;
    passed += pass;
    failed += dflash_outcome_is_failure(v->outcome);
    other += !pass && !dflash_outcome_is_failure(v->outcome);
    if (pass && v->compared && v->comparison.score > largest) largest = v->comparison.score;
  }
  int outcome = run->verdicts.failed ? DFLASH_OUTCOME_ERROR : dflash_verdicts_outcome(&run->verdicts);
  cJSON_AddStringToObject(record, "type", "case");
  cJSON_AddStringToObject(record, "case", run->c.name);
  add_modes(record, run->modes);
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(outcome));
  const DflashVerdict *first = dflash_verdicts_first(&run->verdicts);
  if (first != NULL) add_first(run, record, first);
  cJSON_AddNumberToObject(record, "passed", (double)passed);
  cJSON_AddNumberToObject(record, "failed", (double)failed);
  cJSON_AddNumberToObject(record, "other", (double)other);
  dflash_record_number(record, "largest_score", largest);
  cJSON_AddNumberToObject(record, "elapsed_s", elapsed_s);
  cJSON_AddStringToObject(record, "values_hash", dflash_golden_attribute(run->session->golden, "values_hash"));
  return record;
}

static DflashStatus send_all(DflashCaseRun *run, double elapsed_s) {
  for (int64_t i = 0; i < run->verdicts.count; i++) {
    cJSON *record = dflash_verdict_record(&run->verdicts.at[i]);
    if (record == NULL) return DFLASH_OUT_OF_MEMORY;
    cJSON_AddStringToObject(record, "case", run->c.name);
    DflashStatus status = dflash_session_send(run->session, record);
    if (status != DFLASH_OK) return status;
  }
  return dflash_session_send(run->session, case_record(run, elapsed_s));
}

DflashStatus dflash_verify_case(DflashSession *session, int64_t index, DflashError *error) {
  DflashCaseRun run;
  uint64_t begin = dflash_clock_ns();
  DflashStatus status = dflash_case_run_open(&run, session, index, error);
  if (status == DFLASH_OK) {
    if (run.modes & 1u << DFLASH_MODE_ALONE) dflash_verify_alone(&run);
    if (run.modes & (1u << DFLASH_MODE_CHAIN | 1u << DFLASH_MODE_LOCAL)) dflash_verify_production(&run);
    dflash_verdicts_inherit(&run.verdicts);
    status = send_all(&run, (double)(dflash_clock_ns() - begin) * 1e-9);
    if (status != DFLASH_OK) dflash_error_set(error, status, "cannot report the case");
  }
  dflash_case_run_close(&run);
  return status;
}
