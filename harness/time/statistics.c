#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "time/sample.h"

/* From MIN_BATCHED samples on the interval comes from contiguous batches: about sqrt(n) of them, within the bounds. */
enum { MIN_BATCHES = 6, MAX_BATCHES = 16, MIN_BATCHED = 30 };

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double sorted_median(const double *sorted, int64_t n) {
  return n % 2 ? sorted[n / 2] : sorted[n / 2 - 1] + (sorted[n / 2] - sorted[n / 2 - 1]) / 2;
}

static double median_of(const double *values, int64_t n, double *scratch) {
  memcpy(scratch, values, (size_t)n * sizeof *values);
  qsort(scratch, (size_t)n, sizeof *scratch, compare);
  return sorted_median(scratch, n);
}

static double median_deviation(const double *samples, int64_t n, double median, double *scratch) {
  for (int64_t i = 0; i < n; i++) scratch[i] = fabs(samples[i] - median);
  qsort(scratch, (size_t)n, sizeof *scratch, compare);
  return sorted_median(scratch, n);
}

static double lag1(const double *samples, int64_t n) {
  double mean = 0, squares = 0, products = 0;
  for (int64_t i = 0; i < n; i++) mean += samples[i] / (double)n;
  for (int64_t i = 0; i < n; i++) squares += (samples[i] - mean) * (samples[i] - mean);
  for (int64_t i = 1; i < n; i++) products += (samples[i] - mean) * (samples[i - 1] - mean);
  return squares > 0 ? products / squares : 0;
}

/* Few samples: order statistics k and n + 1 - k enclose the median of any distribution with probability
 * 1 - 2 P(B < k), B binomial (n, 1/2). The largest k that keeps 95%; below 6 samples not even the extremes do. */
static void interval_from_order(const double *sorted, int64_t n, DflashStatistics *out) {
  double term = pow(0.5, (double)n), below = term;
  int64_t k = 0;
  while (2 * below <= 0.05) {
    k++;
    term *= (double)(n - k + 1) / (double)k;
    below += term;
  }
  out->has_interval = k > 0;
  if (k == 0) return;
  out->low = sorted[k - 1];
  out->high = sorted[n - k];
}

/* 97.5% point of Student's t. */
static double student_t(int degrees) {
  static const double points[] = {2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
                                  2.2010, 2.1788, 2.1604, 2.1448, 2.1314};
  return points[degrees - (MIN_BATCHES - 1)];
}

/* Many samples: the spread of the medians of contiguous batches, which neighbours that resemble each other do not
 * make smaller, carries over to the median of all. */
static void interval_from_batches(const double *samples, int64_t n, double *scratch, DflashStatistics *out) {
  int batches = n < MAX_BATCHES * MAX_BATCHES ? (int)sqrt((double)n) : MAX_BATCHES;
  if (batches < MIN_BATCHES) batches = MIN_BATCHES;
  double medians[MAX_BATCHES], mean = 0, squares = 0;
  for (int b = 0; b < batches; b++) {
    int64_t begin = n / batches * b + (b < n % batches ? b : n % batches);
    medians[b] = median_of(samples + begin, n / batches + (b < n % batches), scratch);
    mean += medians[b] / batches;
  }
  for (int b = 0; b < batches; b++) squares += (medians[b] - mean) * (medians[b] - mean);
  double reach = student_t(batches - 1) * sqrt(squares / (batches - 1) / batches);
  out->has_interval = 1;
  out->low = out->median - reach;
  out->high = out->median + reach;
}

static double relative_half_width(const DflashStatistics *s) {
  double half = (s->high - s->low) / 2;
  return half == 0 ? 0 : half / fabs(s->median); /* infinite for a median of 0 */
}

static int all_finite(const double *samples, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(samples[i])) return 0;
  return 1;
}

void dflash_statistics(const double *samples, int64_t n, DflashStatistics *out) {
  *out = (DflashStatistics){.n = n,
                            .min = NAN,
                            .median = NAN,
                            .p95 = NAN,
                            .mad = NAN,
                            .low = NAN,
                            .high = NAN,
                            .half_width = NAN,
                            .lag1 = NAN};
  if (n < 1 || !all_finite(samples, n)) return;
  double *sorted = malloc((size_t)n * sizeof *sorted), *scratch = malloc((size_t)n * sizeof *scratch);
  if (sorted && scratch) {
    out->median = median_of(samples, n, sorted);
    out->min = sorted[0];
    out->p95 = sorted[(95 * n + 99) / 100 - 1]; /* nearest rank: a sample that was seen */
    out->mad = median_deviation(samples, n, out->median, scratch);
    out->lag1 = lag1(samples, n);
    if (n < MIN_BATCHED)
      interval_from_order(sorted, n, out);
    else
      interval_from_batches(samples, n, scratch, out);
    if (out->has_interval) out->half_width = relative_half_width(out);
  }
  free(scratch);
  free(sorted);
}
