#include "run/case_record.h"

#include <cjson/cJSON.h>

static void add_first(cJSON *record, const DflashVerdict *first) {
  char message[900];
  dflash_verdict_message(first, message, sizeof message);
  cJSON_AddStringToObject(record, "message", message);
  cJSON *place = dflash_verdict_record(first);
  cJSON_DeleteItemFromObject(place, "type");
  cJSON_AddItemToObject(record, "first", place);
}

static void add_counts(cJSON *record, const DflashVerdicts *verdicts) {
  int64_t passed = 0, failed = 0;
  double largest = 0;
  for (int64_t i = 0; i < verdicts->count; i++) {
    const DflashVerdict *v = &verdicts->at[i];
    bool pass = v->outcome == DFLASH_OUTCOME_PASS || v->outcome == DFLASH_OUTCOME_NEAR_TIE;
    passed += pass;
    failed += dflash_outcome_is_failure(v->outcome);
    if (pass && v->compared && v->comparison.score > largest) largest = v->comparison.score;
  }
  cJSON_AddNumberToObject(record, "passed", (double)passed);
  cJSON_AddNumberToObject(record, "failed", (double)failed);
  cJSON_AddNumberToObject(record, "other", (double)(verdicts->count - passed - failed));
  dflash_record_number(record, "largest_score", largest);
}

cJSON *dflash_case_record(const DflashVerdicts *verdicts, const char *case_name, const char *modes, int allow_missing) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  int outcome = verdicts->failed ? DFLASH_OUTCOME_ERROR : dflash_verdicts_outcome(verdicts, allow_missing);
  cJSON_AddStringToObject(record, "type", "case");
  cJSON_AddStringToObject(record, "case", case_name);
  cJSON_AddStringToObject(record, "modes", modes);
  cJSON_AddStringToObject(record, "outcome", dflash_outcome_name(outcome));
  const DflashVerdict *first = dflash_verdicts_first(verdicts);
  if (first != NULL) add_first(record, first);
  if (verdicts->count == 0)
    cJSON_AddStringToObject(record, "message", "--stage and --layer select nothing that this case has");
  add_counts(record, verdicts);
  return record;
}
