#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/history_arguments.h"
#include "store/fields.h"
#include "store/store.h"

static const char show_usage[] =
    "usage: dflash-harness history show RUN|last --history FILE [OPTIONS]\n\n"
    "Shows a run, by the number that 'history list' gives it, as the command showed it when it ran.";

typedef struct Showing {
  DflashStore *store; /* NULL: lines */
  int64_t shown;      /* records */
  DflashError *error;
} Showing;

/* What a table shows; sweeps and self-tests have none, their records are shown as they are. */
static bool has_table(const cJSON *record) {
  static const char *const types[] = {"run", "model", "verdict", "case", "bench", "bad_input"};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (dflash_record_is(record, types[i])) return true;
  return dflash_record_is(record, "summary") && dflash_field(record, "cases") != NULL;
}

static int show_record(void *context, const cJSON *record) {
  Showing *showing = context;
  showing->shown++;
  if (showing->store == NULL || !has_table(record)) {
    char *line = dflash_record_line(record);
    if (line != NULL) puts(line);
    free(line);
    return line == NULL;
  }
  cJSON *copy = cJSON_Duplicate(record, 1);
  DflashStatus status = dflash_store_record(showing->store, copy, showing->error);
  cJSON_Delete(copy);
  return status != DFLASH_OK;
}

static DflashStatus show(const DflashHistoryArguments *a, DflashError *error) {
  const DflashStoreOptions options = {.console = stdout, .verbose = a->verbose};
  Showing showing = {.error = error};
  DflashHistory *history = NULL;
  int64_t results = 0;
  DflashStatus status = dflash_history_open(a->history, DFLASH_HISTORY_READ, &history, error);
  if (status == DFLASH_OK && !a->json) status = dflash_store_open(&options, &showing.store, error);
  if (status == DFLASH_OK) status = dflash_history_export(history, &a->filter, show_record, &showing, &results, error);
  if (status == DFLASH_OK) status = error->status;
  if (status == DFLASH_OK && showing.shown == 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: has no run %lld%s", a->history, (long long)a->filter.run,
                              a->filter.case_name != NULL ? " with such a case" : "");
  dflash_store_close(showing.store, NULL);
  dflash_history_close(history);
  return status;
}

static int take_newest(void *context, const DflashHistoryResult *r) {
  *(int64_t *)context = r->run;
  return 1;
}

static DflashStatus find_last(const DflashHistoryArguments *a, int64_t *run, DflashError *error) {
  DflashHistory *history = NULL;
  DflashStatus status = dflash_history_open(a->history, DFLASH_HISTORY_READ, &history, error);
  if (status == DFLASH_OK)
    status = dflash_history_list(history, &(DflashHistoryFilter){.limit = 1}, take_newest, run, error);
  dflash_history_close(history);
  return status;
}

static DflashStatus choose_run(DflashHistoryArguments *a, const char *word, DflashError *error) {
  int64_t *run = &a->filter.run;
  DflashStatus status = DFLASH_OK;
  if (strcmp(word, "last") == 0)
    status = find_last(a, run, error);
  else if (!dflash_parse_i64(word, run) || *run < 1)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "'%s' is neither the number of a run nor 'last'", word);
  if (status == DFLASH_OK && *run == 0)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "%s: holds no result", a->history);
  return status;
}

int dflash_history_command_show(int argc, char **argv) {
  DflashHistoryArguments a = {0};
  DflashArgument table[24] = {{"case,c", "PATTERN", "only these cases", DFLASH_ARGUMENT_TEXT, &a.filter.case_name, 0},
                              {"json", NULL, "print its records as JSON lines", DFLASH_ARGUMENT_FLAG, &a.json, 0},
                              {"verbose,v", NULL, "print every stage", DFLASH_ARGUMENT_FLAG, &a.verbose, 0}};
  int count = 3, operands = 0, helped = 0;
  dflash_history_argument_rows(&a, 0, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, show_usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = dflash_history_arguments_finish(&a, &error);
  if (status == DFLASH_OK && operands != 1)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "history show needs the number of one run, or 'last'");
  if (status == DFLASH_OK) status = choose_run(&a, argv[1], &error);
  if (status == DFLASH_OK) status = show(&a, &error);
  return status == DFLASH_OK ? DFLASH_EXIT_OK : dflash_command_fail(&error);
}
