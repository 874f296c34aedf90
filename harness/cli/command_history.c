#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/history_arguments.h"

void dflash_history_argument_rows(DflashHistoryArguments *a, int filters, DflashArgument *table, int *count) {
  DflashHistoryFilter *f = &a->filter;
  const DflashArgument rows[] = {
      {"history", "FILE", "the history (docs/history.md)", DFLASH_ARGUMENT_TEXT, &a->history, 0},
      {"kind,k", "PATTERN", "verify, bench, compare, sweep, selftest", DFLASH_ARGUMENT_TEXT, &f->kind, 0},
      {"backend,b", "PATTERN", "backends, as records name them", DFLASH_ARGUMENT_TEXT, &f->backend, 0},
      {"device,d", "PATTERN", "devices", DFLASH_ARGUMENT_TEXT, &f->device, 0},
      {"profile", "PATTERN", "arithmetic profiles", DFLASH_ARGUMENT_TEXT, &f->profile, 0},
      {"golden,g", "PATTERN", "golden files by name; or the first 8 or more digits of inputs_hash",
       DFLASH_ARGUMENT_TEXT, &f->golden, 0},
      {"case,c", "PATTERN", "cases", DFLASH_ARGUMENT_TEXT, &f->case_name, 0},
      {"outcome", "PATTERN", "pass, mismatch, crashed, ...", DFLASH_ARGUMENT_TEXT, &f->outcome, 0},
      {"machine", "PATTERN", "machines, as 'list --json' tells them", DFLASH_ARGUMENT_TEXT, &f->machine, 0},
      {"revision", "DIGITS", "first digits of the tool's commit", DFLASH_ARGUMENT_TEXT, &f->revision, 0},
      {"clean", NULL, "only builds without changes that were not committed", DFLASH_ARGUMENT_FLAG, &a->clean, 0},
      {"since", "WHEN", "runs from then on: 2026-11-30, 2026-11-30T17:43:59Z, or an age: 12h, 30d, 8w",
       DFLASH_ARGUMENT_TEXT, &a->since, 0},
      {"until", "WHEN", "runs before then", DFLASH_ARGUMENT_TEXT, &a->until, 0},
      {"run", "N", "one run", DFLASH_ARGUMENT_NUMBER, &f->run, 0},
      {"limit,n", "N", "the newest N results (0: all)", DFLASH_ARGUMENT_NUMBER, &a->limit, 0},
  };
  int used = filters ? (int)(sizeof rows / sizeof rows[0]) : 1;
  memcpy(table + *count, rows, (size_t)used * sizeof rows[0]);
  *count += used;
}

static bool parse_age(const char *text, int64_t *time_then) {
  static const struct {
    char unit;
    int64_t seconds;
  } units[] = {{'h', 3600}, {'d', 86400}, {'w', 604800}};
  char digits[24];
  int64_t number;
  size_t length = strlen(text);
  if (length < 2 || length > sizeof digits) return false;
  snprintf(digits, sizeof digits, "%.*s", (int)length - 1, text);
  if (!dflash_parse_i64(digits, &number) || number < 0 || number > 100000) return false;
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (text[length - 1] != units[i].unit) continue;
    *time_then = (int64_t)time(NULL) - number * units[i].seconds;
    return true;
  }
  return false;
}

DflashStatus dflash_history_when(const char *name, const char *text, int64_t *time_then, DflashError *error) {
  static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"};
  if (text == NULL || parse_age(text, time_then)) return DFLASH_OK;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    struct tm utc = {0};
    const char *end = strptime(text, forms[i], &utc);
    if (end == NULL || *end != '\0') continue;
    *time_then = (int64_t)timegm(&utc);
    return DFLASH_OK;
  }
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "--%s: '%s' is no time such as 2026-11-30, 2026-11-30T17:43:59Z, 12h, 30d or 8w", name, text);
}

DflashStatus dflash_history_arguments_finish(DflashHistoryArguments *a, DflashError *error) {
  if (a->history == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--history FILE is missing: the history to look at");
  a->filter.limit = a->limit;
  if (a->clean) a->filter.dirty = "no";
  DflashStatus status = dflash_history_when("since", a->since, &a->filter.since, error);
  return status == DFLASH_OK ? dflash_history_when("until", a->until, &a->filter.until, error) : status;
}

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
} actions[] = {{"list", dflash_history_command_list},
               {"show", dflash_history_command_show},
               {"export", dflash_history_command_export},
               {"import", dflash_history_command_import},
               {"prune", dflash_history_command_prune}};

int dflash_command_history(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
    if (strcmp(what, actions[i].name) == 0) return actions[i].run(argc - 1, argv + 1);
  if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
    printf("usage: dflash-harness history list|show|export|import|prune --history FILE ... ; each has --help\n");
    return DFLASH_EXIT_OK;
  }
  if (argc > 1)
    dflash_log(DFLASH_LOG_ERROR, "history '%s' is unknown; there are list, show, export, import, prune", what);
  else
    dflash_log(DFLASH_LOG_ERROR, "history needs one of list, show, export, import, prune; each has --help");
  return DFLASH_EXIT_BAD_INPUT;
}
