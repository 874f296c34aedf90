/* What makes two results comparable, and what disturbs them. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/runs.h"
#include "store/fields.h"

static const char *const names[DFLASH_KEY_COUNT] = {"case",   "what",    "profile", "golden",
                                                    "caches", "machine", "backend", "device"};

const char *dflash_key_name(int key) { return key >= 0 && key < DFLASH_KEY_COUNT ? names[key] : "-"; }

static const char *copy(char *text, const char *from) {
  snprintf(text, DFLASH_KEY_TEXT, "%s", from);
  return text;
}

/* The value of `name=` among settings that are joined by blanks; "" when it is not there. */
static const char *setting(const DflashResult *result, const char *name, char *text) {
  const size_t length = strlen(name);
  const char *at = dflash_field_text(result->done, "settings");
  for (; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " "))
    if (strncmp(at, name, length) == 0 && at[length] == '=') {
      const char *value = at + length + 1;
      snprintf(text, DFLASH_KEY_TEXT, "%.*s", (int)strcspn(value, " "), value);
      return text;
    }
  return copy(text, "");
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* golden=SIZE.TIME names a file that stores no hashes; a copy of it has another time, and is the same golden. */
static const char *golden_of(const DflashResult *result, char *text) {
  char values[DFLASH_KEY_TEXT];
  const char *inputs = dflash_field_text(result->bench, "inputs_hash");
  if (*inputs != '\0') {
    snprintf(text, DFLASH_KEY_TEXT, "%.64s %.64s", inputs, setting(result, "values", values));
    return text;
  }
  setting(result, "golden", values);
  snprintf(text, DFLASH_KEY_TEXT, "%.120s, %.*s bytes", base_name(dflash_field_text(result->bench, "file")),
           (int)strcspn(values, "."), values);
  return text;
}

static const char *caches_of(const DflashResult *result, char *text) {
  if (dflash_field_true(result->bench, "cold")) return copy(text, "cold");
  return copy(text, dflash_field_true(result->bench, "cache_hot") ? "cache-hot" : "caches as they were");
}

static const char *what_of(const DflashResult *result, char *text) {
  char round[DFLASH_KEY_TEXT];
  const char *what = dflash_field_text(result->bench, "what");
  if (strcmp(what, "round") != 0) return copy(text, what);
  snprintf(text, DFLASH_KEY_TEXT, "round=%.40s", setting(result, "round", round));
  return text;
}

static const char *machine_of(const DflashResult *result, char *text) {
  const cJSON *environment = dflash_field(result->bench, "environment");
  snprintf(text, DFLASH_KEY_TEXT, "%.100s, %g CPUs, %.100s", dflash_field_text(environment, "cpu"),
           dflash_field_number(environment, "cpus_allowed"), dflash_field_text(result->model, "device_name"));
  return text;
}

const char *dflash_result_key(const DflashResult *result, int key, char text[DFLASH_KEY_TEXT]) {
  switch (key) {
  case DFLASH_KEY_WHAT:
    return what_of(result, text);
  case DFLASH_KEY_GOLDEN:
    return golden_of(result, text);
  case DFLASH_KEY_CACHES:
    return caches_of(result, text);
  case DFLASH_KEY_MACHINE:
    return machine_of(result, text);
  default:
    return copy(text, dflash_field_text(result->bench, dflash_key_name(key)));
  }
}

unsigned dflash_result_differs(const DflashResult *a, const DflashResult *b) {
  char left[DFLASH_KEY_TEXT], right[DFLASH_KEY_TEXT];
  unsigned bits = 0;
  for (int key = 0; key < DFLASH_KEY_COUNT; key++)
    if (strcmp(dflash_result_key(a, key, left), dflash_result_key(b, key, right)) != 0) bits |= 1U << key;
  return bits;
}

/* Reasons that hold without load: an idle device, clocks that were set, a display's clock. */
#define THROTTLE_HARMLESS UINT64_C(0x103)

static bool state_disturbed(const DflashResult *result, const char *when, char *text) {
  const cJSON *state = dflash_field(result->bench, when);
  const double throttle = dflash_field_number(state, "throttle"), users = dflash_field_number(state, "other_users");
  if (throttle > 0 && throttle < 0x1p63 && ((uint64_t)throttle & ~THROTTLE_HARMLESS) != 0) {
    snprintf(text, DFLASH_KEY_TEXT, "the device was throttled (reasons 0x%llx)", (unsigned long long)throttle);
    return true;
  }
  /* On the host these are threads that ran at that moment: its load says it better. */
  if (!(users > 0) || dflash_field_true(result->model, "is_cpu")) return false;
  snprintf(text, DFLASH_KEY_TEXT, "%g other processes were on the device", users);
  return true;
}

/* Load over a minute includes the run's own threads, at most one a CPU. */
static bool machine_busy(const DflashResult *result, double limit, char *text) {
  const cJSON *environment = dflash_field(result->bench, "environment");
  const double load = cJSON_GetNumberValue(cJSON_GetArrayItem(dflash_field(environment, "load"), 0));
  const double cpus = dflash_field_number(environment, "cpus_allowed");
  if (!(limit > 0) || !(cpus > 0) || !(load > limit * cpus)) return false;
  snprintf(text, DFLASH_KEY_TEXT, "the machine was busy: load %.1f on %g CPUs", load, cpus);
  return true;
}

const char *dflash_result_disturbed(const DflashResult *result, bool paired, double load, char text[DFLASH_KEY_TEXT]) {
  const char *outcome = dflash_field_text(result->done, "outcome");
  copy(text, "");
  if (strcmp(outcome, "pass") != 0)
    snprintf(text, DFLASH_KEY_TEXT, "%.60s: %.180s", outcome, dflash_field_text(result->done, "message"));
  else if (!paired && !state_disturbed(result, "state_before", text) && !state_disturbed(result, "state_after", text))
    machine_busy(result, load, text);
  return text;
}

/* Settings are those of the case record, without what names files. */
static const char *settings_of(const DflashResult *result, char *text) {
  static const char *const dropped[] = {"backend_file=", "values=", "scales=", "golden="};
  size_t used = 0;
  copy(text, "");
  for (const char *at = dflash_field_text(result->done, "settings"); *at != '\0';) {
    const size_t length = strcspn(at, " ");
    bool drop = false;
    for (int i = 0; i < 4; i++) drop = drop || strncmp(at, dropped[i], strlen(dropped[i])) == 0;
    if (!drop && used + length + 2 < DFLASH_KEY_TEXT)
      used += (size_t)snprintf(text + used, DFLASH_KEY_TEXT - used, "%s%.*s", used > 0 ? " " : "", (int)length, at);
    at += length;
    at += strspn(at, " ");
  }
  return text;
}

const char *dflash_result_made(const DflashResult *result, const char *name, char text[DFLASH_KEY_TEXT]) {
  if (strcmp(name, "settings") == 0) return settings_of(result, text);
  if (strcmp(name, "backend_file") == 0) return setting(result, name, text);
  if (strcmp(name, "driver") == 0 || strcmp(name, "backend_version") == 0)
    return copy(text, dflash_field_text(result->model, name));
  return copy(text, dflash_field_text(dflash_field(result->bench, "environment"), name));
}
