#include "run/runs_compare.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/runs_match.h"
#include "store/fields.h"

void dflash_runs_rule_default(DflashRunsRule *rule) {
  *rule = (DflashRunsRule){.apart = 0.05, .between = 0.01, .load = 1.5};
  dflash_times_rule_default(&rule->compare);
}

static double block_ns(const cJSON *bench) {
  return dflash_field_number(dflash_field(dflash_field(bench, "block"), "device"), "median");
}

/* The time of a group or stage in one result; NaN when it has none. */
static double part_ns(const cJSON *bench, const char *list, const char *name) {
  char label[128];
  const cJSON *item;
  cJSON_ArrayForEach(item, dflash_field(bench, list)) {
    if (strcmp(list, "groups") == 0 && strcmp(dflash_field_text(item, "group"), name) == 0)
      return dflash_field_number(item, "ns");
    if (strcmp(list, "stages") == 0 && strcmp(dflash_record_label(item, label, sizeof label), name) == 0)
      return dflash_field_number(dflash_field(item, "time"), "median");
  }
  return NAN;
}

static bool all_positive(const double *values, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!isfinite(values[i]) || values[i] <= 0) return false;
  return true;
}

/* One part's times of all results; false when one of them has none. */
static bool fill_part(const DflashCaseComparison *one, const char *list, const char *name, double *values) {
  for (int64_t i = 0; i < one->a_count; i++) values[i] = part_ns(one->a[i]->bench, list, name);
  for (int64_t i = 0; i < one->b_count; i++) values[one->a_count + i] = part_ns(one->b[i]->bench, list, name);
  return all_positive(values, one->a_count + one->b_count);
}

static void name_part(const char *list, const cJSON *item, DflashNamedPart *named) {
  char label[128];
  const char *name =
      strcmp(list, "groups") == 0 ? dflash_field_text(item, "group") : dflash_record_label(item, label, sizeof label);
  snprintf(named->name, sizeof named->name, "%s", name);
}

/* Parts of a list that all results have, with their times at *values, which moves on. One process a side has one time
 * of each, which locates. */
static int64_t fill_parts(const DflashCaseComparison *one, const char *list, double **values, DflashNamedPart *parts) {
  const int64_t each = one->a_count + one->b_count;
  const cJSON *item;
  int64_t count = 0;
  cJSON_ArrayForEach(item, dflash_field(one->a[0]->bench, list)) {
    DflashNamedPart *named = &parts[count];
    *named = (DflashNamedPart){0};
    name_part(list, item, named);
    if (!fill_part(one, list, named->name, *values)) continue;
    if (one->units == DFLASH_UNITS_ONE_EACH)
      named->part.item.shift = (DflashTimeShift){.a = (*values)[0], .b = (*values)[1]};
    else
      named->part.units = (DflashTimeUnits){*values, *values + one->a_count, one->a_count, one->b_count,
                                            one->units == DFLASH_UNITS_PAIRS};
    *values += each;
    count++;
  }
  return count;
}

/* The block's times: of processes, or batches of the samples of one process a side. */
static bool fill_block(const DflashCaseComparison *one, double **values, DflashTimeUnits *units) {
  double *at = *values;
  if (one->units == DFLASH_UNITS_ONE_EACH) {
    int64_t counts[2];
    for (int side = 0; side < 2; side++) {
      const cJSON *samples = dflash_field((side == 0 ? one->a : one->b)[0]->bench, "samples"), *sample;
      int64_t n = 0;
      cJSON_ArrayForEach(sample, samples) at[32 + n++] = cJSON_GetNumberValue(sample);
      if (!all_positive(at + 32, n)) return false;
      counts[side] = dflash_times_batches(at + 32, n, at + (size_t)side * 16);
    }
    *units = (DflashTimeUnits){at, at + 16, counts[0], counts[1], 0};
    *values += 32;
    return counts[0] > 0 && counts[1] > 0;
  }
  for (int64_t i = 0; i < one->a_count; i++) at[i] = block_ns(one->a[i]->bench);
  for (int64_t i = 0; i < one->b_count; i++) at[one->a_count + i] = block_ns(one->b[i]->bench);
  *units = (DflashTimeUnits){at, at + one->a_count, one->a_count, one->b_count, one->units == DFLASH_UNITS_PAIRS};
  *values += one->a_count + one->b_count;
  return all_positive(at, one->a_count + one->b_count);
}

static size_t samples_of(const DflashResult *result) {
  return (size_t)cJSON_GetArraySize(dflash_field(result->bench, "samples"));
}

/* Room for everything: the block's batches or units, then each part's. */
static bool reserve(DflashCaseComparison *one) {
  const size_t each = (size_t)(one->a_count + one->b_count), most = samples_of(one->a[0]) + samples_of(one->b[0]);
  const size_t groups = (size_t)cJSON_GetArraySize(dflash_field(one->a[0]->bench, "groups"));
  const size_t stages = (size_t)cJSON_GetArraySize(dflash_field(one->a[0]->bench, "stages"));
  one->values = calloc((groups + stages + 2) * each + 64 + most, sizeof *one->values);
  one->groups = calloc(groups + 1, sizeof *one->groups);
  one->stages = calloc(stages + 1, sizeof *one->stages);
  return one->values != NULL && one->groups != NULL && one->stages != NULL;
}

