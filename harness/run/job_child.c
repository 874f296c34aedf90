#include <cjson/cJSON.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "run/job_parts.h"

/* A job of one case takes "main" unless told otherwise, or the first where there is none. */
static const char *case_patterns(const DflashJob *job, const DflashSession *session) {
  if (job->options->cases != NULL || job->case_limit != 1) return job->options->cases;
  for (int64_t i = 0; i < dflash_golden_case_count(session->golden); i++)
    if (strcmp(dflash_golden_case_name(session->golden, i), "main") == 0) return "main";
  return NULL;
}

/* The cases of this file that are asked for, as a record: all names, and those to run. */
static cJSON *select_cases(const DflashJob *job, const DflashSession *session) {
  const DflashRunOptions *o = job->options;
  const char *patterns = case_patterns(job, session);
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "cases");
  cJSON_AddStringToObject(record, "inputs_hash", dflash_golden_attribute(session->golden, "inputs_hash"));
  cJSON *known = cJSON_AddArrayToObject(record, "known"), *indices = cJSON_AddArrayToObject(record, "indices");
  cJSON *names = cJSON_AddArrayToObject(record, "names");
  int64_t matched = 0;
  for (int64_t i = 0; i < dflash_golden_case_count(session->golden); i++) {
    const char *name = dflash_golden_case_name(session->golden, i);
    cJSON_AddItemToArray(known, cJSON_CreateString(name));
    if (!dflash_glob_match(patterns, name)) continue;
    if (job->case_limit > 0 && matched == job->case_limit) continue;
    if ((job->matched_before + matched++) % o->shards != o->shard) continue;
    cJSON_AddItemToArray(indices, cJSON_CreateNumber((double)i));
    cJSON_AddItemToArray(names, cJSON_CreateString(name));
  }
  cJSON_AddNumberToObject(record, "matched", (double)matched);
  return record;
}

/* The first child of a file selects and tells, and checks the file's hashes; a later one goes on with what the parent
 * kept. */
static DflashStatus take_selection(DflashJob *job, DflashSession *session, DflashError *error) {
  if (job->selected) return DFLASH_OK;
  cJSON *cases = select_cases(job, session);
  if (cases == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a selection");
  dflash_child_send(session->child, cases);
  dflash_job_take_cases(job, cases);
  cJSON_Delete(cases);
  return job->case_count > 0 ? dflash_session_hashes(session, error) : DFLASH_OK;
}

static void run_cases(DflashJob *job, DflashSession *session) {
  for (int64_t i = job->next; i < job->case_count; i++) {
    dflash_session_read(session, i);
    DflashError error = {0};
    if (job->run_case(session, job->indices[i], &error) != DFLASH_OK)
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

int dflash_job_child(void *context, DflashChild *child) {
  DflashJob *job = context;
  DflashSession session = {.options = job->options,
                           .file = job->file,
                           .settings = job->settings,
                           .store = job->store,
                           .dump = job->dump,
                           .child = child};
  DflashError error = {0};
  int phase = DFLASH_PHASE_GOLDEN;
  dflash_session_phase(&session, phase);
  DflashStatus status = dflash_session_golden(&session, &error);
  if (status == DFLASH_OK) status = take_selection(job, &session, &error);
  if (status == DFLASH_OK && job->next < job->case_count) {
    status = open_session(&session, &phase, &error);
    if (status == DFLASH_OK) run_cases(job, &session);
  }
  if (status != DFLASH_OK) dflash_session_refuse(&session, phase, &error);
  if (session.backend != NULL) dflash_session_phase(&session, DFLASH_PHASE_CLOSE);
  dflash_session_close(&session);
  return 0;
}
