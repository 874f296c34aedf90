/* The command compare-runs. */
#ifndef DFLASH_RUN_COMPARE_RUNS_H
#define DFLASH_RUN_COMPARE_RUNS_H

#include "run/runs_compare.h"

typedef struct DflashCompareRunsOptions {
  const char *a, *b; /* places, as dflash_runs_read takes them; b NULL: a holds both sides */
  DflashRunsRule rule;
  const char *json, *markdown; /* NULL: not written */
  int quiet;
} DflashCompareRunsOptions;

/* Exit statuses: 0 the same or faster, 1 slower, 5 cannot tell, 2 bad input. */
int dflash_run_compare_runs(const DflashCompareRunsOptions *options);

/* Results of one side: those whose bench record has `side` (NULL: all). free() releases; NULL when memory is out. */
const DflashResult **dflash_runs_side(const DflashRuns *runs, const char *side, int64_t *count);

#endif
