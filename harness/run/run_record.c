#include "run/run_record.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <sys/random.h>

#include "store/environment.h"

/* Tells this run from every other one, wherever it is told. */
static void add_id(cJSON *record) {
  unsigned char bytes[16];
  char hex[2 * sizeof bytes + 1];
  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return;
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
  cJSON_AddStringToObject(record, "id", hex);
}

cJSON *dflash_run_record(const DflashRunOptions *options) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "run");
  add_id(record);
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
