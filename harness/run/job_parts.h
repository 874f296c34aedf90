/* The parts of a job. Internal to it. */
#ifndef DFLASH_RUN_JOB_PARTS_H
#define DFLASH_RUN_JOB_PARTS_H

#include "run/job.h"

struct cJSON;

/* context: DflashJob. Runs cases job->next .. of job->file; for dflash_isolate. */
int dflash_job_child(void *context, DflashChild *child);

/* context: DflashJob. Takes in what the child tells; not 0 when nothing more can be kept. */
int dflash_job_take(void *context, struct cJSON *record);
/* Keeps the selection that a `cases` record tells. */
void dflash_job_take_cases(DflashJob *job, const struct cJSON *record);
/* Hands a record to the store; after the first failure nothing more. */
void dflash_job_keep(DflashJob *job, struct cJSON *record);

/* What an orderly refusal, a crash or a hang means for the cases that are left. */
void dflash_job_settle_refusal(DflashJob *job);
void dflash_job_settle_end(DflashJob *job, const DflashChildResult *result);
/* The case in work could not be judged. */
void dflash_job_settle_case(DflashJob *job, DflashError *error);
/* An error line, or with --allow-missing a warning where something is absent. Not the same line twice in a row. */
void dflash_job_say(DflashJob *job, const DflashError *error);
/* Counted and recorded. file NULL: of the command line; case_name NULL: the whole file. */
void dflash_job_bad_input(DflashJob *job, const char *file, const char *case_name, const DflashError *error);

#endif
