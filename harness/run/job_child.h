/* The child's part of a job. */
#ifndef DFLASH_RUN_JOB_CHILD_H
#define DFLASH_RUN_JOB_CHILD_H

#include "run/job.h"

/* context: DflashJob. Runs cases job->next .. of job->file; for dflash_isolate. */
int dflash_job_child(void *context, DflashChild *child);

/* Keeps the selection that a `cases` record tells. */
struct cJSON;
void dflash_job_take_cases(DflashJob *job, const struct cJSON *record);

#endif
