#include "run/offline.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "run/names.h"
#include "run/run_record.h"
#include "run/tally.h"
#include "store/store.h"
#include "time/clock.h"

typedef struct Parent {
  const DflashRunOptions *options;
  const char *what, *file;
  DflashOfflineFn judge;
  DflashStore *store;
  DflashTally tally;
  DflashNames known;
  int64_t ran;
  DflashAbsent absent;
  DflashError store_error;
} Parent;

/* ---- the child's side ---- */

static void send_and_delete(DflashOffline *offline, cJSON *record) {
  if (record != NULL) dflash_child_send(offline->child, record);
  cJSON_Delete(record);
}

static cJSON *named_record(const char *type, const char *member, const char *text) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", type);
  cJSON_AddStringToObject(record, member, text);
  return record;
}

void dflash_offline_known(DflashOffline *offline, const char *case_name) {
  send_and_delete(offline, named_record("known", "name", case_name));
}

void dflash_offline_say(DflashOffline *offline, int level, const char *text) {
  send_and_delete(offline, named_record(level == DFLASH_LOG_ERROR ? "error" : "warning", "text", text));
}

void dflash_offline_progress(DflashOffline *offline, const char *text) {
  send_and_delete(offline, named_record("progress", "text", text));
}

void dflash_offline_absent(DflashOffline *offline, const DflashAbsent *absent) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", "absent");
  cJSON_AddNumberToObject(record, "stages", (double)absent->stages);
  cJSON_AddNumberToObject(record, "cases", (double)absent->cases);
  cJSON_AddNumberToObject(record, "of_cases", (double)absent->of_cases);
  send_and_delete(offline, record);
}

/* Right as far as it goes, which is not far enough. */
static void fail_required(cJSON *record, const char *what) {
  cJSON_DeleteItemFromObject(record, "outcome");
  cJSON_DeleteItemFromObject(record, "message");
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(DFLASH_OUTCOME_NOT_RUN));
  cJSON_AddStringToObject(record, "message", what);
  cJSON_AddBoolToObject(record, "required", true);
}

static void identify(const DflashOffline *offline, const DflashOfflineCase *c, cJSON *record) {
  cJSON_AddStringToObject(record, "file", offline->file);
  cJSON_AddStringToObject(record, "backend", c->backend);
  cJSON_AddStringToObject(record, "device", c->device);
  cJSON_AddStringToObject(record, "profile", c->profile);
  if (c->inputs_hash != NULL) cJSON_AddStringToObject(record, "inputs_hash", c->inputs_hash);
}

static DflashStatus send(DflashOffline *offline, const DflashOfflineCase *c, cJSON *record, DflashError *error) {
  if (record == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a record");
  identify(offline, c, record);
  send_and_delete(offline, record);
  return DFLASH_OK;
}

DflashStatus dflash_offline_case(DflashOffline *offline, const DflashOfflineCase *c, const DflashVerdicts *verdicts,
                                 DflashError *error) {
  for (int64_t i = 0; i < verdicts->count; i++) {
    cJSON *record = dflash_verdict_record(&verdicts->at[i]);
    if (record != NULL) cJSON_AddStringToObject(record, "case", c->name);
    DflashStatus status = send(offline, c, record, error);
    if (status != DFLASH_OK) return status;
  }
  cJSON *record = dflash_case_record(verdicts, c->name, c->modes, offline->options->allow_missing);
  if (record != NULL && c->reproduce != NULL && dflash_verdicts_first(verdicts) != NULL)
    cJSON_AddStringToObject(record, "reproduce", c->reproduce);
  if (record != NULL && c->required != NULL && dflash_verdicts_first(verdicts) == NULL)
    fail_required(record, c->required);
  if (record != NULL) cJSON_AddNumberToObject(record, "elapsed_s", (double)(dflash_clock_ns() - offline->begun) * 1e-9);
  offline->begun = dflash_clock_ns();
  return send(offline, c, record, error);
}

static int run_child(void *context, DflashChild *child) {
  Parent *p = context;
  DflashOffline offline = {.options = p->options, .file = p->file, .child = child, .begun = dflash_clock_ns()};
  DflashError error = {0};
  dflash_child_hush(child, 1); /* a library that chokes on a damaged file keeps silent */
  if (p->judge(&offline, &error) == DFLASH_OK) return 0;
  cJSON *record = named_record("refused", "message", error.message);
  cJSON_AddNumberToObject(record, "status", error.status);
  send_and_delete(&offline, record);
  return 0;
}

/* ---- the parent's side ---- */

static const char *text_of(const cJSON *record, const char *name) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(record, name));
  return text != NULL ? text : "";
}

static void keep(Parent *p, cJSON *record) {
  DflashError error = {0};
  if (record == NULL || p->store_error.status != DFLASH_OK) return;
  if (dflash_store_record(p->store, record, &error) != DFLASH_OK) p->store_error = error;
}

static void keep_bad_input(Parent *p, const char *file, const char *message) {
  cJSON *record = dflash_bad_input_record(file, NULL, message);
  p->tally.bad_input++;
  keep(p, record);
  cJSON_Delete(record);
}

static bool begins_with(const char *message, const char *file) {
  return file != NULL && strncmp(message, file, strlen(file)) == 0;
}

static void refuse(Parent *p, DflashStatus status, const char *message) {
  dflash_progress_done();
  const bool named = begins_with(message, p->file) || begins_with(message, p->options->golden);
  dflash_log(DFLASH_LOG_ERROR, "%s%s%s", named ? "" : p->file, named ? "" : ": ", message);
  if (status == DFLASH_UNSUPPORTED || status == DFLASH_UNAVAILABLE)
    dflash_tally_case(&p->tally.now, DFLASH_OUTCOME_UNSUPPORTED);
  else if (dflash_status_exit(status) == DFLASH_EXIT_BAD_INPUT)
    keep_bad_input(p, p->file, message);
  else
    dflash_tally_case(&p->tally.now, DFLASH_OUTCOME_ERROR);
}

