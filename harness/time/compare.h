/* Comparing two sets of times. Knows no stage and no backend: it is given units, one number each.
 *
 * A unit is what varies independently: a process (its median), a pair of processes that ran side by side, or, where
 * there is one process a side, a batch of its samples. Times are positive; differences are shares (B / A - 1), taken as
 * differences of logarithms, so that noise may be in proportion. */
#ifndef DFLASH_TIME_COMPARE_H
#define DFLASH_TIME_COMPARE_H

#include <stdint.h>

#include "dflash/status.h"

#define DFLASH_TIMES_UNITS 512 /* a side at most */

enum { DFLASH_TIME_CANNOT_TELL, DFLASH_TIME_SAME, DFLASH_TIME_FASTER, DFLASH_TIME_SLOWER };
const char *dflash_time_verdict_name(int verdict); /* "cannot tell", "same", "faster", "slower" */

/* What a verdict is held to. */
typedef struct DflashTimesRule {
  double rate;    /* chance that a comparison calls a change where nothing differs (0.005) */
  double share;   /* a change is larger than this; the same means: within it, with 95% confidence (0.01) */
  double between; /* standard deviation, as a share, of what units of one side have in common and the other side has
                     not: processes of one run each, sessions apart. 0: nothing */
  double power;   /* for `visible` (0.98) */
} DflashTimesRule;
void dflash_times_rule_default(DflashTimesRule *rule);

typedef struct DflashTimeUnits {
  const double *a, *b; /* paired: a[i] and b[i] ran side by side, in order */
  int64_t a_count, b_count;
  int paired;
} DflashTimeUnits;

/* One quantity compared. Shares are of A. */
typedef struct DflashTimeShift {
  double a, b;      /* medians of the units */
  double shift;     /* Hodges-Lehmann: the median of all Walsh averages (pairs) or of all differences */
  double low, high; /* 95% interval of it; NaN where there are too few units for one */
  double p;         /* two-sided, exact: that of the rank test, or of the shift against `between` where larger */
  double rate;      /* what p was held to; set by dflash_times_decide */
  double visible;   /* smallest slowdown that is called with `power` at this noise and number; inf: none */
  int verdict;
} DflashTimeShift;

/* Estimates and p; no verdict yet. DFLASH_INVALID_DATA: a time that is not positive and finite; no units at all. */
DflashStatus dflash_times_shift(const DflashTimeUnits *units, const DflashTimesRule *rule, double rate,
                                DflashTimeShift *out, DflashError *error);

/* A quantity among several that share one error rate. */
typedef struct DflashTimesItem {
  DflashTimeShift shift;
  double weight; /* of the rate; the sum does not matter */
  double scale;  /* a change is larger than scale * share; 1 for what stands for itself */
} DflashTimesItem;

/* Holm's procedure with weights: the chance of any false call among all items is at most `rate`. Then each gets its
 * verdict: faster or slower when significant and larger than the share, the same when the 95% interval lies within the
 * share and there are enough units to call a change, else cannot tell. */
void dflash_times_decide(const DflashTimesRule *rule, double rate, DflashTimesItem *items, int64_t count);

/* Medians of contiguous batches, as units of one process: neighbours resemble each other, batches hardly. Writes 8 to
 * 16 of them; 0 for fewer than 16 samples. */
int64_t dflash_times_batches(const double *samples, int64_t count, double medians[16]);

/* Pairs (paired) or units a side without which nothing can be called at this rate. */
int64_t dflash_times_least(double rate, int paired);

#endif
