#include "run/job.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "run/dump.h"
#include "run/job_parts.h"
#include "run/run_record.h"
#include "time/clock.h"

static void forget_child(DflashJob *job) {
  const DflashRunOptions *o = job->options;
  job->step = (DflashStep){.phase = -1, .layer = -1};
  job->refused_phase = -1;
  job->begun = 0;
  job->case_begin = dflash_clock_ns();
  job->verdicts = (DflashCounts){0};
  job->modes[0] = '\0';
  snprintf(job->backend, sizeof job->backend, "%s", o->backend);
  snprintf(job->device, sizeof job->device, "%s", o->device != NULL ? o->device : "");
}

static void forget_file(DflashJob *job) {
  for (int64_t i = 0; i < job->case_count; i++) free(job->names[i]);
  free(job->names);
  free(job->indices);
  job->names = NULL;
  job->indices = NULL;
  job->selected = false;
  job->case_count = job->next = 0;
  job->inputs_hash[0] = '\0';
}

static DflashStatus run_file(DflashJob *job, const char *file, DflashError *error) {
  forget_file(job);
  job->file = file;
  job->matched_before = job->matched;
  do {
    DflashChildResult result;
    forget_child(job);
    DflashStatus status =
        dflash_isolate(dflash_job_child, job, job->options->timeout_s, dflash_job_take, job, &result, error);
    dflash_progress_done();
    if (status != DFLASH_OK || result.how == DFLASH_CHILD_STOPPED) return status;
    if (job->refused_phase >= 0) {
      dflash_job_settle_refusal(job);
      return DFLASH_OK;
    }
    if (result.how == DFLASH_CHILD_EXITED && job->next < job->case_count) { /* memory for its records was out */
      result.how = DFLASH_CHILD_CRASHED;
      snprintf(result.text, sizeof result.text, "ended before its cases did");
    }
    if (result.how != DFLASH_CHILD_EXITED) dflash_job_settle_end(job, &result);
  } while (job->next < job->case_count);
  return DFLASH_OK;
}

static void send_run(DflashJob *job) {
  cJSON *record = dflash_run_record(job->options);
  dflash_job_keep(job, record);
  cJSON_Delete(record);
}

/* A name that no file has is a mistake of the command line, also beside names that are there: less would be run than
 * was asked for. A pattern may match nothing; when none does, nothing runs. */
static void check_names(DflashJob *job) {
  const char *cases = job->options->cases;
  int length = 0;
  if (job->known.count == 0) return;
  const char *word = dflash_names_unmatched(&job->known, cases, job->matched == 0, &length);
  if (word == NULL) return;
  DflashText list = {0};
  DflashError error;
  dflash_names_list(&job->known, &list);
  dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "no case matches '%.*s'; there are: %s", length, word,
                   list.data != NULL ? list.data : "");
  dflash_text_free(&list);
  dflash_job_say(job, &error);
  if (dflash_names_unmatched(&job->known, cases, 0, &length) != NULL) dflash_job_bad_input(job, NULL, NULL, &error);
}

static int finish(DflashJob *job, uint64_t begin) {
  const DflashRunOptions *o = job->options;
  int result = dflash_tally_exit(&job->tally, o->allow_missing);
  if (job->tally.earlier.failed > 0)
    dflash_log(DFLASH_LOG_WARNING, "%s: %lld of the cases that it holds from before failed", o->json,
               (long long)job->tally.earlier.failed);
  cJSON *summary = dflash_tally_record(&job->tally, result, (double)(dflash_clock_ns() - begin) * 1e-9);
  dflash_job_keep(job, summary);
  cJSON_Delete(summary);
  return result;
}

static DflashStatus run_files(DflashJob *job, DflashError *error) {
  const DflashRunOptions *o = job->options;
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; i < o->file_count && status == DFLASH_OK && job->store_error.status == DFLASH_OK; i++)
    status = run_file(job, o->files[i], error);
  if (status == DFLASH_OK) check_names(job);
  forget_file(job);
  dflash_names_close(&job->known);
  return status;
}

/* With --dump, what failed before an error is kept. */
static DflashStatus run_dumped(DflashJob *job, DflashError *error) {
  DflashError later = {0};
  DflashStatus status = run_files(job, error);
  if (job->dump == NULL) return status;
  if (dflash_spool_write(job->dump, job->options->quiet ? NULL : stdout, &later) == DFLASH_OK || status != DFLASH_OK)
    return status;
  *error = later;
  return later.status;
}

static int fail(const DflashError *error) {
  dflash_log(DFLASH_LOG_ERROR, "%s", error->message);
  return dflash_status_exit(error->status);
}

static int run_all(DflashJob *job) {
  const DflashRunOptions *o = job->options;
  DflashStoreOptions store = {.console = o->quiet ? NULL : stdout,
                              .json_path = o->json,
                              .junit_path = o->junit,
                              .history_path = o->history,
                              .resume = o->resume,
                              .verbose = o->verbose};
  DflashError error = {0};
  uint64_t begin = dflash_clock_ns();
  if (dflash_store_open(&store, &job->store, &error) != DFLASH_OK) return fail(&error);
  send_run(job);
  DflashStatus status = run_dumped(job, &error);
  int result = finish(job, begin);
  if (status == DFLASH_OK && job->store_error.status != DFLASH_OK) error = job->store_error;
  dflash_store_close(job->store, error.status == DFLASH_OK ? &error : NULL);
  if (error.status == DFLASH_OK) return result;
  const int failed = fail(&error);
  return result == DFLASH_EXIT_WRONG ? result : failed;
}

/* A dump's place is looked at before anything else is written or run. */
static int run_all_dumped(DflashJob *job) {
  const DflashRunOptions *o = job->options;
  DflashError error = {0};
  if (o->dump != NULL && dflash_spool_open(o->dump, o->dump_limit, &job->dump, &error) != DFLASH_OK)
    return fail(&error);
  int result = run_all(job);
  dflash_spool_close(job->dump);
  job->dump = NULL;
  return result;
}

int dflash_job_run(DflashJob *job) {
  job->settings = dflash_run_settings(job->options);
  if (job->settings == NULL) {
    dflash_log(DFLASH_LOG_ERROR, "no memory for settings");
    return DFLASH_EXIT_WRONG;
  }
  int result = run_all_dumped(job);
  free(job->settings);
  return result;
}
