#include "time/compare_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double dflash_normal_p(double z) { return erfc(fabs(z) / sqrt(2.0)); }

/* Bisection: exact enough, and short. */
double dflash_normal_point(double below) {
  double low = -40, high = 40;
  for (int i = 0; i < 100; i++) {
    double middle = (low + high) / 2;
    if (erfc(-middle / sqrt(2.0)) / 2 < below)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

/* ways[c][s]: choices of c ranks with sum s, rank after rank; from the top, so that none is taken twice. */
static bool count_choices(DflashRankLaw *law, const int64_t *doubled, int64_t count, int64_t chosen) {
  const int64_t width = law->most + 1;
  double *ways = calloc((size_t)((chosen + 1) * width), sizeof *ways);
  if (ways == NULL) return false;
  ways[0] = 1;
  int64_t reached = 0;
  for (int64_t i = 0; i < count; i++) {
    reached += doubled[i];
    for (int64_t c = i + 1 < chosen ? i + 1 : chosen; c > 0; c--)
      for (int64_t s = reached; s >= doubled[i]; s--) ways[c * width + s] += ways[(c - 1) * width + s - doubled[i]];
  }
  memcpy(law->below, ways + chosen * width, (size_t)width * sizeof *ways);
  free(ways);
  return true;
}

/* Each rank by a coin: halved step by step, so that nothing overflows. */
static void toss_signs(DflashRankLaw *law, const int64_t *doubled, int64_t count) {
  int64_t reached = 0;
  law->below[0] = 1;
  for (int64_t i = 0; i < count; i++) {
    reached += doubled[i];
    for (int64_t s = reached; s >= 0; s--)
      law->below[s] = law->below[s] / 2 + (s >= doubled[i] ? law->below[s - doubled[i]] / 2 : 0);
  }
}

/* From weights to P(statistic <= i). */
static void accumulate(DflashRankLaw *law) {
  double total = 0, sum = 0;
  for (int64_t s = 0; s <= law->most; s++) total += law->below[s];
  for (int64_t s = 0; s <= law->most; s++) law->below[s] = (sum += law->below[s]) / total;
}

/* Half a step of continuity: a step is 2, ranks being doubled. */
static void take_normal(DflashRankLaw *law, const int64_t *doubled, int64_t count, int64_t chosen) {
  double mean = (double)law->most / (double)count, variance = 0, n = (double)count;
  if (chosen == DFLASH_RANK_SIGNS) {
    for (int64_t i = 0; i < count; i++) variance += (double)doubled[i] * (double)doubled[i] / 4;
    mean = (double)law->most / 2;
  } else {
    for (int64_t i = 0; i < count; i++) variance += ((double)doubled[i] - mean) * ((double)doubled[i] - mean) / n;
    variance *= (double)chosen * (n - (double)chosen) / (n - 1);
    mean *= (double)chosen;
  }
  for (int64_t s = 0; s <= law->most; s++)
    law->below[s] = variance > 0 ? erfc(-((double)s + 1 - mean) / sqrt(2 * variance)) / 2 : (double)s >= mean;
}

bool dflash_rank_law_open(DflashRankLaw *law, const int64_t *doubled, int64_t count, int64_t chosen) {
  law->most = 0;
  for (int64_t i = 0; i < count; i++) law->most += doubled[i];
  law->below = calloc((size_t)law->most + 1, sizeof *law->below);
  if (law->below == NULL) return false;
  if (count > DFLASH_RANK_EXACT) {
    take_normal(law, doubled, count, chosen);
    return true;
  }
  if (chosen == DFLASH_RANK_SIGNS)
    toss_signs(law, doubled, count);
  else if (!count_choices(law, doubled, count, chosen)) {
    dflash_rank_law_close(law);
    return false;
  }
  accumulate(law);
  return true;
}

bool dflash_rank_law_plain(DflashRankLaw *law, int64_t count, int64_t chosen) {
  *law = (DflashRankLaw){0};
  int64_t *doubled = calloc((size_t)count + 1, sizeof *doubled);
  if (doubled == NULL) return false;
  for (int64_t i = 0; i < count; i++) doubled[i] = 2 * (i + 1);
  bool opened = dflash_rank_law_open(law, doubled, count, chosen);
  free(doubled);
  return opened;
}

void dflash_rank_law_close(DflashRankLaw *law) {
  free(law->below);
  *law = (DflashRankLaw){0};
}

double dflash_rank_law_p(const DflashRankLaw *law, int64_t statistic) {
  if (statistic < 0 || statistic > law->most) return 0;
  double under = law->below[statistic], over = statistic > 0 ? 1 - law->below[statistic - 1] : 1;
  double p = 2 * (under < over ? under : over);
  return p < 1 ? p : 1;
}

int64_t dflash_rank_law_reach(const DflashRankLaw *law, int64_t count, int64_t chosen, double rate) {
  const bool signs = chosen == DFLASH_RANK_SIGNS;
  const int64_t least = signs ? 0 : chosen * (chosen + 1); /* the smallest sum, doubled */
  const int64_t shifts = signs ? count * (count + 1) / 2 : chosen * (count - chosen);
  int64_t k = 0;
  while (2 * k < shifts && 2 * law->below[least + 2 * k] <= rate) k++;
  return k;
}

bool dflash_rank_values(const double *values, int64_t count, int64_t *doubled) {
  bool ties = false;
  for (int64_t i = 0; i < count; i++) {
    int64_t smaller = 0, equal = 0;
    for (int64_t k = 0; k < count; k++) {
      smaller += fabs(values[k]) < fabs(values[i]);
      equal += fabs(values[k]) == fabs(values[i]);
    }
    doubled[i] = 2 * smaller + equal + 1;
    ties = ties || equal > 1;
  }
  return ties;
}

int64_t dflash_rank_least_pairs(double rate) {
  int64_t n = 1;
  while (n < DFLASH_RANK_EXACT && pow(0.5, (double)n - 1) > rate) n++;
  return n;
}

int64_t dflash_rank_least_side(double rate) {
  int64_t n = 0;
  for (double orders = 1; 2 / orders > rate && n < DFLASH_RANK_EXACT;) { /* orders = (2 n over n) */
    n++;
    orders *= 2.0 * (2.0 * (double)n - 1) / (double)n;
  }
  return n;
}
