/* The parts of dflash_relation_find. Internal to it. */
#ifndef DFLASH_COMPARE_RELATION_H
#define DFLASH_COMPARE_RELATION_H

#include "compare/pattern.h"

enum { DFLASH_SAMPLE_MAX = 4096, DFLASH_SAMPLE_LEAST = 4 };

/* Bad elements, evenly taken, and what all of them have in common. */
typedef struct DflashBadSample {
  const DflashCompareCall *call;
  int64_t at[DFLASH_SAMPLE_MAX]; /* indices into got */
  int64_t count, bad, good;
  double golden_least, golden_most; /* smallest |golden| of bad elements, largest of good ones */
  double got_least, got_most;       /* |got| of bad elements */
  bool beyond;                      /* every bad element: |golden| > |got| */
} DflashBadSample;

/* Counts predictions: fits and misfits, and whether they are much nearer than the golden's own place. */
typedef struct DflashTrial {
  int64_t tested, misfits;
  double score, own_score; /* sums, of the prediction and of the golden itself */
} DflashTrial;

void dflash_trial_add(DflashTrial *trial, const DflashBadSample *sample, int64_t at, double expected, double sigma);
/* Too many misfits already. */
bool dflash_trial_failed(const DflashTrial *trial);
/* At least half of `count` elements could be predicted, at most one in 50 wrongly. */
bool dflash_trial_convinces(const DflashTrial *trial, int64_t count);
double dflash_sample_sigma(const DflashBadSample *sample, int64_t at);

/* Each returns a DFLASH_RELATION_* and its text. */
int dflash_relation_numbers(const DflashBadSample *sample, char *text, size_t size);
int dflash_relation_places(const DflashBadSample *sample, char *text, size_t size);
int dflash_relation_others(const DflashBadSample *sample, char *text, size_t size);

#endif
