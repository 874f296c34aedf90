/* Who is compared with whom. Internal to runs_compare. */
#ifndef DFLASH_RUN_RUNS_MATCH_H
#define DFLASH_RUN_RUNS_MATCH_H

#include "run/runs_compare.h"

/* Fills cases with their results, in order of time, disturbed ones left out, and why where there is no partner. */
DflashStatus dflash_runs_match(const DflashResult *const *a, int64_t a_count, const DflashResult *const *b,
                               int64_t b_count, DflashRunsComparison *out, DflashError *error);

#endif
