/* The parts of a comparison. Internal to it. */
#ifndef DFLASH_RUN_COMPARE_PARTS_H
#define DFLASH_RUN_COMPARE_PARTS_H

#include "load/candidate.h"
#include "run/case_run.h"
#include "run/offline.h"

/* One golden and one file of values, in the child; run.c is the case in work. */
typedef struct DflashCompareRun {
  DflashOffline *offline;
  DflashRunOptions options; /* the file's own, with its profile */
  DflashSession session;    /* golden and pool, no backend */
  DflashCandidate *candidate;
  DflashCaseRun run;
  DflashCandidateCase values;
  DflashAbsent absent;
  char declined[256]; /* why no case can be judged in this profile; "": they can */
  DflashError error;
} DflashCompareRun;

/* What the file holds of a stage; data NULL when nothing. */
const DflashCandidateValue *dflash_compare_value(const DflashCompareRun *compare, int32_t stage, int64_t layer);
/* All rows of it are there, in order. */
bool dflash_compare_whole(const DflashCandidateValue *value);
/* Fills the verdict from the file's value and a golden one of all rows. stage: for the names of places. */
void dflash_compare_judge(DflashCompareRun *compare, DflashVerdict *verdict, int32_t stage,
                          const DflashCandidateValue *value, const DflashValue *golden, const float *sigma);
/* Tokens of the file in the harness's buffers; what the file lacks is the golden's. false: no memory. */
bool dflash_compare_tokens_open(const DflashCompareRun *compare, DflashTokenBuffers *buffers);

void dflash_compare_chain(DflashCompareRun *compare);
void dflash_compare_local(DflashCompareRun *compare);

#endif
