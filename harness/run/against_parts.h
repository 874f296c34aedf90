/* What the parts of a comparison in turn share. Internal to against. */
#ifndef DFLASH_RUN_AGAINST_PARTS_H
#define DFLASH_RUN_AGAINST_PARTS_H

#include "run/against_process.h"
#include "store/store.h"

typedef struct DflashAgainst {
  const DflashAgainstOptions *options;
  DflashStore *store;
  DflashAgainstCommand commands[2]; /* side A, side B */
  struct {
    char path[64];
    int listed;
  } scratch[2]; /* records and stderr of the process in work */
  DflashRuns runs;
  int64_t pairs, look;
  uint64_t begin_ns, pair_ns; /* pair_ns: the longest so far */
  DflashRunsComparison comparison;
  int process_exit; /* of one that failed */
} DflashAgainst;

/* The store and the scratch files; the command lines of both sides. */
DflashStatus dflash_against_open(DflashAgainst *against, DflashError *error);
/* Runs both sides once, side by side, and records what they said. */
DflashStatus dflash_against_pair(DflashAgainst *against, DflashError *error);
/* Records what is no process's; takes the record over. */
DflashStatus dflash_against_record(DflashAgainst *against, struct cJSON *record, DflashError *error);
DflashStatus dflash_against_close_store(DflashAgainst *against, DflashError *error);
void dflash_against_close(DflashAgainst *against); /* safe after a failed open */

#endif
