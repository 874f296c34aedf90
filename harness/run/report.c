#include "run/report.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

typedef struct Report {
  DflashReportFn fn;
  void *context;
} Report;

static ssize_t send_text(void *cookie, const char *data, size_t bytes) {
  cJSON *record = cJSON_CreateObject();
  char piece[4096];
  size_t n = bytes < sizeof piece - 1 ? bytes : sizeof piece - 1;
  memcpy(piece, data, n);
  piece[n] = '\0';
  cJSON_AddStringToObject(record, "text", piece);
  DflashStatus status = dflash_child_send(cookie, record);
  cJSON_Delete(record);
  return status == DFLASH_OK ? (ssize_t)n : 0;
}

static int run(void *context, DflashChild *child) {
  const Report *report = context;
  FILE *out = fopencookie(child, "w", (cookie_io_functions_t){.write = send_text});
  if (out == NULL) return DFLASH_EXIT_CANNOT_TELL;
  setvbuf(out, NULL, _IOLBF, 4000);
  int value = report->fn(report->context, out);
  fclose(out);
  return value;
}

static void print(void *context, cJSON *record) {
  (void)context;
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(record, "text"));
  if (text != NULL) fputs(text, stdout);
}

int dflash_report(DflashReportFn fn, void *context, double timeout_s, const char *what, int crash_exit) {
  Report report = {fn, context};
  DflashChildResult result;
  DflashError error = {0};
  DflashStatus status = dflash_isolate(run, &report, timeout_s, print, NULL, &result, &error);
  fflush(stdout);
  if (status == DFLASH_OK && result.how == DFLASH_CHILD_EXITED) return result.value;
  dflash_log(DFLASH_LOG_ERROR, "%s: %s", what, status == DFLASH_OK ? result.text : error.message);
  return crash_exit;
}
