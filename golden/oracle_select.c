/* The selector: candidates by logit, the walk from token to token. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage.h"
#include "oracle.h"
#include "oracle_half.h"
#include "oracle_scale.h"

typedef struct Candidate {
  float logit;
  int32_t token;
} Candidate;

/* Largest logit first, equal ones (+0 and -0 too) by lower token. */
static int before(const void *a, const void *b) {
  const Candidate *left = a, *right = b;
  if (left->logit != right->logit) return left->logit > right->logit ? -1 : 1;
  return left->token < right->token ? -1 : 1;
}

/* score = logit + sum (P[previous] * hp) * C[candidate]; the variances of its f32 arithmetic and of its inputs. */
typedef struct Score {
  double value, own, inherited;
  DflashHalfScore half;
} Score;

static double variance(const float *sigma, int64_t at) { return sigma ? (double)sigma[at] * sigma[at] : 0; }

static Score score_of(const DflashOracleSelect *call, int64_t row, int32_t previous, int32_t candidate) {
  int64_t rank = call->geometry->selector_rank, logit_at = row * call->sizes.head_width + candidate;
  DflashHalfScore half = dflash_half_score_open(call->profile);
  double logit = call->logits[logit_at], dot = 0, squares = 0, inherited = variance(call->logits_sigma, logit_at);
  for (int64_t i = 0; i < rank; i++) {
    double p = dflash_tensor_at(&call->weights->predecessor, previous, i);
    double c = dflash_tensor_at(&call->weights->successor, candidate, i);
    double term = p * call->hidden[row * rank + i] * c;
    dot += term;
    squares += term * term;
    dflash_half_score_add(&half, p, call->hidden[row * rank + i], c);
    inherited += (p * c) * (p * c) * variance(call->hidden_sigma, row * rank + i);
  }
  double value = logit + dot, n = (double)rank + 1;
  double roundings = dflash_partials(n, squares + logit * logit, value) + 2 * squares;
  double own = DFLASH_ROUNDING * roundings + (squares > 0 ? 2 * n * DFLASH_FLUSH : 0);
  own += dflash_half_score_close(&half, (float)logit, dot, squares);
  return (Score){value, own, inherited, half};
}

double dflash_oracle_score(const DflashOracleSelect *call, int64_t row, int32_t previous, int32_t candidate,
                           float *alone, float *chain) {
  Score score = score_of(call, row, previous, candidate);
  double logit = score.half.logit, hidden = score.half.hidden;
  if (alone) *alone = dflash_sigma(score.own + logit + hidden);
  double rounded = (call->logits_sigma ? 0 : logit) + (call->hidden_sigma ? 0 : hidden);
  if (chain) *chain = dflash_sigma(score.own + score.inherited + rounded);
  return score.value;
}

static DflashStatus refuse_nan(DflashError *error, const char *what, int64_t row, int64_t column) {
  return dflash_error_set(error, DFLASH_NONFINITE, "select: %s is NaN in row %" PRId64 ", column %" PRId64, what, row,
                          column);
}

static DflashStatus find_candidates(const DflashOracleSelect *call, int64_t row, Candidate *sorted,
                                    DflashError *error) {
  int64_t width = call->sizes.head_width, rank = call->geometry->selector_rank;
  for (int64_t i = 0; i < width; i++) {
    float logit = call->logits[row * width + i];
    if (isnan(logit)) return refuse_nan(error, "head.logits", row, i);
    sorted[i] = (Candidate){logit, (int32_t)i};
  }
  for (int64_t i = 0; i < rank; i++)
    if (isnan(call->hidden[row * rank + i])) return refuse_nan(error, "selector.hidden", row, i);
  qsort(sorted, (size_t)width, sizeof *sorted, before);
  return DFLASH_OK;
}

static DflashStatus walk_row(const DflashOracleSelect *call, int64_t row, const Candidate *sorted, int32_t previous,
                             DflashError *error) {
  int64_t top = call->geometry->selector_top;
  DflashTokensValue *out = call->out;
  int64_t best = 0;
  for (int64_t i = 0; i < top; i++) {
    int64_t at = row * top + i;
    float *alone = out->alone ? out->alone + at : NULL, *chain = out->chain ? out->chain + at : NULL;
    out->candidates[at] = sorted[i].token;
    out->scores[at] = dflash_oracle_score(call, row, previous, sorted[i].token, alone, chain);
    if (isnan(out->scores[at])) return refuse_nan(error, "the score", row, i);
    if (out->scores[at] > out->scores[row * top + best]) best = i;
  }
  out->plain[row] = sorted[0].token;
  out->chosen[row] = sorted[best].token;
  return DFLASH_OK;
}

static DflashStatus walk(const DflashOracleSelect *call, Candidate *sorted, DflashError *error) {
  int64_t previous = call->anchor_token;
  for (int64_t row = 0; row < call->sizes.n_draft; row++) {
    if (call->forced_previous && call->forced_previous[row] >= 0) previous = call->forced_previous[row];
    if (previous < 0 || previous >= call->geometry->vocab)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                              "select: token %" PRId64 " before row %" PRId64 ", valid: 0 .. %" PRId64, previous, row,
                              call->geometry->vocab - 1);
    DflashStatus status = find_candidates(call, row, sorted, error);
    if (status == DFLASH_OK) status = walk_row(call, row, sorted, (int32_t)previous, error);
    if (status != DFLASH_OK) return status;
    previous = call->out->chosen[row];
  }
  return DFLASH_OK;
}

DflashStatus dflash_oracle_select(const DflashOracleSelect *call, DflashError *error) {
  const DflashGeometry *g = call->geometry;
  int64_t width = call->sizes.head_width;
  if (width < g->selector_top || width > g->vocab || width > INT32_MAX)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "select: head_width is %" PRId64 ", valid: %" PRId64 " .. %" PRId64, width, g->selector_top,
                            g->vocab);
  Candidate *sorted = dflash_alloc((size_t)width, sizeof *sorted);
  if (!sorted) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "select: no memory for candidates");
  DflashStatus status = walk(call, sorted, error);
  free(sorted);
  return status;
}
