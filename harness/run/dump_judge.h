/* Dumps judged again, without device or backend. */
#ifndef DFLASH_RUN_DUMP_JUDGE_H
#define DFLASH_RUN_DUMP_JUDGE_H

#include "run/options.h"

/* How many of the options' files are dumps. Each is looked at in a child; what cannot be read is none. */
int64_t dflash_dump_files(const DflashRunOptions *options);
/* All files are dumps: --case, --stage, --layer and mode select; the exit status. */
int dflash_run_dumps(const DflashRunOptions *options);

#endif