/* Stages are measured one by one and judged by nobody. */
static void measure_stages(const DflashTimesRule *rule, DflashCaseComparison *one) {
  int64_t kept = 0;
  for (int64_t i = 0; i < one->stage_count; i++) {
    DflashNamedPart *stage = &one->stages[i];
    DflashTimeShift *s = &stage->part.item.shift;
    if (stage->part.units.a_count == 0)
      s->shift = s->b / s->a - 1;
    else if (dflash_times_shift(&stage->part.units, rule, rule->rate, s, NULL) != DFLASH_OK || !(s->p < 0.05))
      continue;
    stage->part.moved = s->shift * s->a / one->whole.whole.a;
    one->stages[kept++] = *stage;
  }
  one->stage_count = kept;
}

static int by_moved(const void *left, const void *right) {
  const DflashNamedPart *a = left, *b = right;
  const double x = fabs(a->part.moved), y = fabs(b->part.moved);
  return (x < y) - (x > y);
}

static DflashStatus judge_parts(const DflashTimesRule *rule, const DflashTimeUnits *block, DflashCaseComparison *one,
                                DflashError *error) {
  DflashTimesPart *parts = calloc((size_t)one->group_count + 1, sizeof *parts);
  if (parts == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to compare groups");
  for (int64_t i = 0; i < one->group_count; i++) parts[i] = one->groups[i].part;
  DflashStatus status = dflash_times_whole(rule, one->rate, block, parts, one->group_count, &one->whole, error);
  for (int64_t i = 0; i < one->group_count; i++) one->groups[i].part = parts[i];
  free(parts);
  return status;
}

static DflashStatus compare_case(const DflashRunsRule *rule, DflashCaseComparison *one, DflashError *error) {
  if (one->a_count == 0 || one->b_count == 0) return DFLASH_OK;
  if (one->a_count > DFLASH_TIMES_UNITS || one->b_count > DFLASH_TIMES_UNITS)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "more than %d processes a side are not compared",
                            DFLASH_TIMES_UNITS);
  if (!reserve(one)) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory to compare times");
  const bool apart = one->units == DFLASH_UNITS_APART || one->units == DFLASH_UNITS_ONE_EACH;
  DflashTimesRule own = rule->compare;
  own.between = one->between = apart ? rule->between : 0;
  own.share = one->share = apart ? rule->apart : own.share;
  double *values = one->values;
  DflashTimeUnits block;
  if (!fill_block(one, &values, &block)) {
    snprintf(one->why, sizeof one->why, "%s",
             one->units == DFLASH_UNITS_ONE_EACH ? "fewer than 16 samples in one process a side"
                                                 : "a process has no time of the block");
    return DFLASH_OK;
  }
  one->group_count = fill_parts(one, "groups", &values, one->groups);
  one->stage_count = fill_parts(one, "stages", &values, one->stages);
  DflashStatus status = judge_parts(&own, &block, one, error);
  if (status != DFLASH_OK) return status;
  measure_stages(&own, one);
  qsort(one->stages, (size_t)one->stage_count, sizeof *one->stages, by_moved);
  return DFLASH_OK;
}

static int64_t count_matched(const DflashRunsComparison *out) {
  int64_t count = 0;
  for (int64_t i = 0; i < out->count; i++) count += out->cases[i].a_count > 0 && out->cases[i].b_count > 0;
  return count > 0 ? count : 1;
}

DflashStatus dflash_runs_compare(const DflashResult *const *a, int64_t a_count, const DflashResult *const *b,
                                 int64_t b_count, const DflashRunsRule *rule, DflashRunsComparison *out,
                                 DflashError *error) {
  *out = (DflashRunsComparison){.rule = *rule};
  DflashStatus status = dflash_runs_match(a, a_count, b, b_count, out, error);
  const double rate = rule->compare.rate / (double)count_matched(out);
  for (int64_t i = 0; i < out->count && status == DFLASH_OK; i++) {
    out->cases[i].rate = rate;
    status = compare_case(rule, &out->cases[i], error);
  }
  return status;
}

void dflash_runs_comparison_close(DflashRunsComparison *comparison) {
  for (int64_t i = 0; i < comparison->count; i++) {
    DflashCaseComparison *one = &comparison->cases[i];
    free(one->a);
    free(one->b);
    free(one->groups);
    free(one->stages);
    free(one->values);
  }
  free(comparison->cases);
  *comparison = (DflashRunsComparison){0};
}

int dflash_case_comparison_verdict(const DflashCaseComparison *one) {
  return one->why[0] != '\0' ? DFLASH_TIME_CANNOT_TELL : one->whole.verdict;
}

int dflash_runs_comparison_exit(const DflashRunsComparison *comparison) {
  bool unknown = false;
  for (int64_t i = 0; i < comparison->count; i++) {
    const int verdict = dflash_case_comparison_verdict(&comparison->cases[i]);
    if (verdict == DFLASH_TIME_SLOWER) return DFLASH_EXIT_WRONG;
    unknown = unknown || verdict == DFLASH_TIME_CANNOT_TELL;
  }
  if (comparison->count == 0) return DFLASH_EXIT_NOTHING;
  return unknown ? DFLASH_EXIT_CANNOT_TELL : DFLASH_EXIT_OK;
}
