/* Cases that ended without a record of their own: one is made here, so that no case is lost. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "compare/compare.h"
#include "model/stage_table.h"
#include "run/job_parts.h"
#include "run/reproduce.h"
#include "time/clock.h"

void dflash_job_say(DflashJob *job, const DflashError *error) {
  bool missing = error->status == DFLASH_UNSUPPORTED || error->status == DFLASH_UNAVAILABLE;
  if (strcmp(job->said, error->message) == 0) return;
  snprintf(job->said, sizeof job->said, "%s", error->message);
  dflash_log(missing && job->options->allow_missing ? DFLASH_LOG_WARNING : DFLASH_LOG_ERROR, "%s", error->message);
}

void dflash_job_bad_input(DflashJob *job, const char *file, const char *case_name, const DflashError *error) {
  cJSON *record = dflash_bad_input_record(file, case_name, error->message);
  job->tally.bad_input++;
  dflash_job_keep(job, record);
  cJSON_Delete(record);
}

static cJSON *begin_record(const DflashJob *job, const char *type, const char *case_name, int outcome) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", type);
  cJSON_AddStringToObject(record, "file", job->file);
  cJSON_AddStringToObject(record, "case", case_name);
  cJSON_AddStringToObject(record, "backend", job->backend);
  cJSON_AddStringToObject(record, "device", job->device);
  cJSON_AddStringToObject(record, "profile", dflash_profile_name(job->options->profile));
  cJSON_AddStringToObject(record, "inputs_hash", job->inputs_hash);
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(outcome));
  return record;
}

/* The verdict names the stage that the child was at. */
static void keep_verdict(DflashJob *job, const char *case_name, int outcome, const char *message) {
  const DflashStep *step = &job->step;
  cJSON *record = begin_record(job, "verdict", case_name, outcome);
  cJSON_AddStringToObject(record, "mode", step->mode[0] != '\0' ? step->mode : "-");
  cJSON_AddStringToObject(record, "stage", step->stage[0] != '\0' ? step->stage : dflash_phase_name(step->phase));
  if (step->layer >= 0) cJSON_AddNumberToObject(record, "layer", (double)step->layer);
  cJSON_AddStringToObject(record, "note", message);
  dflash_job_keep(job, record);
  cJSON_Delete(record);
  dflash_tally_case(&job->verdicts, outcome);
}

static void keep_case(DflashJob *job, const char *case_name, int outcome, const char *message) {
  const DflashStep *step = &job->step;
  bool alone = strcmp(step->mode, "alone") == 0 && dflash_stage_find(step->stage) != DFLASH_STAGE_NONE;
  const DflashReproduce what = {.command = job->command,
                                .file = job->file,
                                .case_name = job->next < job->case_count ? case_name : NULL,
                                .stage = alone ? step->stage : NULL,
                                .layer = alone ? step->layer : -1,
                                .mode = alone ? step->mode : NULL};
  char *command = dflash_reproduce_command(job->options, &what);
  cJSON *record = begin_record(job, "case", case_name, outcome);
  cJSON_AddStringToObject(record, "modes", job->modes);
  cJSON_AddStringToObject(record, "settings", job->known_settings[0] != '\0' ? job->known_settings : job->settings);
  cJSON_AddStringToObject(record, "message", message);
  cJSON_AddNumberToObject(record, "passed", (double)job->verdicts.passed);
  cJSON_AddNumberToObject(record, "failed", (double)job->verdicts.failed);
  cJSON_AddNumberToObject(record, "other", (double)(job->verdicts.cases - job->verdicts.passed - job->verdicts.failed));
  cJSON_AddNumberToObject(record, "elapsed_s", (double)(dflash_clock_ns() - job->case_begin) * 1e-9);
  if (command != NULL && dflash_outcome_is_failure(outcome)) cJSON_AddStringToObject(record, "reproduce", command);
  dflash_job_keep(job, record);
  cJSON_Delete(record);
  free(command);
}

static void close_case(DflashJob *job, const char *case_name, int outcome, const char *message) {
  keep_verdict(job, case_name, outcome, message);
  keep_case(job, case_name, outcome, message);
  job->verdicts = (DflashCounts){0};
  dflash_tally_case(&job->tally.now, outcome);
}

static void close_next(DflashJob *job, int outcome, const char *message) {
  if (job->next >= job->case_count) return;
  close_case(job, job->names[job->next], outcome, message);
  job->next++;
}

