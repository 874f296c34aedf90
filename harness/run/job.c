#include "run/job.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "compare/compare.h"
#include "run/job_child.h"
#include "store/environment.h"
#include "time/clock.h"

static void keep(DflashJob *job, cJSON *record) {
  DflashError error = {0};
  if (record == NULL || job->store_error.status != DFLASH_OK) return;
  if (dflash_store_record(job->store, record, &error) != DFLASH_OK) job->store_error = error;
}

static const char *text_of(const cJSON *record, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(record, name));
  return text != NULL ? text : "";
}

void dflash_job_take_cases(DflashJob *job, const cJSON *record) {
  const cJSON *names = cJSON_GetObjectItem(record, "names"), *indices = cJSON_GetObjectItem(record, "indices");
  int64_t count = cJSON_GetArraySize(names);
  job->names = calloc((size_t)count + 1, sizeof *job->names);
  job->selected = calloc((size_t)count + 1, sizeof *job->selected);
  job->selected_count = job->names != NULL && job->selected != NULL ? count : 0;
  for (int64_t i = 0; i < job->selected_count; i++) {
    job->names[i] = strdup(cJSON_GetArrayItem(names, (int)i)->valuestring);
    job->selected[i] = (int64_t)cJSON_GetArrayItem(indices, (int)i)->valuedouble;
  }
  job->matched += (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(record, "matched"));
  job->tally.resumed += (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(record, "resumed"));
  snprintf(job->inputs_hash, sizeof job->inputs_hash, "%s", text_of(record, "inputs_hash"));
  const cJSON *name;
  cJSON_ArrayForEach(name, cJSON_GetObjectItem(record, "known")) {
    size_t used = strlen(job->known);
    if (strstr(job->known, name->valuestring) == NULL)
      snprintf(job->known + used, sizeof job->known - used, "%s%s", used > 0 ? ", " : "", name->valuestring);
  }
}

static void take_phase(DflashJob *job, const cJSON *record) {
  job->phase = cJSON_GetObjectItem(record, "phase")->valueint;
  const cJSON *index = cJSON_GetObjectItem(record, "index");
  if (index != NULL) job->next = (int64_t)index->valuedouble;
}

/* A case that ended without its own record: made here, so that no case is lost. */
static void close_case(DflashJob *job, int64_t i, int outcome, const char *message) {
  for (int which = 0; which < 2; which++) {
    cJSON *record = cJSON_CreateObject();
    if (record == NULL) return;
    cJSON_AddStringToObject(record, "type", which == 0 ? "verdict" : "case");
    cJSON_AddStringToObject(record, "file", job->file);
    cJSON_AddStringToObject(record, "case", job->names[i]);
    cJSON_AddStringToObject(record, "backend", job->options->backend);
    cJSON_AddStringToObject(record, "device", job->options->device != NULL ? job->options->device : "");
    cJSON_AddStringToObject(record, "profile", dflash_profile_name(job->options->profile));
    cJSON_AddStringToObject(record, "inputs_hash", job->inputs_hash);
    cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(outcome));
    if (which == 0) {
      cJSON_AddStringToObject(record, "mode", "-");
      cJSON_AddStringToObject(record, "stage", dflash_phase_name(job->phase));
      cJSON_AddStringToObject(record, "note", message);
    } else {
      cJSON_AddStringToObject(record, "modes", job->modes != NULL ? job->modes : "");
      cJSON_AddStringToObject(record, "message", message);
      bool failed = dflash_outcome_is_failure(outcome);
      cJSON_AddNumberToObject(record, "passed", 0);
      cJSON_AddNumberToObject(record, "failed", failed);
      cJSON_AddNumberToObject(record, "other", !failed);
    }
    keep(job, record);
    cJSON_Delete(record);
  }
  dflash_tally_case(&job->tally, outcome);
}

static void take_refusal(DflashJob *job, const cJSON *record) {
  int phase = cJSON_GetObjectItem(record, "phase")->valueint;
  if (phase == DFLASH_PHASE_CASE) { /* this case cannot be judged; the others go on */
    dflash_log(DFLASH_LOG_ERROR, "%s: case %s: %s", job->file, job->names[job->next], text_of(record, "message"));
    int status = cJSON_GetObjectItem(record, "status")->valueint;
    if (status == DFLASH_INVALID_DATA || status == DFLASH_IO)
      job->tally.bad_input++;
    else
      close_case(job, job->next, DFLASH_OUTCOME_ERROR, text_of(record, "message"));
    job->next++;
    return;
  }
  job->refused_phase = phase;
  job->refused.status = cJSON_GetObjectItem(record, "status")->valueint;
  snprintf(job->refused.message, sizeof job->refused.message, "%s", text_of(record, "message"));
}

static void take(void *context, cJSON *record) {
  DflashJob *job = context;
  const char *type = text_of(record, "type");
  if (strcmp(type, "phase") == 0) {
    take_phase(job, record);
  } else if (strcmp(type, "cases") == 0) {
    dflash_job_take_cases(job, record);
  } else if (strcmp(type, "refused") == 0) {
    take_refusal(job, record);
  } else if (strcmp(type, "progress") == 0) {
    dflash_progress("%s: case %lld/%lld %s", job->file, (long long)job->next + 1, (long long)job->selected_count,
                    text_of(record, "text"));
  } else {
    if (strcmp(type, "case") == 0) {
      dflash_tally_case(&job->tally, dflash_outcome_find(text_of(record, "outcome")));
      job->next++;
    }
    dflash_progress_done();
    keep(job, record);
  }
}

