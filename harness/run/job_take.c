/* What the child tells, in the parent. Members may be missing: the child may be a backend gone wild. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "compare/compare.h"
#include "run/dump.h"
#include "run/job_parts.h"
#include "time/clock.h"

void dflash_job_keep(DflashJob *job, cJSON *record) {
  DflashError error = {0};
  if (record == NULL || job->store_error.status != DFLASH_OK) return;
  if (dflash_store_record(job->store, record, &error) != DFLASH_OK) job->store_error = error;
}

static const char *text_of(const cJSON *record, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(record, name));
  return text != NULL ? text : "";
}

static int64_t number_of(const cJSON *record, const char *name, int64_t absent) {
  double value = cJSON_GetNumberValue(cJSON_GetObjectItem(record, name));
  return fabs(value) < 0x1p53 ? (int64_t)value : absent; /* NaN when absent */
}

void dflash_job_take_cases(DflashJob *job, const cJSON *record) {
  const cJSON *name, *index = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "indices"), 0);
  int count = cJSON_GetArraySize(cJSON_GetObjectItem(record, "names"));
  if (job->selected) return;
  job->names = calloc((size_t)count + 1, sizeof *job->names);
  job->indices = calloc((size_t)count + 1, sizeof *job->indices);
  job->selected = job->names != NULL && job->indices != NULL;
  if (!job->selected) return;
  cJSON_ArrayForEach(name, cJSON_GetObjectItem(record, "names")) {
    char *copy = strdup(cJSON_IsString(name) ? name->valuestring : "");
    if (copy == NULL || index == NULL) {
      free(copy);
      break;
    }
    job->names[job->case_count] = copy;
    job->indices[job->case_count++] = (int64_t)index->valuedouble;
    index = index->next;
  }
  job->matched += number_of(record, "matched", 0);
  snprintf(job->inputs_hash, sizeof job->inputs_hash, "%s", text_of(record, "inputs_hash"));
  cJSON_ArrayForEach(name, cJSON_GetObjectItem(record, "known")) {
    if (cJSON_IsString(name)) dflash_names_add(&job->known, name->valuestring);
  }
}

static void take_phase(DflashJob *job, const cJSON *record) {
  job->step = (DflashStep){.phase = (int)number_of(record, "phase", -1), .layer = -1};
  int64_t index = number_of(record, "index", job->next);
  if (index >= job->next && index < job->case_count) job->next = index;
  if (job->step.phase == DFLASH_PHASE_READ) {
    job->verdicts = (DflashCounts){0};
    job->modes[0] = '\0';
    job->case_begin = dflash_clock_ns();
  }
  if (job->step.phase == DFLASH_PHASE_CASE) {
    job->begun++;
    snprintf(job->modes, sizeof job->modes, "%s", text_of(record, "modes"));
    snprintf(job->known_settings, sizeof job->known_settings, "%s", text_of(record, "settings"));
  }
  if (text_of(record, "backend")[0] == '\0') return;
  snprintf(job->backend, sizeof job->backend, "%s", text_of(record, "backend"));
  snprintf(job->device, sizeof job->device, "%s", text_of(record, "device"));
}

static void take_progress(DflashJob *job, const cJSON *record) {
  DflashStep *step = &job->step;
  snprintf(step->mode, sizeof step->mode, "%s", text_of(record, "mode"));
  snprintf(step->stage, sizeof step->stage, "%s", text_of(record, "stage"));
  snprintf(step->text, sizeof step->text, "%s", text_of(record, "text"));
  step->layer = number_of(record, "layer", -1);
  if (job->next < job->case_count)
    dflash_progress("%s: case %lld/%lld %s: %s", job->file, (long long)job->next + 1, (long long)job->case_count,
                    job->names[job->next], step->text);
}

static void take_refusal(DflashJob *job, const cJSON *record) {
  int phase = (int)number_of(record, "phase", DFLASH_PHASE_CASE);
  DflashError error = {.status = (DflashStatus)number_of(record, "status", DFLASH_INTERNAL)};
  snprintf(error.message, sizeof error.message, "%s", text_of(record, "message"));
  if (phase == DFLASH_PHASE_CASE) {
    dflash_job_settle_case(job, &error);
    return;
  }
  job->refused_phase = phase;
  job->refused = error;
}

static void take_result(DflashJob *job, cJSON *record) {
  int outcome = dflash_outcome_find(text_of(record, "outcome"));
  if (strcmp(text_of(record, "type"), "verdict") == 0) dflash_tally_case(&job->verdicts, outcome);
  if (strcmp(text_of(record, "type"), "case") == 0) {
    dflash_tally_case(&job->tally.now, outcome);
    job->next++;
  }
  dflash_progress_done();
  dflash_job_keep(job, record);
}

int dflash_job_take(void *context, cJSON *record) {
  DflashJob *job = context;
  const char *type = text_of(record, "type");
  if (dflash_spool_take(job->dump, record)) return 0;
  if (strcmp(type, "phase") == 0) {
    take_phase(job, record);
  } else if (strcmp(type, "cases") == 0) {
    dflash_job_take_cases(job, record);
  } else if (strcmp(type, "refused") == 0) {
    take_refusal(job, record);
  } else if (strcmp(type, "progress") == 0) {
    take_progress(job, record);
  } else if (strcmp(type, "resumed") == 0) {
    dflash_tally_case(&job->tally.earlier, dflash_outcome_find(text_of(record, "outcome")));
    job->next++;
  } else {
    take_result(job, record);
  }
  return job->store_error.status != DFLASH_OK;
}
