#include "time/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "time/compare_rank.h"

static const char *const verdict_names[] = {"cannot tell", "same", "faster", "slower"};

const char *dflash_time_verdict_name(int verdict) {
  return verdict >= 0 && verdict <= DFLASH_TIME_SLOWER ? verdict_names[verdict] : "-";
}

void dflash_times_rule_default(DflashTimesRule *rule) {
  *rule = (DflashTimesRule){.rate = 0.005, .share = 0.01, .between = 0, .power = 0.98};
}

int64_t dflash_times_least(double rate, int paired) {
  return paired ? dflash_rank_least_pairs(rate) : dflash_rank_least_side(rate);
}

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double sorted_median(const double *sorted, int64_t n) {
  return n % 2 ? sorted[n / 2] : sorted[n / 2 - 1] + (sorted[n / 2] - sorted[n / 2 - 1]) / 2;
}

static double median_of(const double *values, int64_t n, double *scratch) {
  memcpy(scratch, values, (size_t)n * sizeof *values);
  qsort(scratch, (size_t)n, sizeof *scratch, by_value);
  return sorted_median(scratch, n);
}

/* What one comparison works on: all shifts in order, and the law of the statistic when nothing is tied. */
typedef struct Work {
  int64_t a, b, count, chosen, shifts; /* count: ranks; chosen: as dflash_rank_law_open takes it */
  double *shift, *values;
  int64_t *doubled;
  DflashRankLaw plain;
} Work;

static DflashStatus work_open(Work *w, const DflashTimeUnits *u, DflashError *error) {
  *w = (Work){.a = u->a_count, .b = u->b_count};
  w->count = u->paired ? u->a_count : u->a_count + u->b_count;
  w->chosen = u->paired ? DFLASH_RANK_SIGNS : u->b_count;
  w->shifts = u->paired ? w->count * (w->count + 1) / 2 : w->a * w->b;
  w->shift = malloc((size_t)w->shifts * sizeof *w->shift);
  w->values = malloc((size_t)w->count * sizeof *w->values);
  w->doubled = malloc((size_t)w->count * sizeof *w->doubled);
  if (w->shift != NULL && w->values != NULL && w->doubled != NULL &&
      dflash_rank_law_plain(&w->plain, w->count, w->chosen))
    return DFLASH_OK;
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to compare %lld with %lld times", (long long)w->a,
                          (long long)w->b);
}

static void work_close(Work *w) {
  dflash_rank_law_close(&w->plain);
  free(w->doubled);
  free(w->values);
  free(w->shift);
}

/* Walsh averages of the pairs' log ratios, or the log ratios of every b to every a; sorted. */
static void fill_shifts(Work *w, const DflashTimeUnits *u) {
  int64_t at = 0;
  if (u->paired)
    for (int64_t i = 0; i < w->a; i++)
      for (int64_t k = i; k < w->a; k++) w->shift[at++] = (log(u->b[i] / u->a[i]) + log(u->b[k] / u->a[k])) / 2;
  else
    for (int64_t i = 0; i < w->a; i++)
      for (int64_t k = 0; k < w->b; k++) w->shift[at++] = log(u->b[k] / u->a[i]);
  qsort(w->shift, (size_t)w->shifts, sizeof *w->shift, by_value);
}

/* Pairs that are equal to the bit say nothing either way and are left out, which keeps the test exact. */
static double rank_p(Work *w, const DflashTimeUnits *u) {
  int64_t count = 0, statistic = 0;
  if (u->paired) {
    for (int64_t i = 0; i < w->a; i++)
      if (u->a[i] != u->b[i]) w->values[count++] = log(u->b[i] / u->a[i]);
  } else {
    memcpy(w->values, u->b, (size_t)w->b * sizeof *u->b);
    memcpy(w->values + w->b, u->a, (size_t)w->a * sizeof *u->a);
    count = w->count;
  }
  if (count == 0) return 1;
  bool own = dflash_rank_values(w->values, count, w->doubled) || count != w->count;
  for (int64_t i = 0; i < count; i++)
    if (u->paired ? w->values[i] > 0 : i < w->b) statistic += w->doubled[i];
  if (!own) return dflash_rank_law_p(&w->plain, statistic);
  DflashRankLaw law;
  if (!dflash_rank_law_open(&law, w->doubled, count, w->chosen)) return 1;
  double p = dflash_rank_law_p(&law, statistic);
  dflash_rank_law_close(&law);
  return p;
}

