#include "store/fields.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const cJSON *dflash_field(const cJSON *record, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(record, name);
}

const char *dflash_field_text(const cJSON *record, const char *name) {
  const char *text = cJSON_GetStringValue(dflash_field(record, name));
  return text ? text : "";
}

double dflash_field_number(const cJSON *record, const char *name) {
  const cJSON *item = dflash_field(record, name);
  if (cJSON_IsNumber(item)) return item->valuedouble;
  const char *text = cJSON_GetStringValue(item);
  if (text && strcmp(text, "inf") == 0) return INFINITY;
  if (text && strcmp(text, "-inf") == 0) return -INFINITY;
  return NAN;
}

bool dflash_field_true(const cJSON *record, const char *name) { return cJSON_IsTrue(dflash_field(record, name)); }

bool dflash_record_is(const cJSON *record, const char *type) {
  return strcmp(dflash_field_text(record, "type"), type) == 0;
}

const char *dflash_record_label(const cJSON *record, char *text, size_t size) {
  double layer = dflash_field_number(record, "layer");
  if (isnan(layer))
    snprintf(text, size, "%s", dflash_field_text(record, "stage"));
  else
    snprintf(text, size, "%s/%.0f", dflash_field_text(record, "stage"), layer);
  return text;
}

DflashOutcomeClass dflash_outcome_class(const char *name) {
  static const struct {
    const char *name;
    DflashOutcomeClass class;
  } known[] = {
      {"pass", DFLASH_OUTCOME_PASSED},         {"near tie", DFLASH_OUTCOME_PASSED},
      {"covered", DFLASH_OUTCOME_SKIPPED},     {"not trusted", DFLASH_OUTCOME_SKIPPED},
      {"not run", DFLASH_OUTCOME_SKIPPED},     {"unsupported", DFLASH_OUTCOME_SKIPPED},
      {"unavailable", DFLASH_OUTCOME_SKIPPED}, {"error", DFLASH_OUTCOME_BROKEN},
      {"crashed", DFLASH_OUTCOME_BROKEN},      {"hung", DFLASH_OUTCOME_BROKEN},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(name, known[i].name) == 0) return known[i].class;
  return DFLASH_OUTCOME_FAILED;
}
