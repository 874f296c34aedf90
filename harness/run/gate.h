/* The gate: parity, plausibility and times of a night in one verdict. */
#ifndef DFLASH_RUN_GATE_H
#define DFLASH_RUN_GATE_H

#include "run/runs_compare.h"

typedef struct DflashGateOptions {
  const char *const *results; /* places, as dflash_runs_read takes them */
  int64_t result_count;
  const char *history;  /* NULL: none; without results its newest night is judged */
  const char *baseline; /* a file of records, "last-good" or "branch:NAME" (both of the history), "none" */
  const char *waivers;  /* NULL: none */
  const char *day;      /* that waivers are held against; NULL: today, UTC */
  const char *accept;   /* NULL; else the file that these times become the baseline in */
  const char *json, *junit, *markdown;
  int quiet;
  DflashRunsRule rule;
} DflashGateOptions;

/* Exit statuses: 0 nothing is wrong (faster, waived and noted things are told), 1 something is, 5 cannot tell, 4 there
 * is nothing to judge, 2 bad input. */
int dflash_run_gate(const DflashGateOptions *options);

#endif
