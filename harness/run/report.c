#include "run/report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

typedef struct Report {
  DflashReportFn fn;
  void *context;
} Report;

static DflashStatus send_as(DflashChild *child, const char *name, const char *text) {
  cJSON *record = cJSON_CreateObject();
  cJSON_AddStringToObject(record, name, text);
  DflashStatus status = dflash_child_send(child, record);
  cJSON_Delete(record);
  return status;
}

/* All of it: a short count would be taken for an error. */
static ssize_t send_text(void *cookie, const char *data, size_t bytes) {
  char piece[4096];
  for (size_t at = 0; at < bytes;) {
    size_t n = bytes - at < sizeof piece - 1 ? bytes - at : sizeof piece - 1;
    memcpy(piece, data + at, n);
    piece[n] = '\0';
    if (send_as(cookie, "text", piece) != DFLASH_OK) return 0;
    at += n;
  }
  return (ssize_t)bytes;
}

static int run(void *context, DflashChild *child) {
  const Report *report = context;
  DflashError error = {0};
  FILE *out = fopencookie(child, "w", (cookie_io_functions_t){.write = send_text});
  if (out == NULL) return DFLASH_EXIT_CANNOT_TELL;
  setvbuf(out, NULL, _IOLBF, 4000);
  dflash_child_hush(child, 1);
  int value = report->fn(report->context, out, &error);
  fclose(out);
  if (error.status != DFLASH_OK) send_as(child, "error", error.message);
  return value;
}

static int print(void *context, cJSON *record) {
  (void)context;
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(record, "text"));
  const char *error = cJSON_GetStringValue(cJSON_GetObjectItem(record, "error"));
  if (text != NULL) fputs(text, stdout);
  if (error != NULL) dflash_log(DFLASH_LOG_ERROR, "%s", error);
  return ferror(stdout);
}

int dflash_report(DflashReportFn fn, void *context, double timeout_s, const char *what, int crash_exit) {
  Report report = {fn, context};
  DflashChildResult result;
  DflashError error = {0};
  DflashStatus status = dflash_isolate(run, &report, timeout_s, print, NULL, &result, &error);
  if (fflush(stdout) != 0 || result.how == DFLASH_CHILD_STOPPED)
    status = dflash_error_set(&error, DFLASH_IO, "cannot write to stdout: %s", strerror(errno));
  if (status == DFLASH_OK && result.how == DFLASH_CHILD_EXITED) return result.value;
  if (status == DFLASH_OK)
    dflash_log(DFLASH_LOG_ERROR, "%s %s", what, result.text);
  else
    dflash_log(DFLASH_LOG_ERROR, "%s", error.message);
  return status == DFLASH_OK ? crash_exit : dflash_status_exit(status);
}
