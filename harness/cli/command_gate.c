#include <stddef.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/rule_arguments.h"

#include "base/error.h"
#include "run/gate.h"
#include "run/gate_waivers.h"

static const char usage[] =
    "usage: dflash-harness gate RESULTS... --baseline WHICH [OPTIONS]\n"
    "       dflash-harness gate --history HISTORY --baseline WHICH [OPTIONS]\n\n"
    "Parity, plausibility and times of a night in one verdict (docs/regressions.md). RESULTS are files of records of\n"
    "verify, compare, sweep, selftest, bench and bench --against. Exit status: 0 nothing is wrong, 1 something is "
    "wrong\n"
    "or slower, 5 cannot tell, 4 there is nothing to judge, 2 bad input.";

static DflashStatus check_outputs(const DflashGateOptions *o, DflashError *error) {
  const char *const outputs[] = {o->json, o->junit, o->markdown, o->accept};
  for (int i = 0; i < 4; i++) {
    if (outputs[i] == NULL) continue;
    for (int k = 0; k < i; k++)
      if (outputs[k] != NULL && (strcmp(outputs[i], outputs[k]) == 0 || dflash_same_file(outputs[i], outputs[k])))
        return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: two outputs name this file", outputs[i]);
    const char *const inputs[] = {o->waivers, o->history, i < 3 ? o->baseline : NULL};
    for (int k = 0; k < 3; k++)
      if (inputs[k] != NULL && dflash_same_file(outputs[i], inputs[k]))
        return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: is read: not written over", outputs[i]);
    for (int64_t k = 0; k < o->result_count; k++)
      if (dflash_same_file(outputs[i], o->results[k]))
        return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "%s: is read: not written over", outputs[i]);
  }
  return DFLASH_OK;
}

static DflashStatus finish(DflashGateOptions *o, char **argv, int operands, DflashError *error) {
  o->results = (const char *const *)argv + 1;
  o->result_count = operands;
  if (operands == 0 && o->history == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "no results are given, and no --history");
  if (o->baseline == NULL)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "--baseline is missing: a file of records, last-good, branch:NAME or none");
  if (o->day != NULL && !dflash_day_valid(o->day))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "--day: '%s' is no day such as 2027-01-31", o->day);
  return check_outputs(o, error);
}

int dflash_command_gate(int argc, char **argv) {
  DflashGateOptions o = {0};
  int count = 0, operands = 0, helped = 0;
  DflashArgument table[24];
  const DflashArgument own[] = {
      {"baseline", "WHICH", "file of records, last-good or branch:NAME (of the history), none", DFLASH_ARGUMENT_TEXT,
       &o.baseline, 0},
      {"history", "FILE", "history of runs; without RESULTS its newest night is judged", DFLASH_ARGUMENT_TEXT,
       &o.history, 0},
      {"waivers", "FILE", "known faults that pass, up to a day and a measure", DFLASH_ARGUMENT_TEXT, &o.waivers, 0},
      {"day", "DAY", "the day that waivers are held against (today, UTC)", DFLASH_ARGUMENT_TEXT, &o.day, 0},
      {"accept", "FILE", "unless the gate fails, these times become the baseline in FILE", DFLASH_ARGUMENT_TEXT,
       &o.accept, 0},
      {"json", "FILE", "write comparison and gate records (docs/records.md)", DFLASH_ARGUMENT_TEXT, &o.json, 0},
      {"junit", "FILE", "write JUnit XML, one test case a finding", DFLASH_ARGUMENT_TEXT, &o.junit, 0},
      {"markdown", "FILE", "write the verdict and its tables as Markdown", DFLASH_ARGUMENT_TEXT, &o.markdown, 0},
      {"quiet,q", NULL, "print nothing but errors", DFLASH_ARGUMENT_FLAG, &o.quiet, 0}};
  memcpy(table, own, sizeof own);
  count = (int)(sizeof own / sizeof *own);
  dflash_rule_arguments_rows(&o.rule, table, &count);
  DflashError error = {0};
  DflashStatus status = dflash_arguments_parse(argc, argv, usage, table, count, &operands, &helped, &error);
  if (helped) return DFLASH_EXIT_OK;
  if (status == DFLASH_OK) status = finish(&o, argv, operands, &error);
  return status == DFLASH_OK ? dflash_run_gate(&o) : dflash_command_fail(&error);
}
