#include <stdbool.h>
#include <stddef.h>

#include "cli/commands.h"
#include "cli/run_arguments.h"

#include "base/error.h"
#include "run/compare_run.h"

static const char usage[] =
    "usage: dflash-harness compare GOLDEN FILE... [OPTIONS]\n\n"
    "Judges values that another engine wrote (docs/compare.md): any subset of a golden's cases, stages, layers and\n"
    "rows, in f32, f16 or bf16. Modes:\n"
    "  chain  the engine's own values flowed from taps and embeddings on (default)\n"
    "  local  each stage recomputed in float64 from the file's values of its inputs, where all are there";

static DflashStatus check_modes(const DflashRunOptions *o, DflashError *error) {
  if ((o->modes & 1u << DFLASH_MODE_ALONE) == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "--mode: values in a file have no mode alone; valid: chain, local");
}

/* Only profiles and patterns need more than what all commands check. */
static DflashStatus finish(DflashRunArguments *a, char **argv, int operands, DflashError *error) {
  DflashRunOptions *o = &a->options;
  if (operands < 2)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "a golden file and a file of values are needed, %d given",
                            operands);
  bool own_profile = a->profile == NULL;
  if (own_profile) a->profile = "exact";
  o->backend = "-"; /* the values' engine is told by their file */
  DflashStatus status = dflash_run_arguments_finish(a, argv, operands, error);
  if (own_profile) o->profile = -1;
  o->backend = NULL;
  o->golden = o->files[0];
  o->files++;
  o->file_count--;
  return status == DFLASH_OK ? check_modes(o, error) : status;
}

int dflash_command_compare(int argc, char **argv) {
  DflashRunArguments a;
  dflash_run_arguments_init(&a);
  a.profile = NULL;
  DflashRunOptions *o = &a.options;
  const DflashArgument table[] = {
      {"mode,m", "MODES", "chain, local, joined by ','", DFLASH_ARGUMENT_TEXT, &a.modes, 0},
      {"stage,s", "PATTERN", "stages to judge: names or patterns over attn.mix and attn.mix/1", DFLASH_ARGUMENT_TEXT,
       &o->stages, 0},
      {"layer,l", "N", "only stages of this layer", DFLASH_ARGUMENT_NUMBER, &o->layer, 0},
      {"profile", "P", "arithmetic profile: exact, i8, f16, bf16; default: what the file says, else exact",
       DFLASH_ARGUMENT_TEXT, &a.profile, 0},
      {"case,c", "PATTERN", "cases to judge: names or shell patterns, joined by ','", DFLASH_ARGUMENT_TEXT, &o->cases,
       0},
      {"require-all", NULL, "cases, stages and rows that are not in the file fail", DFLASH_ARGUMENT_FLAG,
       &o->require_all, 0},
      {"timeout", "TIME", "end a file that reports no progress for this long (300s)", DFLASH_ARGUMENT_SECONDS,
       &o->timeout_s, 0},
      {"json", "FILE", "write JSON lines (docs/records.md)", DFLASH_ARGUMENT_TEXT, &o->json, 0},
      {"junit", "FILE", "write JUnit XML, one test case per stage and layer", DFLASH_ARGUMENT_TEXT, &o->junit, 0},
      {"history", "FILE", "add the run to this history, made if need be (docs/history.md)", DFLASH_ARGUMENT_TEXT,
       &o->history, 0},
      {"threads,t", "N", "threads of the harness", DFLASH_ARGUMENT_THREADS, &a.threads, 0},
      {"verbose,v", NULL, "print every stage", DFLASH_ARGUMENT_FLAG, &o->verbose, 0},
      {"quiet,q", NULL, "print nothing but errors", DFLASH_ARGUMENT_FLAG, &o->quiet, 0}};
  int operands = 0, helped = 0;
  DflashError error = {0};
  DflashStatus status =
      dflash_arguments_parse(argc, argv, usage, table, sizeof table / sizeof table[0], &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = finish(&a, argv, operands, &error);
  return status == DFLASH_OK ? dflash_run_compare(o) : dflash_command_fail(&error);
}
