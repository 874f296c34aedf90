#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "compare/compare.h"
#include "compare/pattern.h"
#include "compare/score.h"

/* Sums over finite pairs. */
typedef struct Sums {
  double difference2, golden2, got2, product;
} Sums;

static bool is_poison(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits == DFLASH_POISON_BITS;
}

static void add_metrics(DflashMetrics *m, Sums *sums, double got, double golden) {
  double difference = fabs(got - golden);
  sums->difference2 += difference * difference;
  sums->golden2 += golden * golden;
  sums->got2 += got * got;
  sums->product += got * golden;
  if (difference > m->max_abs) m->max_abs = difference;
  if (golden != 0 && difference / fabs(golden) > m->max_rel) m->max_rel = difference / fabs(golden);
  double ulps = difference / dflash_spacing((float)golden);
  if (ulps > m->max_ulp) m->max_ulp = ulps;
}

/* Class before distance: poison, then NaN and infinity, then the score. */
static int classify(const DflashCompareCall *call, int64_t i, double *score) {
  float got = call->got[i], golden = call->golden[i];
  *score = INFINITY;
  if (is_poison(got)) return DFLASH_OUTCOME_UNWRITTEN;
  if (!isfinite(got) || !isfinite(golden)) return DFLASH_OUTCOME_NONFINITE;
  *score =
      dflash_score_stored((double)got, (double)golden, call->sigma != NULL ? (double)call->sigma[i] : 0, call->storage);
  return *score > 1 ? DFLASH_OUTCOME_MISMATCH : DFLASH_OUTCOME_PASS;
}

/* The worst class seen: a failed class stands above a mismatch. */
static int worse(int a, int b) {
  static const int rank[DFLASH_OUTCOME_COUNT] = {
      [DFLASH_OUTCOME_MISMATCH] = 1, [DFLASH_OUTCOME_UNWRITTEN] = 2, [DFLASH_OUTCOME_NONFINITE] = 3};
  return rank[b] > rank[a] ? b : a;
}

/* A row of the call as a row of the value. */
static int64_t row_id(const DflashCompareCall *call, int64_t row) {
  return call->row_ids != NULL ? call->row_ids[row] : row;
}

static void note_bad(const DflashCompareCall *call, DflashComparison *out, DflashBadMap *map, int64_t row,
                     int64_t col) {
  if (out->bad++ == 0) {
    out->first_row = row_id(call, row);
    out->first_col = col;
  }
  map->by_row[row_id(call, row)]++;
  map->by_col[col]++;
}

/* What lambda would have to be for this element alone. */
static void note_lambda(const DflashCompareCall *call, DflashComparison *out, int64_t i) {
  double sigma = call->sigma != NULL ? (double)call->sigma[i] : 0;
  if (sigma == 0 || call->storage != DFLASH_STORED_F32) return;
  double lambda = dflash_score_lambda((double)call->got[i], (double)call->golden[i], sigma);
  out->scaled++;
  if (lambda > out->lambda) out->lambda = lambda;
}

static void visit(const DflashCompareCall *call, DflashComparison *out, DflashBadMap *map, Sums *sums, int64_t row,
                  int64_t col) {
  int64_t i = row * call->width + col;
  double score;
  int class = classify(call, i, &score);
  if (class == DFLASH_OUTCOME_PASS || class == DFLASH_OUTCOME_MISMATCH) {
    add_metrics(&out->metrics, sums, (double)call->got[i], (double)call->golden[i]);
    note_lambda(call, out, i);
  }
  if (class != DFLASH_OUTCOME_PASS) note_bad(call, out, map, row, col);
  if (out->worst_row < 0 || score > out->score || worse(out->outcome, class) != out->outcome) {
    out->score = score;
    out->worst_row = row;
    out->worst_col = col;
  }
  out->outcome = worse(out->outcome, class);
}

static void finish(const DflashCompareCall *call, DflashComparison *out, DflashBadMap *map, const Sums *sums) {
  out->metrics.nmse = sums->golden2 > 0 ? sums->difference2 / sums->golden2 : sums->difference2 > 0 ? INFINITY : 0;
  double norm = sqrt(sums->golden2) * sqrt(sums->got2);
  out->metrics.cosine = norm > 0 ? sums->product / norm : sums->golden2 == sums->got2 ? 1 : 0;
  if (out->worst_row < 0) return;
  int64_t i = out->worst_row * call->width + out->worst_col;
  out->got = call->got[i];
  out->expected = call->golden[i];
  out->sigma = call->sigma != NULL ? (double)call->sigma[i] : 0;
  out->worst_row = row_id(call, out->worst_row);
  dflash_place_name(call->geometry, call->stage, out->worst_row, out->worst_col, out->place, sizeof out->place);
  map->total = out->bad;
  map->position = call->position;
  map->elements = out->elements;
  if (out->bad > 0) dflash_pattern_find(call, map, out);
}

void dflash_compare_values(const DflashCompareCall *call, DflashComparison *out) {
  *out = (DflashComparison){.outcome = DFLASH_OUTCOME_PASS,
                            .elements = call->rows * call->width,
                            .worst_row = -1,
                            .worst_col = -1,
                            .first_row = -1,
                            .first_col = -1};
  DflashBadMap map;
  Sums sums = {0};
  if (!dflash_bad_map_open(&map, call->row_ids != NULL ? call->row_count : call->rows, call->width)) {
    out->outcome = DFLASH_OUTCOME_ERROR;
    snprintf(out->pattern, sizeof out->pattern, "no memory to compare");
    return;
  }
  for (int64_t row = 0; row < call->rows; row++)
    for (int64_t col = 0; col < call->width; col++) visit(call, out, &map, &sums, row, col);
  finish(call, out, &map, &sums);
  dflash_bad_map_close(&map);
}

int dflash_value_trusted(const float *values, int64_t count, const char **why) {
  int64_t zeros = 0, same = 0, largest = 0;
  float top = 0;
  for (int64_t i = 0; i < count; i++) {
    float magnitude = fabsf(values[i]);
    zeros += values[i] == 0;
    same += values[i] == values[0];
    largest = magnitude > top ? 1 : largest + (magnitude == top);
    top = magnitude > top ? magnitude : top;
  }
  *why = NULL;
  if (count < 2) return 1;
  if (10 * zeros > 3 * count) *why = "more than 30% of its elements are zero";
  if (*why == NULL && same == count) *why = "all its elements are equal";
  if (*why == NULL && 10 * largest > 3 * count) *why = "more than 30% of its elements share the largest magnitude";
  return *why == NULL;
}
