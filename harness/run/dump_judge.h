/* Dumps judged again, without device or backend. */
#ifndef DFLASH_RUN_DUMP_JUDGE_H
#define DFLASH_RUN_DUMP_JUDGE_H

#include "run/options.h"

/* How many of the options' files are dumps, and how many cannot be read at all. Each is looked at in a child. */
int64_t dflash_dump_files(const DflashRunOptions *options, int64_t *unreadable);
/* All files are dumps, or bad input: --case, --stage, --layer and mode select; the exit status. */
int dflash_run_dumps(const DflashRunOptions *options);

#endif
