#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/history_arguments.h"
#include "store/fields.h"
#include "store/table.h"
#include "store/units.h"

static const char list_usage[] = "usage: dflash-harness history list --history FILE [OPTIONS]\n\n"
                                 "The results that match, newest first: one line a case of a run. PATTERNs are names "
                                 "or shell patterns, joined by ','.";

typedef struct Listing {
  DflashTable table;
  DflashText lines; /* printed at the end: a reader that waits, as a pager does, must not keep the file locked */
  int64_t count;
  bool failed; /* memory was out */
} Listing;

static const char *show_when(int64_t seconds, char text[32]) {
  time_t when = (time_t)seconds;
  struct tm utc;
  if (seconds == 0 || gmtime_r(&when, &utc) == NULL || strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0) return "-";
  return text;
}

static int colour_of(const char *outcome) {
  static const int colours[] = {[DFLASH_OUTCOME_PASSED] = DFLASH_COLOUR_GOOD,
                                [DFLASH_OUTCOME_SKIPPED] = DFLASH_COLOUR_WARNING,
                                [DFLASH_OUTCOME_FAILED] = DFLASH_COLOUR_BAD,
                                [DFLASH_OUTCOME_BROKEN] = DFLASH_COLOUR_BAD};
  return colours[dflash_outcome_class(outcome)];
}

static int add_row(void *context, const DflashHistoryResult *r) {
  Listing *listing = context;
  DflashTable *t = &listing->table;
  char when[32], kind[32], score[DFLASH_UNITS_MAX], median[DFLASH_UNITS_MAX], width[DFLASH_UNITS_MAX];
  double half_width = (r->high_ns - r->low_ns) / 2 / r->median_ns;
  if (listing->count++ == 0)
    dflash_table_head(
        t, "run,time,kind,backend,device,profile,golden,case,outcome,passed,failed,score,median,+-,revision");
  dflash_table_cell(t, 0, "%lld", (long long)r->run);
  dflash_table_cell(t, 0, "%s", show_when(r->time, when));
  snprintf(kind, sizeof kind, "%.20s%s%.4s", r->kind, *r->side != '\0' ? " " : "", r->side); /* "bench A" */
  const char *const texts[] = {kind, r->backend, r->device, r->profile, r->golden, r->case_name};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) dflash_table_cell(t, 0, "%s", texts[i]);
  dflash_table_cell(t, colour_of(r->outcome), "%s", r->outcome);
  dflash_table_cell(t, 0, "%lld", (long long)r->passed);
  dflash_table_cell(t, r->failed > 0 ? DFLASH_COLOUR_BAD : 0, "%lld", (long long)r->failed);
  dflash_table_cell(t, 0, "%s", dflash_show_score(r->largest_score, score));
  dflash_table_cell(t, 0, "%s", dflash_show_time(r->median_ns, median));
  dflash_table_cell(t, 0, "%s", dflash_show_share(half_width, width));
  dflash_table_cell(t, 0, "%.8s%s", r->revision, strcmp(r->dirty, "yes") == 0 ? "+" : "");
  return 0;
}

static void add_number(cJSON *object, const char *name, double value) {
  if (!isnan(value)) cJSON_AddNumberToObject(object, name, value);
}

