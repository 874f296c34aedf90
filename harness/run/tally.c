#include "run/tally.h"

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/error.h"
#include "compare/compare.h"

void dflash_tally_case(DflashCounts *c, int outcome) {
  c->cases++;
  if (dflash_outcome_is_failure(outcome))
    c->failed++;
  else if (outcome == DFLASH_OUTCOME_PASS || outcome == DFLASH_OUTCOME_NEAR_TIE)
    c->passed++;
  else if (outcome == DFLASH_OUTCOME_UNSUPPORTED || outcome == DFLASH_OUTCOME_UNAVAILABLE)
    c->skipped++;
  else if (outcome == DFLASH_OUTCOME_NOT_TRUSTED)
    c->not_trusted++;
  else
    c->not_run++;
}

int dflash_tally_exit(const DflashTally *t, int allow_missing) {
  int64_t missing = t->now.skipped + t->earlier.skipped;
  if (t->now.failed + t->earlier.failed > 0) return DFLASH_EXIT_WRONG;
  if (t->bad_input > 0) return DFLASH_EXIT_BAD_INPUT;
  if (missing > 0 && !allow_missing) return DFLASH_EXIT_UNAVAILABLE;
  if (t->now.passed + t->earlier.passed > 0) return DFLASH_EXIT_OK;
  if (t->now.not_trusted + t->earlier.not_trusted > 0) return DFLASH_EXIT_CANNOT_TELL;
  return missing > 0 ? DFLASH_EXIT_SKIPPED : DFLASH_EXIT_NOTHING;
}

cJSON *dflash_bad_input_record(const char *file, const char *case_name, const char *message) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "bad_input");
  if (file != NULL) cJSON_AddStringToObject(record, "file", file);
  if (case_name != NULL) cJSON_AddStringToObject(record, "case", case_name);
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(DFLASH_OUTCOME_ERROR));
  cJSON_AddStringToObject(record, "message", message);
  return record;
}

cJSON *dflash_tally_record(const DflashTally *t, int exit, double elapsed_s) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "summary");
  cJSON_AddNumberToObject(record, "cases", (double)t->now.cases);
  cJSON_AddNumberToObject(record, "passed", (double)t->now.passed);
  cJSON_AddNumberToObject(record, "failed", (double)t->now.failed);
  cJSON_AddNumberToObject(record, "skipped", (double)t->now.skipped);
  cJSON_AddNumberToObject(record, "not_run", (double)(t->now.not_run + t->now.not_trusted));
  cJSON_AddNumberToObject(record, "bad_input", (double)t->bad_input);
  cJSON_AddNumberToObject(record, "resumed", (double)t->earlier.cases);
  cJSON_AddNumberToObject(record, "exit", exit);
  cJSON_AddNumberToObject(record, "elapsed_s", elapsed_s);
  return record;
}
