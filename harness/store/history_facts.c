#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/sha256.h"
#include "store/fields.h"
#include "store/history_work.h"

enum { UID_BYTES = 16 };

/* The word after the program's name. */
const char *dflash_history_kind(const cJSON *run) {
  static const char *const kinds[] = {"verify", "bench", "compare", "sweep", "selftest"};
  const char *command = dflash_field_text(run, "command");
  const char *word = command + strcspn(command, " ");
  word += strspn(word, " ");
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcspn(word, " ") == strlen(kinds[i]) && strncmp(word, kinds[i], strlen(kinds[i])) == 0) return kinds[i];
  return "";
}

int64_t dflash_history_time(const cJSON *run) {
  struct tm utc = {0};
  const char *end = strptime(dflash_field_text(dflash_field(run, "environment"), "time"), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return end && *end == '\0' ? (int64_t)timegm(&utc) : 0;
}

char *dflash_history_machine(const cJSON *run) {
  const cJSON *environment = dflash_field(run, "environment");
  const char *cpu = dflash_field_text(environment, "cpu");
  double cpus = dflash_field_number(environment, "cpus_allowed");
  double bytes = dflash_field_number(environment, "memory_total_bytes");
  char *text = NULL;
  if (isnan(cpus) || isnan(bytes)) return strdup(cpu);
  int length = asprintf(&text, "%s, %.0f CPU%s, %.0f GiB", cpu, cpus, cpus == 1 ? "" : "s", bytes * 0x1p-30);
  return length < 0 ? NULL : text;
}

/* Which build ran and which values judged: they change from night to night, and the series goes on. */
static bool is_of_one_night(const char *word, size_t length) {
  static const char *const names[] = {"backend_file=", "values=", "scales=", "golden="};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (length >= strlen(names[i]) && strncmp(word, names[i], strlen(names[i])) == 0) return true;
  return false;
}

char *dflash_history_settings(const char *settings) {
  char *kept = calloc(1, strlen(settings) + 1), *at = kept;
  for (const char *word = settings; kept && *word;) {
    size_t length = strcspn(word, " ");
    if (length > 0 && !is_of_one_night(word, length)) {
      if (at > kept) *at++ = ' ';
      memcpy(at, word, length);
      at += length;
    }
    word += length + (word[length] == ' ');
  }
  return kept;
}

void dflash_history_setting(const char *settings, const char *key, char *value, size_t size) {
  size_t key_length = strlen(key);
  value[0] = '\0';
  for (const char *word = settings; *word;) {
    size_t length = strcspn(word, " ");
    if (length > key_length && strncmp(word, key, key_length) == 0 && word[key_length] == '=')
      snprintf(value, size, "%.*s", (int)(length - key_length - 1), word + key_length + 1);
    word += length + (word[length] == ' ');
  }
}

DflashStatus dflash_history_hash(const char *text, size_t size, DflashText *uid, DflashError *error) {
  char hex[65] = "";
  DflashSha256 *hash = dflash_sha256_open();
  if (hash) dflash_sha256_update(hash, text, size);
  dflash_sha256_close(hash, hex);
  if (strlen(hex) != 64) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a hash");
  for (int i = 0; i < UID_BYTES; i++) {
    const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
    char byte = (char)strtoul(digits, NULL, 16);
    dflash_text_bytes(uid, &byte, 1);
  }
  return uid->failed ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a hash") : DFLASH_OK;
}