static int64_t count_in(const cJSON *record, const char *name) {
  double value = cJSON_GetNumberValue(cJSON_GetObjectItem(record, name));
  return value >= 0 && value < 0x1p53 ? (int64_t)value : 0;
}

static void tally_case(Parent *p, const cJSON *record) {
  p->ran++;
  if (cJSON_IsTrue(cJSON_GetObjectItem(record, "required"))) {
    p->tally.now.cases++;
    p->tally.now.failed++;
  } else {
    dflash_tally_case(&p->tally.now, dflash_outcome_find(text_of(record, "outcome")));
  }
}

static int take(void *context, cJSON *record) {
  Parent *p = context;
  const char *type = text_of(record, "type");
  if (strcmp(type, "known") == 0) {
    dflash_names_add(&p->known, text_of(record, "name"));
  } else if (strcmp(type, "progress") == 0) {
    dflash_progress("%s: %s", p->file, text_of(record, "text"));
  } else if (strcmp(type, "error") == 0) {
    dflash_log(DFLASH_LOG_ERROR, "%s", text_of(record, "text"));
  } else if (strcmp(type, "warning") == 0) {
    if (!p->options->quiet) dflash_log(DFLASH_LOG_WARNING, "%s", text_of(record, "text"));
  } else if (strcmp(type, "refused") == 0) {
    double status = cJSON_GetNumberValue(cJSON_GetObjectItem(record, "status"));
    refuse(p, status >= 0 && status < 100 ? (DflashStatus)status : DFLASH_INTERNAL, text_of(record, "message"));
  } else if (strcmp(type, "absent") == 0) {
    p->absent.stages += count_in(record, "stages");
    p->absent.cases += count_in(record, "cases");
    p->absent.of_cases += count_in(record, "of_cases");
  } else {
    if (strcmp(type, "case") == 0) tally_case(p, record);
    dflash_progress_done();
    keep(p, record);
  }
  return p->store_error.status != DFLASH_OK;
}

static DflashStatus run_file(Parent *p, const char *file, DflashError *error) {
  DflashChildResult result;
  p->file = file;
  DflashStatus status = dflash_isolate(run_child, p, p->options->timeout_s, take, p, &result, error);
  if (status != DFLASH_OK || result.how == DFLASH_CHILD_EXITED || result.how == DFLASH_CHILD_STOPPED) return status;
  DflashText text = {0};
  dflash_text_append(&text, "not a readable %s: reading it %s", p->what, result.text);
  refuse(p, DFLASH_INVALID_DATA, text.data != NULL ? text.data : "");
  dflash_text_free(&text);
  return DFLASH_OK;
}

static void check_names(Parent *p) {
  int length = 0;
  if (p->known.count == 0) return;
  const char *word = dflash_names_unmatched(&p->known, p->options->cases, p->ran == 0, &length);
  if (word == NULL) return;
  DflashText list = {0};
  DflashError error;
  dflash_names_list(&p->known, &list);
  dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "no case matches '%.*s'; there are: %s", length, word,
                   list.data != NULL ? list.data : "");
  dflash_text_free(&list);
  dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
  if (dflash_names_unmatched(&p->known, p->options->cases, 0, &length) != NULL) keep_bad_input(p, NULL, error.message);
}

static int judge_all(Parent *p, int64_t file_count, DflashError *error) {
  uint64_t begin = dflash_clock_ns();
  DflashStatus status = DFLASH_OK;
  cJSON *run = dflash_run_record(p->options);
  keep(p, run);
  cJSON_Delete(run);
  for (int64_t i = 0; i < file_count && status == DFLASH_OK && p->store_error.status == DFLASH_OK; i++)
    status = run_file(p, p->options->files[i], error);
  check_names(p);
  int result = dflash_tally_exit(&p->tally, p->options->allow_missing);
  cJSON *summary = dflash_tally_record(&p->tally, result, (double)(dflash_clock_ns() - begin) * 1e-9);
  if (summary != NULL && p->absent.of_cases > 0) {
    cJSON_AddNumberToObject(summary, "absent_stages", (double)p->absent.stages);
    cJSON_AddNumberToObject(summary, "absent_cases", (double)p->absent.cases);
    cJSON_AddNumberToObject(summary, "golden_cases", (double)p->absent.of_cases);
  }
  keep(p, summary);
  cJSON_Delete(summary);
  return result;
}

int dflash_offline_run(const DflashRunOptions *o, int64_t file_count, const char *what, DflashOfflineFn judge) {
  Parent p = {.options = o, .what = what, .judge = judge};
  const DflashStoreOptions store = {.console = o->quiet ? NULL : stdout,
                                    .json_path = o->json,
                                    .junit_path = o->junit,
                                    .history_path = o->history,
                                    .verbose = o->verbose};
  DflashError error = {0};
  int result = DFLASH_EXIT_OK;
  if (dflash_store_open(&store, &p.store, &error) == DFLASH_OK) {
    result = judge_all(&p, file_count, &error);
    dflash_names_close(&p.known);
    if (error.status == DFLASH_OK) error = p.store_error;
    dflash_store_close(p.store, error.status == DFLASH_OK ? &error : NULL);
  }
  if (error.status == DFLASH_OK) return result;
  dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
  return result == DFLASH_EXIT_WRONG ? result : dflash_status_exit(error.status);
}
