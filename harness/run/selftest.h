/* The self test: every deliberate defect of a catalogue (dflash/catalogue.h) must be found, at its stage, and every
 * lawful variant must pass. It measures the gate, not a backend. */
#ifndef DFLASH_RUN_SELFTEST_H
#define DFLASH_RUN_SELFTEST_H

#include "run/options.h"

typedef struct DflashSelftestOptions {
  /* backend (default faulty), backend_path, options (base=blas, ...), modes, threads, json, verbose, quiet count. */
  const DflashRunOptions *run;
  const char *defects; /* patterns over ids; NULL: all */
  int64_t draws;       /* more than 0: also each defect's detection rate over so many drawn goldens */
  uint64_t seed;       /* of the draws */
  int64_t jobs;        /* processes at work at the same time, at least 1 */
  int list;            /* 1: only lists the catalogue */
} DflashSelftestOptions;

/* Prints what was found, missed, misplaced, and false alarms; an exit status: 0 when every defect was found, at least
 * 95% at their stage, those without an excuse from end values too, and no false alarm; else 1. */
int dflash_run_selftest(const DflashSelftestOptions *options);

#endif
