#include "run/run_record.h"

#include <cjson/cJSON.h>
#include <stdio.h>

#include "store/environment.h"

cJSON *dflash_run_record(const DflashRunOptions *options) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "run");
  cJSON_AddStringToObject(record, "command", options->command);
  if (options->backend != NULL) cJSON_AddStringToObject(record, "backend", options->backend);
  cJSON *environment = dflash_environment();
  const char *version = cJSON_GetStringValue(cJSON_GetObjectItem(environment, "version"));
  char tool[80];
  snprintf(tool, sizeof tool, "dflash-harness %s", version != NULL ? version : "unknown");
  cJSON_AddStringToObject(record, "tool", tool);
  cJSON_AddItemToObject(record, "environment", environment);
  return record;
}
