/* --dump: both sides of the values that fail, from the child that holds them to a file (docs/dump-format.md).
 *
 * The child appends the values to an unnamed file and then tells the parent about them in a record. When a backend
 * crashes, what was told before is whole and what was not is never looked at. The parent writes the dump at the end of
 * the run, beside its place, and renames it. */
#ifndef DFLASH_RUN_DUMP_H
#define DFLASH_RUN_DUMP_H

#include <stdio.h>

#include "run/case_run.h"

struct cJSON;

typedef struct DflashDumpSpool DflashDumpSpool;

/* path: of the dump to be; it must outlive the spool. A place that cannot be written is refused now, and nothing stays
 * there. limit: bytes of values at most. */
DflashStatus dflash_spool_open(const char *path, int64_t limit, DflashDumpSpool **spool, DflashError *error);
void dflash_spool_close(DflashDumpSpool *spool);

/* What a verdict was about. */
typedef struct DflashDumpValues {
  int32_t stage; /* whose terms name its places: for a check too */
  int64_t rows, width, damage;
  const float *got, *expected, *sigma;      /* sigma NULL: exact */
  const float *inputs[DFLASH_STAGE_INPUTS]; /* as the stage saw them, in the table's order; NULL: not known */
} DflashDumpValues;

/* In the child: keeps the values of a verdict that failed; without --dump nothing. What cannot be kept is counted. */
void dflash_dump_verdict(DflashCaseRun *run, const DflashVerdict *verdict, const DflashDumpValues *values);

/* In the parent: `dump` records are taken (true); of `verdict` and `case` records, what only they know. */
bool dflash_spool_take(DflashDumpSpool *spool, const struct cJSON *record);
/* Writes the dump and says so on `out` (NULL: nowhere); when no value failed there is none, and that is said. */
DflashStatus dflash_spool_write(DflashDumpSpool *spool, FILE *out, DflashError *error);

#endif
