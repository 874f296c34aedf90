/* Counts of case outcomes, and the exit status that follows. */
#ifndef DFLASH_RUN_TALLY_H
#define DFLASH_RUN_TALLY_H

#include <stdint.h>

struct cJSON;

typedef struct DflashTally {
  int64_t cases, passed, failed, skipped, not_run, not_trusted;
  int64_t bad_input, unavailable, resumed;
} DflashTally;

void dflash_tally_case(DflashTally *tally, int outcome); /* DFLASH_OUTCOME_* of a whole case */
/* Something wrong 1, bad input 2, unavailable 3, nothing ran 4 (77 with allow_missing when all that was asked
 * for is absent), not trusted alone 5, else 0. */
int dflash_tally_exit(const DflashTally *tally, int allow_missing);
struct cJSON *dflash_tally_record(const DflashTally *tally, int exit, double elapsed_s);

#endif
