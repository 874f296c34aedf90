#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/history_arguments.h"
#include "store/fields.h"
#include "store/units.h"

static const char export_usage[] =
    "usage: dflash-harness history export --history FILE [-o FILE] [OPTIONS]\n\n"
    "Writes the records of the results that match as JSON lines (docs/records.md), run by run, to FILE or stdout.";
static const char import_usage[] =
    "usage: dflash-harness history import FILE... --history FILE\n\n"
    "Adds JSON lines that --json wrote, or another machine's 'history export'. What is there already stays as it is:\n"
    "doing it twice adds nothing. Each file is taken whole or not at all.";
static const char prune_usage[] =
    "usage: dflash-harness history prune --history FILE [--older-than WHEN] [--keep N] [--dry-run]\n\n"
    "Removes results, and runs that have none left, and makes the file smaller. With both options what is older goes,\n"
    "but never one of the newest N of its series: the same case on the same backend, device, profile and machine.";

typedef struct Target {
  DflashOutput output; /* path NULL: stdout */
  DflashError *error;
} Target;

static int write_record(void *context, const cJSON *record) {
  Target *target = context;
  char *line = dflash_record_line(record);
  DflashStatus status = DFLASH_OK;
  if (line == NULL)
    status = dflash_error_set(target->error, DFLASH_OUT_OF_MEMORY, "no memory for a record");
  else if (target->output.path == NULL)
    puts(line);
  else if ((status = dflash_output_write(&target->output, line, strlen(line), target->error)) == DFLASH_OK)
    status = dflash_output_write(&target->output, "\n", 1, target->error);
  free(line);
  return status != DFLASH_OK;
}

static DflashStatus export_to(const DflashHistoryArguments *a, int64_t *results, DflashError *error) {
  Target target = {.output = {.descriptor = -1}, .error = error};
  DflashHistory *history = NULL;
  DflashStatus status = dflash_history_open(a->history, DFLASH_HISTORY_READ, &history, error);
  if (status == DFLASH_OK && a->output != NULL) status = dflash_output_open(&target.output, a->output, error);
  if (status == DFLASH_OK) status = dflash_history_export(history, &a->filter, write_record, &target, results, error);
  if (status == DFLASH_OK) status = error->status;
  if (a->output != NULL && target.output.path != NULL) {
    if (status == DFLASH_OK && *results > 0)
      status = dflash_output_commit(&target.output, error);
    else
      dflash_output_abort(&target.output);
  }
  dflash_history_close(history);
  return status;
}

int dflash_history_command_export(int argc, char **argv) {
  DflashHistoryArguments a = {0};
  DflashArgument table[24] = {
      {"output,o", "FILE", "write to this file; default: stdout", DFLASH_ARGUMENT_TEXT, &a.output, 0}};
  int count = 1, operands = 0, helped = 0;
  int64_t results = 0;
  dflash_history_argument_rows(&a, 1, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, export_usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK && operands > 0)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "history export takes no operand: '%s'", argv[1]);
  if (status == DFLASH_OK) status = dflash_history_arguments_finish(&a, &error);
  if (status == DFLASH_OK && a.output != NULL && dflash_same_file(a.output, a.history))
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "%s: is the history: not written over", a.output);
  if (status == DFLASH_OK) status = export_to(&a, &results, &error);
  if (status != DFLASH_OK) return dflash_command_fail(&error);
  if (results > 0) return DFLASH_EXIT_OK;
  dflash_log(DFLASH_LOG_ERROR, "%s: no result matches", a.history);
  return DFLASH_EXIT_NOTHING;
}

static void print_counts(const char *file, const DflashHistoryCounts *c) {
  printf("%s: %lld run%s, %lld result%s added; %lld and %lld were there\n", file, (long long)c->runs,
         c->runs == 1 ? "" : "s", (long long)c->results, c->results == 1 ? "" : "s", (long long)c->old_runs,
         (long long)c->old_results);
}

