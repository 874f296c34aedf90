/* The `run` record that begins what a command writes. */
#ifndef DFLASH_RUN_RUN_RECORD_H
#define DFLASH_RUN_RUN_RECORD_H

#include "run/options.h"

struct cJSON;

/* NULL when memory is out. */
struct cJSON *dflash_run_record(const DflashRunOptions *options);

#endif
