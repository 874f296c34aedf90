#include <stddef.h>

#include "cli/commands.h"
#include "cli/run_arguments.h"

#include "base/error.h"

static const char usage[] =
    "usage: dflash-harness bench FILE --backend NAME [OPTIONS]\n\n"
    "Times one case of each golden ('main' unless --case names another): the whole block without inner stamps, then\n"
    "with them, every stage of every layer, beside this device's own roofline measured in the same run. What fails\n"
    "parity gets no time.";

int dflash_command_bench(int argc, char **argv) {
  DflashRunArguments a;
  dflash_run_arguments_init(&a);
  a.options.round = -1;
  DflashArgument table[32] = {
      {"confidence", "SHARE", "sample until the 95% interval of the median is within this share (1%)",
       DFLASH_ARGUMENT_SHARE, &a.options.confidence, 0},
      {"budget", "TIME", "or until this much time has passed (60s); the roofline and library calls come on top",
       DFLASH_ARGUMENT_SECONDS, &a.options.budget_s, 0},
      {"warmup", "N", "blocks before the first sample (2)", DFLASH_ARGUMENT_NUMBER, &a.options.warmup, 0},
      {"max-samples", "N", "stop after N samples (0: no such limit)", DFLASH_ARGUMENT_NUMBER, &a.options.max_samples,
       0},
      {"cold", NULL, "evict the last-level cache before each block", DFLASH_ARGUMENT_FLAG, &a.options.cold, 0},
      {"round", "K", "time rounds: truncate, push K context rows, run a block", DFLASH_ARGUMENT_NUMBER,
       &a.options.round, 0}};
  int count = 6, operands = 0, helped = 0;
  dflash_run_arguments_rows(&a, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = dflash_run_arguments_finish(&a, argv, operands, &error);
  if (status == DFLASH_OK && a.options.round == 0)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "--round: a round pushes at least 1 row");
  if (a.options.round < 0) a.options.round = 0;
  return status == DFLASH_OK ? dflash_run_bench(&a.options) : dflash_command_fail(&error);
}
