#include "run/session.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "time/clock.h"

DflashStatus dflash_session_golden(DflashSession *session, DflashError *error) {
  DflashStatus status = dflash_golden_open(session->file, 1, &session->golden, error);
  if (status != DFLASH_OK) return status;
  session->geometry = dflash_golden_geometry(session->golden);
  session->weights = dflash_golden_weights(session->golden);
  session->pool = dflash_pool_open(session->options->threads);
  if (session->pool == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for worker threads");
  return DFLASH_OK;
}

const char *dflash_session_attribute(const DflashSession *session, const char *name) {
  return session->golden != NULL ? dflash_golden_attribute(session->golden, name) : "";
}

/* A flipped bit in a golden value would look like a backend's error, one in an error scale might hide it. */
DflashStatus dflash_session_hashes(DflashSession *session, DflashError *error) {
  int inputs, values, scales = -1;
  DflashStatus status = dflash_golden_check_hashes(session->golden, &inputs, &values, error);
  if (status == DFLASH_OK) status = dflash_golden_check_scales_hash(session->golden, &scales, error);
  if (status != DFLASH_OK || (inputs != 0 && values != 0 && scales != 0)) return status;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %s does not match the file's contents: the file is damaged",
                          session->file,
                          inputs == 0   ? "inputs_hash"
                          : values == 0 ? "values_hash"
                                        : "scales_hash");
}

static DflashModelDesc describe(const DflashSession *session) {
  const DflashRunOptions *o = session->options;
  return (DflashModelDesc){.struct_size = sizeof(DflashModelDesc),
                           .profile = o->profile,
                           .device = session->device.id,
                           .geometry = session->geometry,
                           .weights = session->weights,
                           .options = session->backend_options,
                           .option_count = session->backend_option_count};
}

/* --threads reaches a backend that has such an option, unless the user set it himself. */
static void choose_options(DflashSession *session) {
  const DflashRunOptions *o = session->options;
  int given = o->threads == 0 || strstr(session->backend->options, "threads=") == NULL;
  for (uint32_t i = 0; i < o->option_count; i++) {
    session->backend_options[i] = o->options[i];
    given |= strcmp(o->options[i].key, "threads") == 0;
  }
  session->backend_option_count = o->option_count;
  if (given) return;
  snprintf(session->threads_text, sizeof session->threads_text, "%d", o->threads);
  session->backend_options[session->backend_option_count++] = (DflashOption){"threads", session->threads_text};
}

/* Puts the backend's name before its message, unless it stands there already. */
static DflashStatus blame(const DflashSession *session, DflashError *error) {
  const char *name = session->backend->name;
  size_t length = strlen(name);
  if (strncmp(error->message, name, length) == 0 && error->message[length] == ':') return error->status;
  return dflash_error_prefix(error, "%s", name);
}

/* The device asked for, or the backend's first. */
static DflashStatus choose_device(DflashSession *session, DflashError *error) {
  DflashDevice found[16];
  memset(found, 0, sizeof found);
  for (int i = 0; i < 16; i++) found[i].struct_size = sizeof found[i];
  uint32_t count = 0;
  DflashStatus status = session->backend->devices(found, 16, &count, error);
  if (status != DFLASH_OK) return blame(session, error);
  if (count == 0) return dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: no device", session->backend->name);
  if (count > 16) count = 16;
  const char *wanted = session->options->device;
  DflashText known = {0};
  for (uint32_t i = 0; i < count; i++) {
    if (wanted == NULL || wanted[0] == '\0' || strcmp(found[i].id, wanted) == 0) {
      session->device = found[i];
      dflash_text_free(&known);
      return DFLASH_OK;
    }
    dflash_text_append(&known, "%s%s", i > 0 ? ", " : "", found[i].id);
  }
  status = dflash_error_set(error, DFLASH_UNAVAILABLE, "%s: device '%s' is not here; found: %s", session->backend->name,
                            wanted, known.data != NULL ? known.data : "none");
  dflash_text_free(&known);
  return status;
}

/* SHA-256 of the backend's file: a rebuilt one is another. */
static DflashStatus hash_backend(const DflashSession *session, char hex[65], DflashError *error) {
  DflashMapping file;
  DflashStatus status = dflash_map_file(session->loaded.path, &file, error);
  if (status != DFLASH_OK) return status;
  DflashSha256 *hash = dflash_sha256_open();
  if (hash != NULL) {
    dflash_sha256_update(hash, file.data, (size_t)file.size);
    dflash_sha256_close(hash, hex);
  }
  dflash_unmap_file(&file);
  return hash != NULL ? DFLASH_OK : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a hash");
}

