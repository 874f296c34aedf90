/* Runs of a history as records. Internal to runs. */
#ifndef DFLASH_RUN_RUNS_HISTORY_H
#define DFLASH_RUN_RUNS_HISTORY_H

#include "run/runs.h"

/* path is HISTORY#RUN, hash points to '#'. */
DflashStatus dflash_runs_read_history(DflashRuns *runs, const char *path, const char *hash, DflashError *error);
/* Adds an array of records, one run's; empties it. */
DflashStatus dflash_runs_take(DflashRuns *runs, const char *source, struct cJSON *array, DflashError *error);

/* The newest night of a history: the runs of the newest one's revision, of the day up to it. */
DflashStatus dflash_runs_read_newest(DflashRuns *runs, const char *history, DflashError *error);
/* The newest timed night before `now` of each thing that `now` timed: results that passed, of one revision and one day.
 * branch: only revisions that `git rev-list BRANCH` names; NULL: any. */
DflashStatus dflash_runs_read_before(DflashRuns *runs, const char *history, const DflashRuns *now, const char *branch,
                                     DflashError *error);

#endif
