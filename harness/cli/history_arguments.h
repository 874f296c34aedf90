/* What the actions of `history` share. */
#ifndef DFLASH_CLI_HISTORY_ARGUMENTS_H
#define DFLASH_CLI_HISTORY_ARGUMENTS_H

#include "cli/arguments.h"
#include "store/history.h"

typedef struct DflashHistoryArguments {
  const char *history, *since, *until, *output, *older_than;
  DflashHistoryFilter filter;
  int64_t limit, keep;
  int clean, json, dry_run, verbose;
} DflashHistoryArguments;

/* Appends --history, and with filters all that chooses results, to table at *count. */
void dflash_history_argument_rows(DflashHistoryArguments *a, int filters, DflashArgument *table, int *count);
/* Checks that --history is there, and turns times into those of the filter. */
DflashStatus dflash_history_arguments_finish(DflashHistoryArguments *a, DflashError *error);
/* "2026-11-30", "2026-11-30T17:43:59Z" or an age as "12h", "30d", "8w"; seconds since 1970. NULL: *time stays. */
DflashStatus dflash_history_when(const char *name, const char *text, int64_t *time, DflashError *error);

int dflash_history_command_list(int argc, char **argv);
int dflash_history_command_show(int argc, char **argv);
int dflash_history_command_export(int argc, char **argv);
int dflash_history_command_import(int argc, char **argv);
int dflash_history_command_prune(int argc, char **argv);

#endif
