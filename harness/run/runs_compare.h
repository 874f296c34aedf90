/* Results of two sides compared: matched by what they timed, each case one comparison of a block and its groups. */
#ifndef DFLASH_RUN_RUNS_COMPARE_H
#define DFLASH_RUN_RUNS_COMPARE_H

#include "run/runs.h"
#include "time/compare_whole.h"

/* What the units of a comparison are. */
enum {
  DFLASH_UNITS_PAIRS,    /* processes that ran in turn, A B A B or A B B A */
  DFLASH_UNITS_TOGETHER, /* processes of both sides over the same stretch of time */
  DFLASH_UNITS_APART,    /* processes, one side after the other */
  DFLASH_UNITS_ONE_EACH  /* one process a side: batches of its samples */
};

typedef struct DflashRunsRule {
  DflashTimesRule compare; /* where sides ran in turn or together; between is filled in */
  double apart;            /* in place of compare.share where sides ran apart (0.05) */
  double between;          /* allowed between sides that ran apart (0.01) */
  double load;             /* per CPU, above which a result is left out (1.5) */
  bool across;             /* backend, device and machine may differ */
} DflashRunsRule;
void dflash_runs_rule_default(DflashRunsRule *rule);

typedef struct DflashNamedPart {
  char name[64]; /* of a group; of a stage and its layer */
  DflashTimesPart part;
} DflashNamedPart;

typedef struct DflashCaseComparison {
  const DflashResult **a, **b; /* those that count, in order of time */
  int64_t a_count, b_count;
  int64_t left_out;                /* disturbed ones */
  char disturbed[DFLASH_KEY_TEXT]; /* the last reason */
  int units;                       /* DFLASH_UNITS_* */
  double rate;                     /* this case's part of the rate */
  double share;                    /* a change is larger than this */
  double between;                  /* that was allowed for */
  char why[600];                   /* why it cannot be told; "" */
  DflashTimesWhole whole;
  DflashNamedPart *groups, *stages; /* stages: those that moved, most first; they locate and are never called */
  int64_t group_count, stage_count;
  double *values; /* of all units; owned */
} DflashCaseComparison;

typedef struct DflashRunsComparison {
  DflashRunsRule rule;
  DflashCaseComparison *cases;
  int64_t count;
} DflashRunsComparison;

/* Results without a time are no part of it. The results must outlive *out. Close also after a failure. */
DflashStatus dflash_runs_compare(const DflashResult *const *a, int64_t a_count, const DflashResult *const *b,
                                 int64_t b_count, const DflashRunsRule *rule, DflashRunsComparison *out,
                                 DflashError *error);
void dflash_runs_comparison_close(DflashRunsComparison *comparison);
/* Slower in any case: 1; else 5 where one cannot be told; else 0; 4 without a case. */
int dflash_runs_comparison_exit(const DflashRunsComparison *comparison);
/* One case's verdict: that of its block and groups; cannot tell where why says so. */
int dflash_case_comparison_verdict(const DflashCaseComparison *one);

#endif