/* Half the interval for this rate, on the log scale; inf where even the extremes are not enough. */
static double half_interval(const Work *w, double rate, double *low, double *high) {
  const int64_t k = dflash_rank_law_reach(&w->plain, w->count, w->chosen, rate);
  *low = k > 0 ? w->shift[k - 1] : NAN;
  *high = k > 0 ? w->shift[w->shifts - k] : NAN;
  return k > 0 ? (*high - *low) / 2 : INFINITY;
}

/* What one side has in common adds to both ends, and has its own say on significance. */
static void allow_between(DflashTimeShift *out, double shift, double half95, double *low, double *high,
                          const DflashTimesRule *rule) {
  const double z95 = dflash_normal_point(0.975), spread = sqrt(2.0) * log1p(rule->between);
  if (!(rule->between > 0) || isnan(*low)) return;
  *low = shift - hypot(shift - *low, z95 * spread);
  *high = shift + hypot(*high - shift, z95 * spread);
  double p = dflash_normal_p(shift / hypot(spread, half95 / z95));
  if (p > out->p) out->p = p;
}

/* Called is what lies beyond the interval at `rate` and beyond the share; with `power` the estimate stays there. */
static double smallest_visible(double half, double half95, double rate, const DflashTimesRule *rule) {
  const double spread = sqrt(2.0) * log1p(rule->between), z95 = dflash_normal_point(0.975);
  double error = hypot(half95 / z95, spread);
  double reach = hypot(half, dflash_normal_point(1 - rate / 2) * spread), least = log1p(rule->share);
  return expm1((reach > least ? reach : least) + dflash_normal_point(rule->power) * error);
}

static DflashStatus check_times(const double *times, int64_t count, const char *side, DflashError *error) {
  if (count < 1 || count > DFLASH_TIMES_UNITS)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "side %s has %lld times; 1 to %d can be compared", side,
                            (long long)count, DFLASH_TIMES_UNITS);
  for (int64_t i = 0; i < count; i++)
    if (!isfinite(times[i]) || times[i] <= 0)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "side %s has a time of %g: not a positive number", side,
                              times[i]);
  return DFLASH_OK;
}

static void fill(Work *w, const DflashTimeUnits *u, const DflashTimesRule *rule, double rate, DflashTimeShift *out) {
  double low, high, low_called, high_called;
  fill_shifts(w, u);
  double shift = sorted_median(w->shift, w->shifts);
  double half95 = half_interval(w, 0.05, &low, &high), half = half_interval(w, rate, &low_called, &high_called);
  out->p = rank_p(w, u);
  out->visible = isinf(half) ? INFINITY : smallest_visible(half, half95, rate, rule);
  allow_between(out, shift, half95, &low, &high, rule);
  out->a = median_of(u->a, w->a, w->shift);
  out->b = median_of(u->b, w->b, w->shift);
  out->shift = expm1(shift);
  out->low = expm1(low);
  out->high = expm1(high);
}

DflashStatus dflash_times_shift(const DflashTimeUnits *units, const DflashTimesRule *rule, double rate,
                                DflashTimeShift *out, DflashError *error) {
  *out = (DflashTimeShift){
      .a = NAN, .b = NAN, .shift = NAN, .low = NAN, .high = NAN, .p = 1, .rate = rate, .visible = INFINITY};
  DflashStatus status = check_times(units->a, units->a_count, "A", error);
  if (status == DFLASH_OK) status = check_times(units->b, units->b_count, "B", error);
  if (status == DFLASH_OK && units->paired && units->a_count != units->b_count)
    status = dflash_error_set(error, DFLASH_INVALID_DATA, "pairs need as many times on side A (%lld) as on B (%lld)",
                              (long long)units->a_count, (long long)units->b_count);
  if (status != DFLASH_OK) return status;
  Work work;
  status = work_open(&work, units, error);
  if (status == DFLASH_OK) fill(&work, units, rule, rate, out);
  work_close(&work);
  return status;
}
