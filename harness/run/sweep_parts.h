/* The parts of a sweep. Internal to it. */
#ifndef DFLASH_RUN_SWEEP_PARTS_H
#define DFLASH_RUN_SWEEP_PARTS_H

#include <stdbool.h>

#include "run/sweep.h"
#include "run/trial.h"

struct cJSON;

/* ---- one recipe ---- */

enum { DFLASH_SWEEP_JUDGED, DFLASH_SWEEP_NOT_MADE, DFLASH_SWEEP_NOT_RUN };

typedef struct DflashSweepOutcome {
  int how;                  /* NOT_MADE: the recipe gave no material. NOT_RUN: the backend judged nothing */
  DflashError error;        /* of NOT_MADE and NOT_RUN; status DFLASH_UNSUPPORTED: declined */
  DflashTrialResult result; /* of JUDGED */
  int64_t elements;
  double made_s, ran_s;
} DflashSweepOutcome;

/* Draws the recipe's weights and cases in this thread, and runs them in a child. */
void dflash_sweep_try(const DflashRunOptions *options, const DflashRecipe *recipe, DflashSweepOutcome *outcome);
bool dflash_sweep_failed(const DflashSweepOutcome *outcome);
bool dflash_sweep_declined(const DflashSweepOutcome *outcome);

/* ---- smaller ---- */

/* A smaller recipe by reduction `step`: 1 when *to differs from *from and resolves, 0 when this step does nothing here,
 * -1 past the last step. */
int dflash_sweep_reduce(const DflashRecipe *from, int64_t step, DflashRecipe *to);

/* Makes a failing recipe smaller while it fails at the same stage, in at most `most` trials. *outcome is the recipe's
 * own before and the smallest one's after. The number of trials. */
int64_t dflash_sweep_shrink(const DflashRunOptions *options, int64_t most, DflashRecipe *recipe,
                            DflashSweepOutcome *outcome);

/* Writes the recipe's golden to `path` and runs `verify` on it: an error when the file does not fail there, too. */
DflashStatus dflash_sweep_save(const DflashRunOptions *options, const DflashRecipe *recipe, const char *path,
                               DflashError *error);

/* ---- draws ---- */

/* Everything about one draw as its record: tries, makes smaller, saves. NULL: memory. */
struct cJSON *dflash_sweep_work(const DflashSweepOptions *options, int64_t draw);
/* "dflash-harness sweep --backend X --seed S --draw N"; free() releases. */
char *dflash_sweep_reproduce(const DflashSweepOptions *options, int64_t draw);

/* Takes a record, which stays the caller's. Not 0: no more is wanted. */
typedef int (*DflashSweepTake)(void *context, struct cJSON *record);

/* Does all draws, `jobs` processes side by side, and hands over their records as they come. */
DflashStatus dflash_sweep_jobs(const DflashSweepOptions *options, DflashSweepTake take, void *context,
                               DflashError *error);

#endif
