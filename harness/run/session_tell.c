/* What the child tells its parent while it works. */
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "compare/compare.h"
#include "model/stage_table.h"
#include "run/session.h"

static const char *const phase_names[DFLASH_PHASE_COUNT] = {"golden", "backend", "model", "read", "case", "close"};

const char *dflash_phase_name(int phase) {
  return phase >= 0 && phase < DFLASH_PHASE_COUNT ? phase_names[phase] : "start";
}

static void send_and_delete(DflashSession *session, cJSON *record) {
  if (record != NULL) dflash_child_send(session->child, record);
  cJSON_Delete(record);
}

/* Only the backend's own words may reach stderr: a library that reads a damaged file keeps silent. */
static cJSON *phase_record(DflashSession *session, int phase) {
  cJSON *record = cJSON_CreateObject();
  dflash_child_hush(session->child, phase == DFLASH_PHASE_GOLDEN || phase == DFLASH_PHASE_READ);
  cJSON_AddStringToObject(record, "type", "phase");
  cJSON_AddNumberToObject(record, "phase", phase);
  if (session->backend != NULL) {
    cJSON_AddStringToObject(record, "backend", session->backend->name);
    cJSON_AddStringToObject(record, "device", session->device.id);
  }
  return record;
}

void dflash_session_phase(DflashSession *session, int phase) { send_and_delete(session, phase_record(session, phase)); }

void dflash_session_read(DflashSession *session, int64_t index) {
  cJSON *record = phase_record(session, DFLASH_PHASE_READ);
  cJSON_AddNumberToObject(record, "index", (double)index);
  send_and_delete(session, record);
}

void dflash_session_case(DflashSession *session, const char *modes) {
  cJSON *record = phase_record(session, DFLASH_PHASE_CASE);
  cJSON_AddStringToObject(record, "modes", modes);
  cJSON_AddStringToObject(record, "settings", session->settings);
  send_and_delete(session, record);
}

static cJSON *progress_record(const char *text) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", "progress");
  cJSON_AddStringToObject(record, "text", text);
  return record;
}

void dflash_session_progress(DflashSession *session, const char *format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  send_and_delete(session, progress_record(text));
}

void dflash_session_stage(DflashSession *session, int mode, int32_t stage, int64_t layer) {
  char label[64], text[128];
  snprintf(text, sizeof text, "%s %s", dflash_mode_name(mode), dflash_stage_label(stage, layer, label));
  cJSON *record = progress_record(text);
  cJSON_AddStringToObject(record, "mode", dflash_mode_name(mode));
  cJSON_AddStringToObject(record, "stage", dflash_stage_row(stage)->name);
  if (dflash_stage_row(stage)->scope == DFLASH_SCOPE_LAYER) cJSON_AddNumberToObject(record, "layer", (double)layer);
  send_and_delete(session, record);
}

void dflash_session_check(DflashSession *session, int mode, const char *check) {
  char text[128];
  snprintf(text, sizeof text, "%s %s", dflash_mode_name(mode), check);
  cJSON *record = progress_record(text);
  cJSON_AddStringToObject(record, "mode", dflash_mode_name(mode));
  cJSON_AddStringToObject(record, "stage", check);
  send_and_delete(session, record);
}

void dflash_session_refuse(DflashSession *session, int phase, const DflashError *error) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", "refused");
  cJSON_AddNumberToObject(record, "phase", phase);
  cJSON_AddNumberToObject(record, "status", error->status);
  cJSON_AddStringToObject(record, "message", error->message);
  send_and_delete(session, record);
}

int dflash_session_resumed(DflashSession *session, const char *case_name, const char *modes) {
  if (!session->options->resume) return 0;
  cJSON *key = cJSON_CreateObject();
  if (key == NULL) return 0;
  dflash_session_identify(session, key);
  cJSON_AddStringToObject(key, "case", case_name);
  cJSON_AddStringToObject(key, "modes", modes);
  cJSON_AddStringToObject(key, "settings", session->settings);
  const cJSON *found = dflash_store_find(session->store, key);
  cJSON_Delete(key);
  if (found == NULL) return 0;
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, "type", "resumed");
  cJSON_AddItemToObject(record, "outcome", cJSON_Duplicate(cJSON_GetObjectItem(found, "outcome"), 0));
  send_and_delete(session, record);
  return 1;
}
