/* Fills a history for measurements: history_fill HISTORY RECORDS COUNT. RECORDS: JSON lines of one bench. A few dozen
 * runs like it are drawn, with other times in every place, and imported; the rest are copies of those with their own
 * times and medians, made inside the file. No test; docs/history.md has what was measured with it. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "store/fields.h"
#include "store/history_parts.h"

enum { DISTINCT = 64, NIGHT = 86400, FIRST_NIGHT = 1700000000 };

static uint64_t state = 1;

static double noise(void) {
  double sum = 0;
  for (int i = 0; i < 4; i++)
    sum += (double)((state = state * UINT64_C(6364136223846793005) + 1442695040888963407) >> 40);
  return (sum / 0x1p24 - 2) * 0.01;
}

/* Times and what follows from them; counts and sizes stay. */
static void vary(cJSON *item) {
  static const char *const fixed[] = {
      "version", "n",       "layer",   "bytes",     "operations", "passed", "failed",        "other",
      "cases",   "skipped", "not_run", "bad_input", "resumed",    "exit",   "resolution_ns", "host_resolution_ns"};
  for (cJSON *child = item->child; child; child = child->next) vary(child);
  if (!cJSON_IsNumber(item)) return;
  for (size_t i = 0; item->string && i < sizeof fixed / sizeof fixed[0]; i++)
    if (strcmp(item->string, fixed[i]) == 0) return;
  double value = item->valuedouble * (1 + noise());
  cJSON_SetNumberValue(item, item->valuedouble == floor(item->valuedouble) ? floor(value) : value);
}

static void stamp(cJSON *record, int run) {
  char text[48];
  time_t when = FIRST_NIGHT + (time_t)run * NIGHT;
  struct tm utc;
  cJSON *environment = cJSON_GetObjectItem(record, "environment");
  if (!environment || !gmtime_r(&when, &utc) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)) return;
  cJSON_ReplaceItemInObject(environment, "time", cJSON_CreateString(text));
  snprintf(text, sizeof text, "%040x", run);
  cJSON_ReplaceItemInObject(environment, "revision", cJSON_CreateString(text));
}

static bool draw_run(const char *lines, int run, DflashText *out) {
  for (const char *line = lines; *line;) {
    size_t length = strcspn(line, "\n");
    cJSON *record = cJSON_ParseWithLength(line, length);
    if (!record) return false;
    vary(record);
    stamp(record, run);
    char *text = dflash_record_line(record);
    if (text) dflash_text_append(out, "%s\n", text);
    free(text);
    cJSON_Delete(record);
    line += length + (line[length] == '\n');
  }
  return !out->failed;
}

static DflashStatus draw_all(DflashHistory *h, const char *lines, int count, DflashError *error) {
  DflashText text = {0};
  DflashHistoryCounts counts;
  for (int run = 0; run < count; run++)
    if (!draw_run(lines, run, &text))
      return dflash_error_set(error, DFLASH_INVALID_DATA, "the records are no JSON lines");
  DflashStatus status = dflash_history_import_text(h, "drawn", text.data, text.size, &counts, error);
  dflash_text_free(&text);
  return status;
}

/* The runs from `first` on again, under their own numbers, nights and hashes. */
static DflashStatus copy_all(DflashHistory *h, int64_t first, int64_t copies, DflashError *error) {
  static const char *const sql[] = {
      "INSERT INTO run SELECT id + ?1, randomblob(16), time + ?1 * 86400, kind, command, tool,"
      " lower(hex(randomblob(20))), dirty, machine, host, head, tail, exit, elapsed_s FROM run WHERE id >= ?2 AND id < "
      "?3",
      "INSERT INTO result SELECT id + ?1, run + ?1, number, randomblob(16), series, time + ?1 * 86400, golden,"
      " values_hash, backend_version, driver, backend_file, outcome, passed, failed, other, largest_score, elapsed_s,"
      " stopped_by, samples, median_ns * (1 + 1e-18 * random() / 50), low_ns, high_ns, wall_ns, cpu_ns, side, pair,"
      " lower(hex(randomblob(20))), dirty, load, other_users, throttle FROM result WHERE run >= ?2 AND run < ?3",
      "INSERT INTO records SELECT result + ?1, pack FROM records WHERE result >= ?2 AND result < ?3",
      "INSERT INTO group_time SELECT result + ?1, name, ns FROM group_time WHERE result >= ?2 AND result < ?3"};
  DflashStatus status = dflash_history_begin(h, error);
  if (status != DFLASH_OK) return status;
  for (int64_t copy = 1; copy <= copies && status == DFLASH_OK; copy++)
    for (size_t i = 0; i < sizeof sql / sizeof sql[0] && status == DFLASH_OK; i++)
      status = dflash_history_do(h, error, sql[i], "iii", copy * DISTINCT, first, first + DISTINCT);
  return dflash_history_end(h, status, error);
}

static DflashStatus fill(const char *path, const char *records, int64_t count, DflashError *error) {
  DflashHistory *h = NULL;
  char *lines = NULL;
  uint64_t size;
  int64_t first = 0;
  DflashStatus status = dflash_read_file(records, UINT64_C(64) << 20, &lines, &size, error);
  if (status == DFLASH_OK) status = dflash_history_open(path, DFLASH_HISTORY_WRITE, &h, error);
  if (status == DFLASH_OK)
    status = dflash_history_number(h, &first, error,
                                   "SELECT coalesce(max(max(id), (SELECT max(id) FROM result)), 0) FROM run", "");
  state += (uint64_t)first;
  if (status == DFLASH_OK) status = draw_all(h, lines, count < DISTINCT ? (int)count : DISTINCT, error);
  if (status == DFLASH_OK) status = copy_all(h, first + 1, (count - 1) / DISTINCT, error);
  dflash_history_close(h);
  free(lines);
  return status;
}

int main(int argc, char **argv) {
  DflashError error = {0};
  int64_t count = argc == 4 ? strtoll(argv[3], NULL, 10) : 0;
  if (count < 1) {
    fprintf(stderr, "usage: history_fill HISTORY RECORDS COUNT\n");
    return DFLASH_EXIT_BAD_INPUT;
  }
  if (fill(argv[1], argv[2], count, &error) == DFLASH_OK) return DFLASH_EXIT_OK;
  fprintf(stderr, "history_fill: %s\n", error.message);
  return dflash_status_exit(error.status);
}