static cJSON *result_object(const DflashHistoryResult *r) {
  char when[32];
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "schema", "dflash-history");
  cJSON_AddNumberToObject(object, "version", 1);
  const struct {
    const char *name, *value;
  } texts[] = {{"time", show_when(r->time, when)},
               {"kind", r->kind},
               {"backend", r->backend},
               {"device", r->device},
               {"device_name", r->device_name},
               {"profile", r->profile},
               {"golden", r->golden},
               {"case", r->case_name},
               {"outcome", r->outcome},
               {"modes", r->modes},
               {"settings", r->settings},
               {"inputs_hash", r->inputs_hash},
               {"values_hash", r->values_hash},
               {"backend_version", r->backend_version},
               {"backend_file", r->backend_file},
               {"driver", r->driver},
               {"machine", r->machine},
               {"host", r->host},
               {"tool", r->tool},
               {"revision", r->revision},
               {"dirty", r->dirty},
               {"command", r->command}};
  cJSON_AddNumberToObject(object, "run", (double)r->run);
  cJSON_AddNumberToObject(object, "series", (double)r->series);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (*texts[i].value) cJSON_AddStringToObject(object, texts[i].name, texts[i].value);
  cJSON_AddNumberToObject(object, "passed", (double)r->passed);
  cJSON_AddNumberToObject(object, "failed", (double)r->failed);
  cJSON_AddNumberToObject(object, "other", (double)r->other);
  add_number(object, "largest_score", r->largest_score);
  add_number(object, "elapsed_s", r->elapsed_s);
  if (r->samples == 0) return object;
  cJSON_AddStringToObject(object, "stopped_by", r->stopped_by);
  cJSON_AddNumberToObject(object, "samples", (double)r->samples);
  add_number(object, "median_ns", r->median_ns);
  add_number(object, "low_ns", r->low_ns);
  add_number(object, "high_ns", r->high_ns);
  add_number(object, "wall_ns", r->wall_ns);
  add_number(object, "cpu_ns", r->cpu_ns);
  add_number(object, "load", r->load);
  add_number(object, "other_users", r->other_users);
  add_number(object, "throttle", r->throttle);
  if (*r->side == '\0') return object;
  cJSON_AddStringToObject(object, "side", r->side);
  cJSON_AddNumberToObject(object, "pair", (double)r->pair);
  return object;
}

static int add_line(void *context, const DflashHistoryResult *r) {
  Listing *listing = context;
  cJSON *object = result_object(r);
  char *line = dflash_record_line(object);
  listing->failed = line == NULL;
  listing->count++;
  if (line != NULL) dflash_text_append(&listing->lines, "%s\n", line);
  free(line);
  cJSON_Delete(object);
  return listing->failed;
}

static DflashStatus list(const DflashHistoryArguments *a, int64_t *count, DflashError *error) {
  Listing listing = {.table = {.columns = "rllllllllrrrrrl"}};
  DflashHistory *history = NULL;
  DflashStatus status = dflash_history_open(a->history, DFLASH_HISTORY_READ, &history, error);
  if (status == DFLASH_OK)
    status = dflash_history_list(history, &a->filter, a->json ? add_line : add_row, &listing, error);
  if (status == DFLASH_OK && (listing.failed || listing.table.failed || listing.lines.failed))
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory to list it", a->history);
  dflash_history_close(history);
  if (listing.count > 0) dflash_table_print(&listing.table, stdout, 0, isatty(STDOUT_FILENO) == 1);
  if (listing.lines.size > 0) fwrite(listing.lines.data, 1, listing.lines.size, stdout);
  dflash_text_free(&listing.lines);
  *count = listing.count;
  return status;
}

static int no_match(const DflashHistoryArguments *a) {
  dflash_log(DFLASH_LOG_ERROR, "%s: no result matches", a->history);
  return DFLASH_EXIT_NOTHING;
}

int dflash_history_command_list(int argc, char **argv) {
  DflashHistoryArguments a = {.limit = 20};
  DflashArgument table[24] = {{"json", NULL, "print JSON lines", DFLASH_ARGUMENT_FLAG, &a.json, 0}};
  int count = 1, operands = 0, helped = 0;
  int64_t found = 0;
  dflash_history_argument_rows(&a, 1, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, list_usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK && operands > 0)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "history list takes no operand: '%s'", argv[1]);
  if (status == DFLASH_OK) status = dflash_history_arguments_finish(&a, &error);
  if (status == DFLASH_OK) status = list(&a, &found, &error);
  if (status != DFLASH_OK) return dflash_command_fail(&error);
  return found > 0 ? DFLASH_EXIT_OK : no_match(&a);
}
