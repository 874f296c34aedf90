#include "compare/relation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compare/score.h"

double dflash_sample_sigma(const DflashBadSample *sample, int64_t at) {
  return sample->call->sigma != NULL ? (double)sample->call->sigma[at] : 0;
}

/* One score among many must not decide: it is cut. */
static double bounded(double score) { return score < 1000 ? score : 1000; }

void dflash_trial_add(DflashTrial *trial, const DflashBadSample *sample, int64_t at, double expected, double sigma) {
  const DflashCompareCall *call = sample->call;
  double got = (double)call->got[at];
  double score = dflash_score_stored(got, expected, sigma, call->storage);
  trial->tested++;
  trial->misfits += !(score <= 1);
  trial->score += bounded(score);
  trial->own_score +=
      bounded(dflash_score_stored(got, (double)call->golden[at], dflash_sample_sigma(sample, at), call->storage));
}

bool dflash_trial_failed(const DflashTrial *trial) { return trial->misfits > DFLASH_SAMPLE_MAX / 50; }

bool dflash_trial_convinces(const DflashTrial *trial, int64_t count) {
  return trial->tested >= DFLASH_SAMPLE_LEAST && 2 * trial->tested >= count && 50 * trial->misfits <= trial->tested &&
         4 * trial->score <= trial->own_score;
}

static void take_bad(DflashBadSample *sample, int64_t at, int64_t step) {
  double golden = fabs((double)sample->call->golden[at]), got = fabs((double)sample->call->got[at]);
  if (sample->bad % step == 0 && sample->count < DFLASH_SAMPLE_MAX) sample->at[sample->count++] = at;
  sample->bad++;
  sample->golden_least = fmin(sample->golden_least, golden);
  sample->got_least = fmin(sample->got_least, got);
  sample->got_most = fmax(sample->got_most, got);
  sample->beyond &= golden > got;
}

static void gather(DflashBadSample *sample, int64_t bad) {
  const DflashCompareCall *call = sample->call;
  int64_t step = bad / DFLASH_SAMPLE_MAX + 1;
  for (int64_t i = 0; i < call->rows * call->width; i++) {
    double golden = (double)call->golden[i];
    if (dflash_score_stored((double)call->got[i], golden, dflash_sample_sigma(sample, i), call->storage) > 1) {
      take_bad(sample, i, step);
    } else {
      sample->good++;
      sample->golden_most = fmax(sample->golden_most, fabs(golden));
    }
  }
}

/* What overflows or saturates goes wrong where values are large, and only there. */
static int find_outliers(const DflashBadSample *sample, char *text, size_t size) {
  if (sample->bad < DFLASH_SAMPLE_LEAST || sample->good < sample->bad || sample->golden_least <= sample->golden_most)
    return DFLASH_RELATION_NONE;
  snprintf(text, size, "exactly those where |golden| >= %.4g", sample->golden_least);
  return DFLASH_RELATION_OUTLIERS;
}

int dflash_relation_find(const DflashCompareCall *call, const DflashBadMap *map, char *text, size_t size) {
  DflashBadSample *sample = calloc(1, sizeof *sample);
  text[0] = '\0';
  if (sample == NULL) return DFLASH_RELATION_NONE; /* a pattern is a hint: the verdict stands without it */
  *sample = (DflashBadSample){.call = call, .golden_least = INFINITY, .got_least = INFINITY, .beyond = true};
  gather(sample, map->total);
  int found = dflash_relation_numbers(sample, text, size);
  if (found == DFLASH_RELATION_NONE) found = dflash_relation_places(sample, text, size);
  if (found == DFLASH_RELATION_NONE) found = dflash_relation_others(sample, text, size);
  if (found == DFLASH_RELATION_NONE) found = find_outliers(sample, text, size);
  free(sample);
  return found;
}
