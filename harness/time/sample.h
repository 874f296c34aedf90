/* Sampling to a confidence. Knows no stage and no backend: it calls a function that yields numbers. */
#ifndef DFLASH_TIME_SAMPLE_H
#define DFLASH_TIME_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "dflash/status.h"

typedef struct DflashStatistics {
  int64_t n;
  double min, median, p95, mad;
  int has_interval;  /* 0: fewer than 6 samples */
  double low, high;  /* 95% interval of the median */
  double half_width; /* (high - low) / 2 / median */
  double lag1;       /* autocorrelation at lag 1 */
} DflashStatistics;

/* Statistics of samples in the order taken. p95 is the nearest rank, mad the median of |sample - median|, unscaled.
 * The interval: below 30 samples the order statistics that enclose the median of any distribution, then Student's t
 * over the medians of 6 to 16 contiguous batches. What is not defined is NaN: everything for no samples, one that is
 * not finite, or memory that is out; low, high and half_width without an interval. lag1 of constant samples is 0. */
void dflash_statistics(const double *samples, int64_t n, DflashStatistics *out);

typedef struct DflashSampleOptions {
  double confidence;   /* share: stop when half_width <= this (0.01) */
  double budget_s;     /* or when this much time has passed since the end of the warm-up; one sample at least */
  int64_t warmup;      /* calls before the first sample */
  int64_t min_samples; /* 0: 32; the criterion is looked at when n doubles from here */
  int64_t max_samples; /* 0: 1 << 20 */
} DflashSampleOptions;

enum { DFLASH_STOP_CONFIDENCE, DFLASH_STOP_BUDGET, DFLASH_STOP_COUNT };

typedef struct DflashSamples {
  int64_t n, channels;
  double *values; /* [channels][capacity]: channel c at values + c * capacity */
  int64_t capacity;
  int stopped_by; /* DFLASH_STOP_* */
  double elapsed_s;
} DflashSamples;

/* One call fills `channels` numbers; channel 0 decides when to stop. No sample is dropped; one that is not finite is
 * DFLASH_NONFINITE. *out is empty after a failure. */
typedef DflashStatus (*DflashSampleFn)(void *context, double *channels, DflashError *error);
DflashStatus dflash_sample(const DflashSampleOptions *options, int64_t channels, DflashSampleFn fn, void *context,
                           DflashSamples *out, DflashError *error);
const double *dflash_samples_channel(const DflashSamples *samples, int64_t channel);
void dflash_samples_close(DflashSamples *samples);

#endif