static DflashStatus import_files(const DflashHistoryArguments *a, char **files, int count, DflashError *error) {
  DflashHistory *history = NULL;
  DflashHistoryCounts counts;
  DflashStatus status = dflash_history_open(a->history, DFLASH_HISTORY_WRITE, &history, error);
  for (int i = 0; status == DFLASH_OK && i < count; i++) {
    status = dflash_history_import(history, files[i], &counts, error);
    if (status == DFLASH_OK && counts.runs + counts.old_runs == 0)
      status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: holds no run", files[i]);
    if (status == DFLASH_OK) print_counts(files[i], &counts);
  }
  dflash_history_close(history);
  return status;
}

/* A history is made for something that can be read. */
static DflashStatus check_files(const DflashHistoryArguments *a, char **files, int count, DflashError *error) {
  for (int i = 0; i < count; i++) {
    DflashMapping file = {0};
    if (dflash_same_file(files[i], a->history))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: is the history itself", files[i]);
    DflashStatus status = dflash_map_file(files[i], &file, error);
    dflash_unmap_file(&file);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}

int dflash_history_command_import(int argc, char **argv) {
  DflashHistoryArguments a = {0};
  DflashArgument table[4];
  int count = 0, operands = 0, helped = 0;
  dflash_history_argument_rows(&a, 0, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, import_usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK && operands < 1)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "history import needs a file of JSON lines");
  if (status == DFLASH_OK) status = dflash_history_arguments_finish(&a, &error);
  if (status == DFLASH_OK) status = check_files(&a, argv + 1, operands, &error);
  if (status == DFLASH_OK) status = import_files(&a, argv + 1, operands, &error);
  return status == DFLASH_OK ? DFLASH_EXIT_OK : dflash_command_fail(&error);
}

static double bytes_of(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? (double)about.st_size : 0;
}

static DflashStatus prune(const DflashHistoryArguments *a, const DflashHistoryPrune *what, DflashError *error) {
  char before[DFLASH_UNITS_MAX], after[DFLASH_UNITS_MAX];
  int64_t results = 0, runs = 0;
  DflashHistory *history = NULL;
  dflash_show_bytes(bytes_of(a->history), before);
  DflashStatus status = dflash_history_open(a->history, DFLASH_HISTORY_READ, &history, error);
  if (status == DFLASH_OK) status = dflash_history_prune(history, what, &results, &runs, error);
  dflash_history_close(history);
  if (status != DFLASH_OK) return status;
  printf("%s: %lld result%s and %lld run%s %s; %s", a->history, (long long)results, results == 1 ? "" : "s",
         (long long)runs, runs == 1 ? "" : "s", what->dry_run ? "would go" : "removed", before);
  if (!what->dry_run) printf(", now %s", dflash_show_bytes(bytes_of(a->history), after));
  putchar('\n');
  return DFLASH_OK;
}

int dflash_history_command_prune(int argc, char **argv) {
  DflashHistoryArguments a = {.keep = -1};
  DflashArgument table[8] = {{"older-than", "WHEN", "what ran before then: 2026-11-30, or an age: 90d, 52w",
                              DFLASH_ARGUMENT_TEXT, &a.older_than, 0},
                             {"keep", "N", "never the newest N of a series", DFLASH_ARGUMENT_NUMBER, &a.keep, 0},
                             {"dry-run", NULL, "say what would go", DFLASH_ARGUMENT_FLAG, &a.dry_run, 0}};
  int count = 3, operands = 0, helped = 0;
  DflashHistoryPrune what = {0};
  dflash_history_argument_rows(&a, 0, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, prune_usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK && operands > 0)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "history prune takes no operand: '%s'", argv[1]);
  if (status == DFLASH_OK && a.older_than == NULL && a.keep < 1)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "history prune needs --older-than WHEN or --keep N");
  if (status == DFLASH_OK) status = dflash_history_arguments_finish(&a, &error);
  if (status == DFLASH_OK) status = dflash_history_when("older-than", a.older_than, &what.before, &error);
  what.keep = a.keep > 0 ? a.keep : 0;
  what.dry_run = a.dry_run;
  if (status == DFLASH_OK) status = prune(&a, &what, &error);
  return status == DFLASH_OK ? DFLASH_EXIT_OK : dflash_command_fail(&error);
}
