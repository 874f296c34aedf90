/* How good is the comparison of times? Drawn comparisons where nothing differs, and where one group is slower.
 * compare_simulation [N]: N comparisons a line (1000). A table in Markdown; exit status 1 when a line misses its aim.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_noise.h"
#include "time/compare_whole.h"

enum { PAIRS, PROCESSES, SINGLE, LOOKS }; /* LOOKS: pairs that are looked at again and again */
enum { PLANTED = 6 };                     /* groups that are slowed, from 42% of the block to 3% */
static const char *const kind_names[] = {"pairs", "processes", "single runs", "pairs, looks"};

typedef struct Plan {
  Noise noise;
  int kind, units;
  double between, slower; /* slower: the slowdown to be called; 0: only A/A */
} Plan;

/* Noise that a quiet device has, a shared machine, one with outliers, one that drifts. Drift is common to a pair, so
 * two sets of processes that ran side by side see it as noise. */
static const Plan plans[] = {
    {{"quiet", 0.005, 0, 0, 0.002, 0.001, 0}, PAIRS, 16, 0, 0.02},
    {{"between processes", 0.01, 0, 0, 0.006, 0.002, 0}, PAIRS, 16, 0, 0.02},
    {{"lag 1", 0.01, 0.7, 0, 0.004, 0.002, 0}, PAIRS, 16, 0, 0.02},
    {{"outliers", 0.01, 0.3, 0.1, 0.005, 0.002, 0}, PAIRS, 16, 0, 0.02},
    {{"all, drifting", 0.01, 0.5, 0.05, 0.005, 0.002, 0.05}, PAIRS, 16, 0, 0.02},
    {{"quiet", 0.005, 0, 0, 0.002, 0.001, 0}, PROCESSES, 16, 0, 0.02},
    {{"all", 0.01, 0.5, 0.05, 0.005, 0.002, 0}, PROCESSES, 16, 0, 0.02},
    {{"all, louder", 0.02, 0.5, 0.05, 0.01, 0.003, 0}, PAIRS, 40, 0, 0.02},
    {{"all, at the limit", 0.01, 0.5, 0.05, 0.0105, 0.002, 0.05}, PAIRS, 16, 0, 0.02},
    {{"all, drifting", 0.01, 0.5, 0.05, 0.005, 0.002, 0.05}, LOOKS, 49, 0, 0.02},
    {{"all, louder", 0.02, 0.5, 0.05, 0.01, 0.003, 0}, LOOKS, 49, 0, 0.02},
    {{"between processes", 0.01, 0, 0, 0.006, 0.002, 0}, SINGLE, 1, 0.01, 0.1},
    {{"lag 1", 0.01, 0.7, 0, 0.008, 0.002, 0}, SINGLE, 1, 0.01, 0.1},
};

typedef struct Counts {
  int changed, same, placed, in_group;
  int any; /* called were there no least share: the error rate itself */
  double visible[4096];
} Counts;

static DflashTimesWhole compare_units(const Plan *plan, const NoisyRun *run, int64_t units, double rate, double share,
                                      DflashTimesPart *parts) {
  DflashTimesRule rule;
  dflash_times_rule_default(&rule);
  rule.share = share;
  rule.between = plan->between;
  double a[16], b[16];
  DflashTimeUnits whole = {run->a.block, run->b.block, units, units, plan->kind == PAIRS || plan->kind == LOOKS};
  if (plan->kind == SINGLE)
    whole = (DflashTimeUnits){a, b, dflash_times_batches(run->a.samples, NOISE_SAMPLES, a),
                              dflash_times_batches(run->b.samples, NOISE_SAMPLES, b), 0};
  for (int g = 0; g < NOISE_GROUPS; g++) {
    parts[g] = (DflashTimesPart){.units = whole};
    parts[g].units.a = run->a.groups[g];
    parts[g].units.b = run->b.groups[g];
    parts[g].item.shift.a = run->a.groups[g][0];
    parts[g].item.shift.b = run->b.groups[g][0];
    if (plan->kind == SINGLE) parts[g].units.a_count = 0;
  }
  DflashTimesWhole out;
  DflashError error = {0};
  if (dflash_times_whole(&rule, rate, &whole, parts, NOISE_GROUPS, &out, &error) == DFLASH_OK) return out;
  fprintf(stderr, "compare_simulation: %s\n", error.message);
  exit(2);
}

