#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "store/fields.h"
#include "store/writer.h"

struct DflashResume {
  cJSON *cases; /* array of the records of type "case" */
  uint64_t size;
};

/* Every line that this tool writes begins so. */
static const char beginning[] = "{\"schema\":\"" DFLASH_RECORD_SCHEMA "\"";

/* A file of something else is neither cut nor written over. */
static DflashStatus check_beginning(const char *path, const DflashMapping *file, DflashError *error) {
  uint64_t length = sizeof beginning - 1;
  if (file->size < length) length = file->size;
  if (length == 0 || memcmp(file->data, beginning, length) == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: holds something else than records; it is left as it is",
                          path);
}

DflashStatus dflash_resume_check(const char *path, DflashError *error) {
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return DFLASH_OK;
  DflashMapping file;
  DflashStatus status = dflash_map_file(path, &file, error);
  if (status == DFLASH_OK) status = check_beginning(path, &file, error);
  dflash_unmap_file(&file);
  return status;
}

/* NULL when the line is no record of this version. */
static cJSON *parse_line(const char *line, size_t size) {
  const char *end = NULL;
  cJSON *record = cJSON_ParseWithLengthOpts(line, size, &end, 0);
  if (record && end == line + size && strcmp(dflash_field_text(record, "schema"), DFLASH_RECORD_SCHEMA) == 0 &&
      dflash_field_number(record, "version") == DFLASH_RECORD_VERSION)
    return record;
  cJSON_Delete(record);
  return NULL;
}

/* A case's own records stand before its `case` record and are complete only with it. */
static bool ends_a_case(const cJSON *record) {
  return !dflash_record_is(record, "verdict") && !dflash_record_is(record, "bench");
}

static DflashStatus read_lines(DflashResume *resume, const char *path, const DflashMapping *file, DflashError *error) {
  uint64_t at = 0;
  for (int64_t number = 1; at < file->size; number++) {
    const char *line = (const char *)file->data + at;
    const char *newline = memchr(line, '\n', file->size - at);
    if (!newline) return DFLASH_OK; /* broken off while it was written: cut */
    cJSON *record = parse_line(line, (size_t)(newline - line));
    at += (uint64_t)(newline - line) + 1;
    if (!record && at == file->size) return DFLASH_OK;
    if (!record)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: line %lld is no record of schema %s, version %d", path,
                              (long long)number, DFLASH_RECORD_SCHEMA, DFLASH_RECORD_VERSION);
    if (ends_a_case(record)) resume->size = at;
    if (dflash_record_is(record, "case"))
      cJSON_AddItemToArray(resume->cases, record);
    else
      cJSON_Delete(record);
  }
  return DFLASH_OK;
}

static DflashStatus read_file(DflashResume *resume, const char *path, DflashError *error) {
  DflashMapping file = {0};
  DflashStatus status = DFLASH_OK;
  if (access(path, F_OK) == 0) status = dflash_map_file(path, &file, error);
  if (status == DFLASH_OK) status = check_beginning(path, &file, error);
  if (status == DFLASH_OK) status = read_lines(resume, path, &file, error);
  dflash_unmap_file(&file);
  return status;
}

DflashStatus dflash_resume_open(const char *path, DflashResume **resume, DflashError *error) {
  *resume = NULL;
  DflashResume *made = calloc(1, sizeof *made);
  if (made) made->cases = cJSON_CreateArray();
  if (!made || !made->cases) {
    dflash_resume_close(made);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory to resume", path);
  }
  DflashStatus status = read_file(made, path, error);
  if (status == DFLASH_OK)
    *resume = made;
  else
    dflash_resume_close(made);
  return status;
}

void dflash_resume_close(DflashResume *resume) {
  if (!resume) return;
  cJSON_Delete(resume->cases);
  free(resume);
}

uint64_t dflash_resume_size(const DflashResume *resume) { return resume->size; }

static bool matches(const cJSON *record, const cJSON *key) {
  static const char *const names[] = {"file",    "case",  "backend",  "device",
                                      "profile", "modes", "settings", "inputs_hash"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const cJSON *wanted = dflash_field(key, names[i]);
    if (wanted && !cJSON_Compare(wanted, dflash_field(record, names[i]), 1)) return false;
  }
  return true;
}

const cJSON *dflash_resume_find(const DflashResume *resume, const cJSON *key) {
  const cJSON *record, *found = NULL;
  if (!resume) return NULL;
  cJSON_ArrayForEach(record, resume->cases) {
    if (matches(record, key)) found = record;
  }
  return found;
}
