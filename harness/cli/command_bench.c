#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/run_arguments.h"

#include "base/error.h"
#include "cli/rule_arguments.h"
#include "run/against.h"

static const char usage[] =
    "usage: dflash-harness bench FILE --backend NAME [OPTIONS]\n\n"
    "Times one case of each golden ('main' unless --case names another): the whole block without inner stamps, then\n"
    "with them, every stage of every layer, beside this device's own roofline measured in the same run. What fails\n"
    "parity gets no time.\n"
    "With --against or --against-option whole processes of two backends, builds or settings run in turn until their\n"
    "pairs tell which is slower (docs/regressions.md): exit status 0 the same or faster, 1 slower, 5 cannot tell.";

/* --against-option KEY=VALUE, as --option. */
static DflashStatus take_against_option(void *context, const char *value, DflashError *error) {
  DflashAgainstOptions *o = context;
  DflashRunOptions read = {.option_count = o->option_count};
  const DflashStatus status = dflash_run_arguments_take_option(&read, value, NULL);
  if (status != DFLASH_OK)
    return dflash_error_set(error, status, "--against-option: '%s' is not KEY=VALUE, or there are more than %d", value,
                            DFLASH_OPTIONS_MAX);
  o->options[o->option_count] = read.options[o->option_count];
  o->option_count = read.option_count;
  return DFLASH_OK;
}

static void add_against_rows(DflashAgainstOptions *o, DflashArgument *table, int *count) {
  const DflashArgument rows[] = {
      {"against", "OTHER", "side A: another backend (name or shared object), or another dflash-harness",
       DFLASH_ARGUMENT_TEXT, &o->against, 0},
      {"against-option", "KEY=VALUE", "option of side A's backend, in place of --option; may be repeated",
       DFLASH_ARGUMENT_CALL, o, take_against_option},
      {"each", "TIME", "with --against: sampling time of one process (1s)", DFLASH_ARGUMENT_SECONDS, &o->each_s, 0}};
  memcpy(table + *count, rows, sizeof rows);
  *count += (int)(sizeof rows / sizeof *rows);
  dflash_rule_arguments_rows(&o->rule, table, count);
}

static DflashStatus check_against(const DflashRunOptions *run, DflashError *error) {
  if (run->resume || run->junit != NULL || run->shards > 1 || run->allow_missing || run->peers_path != NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "--against goes with none of --resume, --junit, --shard, --allow-missing, --peers");
  return DFLASH_OK;
}

/* A peer's time is a block's, with its context settled. */
static DflashStatus check_peers(const DflashRunOptions *run, DflashError *error) {
  if (run->peers_path == NULL || run->round == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--peers goes with blocks, not with --round");
}

int dflash_command_bench(int argc, char **argv) {
  DflashRunArguments a;
  dflash_run_arguments_init(&a);
  a.options.round = -1;
  DflashAgainstOptions against = {.run = &a.options, .each_s = 1};
  DflashArgument table[40] = {
      {"confidence", "SHARE", "sample until the 95% interval of the median is within this share (1%)",
       DFLASH_ARGUMENT_SHARE, &a.options.confidence, 0},
      {"budget", "TIME", "or until this much time has passed (60s); the roofline and library calls come on top",
       DFLASH_ARGUMENT_SECONDS, &a.options.budget_s, 0},
      {"warmup", "N", "blocks before the first sample (2)", DFLASH_ARGUMENT_NUMBER, &a.options.warmup, 0},
      {"max-samples", "N", "stop after N samples (0: no such limit)", DFLASH_ARGUMENT_NUMBER, &a.options.max_samples,
       0},
      {"cold", NULL, "evict the last-level cache before each block", DFLASH_ARGUMENT_FLAG, &a.options.cold, 0},
      {"round", "K", "time rounds: truncate, push K context rows, run a block", DFLASH_ARGUMENT_NUMBER,
       &a.options.round, 0},
      {"no-roofline", NULL, "measure neither the roofline nor the library's calls", DFLASH_ARGUMENT_FLAG,
       &a.options.no_roofline, 0},
      {"peers", "FILE",
       "set the time beside the same block in PyTorch, as python3 -m peers measured it (docs/peers.md)",
       DFLASH_ARGUMENT_TEXT, &a.options.peers_path, 0}};
  int count = 8, operands = 0, helped = 0;
  add_against_rows(&against, table, &count);
  dflash_run_arguments_rows(&a, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = dflash_run_arguments_finish(&a, argv, operands, &error);
  if (status == DFLASH_OK && a.options.round == 0)
    status = dflash_error_set(&error, DFLASH_INVALID_ARGUMENT, "--round: a round pushes at least 1 row");
  if (a.options.round < 0) a.options.round = 0;
  if (status == DFLASH_OK) status = check_peers(&a.options, &error);
  const bool compares = against.against != NULL || against.option_count > 0;
  if (status == DFLASH_OK && compares) status = check_against(&a.options, &error);
  if (status != DFLASH_OK) return dflash_command_fail(&error);
  return compares ? dflash_run_against(&against) : dflash_run_bench(&a.options);
}