/* As bench --against does: until it can tell. */
static DflashTimesWhole compare(const Plan *plan, const NoisyRun *run, double share, DflashTimesPart *parts) {
  const double rate = 0.005;
  if (plan->kind != LOOKS) return compare_units(plan, run, plan->units, rate, share, parts);
  DflashTimesWhole out = {.verdict = DFLASH_TIME_CANNOT_TELL};
  int64_t pairs = dflash_times_first_look(rate, NOISE_GROUPS);
  for (int64_t look = 0; pairs <= plan->units && out.verdict == DFLASH_TIME_CANNOT_TELL; look++) {
    out = compare_units(plan, run, pairs, dflash_times_look_rate(rate, look), share, parts);
    pairs = dflash_times_next_look(pairs);
  }
  return out;
}

/* slow: the slowdown is planted in one group after the other, from the largest on. */
static void count(const Plan *plan, int n, bool slow, uint64_t seed, Counts *counts) {
  static NoisyRun run;
  DflashTimesPart parts[NOISE_GROUPS];
  memset(counts, 0, sizeof *counts);
  for (int i = 0; i < n; i++) {
    const int at = slow ? i % PLANTED : -1, samples = plan->kind == SINGLE ? NOISE_SAMPLES : 32;
    noise_draw(&plan->noise, seed, (uint64_t)i, plan->units, samples, at, slow ? plan->slower : 0, &run);
    counts->any += compare(plan, &run, 0, parts).verdict >= DFLASH_TIME_FASTER;
    DflashTimesWhole out = compare(plan, &run, plan->kind == SINGLE ? 0.05 : 0.01, parts);
    counts->changed += out.verdict >= DFLASH_TIME_FASTER;
    counts->same += out.verdict == DFLASH_TIME_SAME;
    counts->placed += out.verdict == DFLASH_TIME_SLOWER && out.place == at;
    counts->in_group += slow && parts[at].item.shift.verdict == DFLASH_TIME_SLOWER;
    counts->visible[i] = out.whole.visible;
  }
}

/* Is a slowdown of the size that comparisons say they would see called by the block alone? Where sides are known by
 * units, not batches. */
static int count_seen(const Plan *plan, int n, double by) {
  static NoisyRun run;
  DflashTimesRule rule;
  DflashTimesWhole out;
  int seen = 0;
  dflash_times_rule_default(&rule);
  for (int i = 0; i < n; i++) {
    noise_draw(&plan->noise, 3, (uint64_t)i, plan->units, 32, i % PLANTED, by, &run);
    const DflashTimeUnits block = {run.a.block, run.b.block, plan->units, plan->units, plan->kind == PAIRS};
    const double own = rule.rate * DFLASH_TIMES_WHOLE_WEIGHT;
    seen +=
        dflash_times_whole(&rule, own, &block, NULL, 0, &out, NULL) == DFLASH_OK && out.verdict == DFLASH_TIME_SLOWER;
  }
  return seen;
}

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* Ten of a thousand may be called where five are expected: of fewer, four deviations above the mean. */
static int false_limit(int n) { return n == 1000 ? 10 : (int)(0.005 * n + 4 * sqrt(0.005 * n)); }

static int run_plan(const Plan *plan, int n) {
  static Counts alike, slower;
  const int planted = n < 100 ? n : n / 10 > 100 ? n / 10 : 100;
  const bool units = plan->kind == PAIRS || plan->kind == PROCESSES;
  count(plan, n, false, 1, &alike);
  count(plan, planted, true, 2, &slower);
  qsort(alike.visible, (size_t)n, sizeof *alike.visible, by_value);
  const double visible = alike.visible[n / 2];
  const int seen = units ? count_seen(plan, planted, visible) : planted;
  printf("| %s | %d %s | %d | %d | %d of %d | %.0f%% | %d | %d | %d of %d | %.1f%% | ", plan->noise.name, plan->units,
         kind_names[plan->kind], alike.any, alike.changed, alike.same, n, 100 * plan->slower, slower.changed,
         slower.placed, slower.in_group, planted, 100 * visible);
  printf(units ? "%d of %d |\n" : "|\n", seen, planted);
  const bool silent = alike.changed <= false_limit(n) && alike.any <= false_limit(n);
  return !silent || slower.changed < 0.95 * planted || slower.placed < 0.95 * planted || seen < 0.9 * planted;
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 1000;
  int missed = 0;
  if (n < 1 || n > 4096) {
    fprintf(stderr, "usage: compare_simulation [N], N from 1 to 4096\n");
    return 2;
  }
  printf(
      "| noise | a side | A/A of any size | A/A | same | planted | called | placed | its group | would see | seen |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) missed += run_plan(&plans[i], n);
  if (missed > 0) fprintf(stderr, "compare_simulation: %d lines miss their aim\n", missed);
  return missed > 0;
}
