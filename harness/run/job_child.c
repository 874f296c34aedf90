#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "run/job_child.h"

void dflash_session_progress(DflashSession *session, const char *format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return;
  cJSON_AddStringToObject(record, "type", "progress");
  cJSON_AddStringToObject(record, "text", text);
  dflash_child_send(session->child, record);
  cJSON_Delete(record);
}

/* 1 when an earlier run already holds this case (--resume). */
static int already_done(const DflashJob *job, const DflashSession *session, const char *name) {
  if (!job->options->resume) return 0;
  cJSON *key = cJSON_CreateObject();
  if (key == NULL) return 0;
  cJSON_AddStringToObject(key, "file", session->file);
  cJSON_AddStringToObject(key, "case", name);
  cJSON_AddStringToObject(key, "backend", job->options->backend);
  if (job->options->device != NULL) cJSON_AddStringToObject(key, "device", job->options->device);
  cJSON_AddStringToObject(key, "profile", dflash_profile_name(job->options->profile));
  if (job->modes != NULL) cJSON_AddStringToObject(key, "modes", job->modes);
  cJSON_AddStringToObject(key, "inputs_hash", dflash_golden_attribute(session->golden, "inputs_hash"));
  int has = dflash_store_has(job->store, key);
  cJSON_Delete(key);
  return has;
}

/* The cases of this file that are asked for, as a record: all names, those to run, those done before. */
static cJSON *select_cases(const DflashJob *job, const DflashSession *session) {
  const DflashRunOptions *o = job->options;
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "cases");
  cJSON_AddStringToObject(record, "inputs_hash", dflash_golden_attribute(session->golden, "inputs_hash"));
  cJSON *known = cJSON_AddArrayToObject(record, "known"), *indices = cJSON_AddArrayToObject(record, "indices");
  cJSON *names = cJSON_AddArrayToObject(record, "names");
  int64_t matched = 0, resumed = 0;
  for (int64_t i = 0; i < dflash_golden_case_count(session->golden); i++) {
    const char *name = dflash_golden_case_name(session->golden, i);
    cJSON_AddItemToArray(known, cJSON_CreateString(name));
    if (!dflash_glob_match(o->cases, name)) continue;
    if (job->case_limit > 0 && matched == job->case_limit) break;
    if ((job->matched_before + matched++) % o->shards != o->shard) continue;
    if (already_done(job, session, name)) {
      resumed++;
      continue;
    }
    cJSON_AddItemToArray(indices, cJSON_CreateNumber((double)i));
    cJSON_AddItemToArray(names, cJSON_CreateString(name));
  }
  cJSON_AddNumberToObject(record, "matched", (double)matched);
  cJSON_AddNumberToObject(record, "resumed", (double)resumed);
  return record;
}

static void run_cases(DflashJob *job, DflashSession *session) {
  for (int64_t i = job->next; i < job->selected_count; i++) {
    cJSON *begin = cJSON_CreateObject();
    cJSON_AddStringToObject(begin, "type", "phase");
    cJSON_AddNumberToObject(begin, "phase", DFLASH_PHASE_CASE);
    cJSON_AddNumberToObject(begin, "index", (double)i);
    dflash_child_send(session->child, begin);
    cJSON_Delete(begin);
    dflash_session_progress(session, "%s", job->names[i]);
    DflashError error = {0};
    if (job->run_case(session, job->selected[i], &error) != DFLASH_OK)
      dflash_session_refuse(session, DFLASH_PHASE_CASE, &error);
  }
}

/* Opens step by step; every step is announced, so that the parent knows whose fault an end is. */
static DflashStatus open_session(DflashSession *session, int *phase, DflashError *error) {
  *phase = DFLASH_PHASE_BACKEND;
  dflash_session_phase(session, *phase);
  DflashStatus status = dflash_session_backend(session, error);
  if (status != DFLASH_OK) return status;
  *phase = DFLASH_PHASE_MODEL;
  dflash_session_phase(session, *phase);
  return dflash_session_model(session, error);
}

/* The first child of a file selects and tells; a later one goes on with what the parent kept. */
static void take_selection(DflashJob *job, DflashSession *session) {
  if (job->names != NULL) return;
  cJSON *cases = select_cases(job, session);
  if (cases == NULL) return;
  dflash_child_send(session->child, cases);
  dflash_job_take_cases(job, cases);
  cJSON_Delete(cases);
}

int dflash_job_child(void *context, DflashChild *child) {
  DflashJob *job = context;
  DflashSession session = {.options = job->options, .file = job->file, .child = child};
  DflashError error = {0};
  int phase = DFLASH_PHASE_GOLDEN;
  dflash_session_phase(&session, phase);
  DflashStatus status = dflash_session_golden(&session, &error);
  if (status == DFLASH_OK) take_selection(job, &session);
  if (status == DFLASH_OK && job->next < job->selected_count) {
    status = open_session(&session, &phase, &error);
    if (status == DFLASH_OK) run_cases(job, &session);
  }
  if (status != DFLASH_OK) dflash_session_refuse(&session, phase, &error);
  dflash_session_close(&session);
  return 0;
}
