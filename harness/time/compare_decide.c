/* From estimates to verdicts: one error rate over several quantities. And units of a single process. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "time/compare.h"

/* The most significant item, by p over its weight, that is still undecided; -1: none. */
static int64_t next_item(const DflashTimesItem *items, const bool *taken, int64_t count) {
  int64_t best = -1;
  for (int64_t i = 0; i < count; i++) {
    if (taken[i] || !(items[i].weight > 0)) continue;
    if (best < 0 || items[i].shift.p * items[best].weight < items[best].shift.p * items[i].weight) best = i;
  }
  return best;
}

static int verdict_of(const DflashTimeShift *s, bool significant, double share) {
  if (significant && s->shift > share) return DFLASH_TIME_SLOWER;
  if (significant && s->shift < -share) return DFLASH_TIME_FASTER;
  /* What could not have been called changed is not called the same either. */
  const bool within = s->low >= -share && s->high <= share && isfinite(s->visible);
  return within ? DFLASH_TIME_SAME : DFLASH_TIME_CANNOT_TELL;
}

void dflash_times_decide(const DflashTimesRule *rule, double rate, DflashTimesItem *items, int64_t count) {
  bool stopped = false;
  double weights = 0;
  bool *taken = calloc((size_t)count + 1, sizeof *taken);
  for (int64_t i = 0; i < count; i++) {
    items[i].shift.verdict = DFLASH_TIME_CANNOT_TELL;
    if (items[i].weight > 0) weights += items[i].weight;
  }
  if (taken == NULL) return; /* nothing is called */
  for (int64_t i; (i = next_item(items, taken, count)) >= 0;) {
    DflashTimeShift *s = &items[i].shift;
    taken[i] = true;
    s->rate = rate * items[i].weight / weights;
    stopped = stopped || !(s->p <= s->rate);
    s->verdict = verdict_of(s, !stopped, items[i].scale * rule->share);
    if (!stopped) weights -= items[i].weight;
  }
  free(taken);
}

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

int64_t dflash_times_batches(const double *samples, int64_t count, double medians[16]) {
  if (count < 16) return 0;
  int64_t batches = count < 256 ? (int64_t)sqrt((double)count) : 16;
  if (batches < 8) batches = 8;
  double *scratch = malloc((size_t)(count / batches + 1) * sizeof *scratch);
  if (scratch == NULL) return 0;
  for (int64_t b = 0, begin = 0; b < batches; b++) {
    int64_t n = count / batches + (b < count % batches);
    memcpy(scratch, samples + begin, (size_t)n * sizeof *scratch);
    qsort(scratch, (size_t)n, sizeof *scratch, by_value);
    medians[b] = (scratch[(n - 1) / 2] + scratch[n / 2]) / 2;
    begin += n;
  }
  free(scratch);
  return batches;
}
