#include <stddef.h>

#include "cli/commands.h"
#include "cli/run_arguments.h"

#include "base/error.h"

static const char usage[] =
    "usage: dflash-harness verify FILE... --backend NAME [OPTIONS]\n\n"
    "Runs the cases of golden files on a backend and judges every stage by the error that correct arithmetic\n"
    "would show there. Modes:\n"
    "  alone  golden inputs into each stage, its output compared\n"
    "  chain  one block from taps and embeddings to tokens, every stage that it materialises compared\n"
    "  local  the same block, every stage recomputed in float64 from the backend's own inputs\n"
    "Default: alone,chain; chain,local for a backend that cannot enter every stage alone.";

int dflash_command_verify(int argc, char **argv) {
  DflashRunArguments a;
  dflash_run_arguments_init(&a);
  DflashArgument table[32] = {
      {"mode,m", "MODES", "alone, chain, local, joined by ','", DFLASH_ARGUMENT_TEXT, &a.modes, 0},
      {"stage,s", "PATTERN", "stages to judge: names or patterns over attn.mix and attn.mix/1", DFLASH_ARGUMENT_TEXT,
       &a.options.stages, 0},
      {"layer,l", "N", "only stages of this layer", DFLASH_ARGUMENT_NUMBER, &a.options.layer, 0},
      {"repeat,r", "N", "run each block N times and count what fails", DFLASH_ARGUMENT_NUMBER, &a.options.repeat, 0}};
  int count = 4, operands = 0, helped = 0;
  dflash_run_arguments_rows(&a, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = dflash_run_arguments_finish(&a, argv, operands, &error);
  if (status == DFLASH_OK && a.options.repeat < 1)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "--repeat: at least 1");
  return status == DFLASH_OK ? dflash_run_verify(&a.options) : dflash_command_fail(&error);
}
