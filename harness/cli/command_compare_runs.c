#include <stddef.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/rule_arguments.h"

#include "base/error.h"
#include "run/compare_runs.h"

static const char usage[] =
    "usage: dflash-harness compare-runs A B [OPTIONS]\n"
    "       dflash-harness compare-runs PAIRS [OPTIONS]\n\n"
    "Is B slower than A? Each is a file of 'bench --json', several joined by ',' (a process each; one file may hold "
    "many),\n"
    "or HISTORY.db#RUN; PAIRS is what 'bench --against --json' wrote. The block and its groups are compared under one\n"
    "error rate; single stages only locate (docs/regressions.md). Exit status: 0 the same or faster, 1 slower, 5 "
    "cannot\n"
    "tell, 2 bad input.";

static DflashStatus finish(DflashCompareRunsOptions *o, char **argv, int operands, int across, DflashError *error) {
  if (operands < 1 || operands > 2)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "two files of records are needed, or one of pairs; %d are given", operands);
  o->a = argv[1];
  o->b = operands > 1 ? argv[2] : NULL;
  o->rule.across = across != 0;
  const char *const outputs[] = {o->json, o->markdown};
  for (int i = 0; i < 2; i++)
    for (int k = 1; k <= operands && outputs[i] != NULL; k++)
      if (dflash_same_file(outputs[i], argv[k]))
        return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: is read: not written over", outputs[i]);
  if (o->json != NULL && o->markdown != NULL && strcmp(o->json, o->markdown) == 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--json and --markdown name the same file: %s", o->json);
  return DFLASH_OK;
}

int dflash_command_compare_runs(int argc, char **argv) {
  DflashCompareRunsOptions o = {0};
  int across = 0, count = 0, operands = 0, helped = 0;
  DflashArgument table[16];
  dflash_rule_arguments_rows(&o.rule, table, &count);
  const DflashArgument own[] = {
      {"across", NULL, "backend, device and machine may differ", DFLASH_ARGUMENT_FLAG, &across, 0},
      {"json", "FILE", "write a comparison record a case (docs/records.md)", DFLASH_ARGUMENT_TEXT, &o.json, 0},
      {"markdown", "FILE", "write the tables as Markdown", DFLASH_ARGUMENT_TEXT, &o.markdown, 0},
      {"quiet,q", NULL, "print nothing but errors", DFLASH_ARGUMENT_FLAG, &o.quiet, 0}};
  memcpy(table + count, own, sizeof own);
  count += (int)(sizeof own / sizeof *own);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = finish(&o, argv, operands, across, &error);
  return status == DFLASH_OK ? dflash_run_compare_runs(&o) : dflash_command_fail(&error);
}
