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

/* The line at *at, which then is the next one's. false: the end, or a line that broke off while it was written. */
static bool next_line(const DflashMapping *file, uint64_t *at, const char **line, size_t *size) {
  if (*at >= file->size) return false;
  *line = (const char *)file->data + *at;
  const char *newline = memchr(*line, '\n', file->size - *at);
  if (!newline) return false;
  *size = (size_t)(newline - *line);
  *at += *size + 1;
  return true;
}

static DflashStatus read_lines(DflashResume *resume, const char *path, const DflashMapping *file, DflashError *error) {
  uint64_t at = 0;
  const char *line;
  size_t size;
  for (int64_t number = 1; next_line(file, &at, &line, &size); number++) {
    cJSON *record = parse_line(line, size);
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

static DflashStatus hand_on(cJSON *waiting, const DflashWriter *writer, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  while (status == DFLASH_OK && waiting->child) {
    status = writer->record(writer->self, waiting->child, error);
    cJSON_DeleteItemFromArray(waiting, 0);
  }
  return status;
}

/* Verdicts wait for the case that completes them: a run that broke off may have left some without. */
static DflashStatus replay_record(cJSON *record, const DflashWriter *writer, cJSON *waiting, DflashError *error) {
  bool complete = dflash_record_is(record, "case");
  while (dflash_record_is(record, "run") && waiting->child) cJSON_DeleteItemFromArray(waiting, 0);
  if (complete || dflash_record_is(record, "verdict"))
    cJSON_AddItemToArray(waiting, record);
  else
    cJSON_Delete(record);
  return complete ? hand_on(waiting, writer, error) : DFLASH_OK;
}

static DflashStatus replay_lines(const DflashMapping *file, const DflashWriter *writer, cJSON *waiting,
                                 DflashError *error) {
  DflashStatus status = DFLASH_OK;
  uint64_t at = 0;
  const char *line;
  size_t size;
  while (status == DFLASH_OK && next_line(file, &at, &line, &size)) {
    cJSON *record = parse_line(line, size);
    if (!record) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a record"); /* it was one before */
    status = replay_record(record, writer, waiting, error);
  }
  return status;
}

DflashStatus dflash_resume_replay(const DflashResume *resume, const char *path, const DflashWriter *writer,
                                  DflashError *error) {
  DflashMapping file = {0};
  if (!resume || resume->size == 0) return DFLASH_OK;
  cJSON *waiting = cJSON_CreateArray();
  if (!waiting) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory to resume", path);
  DflashStatus status = dflash_map_file(path, &file, error);
  if (status == DFLASH_OK) {
    DflashMapping kept = file;
    if (kept.size > resume->size) kept.size = resume->size;
    status = replay_lines(&kept, writer, waiting, error);
  }
  dflash_unmap_file(&file);
  cJSON_Delete(waiting);
  return status;
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
