/* A self test as records (docs/records.md). */
#include <cjson/cJSON.h>

#include "base/error.h"
#include "compare/compare.h"
#include "run/run_record.h"
#include "run/selftest_parts.h"
#include "run/verdict.h"
#include "store/store.h"
#include "time/clock.h"

/* Writes a record and releases it; NULL: memory was out. */
static DflashStatus keep(DflashSelfTest *test, cJSON *record, DflashError *error) {
  DflashStatus status = record != NULL ? dflash_store_record(test->store, record, error)
                                       : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a record");
  cJSON_Delete(record);
  return status;
}

DflashStatus dflash_self_records_open(DflashSelfTest *test, DflashError *error) {
  const DflashStoreOptions options = {.json_path = test->options->run->json};
  if (options.json_path == NULL) return DFLASH_OK;
  DflashStatus status = dflash_store_open(&options, &test->store, error);
  return status == DFLASH_OK ? keep(test, dflash_run_record(test->options->run), error) : status;
}

static cJSON *trial_record(const DflashSelfTrial *t) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "defect");
  cJSON_AddStringToObject(record, "defect", t->defect != NULL ? t->defect->id : "");
  if (t->defect != NULL) {
    cJSON_AddStringToObject(record, "class", t->defect->kind);
    cJSON_AddStringToObject(record, "origin", t->defect->origin);
    if (t->defect->stage != NULL) cJSON_AddStringToObject(record, "expected_stage", t->defect->stage);
    if (t->defect->hidden != NULL) cJSON_AddStringToObject(record, "hidden", t->defect->hidden);
    cJSON_AddBoolToObject(record, "lawful", t->defect->lawful);
  }
  cJSON_AddStringToObject(record, "golden", t->golden->name);
  cJSON_AddStringToObject(record, "profile", dflash_profile_name(t->golden->profile));
  cJSON_AddBoolToObject(record, "end_values", t->end);
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(t->result.outcome));
  cJSON_AddBoolToObject(record, "found", dflash_self_found(t));
  dflash_record_number(record, "largest_score", t->result.largest_passing);
  if (!dflash_self_found(t)) return record;
  cJSON_AddStringToObject(record, "stage", t->result.stage);
  cJSON_AddStringToObject(record, "mode", t->result.mode);
  dflash_record_number(record, "score", t->result.score);
  cJSON_AddStringToObject(record, "message", t->result.message);
  return record;
}

static void add_count(cJSON *record, const char *name, int64_t count) {
  cJSON_AddNumberToObject(record, name, (double)count);
}

/* Of the defect at this index; at defect_count of the base alone. */
static cJSON *rate_record(const DflashSelfTest *test, int64_t index) {
  const DflashSelfRate *rate = &test->rates[index];
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "rate");
  cJSON_AddStringToObject(record, "defect", index < test->defect_count ? test->defects[index]->id : "");
  add_count(record, "draws", rate->tried);
  add_count(record, "found", rate->found);
  add_count(record, "broken", rate->broken);
  return record;
}

static cJSON *summary_record(const DflashSelfTest *test, const DflashSelfSummary *s) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "summary");
  add_count(record, "defects", s->all.defects);
  add_count(record, "found", s->all.found);
  add_count(record, "at_stage", s->all.placed);
  add_count(record, "end_values", s->all.end);
  add_count(record, "end_values_found", s->all.end_found);
  add_count(record, "hidden", s->all.excused);
  add_count(record, "correct_runs", s->correct + s->lawful);
  add_count(record, "lawful", s->lawful);
  add_count(record, "false_alarms", s->alarms);
  add_count(record, "skipped", s->declined);
  add_count(record, "not_judged", s->broken);
  if (s->correct + s->lawful > 0) dflash_record_number(record, "largest_score", s->largest);
  if (s->all.found > 0) dflash_record_number(record, "smallest_score", s->smallest);
  add_count(record, "exit", s->exit);
  cJSON_AddNumberToObject(record, "elapsed_s", (double)(dflash_clock_ns() - test->begin) * 1e-9);
  return record;
}

DflashStatus dflash_self_records_write(DflashSelfTest *test, const DflashSelfSummary *summary, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  if (test->store == NULL) return status;
  for (int64_t i = 0; status == DFLASH_OK && i < test->trial_count; i++)
    status = keep(test, trial_record(&test->trials[i]), error);
  for (int64_t i = 0; status == DFLASH_OK && test->rates != NULL && i <= test->defect_count; i++)
    status = keep(test, rate_record(test, i), error);
  return status == DFLASH_OK ? keep(test, summary_record(test, summary), error) : status;
}

DflashStatus dflash_self_records_close(DflashSelfTest *test, DflashError *error) {
  DflashStatus status = test->store != NULL ? dflash_store_close(test->store, error) : DFLASH_OK;
  test->store = NULL;
  return status;
}
