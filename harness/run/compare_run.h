/* Values that other engines dumped, against a golden (docs/compare.md). */
#ifndef DFLASH_RUN_COMPARE_RUN_H
#define DFLASH_RUN_COMPARE_RUN_H

#include "run/options.h"

/* Judges every file of the options against options->golden; the exit status. profile -1: as each file says, else exact.
 * modes 0: chain. */
int dflash_run_compare(const DflashRunOptions *options);

#endif