static void remaining(DflashJob *job, int outcome, const char *message) {
  for (; job->next < job->selected_count; job->next++) close_case(job, job->next, outcome, message);
}

/* The whole file (or what is left of it) was refused in an orderly way. */
static void settle_refusal(DflashJob *job) {
  const DflashError *e = &job->refused;
  bool missing = e->status == DFLASH_UNSUPPORTED || e->status == DFLASH_UNAVAILABLE;
  if (job->refused_phase == DFLASH_PHASE_GOLDEN) {
    dflash_log(DFLASH_LOG_ERROR, "%s", e->message);
    job->tally.bad_input++;
    return;
  }
  if (e->status == DFLASH_INVALID_ARGUMENT) {
    dflash_log(DFLASH_LOG_ERROR, "%s", e->message);
    job->tally.bad_input++;
    job->next = job->selected_count;
    return;
  }
  if (missing) dflash_log(job->options->allow_missing ? DFLASH_LOG_WARNING : DFLASH_LOG_ERROR, "%s", e->message);
  remaining(job,
            e->status == DFLASH_UNSUPPORTED   ? DFLASH_OUTCOME_UNSUPPORTED
            : e->status == DFLASH_UNAVAILABLE ? DFLASH_OUTCOME_UNAVAILABLE
                                              : DFLASH_OUTCOME_ERROR,
            e->message);
}

/* A crash or a hang is the verdict of the case in work; before any case, of the file or of all its cases. */
static void settle_end(DflashJob *job, const DflashChildResult *result) {
  int outcome = result->how == DFLASH_CHILD_HUNG ? DFLASH_OUTCOME_HUNG : DFLASH_OUTCOME_CRASHED;
  if (job->phase == DFLASH_PHASE_GOLDEN) {
    dflash_log(DFLASH_LOG_ERROR, "%s: not a readable golden file (reading it %s)", job->file, result->text);
    job->tally.bad_input++;
  } else if (job->phase == DFLASH_PHASE_CASE && job->next < job->selected_count) {
    close_case(job, job->next++, outcome, result->text);
    return;
  } else {
    remaining(job, outcome, result->text);
  }
  job->next = job->selected_count;
}

static void forget_file(DflashJob *job) {
  for (int64_t i = 0; job->names != NULL && i < job->selected_count; i++) free(job->names[i]);
  free(job->names);
  free(job->selected);
  job->names = NULL;
  job->selected = NULL;
  job->selected_count = job->next = 0;
  job->phase = job->refused_phase = -1;
  job->inputs_hash[0] = '\0';
}

static DflashStatus run_file(DflashJob *job, const char *file, DflashError *error) {
  forget_file(job);
  job->file = file;
  job->matched_before = job->matched;
  do {
    DflashChildResult result;
    job->refused_phase = -1;
    DflashStatus status = dflash_isolate(dflash_job_child, job, job->options->timeout_s, take, job, &result, error);
    dflash_progress_done();
    if (status != DFLASH_OK) return status;
    if (result.how != DFLASH_CHILD_EXITED || result.value != 0) {
      if (result.how == DFLASH_CHILD_EXITED) result.how = DFLASH_CHILD_CRASHED; /* a backend called exit */
      settle_end(job, &result);
    } else if (job->refused_phase >= 0) {
      settle_refusal(job);
      break;
    }
  } while (job->next < job->selected_count && job->store_error.status == DFLASH_OK);
  return DFLASH_OK;
}

static void send_run(DflashJob *job) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return;
  cJSON_AddStringToObject(record, "type", "run");
  cJSON_AddStringToObject(record, "command", job->options->command);
  cJSON_AddStringToObject(record, "backend", job->options->backend);
  cJSON_AddItemToObject(record, "environment", dflash_environment());
  keep(job, record);
  cJSON_Delete(record);
}

/* A name without wildcards that matched in no file is a mistake of the command line; a pattern ran nothing. */
static int unmatched(const DflashJob *job) {
  if (job->matched > 0 || job->options->cases == NULL || job->known[0] == '\0') return 0;
  dflash_log(DFLASH_LOG_ERROR, "no case matches '%s'; there are: %s", job->options->cases, job->known);
  return strpbrk(job->options->cases, "*?[") == NULL;
}

int dflash_job_run(DflashJob *job) {
  const DflashRunOptions *o = job->options;
  DflashStoreOptions store = {.console = o->quiet ? NULL : stdout,
                              .json_path = o->json,
                              .junit_path = o->junit,
                              .resume = o->resume,
                              .verbose = o->verbose};
  DflashError error = {0};
  uint64_t begin = dflash_clock_ns();
  if (dflash_store_open(&store, &job->store, &error) != DFLASH_OK) {
    dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
    return dflash_status_exit(error.status);
  }
  send_run(job);
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; i < o->file_count && status == DFLASH_OK && job->store_error.status == DFLASH_OK; i++)
    status = run_file(job, o->files[i], &error);
  if (status == DFLASH_OK && unmatched(job)) job->tally.bad_input++;
  int result = dflash_tally_exit(&job->tally, o->allow_missing);
  cJSON *summary = dflash_tally_record(&job->tally, result, (double)(dflash_clock_ns() - begin) * 1e-9);
  keep(job, summary);
  cJSON_Delete(summary);
  forget_file(job);
  if (status == DFLASH_OK && job->store_error.status != DFLASH_OK) error = job->store_error;
  DflashStatus closed = dflash_store_close(job->store, error.status == DFLASH_OK ? &error : NULL);
  if (error.status == DFLASH_OK && closed == DFLASH_OK) return result;
  dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
  return dflash_status_exit(error.status);
}