/* A golden without hashes is known by its size and time of change. */
static DflashStatus identify(DflashSession *session, DflashError *error) {
  char hex[65];
  struct stat info = {0};
  DflashText text = {0};
  const char *values = dflash_session_attribute(session, "values_hash");
  const char *scales = dflash_session_attribute(session, "scales_hash");
  DflashStatus status = hash_backend(session, hex, error);
  if (status != DFLASH_OK) return status;
  dflash_text_append(&text, "%s%sbackend_file=%.16s", session->settings, session->settings[0] != '\0' ? " " : "", hex);
  if (values[0] != '\0' && scales[0] != '\0')
    dflash_text_append(&text, " values=%.16s scales=%.16s", values, scales);
  else if (stat(session->file, &info) == 0)
    dflash_text_append(&text, " golden=%lld.%lld.%ld", (long long)info.st_size, (long long)info.st_mtim.tv_sec,
                       info.st_mtim.tv_nsec);
  if (text.failed) dflash_text_free(&text);
  if (text.data == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for settings");
  session->settings = session->own_settings = text.data;
  return DFLASH_OK;
}

DflashStatus dflash_session_backend(DflashSession *session, DflashError *error) {
  const DflashRunOptions *o = session->options;
  DflashStatus status = dflash_backend_load(o->backend, o->backend_path, &session->loaded, error);
  if (status != DFLASH_OK) return status;
  session->backend = session->loaded.backend;
  choose_options(session);
  if (session->golden != NULL) status = identify(session, error);
  if (status != DFLASH_OK) return status;
  status = choose_device(session, error);
  if (status != DFLASH_OK) return status;
  DflashModelDesc desc = describe(session);
  status = session->backend->supports(&desc, error);
  return status == DFLASH_OK ? status : blame(session, error);
}

static cJSON *model_record(const DflashSession *session) {
  cJSON *record = cJSON_CreateObject();
  if (record == NULL) return NULL;
  cJSON_AddStringToObject(record, "type", "model");
  cJSON_AddStringToObject(record, "backend_version", session->backend->version);
  cJSON_AddStringToObject(record, "device_name", session->device.name);
  cJSON_AddStringToObject(record, "driver", session->device.driver);
  cJSON_AddBoolToObject(record, "is_cpu", session->device.is_cpu);
  cJSON *options = cJSON_AddObjectToObject(record, "options");
  for (uint32_t i = 0; i < session->backend_option_count; i++)
    cJSON_AddStringToObject(options, session->backend_options[i].key, session->backend_options[i].value);
  cJSON_AddStringToObject(record, "path", session->info.path);
  cJSON_AddBoolToObject(record, "repeatable", session->info.repeatable);
  cJSON_AddNumberToObject(record, "resident_bytes", (double)session->info.resident_bytes);
  cJSON_AddNumberToObject(record, "open_s", session->open_s);
  return record;
}

DflashStatus dflash_session_model(DflashSession *session, DflashError *error) {
  DflashModelDesc desc = describe(session);
  uint64_t begin = dflash_clock_ns();
  DflashStatus status = session->backend->model_open(&desc, &session->model, error);
  if (status != DFLASH_OK) return blame(session, error);
  session->open_s = (double)(dflash_clock_ns() - begin) * 1e-9;
  if (session->golden != NULL) dflash_golden_release_weights(session->golden);
  session->info.struct_size = sizeof session->info;
  status = session->backend->model_info(session->model, &session->info, error);
  if (status != DFLASH_OK) return blame(session, error);
  return dflash_session_send(session, model_record(session));
}

void dflash_session_identify(const DflashSession *session, cJSON *record) {
  cJSON_AddStringToObject(record, "file", session->file);
  if (session->backend != NULL) cJSON_AddStringToObject(record, "backend", session->backend->name);
  cJSON_AddStringToObject(record, "device", session->device.id);
  cJSON_AddStringToObject(record, "profile", dflash_profile_name(session->options->profile));
  if (session->golden != NULL)
    cJSON_AddStringToObject(record, "inputs_hash", dflash_session_attribute(session, "inputs_hash"));
}

DflashStatus dflash_session_send(DflashSession *session, cJSON *record) {
  if (record == NULL) return DFLASH_OUT_OF_MEMORY;
  dflash_session_identify(session, record);
  DflashStatus status = dflash_child_send(session->child, record);
  cJSON_Delete(record);
  return status;
}

void dflash_session_close(DflashSession *session) {
  if (session->model != NULL) session->backend->model_close(session->model);
  session->model = NULL;
  dflash_backend_unload(&session->loaded);
  dflash_golden_close(session->golden);
  session->golden = NULL;
  dflash_pool_close(session->pool);
  session->pool = NULL;
  free(session->own_settings);
  session->settings = session->own_settings = NULL;
}
