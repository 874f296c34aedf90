#include "store/machine.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { MOST_TEXT = 64 << 20 };

/* The value of the first line "key : value"; NULL when there is none. free() releases. */
static char *find_value(const char *text, const char *key) {
  size_t length = strlen(key);
  for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
    if (strncmp(line, key, length) != 0) continue;
    const char *at = line + length + strspn(line + length, " \t");
    if (*at != ':') continue;
    at += 1 + strspn(at + 1, " \t");
    return strndup(at, strcspn(at, "\n"));
  }
  return NULL;
}

static char *read_text(const char *path) {
  char *text;
  uint64_t size;
  return dflash_read_file(path, MOST_TEXT, &text, &size, NULL) == DFLASH_OK ? text : NULL;
}

static void add_text(cJSON *object, const char *name, const char *value) {
  cJSON_AddStringToObject(object, name, value && *value ? value : "unknown");
}

/* A leading number times scale. */
static void add_number(cJSON *object, const char *name, const char *value, double scale) {
  char *end = NULL;
  double number = value ? strtod(value, &end) : 0;
  if (value && end != value)
    cJSON_AddNumberToObject(object, name, number * scale);
  else
    add_text(object, name, NULL);
}

static bool has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
  return false;
}

static void add_cpu(cJSON *object) {
  char *text = read_text("/proc/cpuinfo");
  char *model = text ? find_value(text, "model name") : NULL;
  char *mhz = text ? find_value(text, "cpu MHz") : NULL;
  char *flags = text ? find_value(text, "flags") : NULL;
  add_text(object, "cpu", model);
  add_number(object, "cpu_mhz", mhz, 1);
  add_text(object, "virtual_machine", !flags ? NULL : has_word(flags, "hypervisor") ? "yes" : "no");
  free(flags);
  free(mhz);
  free(model);
  free(text);
}

static void add_governor(cJSON *object) {
  char *text = read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (text) text[strcspn(text, "\n")] = '\0';
  add_text(object, "governor", text);
  free(text);
}

static void add_memory(cJSON *object) {
  char *text = read_text("/proc/meminfo");
  char *total = text ? find_value(text, "MemTotal") : NULL, *available = text ? find_value(text, "MemAvailable") : NULL;
  add_number(object, "memory_total_bytes", total, 1024);
  add_number(object, "memory_available_bytes", available, 1024);
  free(available);
  free(total);
  free(text);
}

void dflash_machine_add(cJSON *environment) {
  add_cpu(environment);
  add_governor(environment);
  add_memory(environment);
}
