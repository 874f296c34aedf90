/* Counts of case outcomes, and the exit status that follows. */
#ifndef DFLASH_RUN_TALLY_H
#define DFLASH_RUN_TALLY_H

#include <stdint.h>

struct cJSON;

typedef struct DflashCounts {
  int64_t cases, passed, failed, skipped, not_run, not_trusted;
} DflashCounts;

typedef struct DflashTally {
  DflashCounts now;     /* cases of this run */
  DflashCounts earlier; /* complete before --resume */
  int64_t bad_input;    /* files, cases and words of the command line */
} DflashTally;

void dflash_tally_case(DflashCounts *counts, int outcome); /* DFLASH_OUTCOME_* of a whole case */
/* Something wrong 1, bad input 2, unavailable 3, nothing ran 4 (77 with allow_missing when all that was asked
 * for is absent), not trusted alone 5, else 0. What an earlier run found counts as well. */
int dflash_tally_exit(const DflashTally *tally, int allow_missing);
/* A file, or one case of it, that could not be read, or with neither a mistake of the command line; either may be NULL.
 */
struct cJSON *dflash_bad_input_record(const char *file, const char *case_name, const char *message);
struct cJSON *dflash_tally_record(const DflashTally *tally, int exit, double elapsed_s);

#endif
