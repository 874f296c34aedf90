#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "store/fields.h"
#include "store/writer.h"

typedef struct JsonLines {
  char *path;
  int descriptor;
  off_t size;         /* of what is complete in the file */
  DflashText waiting; /* lines not written yet */
  size_t complete;    /* bytes of them up to the end of the last complete case */
} JsonLines;

/* In one piece; what could only be written in part is taken back, and stays waiting. */
static DflashStatus flush(JsonLines *lines, DflashError *error) {
  if (lines->complete == 0) return DFLASH_OK;
  DflashStatus status = dflash_write_all(lines->descriptor, lines->path, lines->waiting.data, lines->complete, error);
  if (status != DFLASH_OK) {
    int taken_back = ftruncate(lines->descriptor, lines->size);
    (void)taken_back; /* not from a pipe */
    return status;
  }
  lines->size += (off_t)lines->complete;
  lines->waiting.size -= lines->complete;
  memmove(lines->waiting.data, lines->waiting.data + lines->complete, lines->waiting.size + 1);
  lines->complete = 0;
  return DFLASH_OK;
}

/* `verdict` and `bench` wait for the `case` record that completes them; so does whatever comes in between. */
static bool completes(const JsonLines *lines, const cJSON *record) {
  if (dflash_record_is(record, "case")) return true;
  bool alone = lines->waiting.size == lines->complete;
  return alone && !dflash_record_is(record, "verdict") && !dflash_record_is(record, "bench");
}

static DflashStatus json_lines_record(void *self, const cJSON *record, DflashError *error) {
  JsonLines *lines = self;
  char *line = dflash_record_line(record);
  if (dflash_record_is(record, "summary")) lines->waiting.size = lines->complete; /* of a case that will not end */
  bool complete = completes(lines, record);
  if (line) dflash_text_append(&lines->waiting, "%s\n", line);
  free(line);
  if (!line || lines->waiting.failed)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for a record", lines->path);
  if (!complete) return DFLASH_OK;
  lines->complete = lines->waiting.size;
  return flush(lines, error);
}

static DflashStatus json_lines_close(void *self, DflashError *error) {
  JsonLines *lines = self;
  DflashStatus status = DFLASH_OK;
  if (lines->descriptor >= 0) {
    status = flush(lines, error);
    fsync(lines->descriptor);
    if (close(lines->descriptor) != 0 && status == DFLASH_OK)
      status = dflash_error_set(error, DFLASH_IO, "%s: cannot write: %s", lines->path, strerror(errno));
  }
  dflash_text_free(&lines->waiting);
  free(lines->path);
  free(lines);
  return status;
}

static DflashStatus prepare(JsonLines *lines, const DflashResume *resume, DflashError *error) {
  struct stat info;
  if (fstat(lines->descriptor, &info) != 0 || !S_ISREG(info.st_mode)) return DFLASH_OK;
  lines->size = resume ? (off_t)dflash_resume_size(resume) : 0;
  if (ftruncate(lines->descriptor, lines->size) == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_IO, "%s: cannot cut to %lld bytes: %s", lines->path, (long long)lines->size,
                          strerror(errno));
}

DflashStatus dflash_json_lines_open(const char *path, const DflashResume *resume, DflashWriter *writer,
                                    DflashError *error) {
  JsonLines *lines = calloc(1, sizeof *lines);
  if (lines) lines->path = strdup(path);
  if (!lines || !lines->path) {
    free(lines);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for its writer", path);
  }
  lines->descriptor = -1;
  DflashStatus status = dflash_resume_check(path, error);
  if (status == DFLASH_OK) lines->descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (status == DFLASH_OK && lines->descriptor < 0)
    status = dflash_error_set(error, DFLASH_IO, "%s: cannot open: %s", path, strerror(errno));
  if (status == DFLASH_OK) status = prepare(lines, resume, error);
  if (status == DFLASH_OK)
    *writer = (DflashWriter){.self = lines, .record = json_lines_record, .close = json_lines_close};
  else
    json_lines_close(lines, NULL);
  return status;
}