static void close_rest(DflashJob *job, int outcome, const char *message) {
  while (job->next < job->case_count) close_next(job, outcome, message);
}

static int outcome_of(DflashStatus status) {
  if (status == DFLASH_UNSUPPORTED) return DFLASH_OUTCOME_UNSUPPORTED;
  return status == DFLASH_UNAVAILABLE ? DFLASH_OUTCOME_UNAVAILABLE : DFLASH_OUTCOME_ERROR;
}

static bool is_bad_input(DflashStatus status) { return dflash_status_exit(status) == DFLASH_EXIT_BAD_INPUT; }

void dflash_job_settle_case(DflashJob *job, DflashError *error) {
  if (job->next >= job->case_count) return;
  if (strncmp(error->message, job->file, strlen(job->file)) != 0)
    dflash_error_prefix(error, "%s: case %s", job->file, job->names[job->next]);
  dflash_job_say(job, error);
  if (!is_bad_input(error->status)) {
    close_next(job, outcome_of(error->status), error->message);
    return;
  }
  dflash_job_bad_input(job, job->file, job->names[job->next], error);
  job->next++;
}

void dflash_job_settle_refusal(DflashJob *job) {
  DflashError *e = &job->refused;
  job->step = (DflashStep){.phase = job->refused_phase, .layer = -1};
  if (e->status == DFLASH_UNSUPPORTED) dflash_error_prefix(e, "%s", job->file); /* one geometry is, another is not */
  if (is_bad_input(e->status) || job->refused_phase == DFLASH_PHASE_GOLDEN ||
      outcome_of(e->status) != DFLASH_OUTCOME_ERROR)
    dflash_job_say(job, e);
  if (is_bad_input(e->status)) {
    dflash_job_bad_input(job, job->file, NULL, e);
    job->next = job->case_count;
  } else if (job->case_count == 0) {
    job->tally.now.failed++; /* not even a selection: memory was out */
  } else {
    close_rest(job, outcome_of(e->status), e->message);
  }
}

/* The file could not be read: whatever ran before in the child was not to blame. */
static void blame_file(DflashJob *job, const char *how) {
  DflashError error;
  const char *name = job->step.phase == DFLASH_PHASE_READ ? job->names[job->next] : NULL;
  dflash_error_set(&error, DFLASH_INVALID_DATA, "%s: not a readable golden file: reading %s%s %s", job->file,
                   name != NULL ? "case " : "it", name != NULL ? name : "", how);
  dflash_job_say(job, &error);
  dflash_job_bad_input(job, job->file, name, &error);
}

static void blame_backend(DflashJob *job, const DflashChildResult *result, char message[512]) {
  static const char *const doing[DFLASH_PHASE_COUNT] = {[DFLASH_PHASE_BACKEND] = "while it was loaded",
                                                        [DFLASH_PHASE_MODEL] = "while it opened the model",
                                                        [DFLASH_PHASE_CLOSE] = "while it closed the model"};
  int phase = job->step.phase;
  if (phase >= 0 && phase < DFLASH_PHASE_COUNT && doing[phase] != NULL)
    snprintf(message, 512, "the backend %s %s", result->text, doing[phase]);
  else
    snprintf(message, 512, "the backend %s%s%s", result->text, job->step.text[0] != '\0' ? " in " : "", job->step.text);
}

void dflash_job_settle_end(DflashJob *job, const DflashChildResult *result) {
  int outcome = result->how == DFLASH_CHILD_HUNG ? DFLASH_OUTCOME_HUNG : DFLASH_OUTCOME_CRASHED;
  bool in_case = job->next < job->case_count;
  char message[512];
  blame_backend(job, result, message);
  if (job->step.phase <= DFLASH_PHASE_GOLDEN) {
    blame_file(job, result->text);
    job->next = job->case_count;
  } else if (job->step.phase == DFLASH_PHASE_READ && in_case) {
    if (job->begun > 0) return; /* a case before it may have spoilt the memory: once more in a fresh child */
    blame_file(job, result->text);
    job->next++;
  } else if (job->step.phase == DFLASH_PHASE_CASE && in_case) {
    close_next(job, outcome, message);
  } else if (in_case) {
    close_rest(job, outcome, message);
  } else {
    close_case(job, "(end)", outcome, message); /* every case has its record, and yet it went wrong */
  }
}
