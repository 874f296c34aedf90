/* The options that all commands share that run a backend. */
#ifndef DFLASH_CLI_RUN_ARGUMENTS_H
#define DFLASH_CLI_RUN_ARGUMENTS_H

#include "cli/arguments.h"
#include "run/options.h"

typedef struct DflashRunArguments {
  DflashRunOptions options;
  const char *profile, *modes, *shard, *context;
  int64_t threads;
} DflashRunArguments;

void dflash_run_arguments_init(DflashRunArguments *arguments);
/* Appends the shared rows to table at *count. */
void dflash_run_arguments_rows(DflashRunArguments *arguments, DflashArgument *table, int *count);
/* For a row of kind CALL: "KEY=VALUE", cut in place, into the DflashRunOptions that is the context. */
DflashStatus dflash_run_arguments_take_option(void *context, const char *value, DflashError *error);
/* Checks and converts what was parsed; files are argv[1 .. operands]. Unknown stages are listed. */
DflashStatus dflash_run_arguments_finish(DflashRunArguments *arguments, char **argv, int operands, DflashError *error);

#endif
