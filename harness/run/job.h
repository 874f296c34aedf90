/* A command over several files: each file's cases run in a child that is started again after a crash. */
#ifndef DFLASH_RUN_JOB_H
#define DFLASH_RUN_JOB_H

#include "run/names.h"
#include "run/session.h"
#include "run/tally.h"
#include "store/store.h"

typedef struct DflashJob DflashJob;

/* What one case of this job does, in the child. It reports its own failures as records; an error it returns means
 * that the case could not be judged. */
typedef DflashStatus (*DflashCaseFn)(DflashSession *session, int64_t case_index, DflashError *error);

/* Where the child is, as far as it told. */
typedef struct DflashStep {
  int phase; /* DFLASH_PHASE_*; -1: not begun */
  char mode[16], stage[64], text[200];
  int64_t layer; /* -1: none */
} DflashStep;

struct DflashJob {
  const DflashRunOptions *options;
  const char *command; /* "verify" */
  DflashCaseFn run_case;
  int64_t case_limit; /* cases a file at most; 0: all that are selected */
  DflashStore *store;
  struct DflashDumpSpool *dump; /* NULL: none */
  DflashTally tally;
  DflashNames known;      /* cases of all files */
  int64_t matched;        /* cases that --case matched so far, all files */
  int64_t matched_before; /* in the files before this one: shards count through */
  char *settings;         /* dflash_run_settings */
  DflashError store_error;
  char said[1024]; /* the last error line: the same one is not said for every file */
  /* of the file in work */
  const char *file;
  bool selected;
  int64_t *indices; /* into the file's cases */
  char **names;
  int64_t case_count, next; /* selected ones */
  char inputs_hash[65];
  /* of the child at work */
  DflashStep step;
  DflashError refused;
  int refused_phase;         /* -1: none */
  int64_t begun;             /* cases that this child began */
  uint64_t case_begin;       /* when the case in work did */
  char backend[64];          /* its own name, or what the user typed */
  char device[64];           /* likewise */
  char modes[32];            /* of the case in work, "" when not known yet */
  char known_settings[1024]; /* as the child completed them, "" when not known yet */
  DflashCounts verdicts;     /* of the case in work, received so far */
};

/* Runs all files, writes run and summary records; the exit status. */
int dflash_job_run(DflashJob *job);

#endif
