/* Two backends, builds or settings timed against each other: whole processes in turn, compared as pairs. */
#ifndef DFLASH_RUN_AGAINST_H
#define DFLASH_RUN_AGAINST_H

#include "run/options.h"
#include "run/runs_compare.h"

typedef struct DflashAgainstOptions {
  const DflashRunOptions *run; /* side B; budget_s is that of the whole, junit and resume must not be set */
  const char *against;         /* side A: a backend's name or file, or the path of another dflash-harness; NULL: B's */
  DflashOption options[DFLASH_OPTIONS_MAX]; /* side A's; none: those of B where the backend is the same */
  uint32_t option_count;
  double each_s; /* sampling of one process */
  DflashRunsRule rule;
} DflashAgainstOptions;

/* Exit statuses: 0 B is the same or faster, 1 slower, 5 cannot tell; else that of the process that failed. */
int dflash_run_against(const DflashAgainstOptions *options);

#endif
