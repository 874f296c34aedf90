/* A command over several files: each file's cases run in a child that is started again after a crash. */
#ifndef DFLASH_RUN_JOB_H
#define DFLASH_RUN_JOB_H

#include "run/session.h"
#include "run/tally.h"
#include "store/store.h"

typedef struct DflashJob DflashJob;

/* What one case of this job does, in the child. It reports its own failures as records; an error it returns means
 * that the case could not be judged. */
typedef DflashStatus (*DflashCaseFn)(DflashSession *session, int64_t case_index, DflashError *error);

struct DflashJob {
  const DflashRunOptions *options;
  DflashCaseFn run_case;
  int64_t case_limit; /* cases a file at most; 0: all that are selected */
  const char *modes;  /* for --resume: the modes as records write them, NULL when not fixed */
  DflashStore *store;
  DflashTally tally;
  int64_t matched;        /* cases that --case matched so far, all files */
  int64_t matched_before; /* in the files before this one: shards count through */
  /* of the file in work */
  const char *file;
  int64_t *selected; /* indices into the file's cases */
  char **names;
  int64_t selected_count, next;
  int phase;
  char inputs_hash[65];
  DflashError refused;
  int refused_phase; /* -1: none */
  DflashError store_error;
  char known[1000]; /* case names met, for messages */
};

/* Runs all files, writes run and summary records; the exit status. */
int dflash_job_run(DflashJob *job);

/* "verify 2/7 main: attn.mix" on a terminal; also tells the parent that the child lives. */
void dflash_session_progress(DflashSession *session, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
