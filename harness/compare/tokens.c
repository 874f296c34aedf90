#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compare/compare.h"
#include "compare/score.h"

typedef struct Judge {
  const DflashTokenCall *call;
  DflashTokenVerdict *out;
  int64_t row, top;
  int32_t previous;   /* the backend's token of the row before, or the anchor */
  const int32_t *set; /* the candidates that the row is judged over */
  const float *logits, *sigma;
} Judge;

static double logit_sigma(const Judge *j, int32_t token) { return j->sigma != NULL ? (double)j->sigma[token] : 0; }

/* How far a pair's difference may lie from the golden's for a correct run. */
static double allowance(double sigma_a, double sigma_b) { return DFLASH_LAMBDA * hypot(sigma_a, sigma_b); }

/* Was `other` close enough to `winner` by the golden's logits? Equal ones with no error go to the lower id. */
static bool logits_tie(const Judge *j, int32_t winner, int32_t other) {
  double gap = (double)j->logits[winner] - (double)j->logits[other];
  double allowed = allowance(logit_sigma(j, winner), logit_sigma(j, other));
  return allowed > 0 && gap <= allowed;
}

/* `first` stands before `second` in a list ordered by logit, lower id first among equals. */
static bool ordered(const Judge *j, int32_t first, int32_t second) {
  float a = j->logits[first], b = j->logits[second];
  return a > b || (a == b && first < second) || logits_tie(j, second, first);
}

/* The score of a decision that lies `gap` on the wrong side of the golden's: in units of what is allowed. */
static double decided(double gap, double allowed) { return allowed > 0 ? gap / allowed : INFINITY; }

static double logits_score(const Judge *j, int32_t winner, int32_t other) {
  return decided((double)j->logits[winner] - (double)j->logits[other],
                 allowance(logit_sigma(j, winner), logit_sigma(j, other)));
}

static bool contains(const int32_t *set, int64_t count, int32_t token) {
  for (int64_t i = 0; i < count; i++)
    if (set[i] == token) return true;
  return false;
}

/* score: of a failure. */
__attribute__((format(printf, 4, 5))) static void wrong(Judge *j, int outcome, double score, const char *format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (dflash_outcome_is_failure(j->out->outcome)) return; /* the first wrong row is named */
  if (outcome == DFLASH_OUTCOME_NEAR_TIE) {
    j->out->near_ties++;
    if (j->out->outcome == DFLASH_OUTCOME_NEAR_TIE) return;
  }
  j->out->outcome = outcome;
  j->out->row = j->row;
  if (dflash_outcome_is_failure(outcome)) j->out->score = score;
  snprintf(j->out->message, sizeof j->out->message, "draft row %lld: %s", (long long)j->row, text);
}

static bool id_in_range(Judge *j, const char *what, int32_t token) {
  if (token >= 0 && token < j->call->sizes.head_width) return true;
  wrong(j, DFLASH_OUTCOME_UNWRITTEN, INFINITY, "%s %d is no token below %lld", what, token,
        (long long)j->call->sizes.head_width);
  return false;
}

static void judge_plain(Judge *j) {
  int32_t golden = j->call->golden->plain[j->row], own = j->call->plain[j->row];
  if (!id_in_range(j, "plain token", own) || own == golden) return;
  double gap = (double)j->logits[golden] - (double)j->logits[own];
  if (logits_tie(j, golden, own))
    wrong(j, DFLASH_OUTCOME_NEAR_TIE, 0, "plain token %d for %d, whose logit leads by %.3g", own, golden, gap);
  else
    wrong(j, DFLASH_OUTCOME_MISMATCH, logits_score(j, golden, own),
          "plain token %d, golden %d leads by %.6g, the error is %.3g", own, golden, gap,
          allowance(logit_sigma(j, golden), logit_sigma(j, own)) / DFLASH_LAMBDA);
}

/* A candidate that the golden lacks must be near the golden's cut. */
static bool judge_candidate(Judge *j, const int32_t *own, int64_t i) {
  const int32_t *golden = j->call->golden->candidates + j->row * j->top;
  int32_t token = own[i], cut = golden[j->top - 1];
  if (!id_in_range(j, "candidate", token)) return false;
  if (contains(own, i, token)) {
    wrong(j, DFLASH_OUTCOME_MISMATCH, INFINITY, "candidate %d stands twice", token);
    return false;
  }
  if (!contains(golden, j->top, token)) {
    if (!logits_tie(j, cut, token)) {
      wrong(j, DFLASH_OUTCOME_MISMATCH, logits_score(j, cut, token), "candidate %d is none of the %lld largest logits",
            token, (long long)j->top);
      return false;
    }
    wrong(j, DFLASH_OUTCOME_NEAR_TIE, 0, "candidate %d in place of one within the error of its logit", token);
  }
  if (i > 0 && !ordered(j, own[i - 1], token)) {
    wrong(j, DFLASH_OUTCOME_MISMATCH, logits_score(j, token, own[i - 1]),
          "candidate %d stands after %d, whose logit is smaller", token, own[i - 1]);
    return false;
  }
  return true;
}

/* Whatever stands in its place must be near a golden candidate that is not there. */
static bool judge_lost(Judge *j, const int32_t *own) {
  const int32_t *golden = j->call->golden->candidates + j->row * j->top;
  for (int64_t g = 0; g < j->top; g++) {
    if (contains(own, j->top, golden[g])) continue;
    for (int64_t i = 0; i < j->top; i++) {
      if (ordered(j, own[i], golden[g])) continue;
      wrong(j, DFLASH_OUTCOME_MISMATCH, logits_score(j, golden[g], own[i]),
            "candidate %d is missing, and %d is there, whose logit is smaller", golden[g], own[i]);
      return false;
    }
  }
  return true;
}

/* The set that the walk is judged over: the backend's where it gave a lawful one, else the golden's. */
static bool judge_candidates(Judge *j) {
  const int32_t *golden = j->call->golden->candidates + j->row * j->top;
  j->set = golden;
  if (j->call->candidates == NULL) return true;
  const int32_t *own = j->call->candidates + j->row * j->top;
  for (int64_t i = 0; i < j->top; i++)
    if (!judge_candidate(j, own, i)) return false;
  if (!judge_lost(j, own)) return false;
  j->set = own;
  return true;
}

static double candidate_score(const Judge *j, int32_t candidate, double *sigma) {
  return j->call->score(j->call->score_context, j->row, j->previous, candidate, sigma);
}

static int32_t best_candidate(const Judge *j, double *score, double *sigma) {
  int32_t best = -1;
  for (int64_t i = 0; i < j->top; i++) {
    double s, value = candidate_score(j, j->set[i], &s);
    if (best >= 0 && !(value > *score)) continue;
    best = j->set[i];
    *score = value;
    *sigma = s;
  }
  return best;
}

/* Tokens outside the golden's set that are near one of its candidates, which any of them may displace. */
static int64_t rivals(const Judge *j, int32_t candidate) {
  int32_t cut = j->call->golden->candidates[(j->row + 1) * j->top - 1];
  int64_t count = 0;
  for (int32_t t = 0; t < (int32_t)j->call->sizes.head_width; t++) {
    bool outside = j->logits[t] < j->logits[cut] || (j->logits[t] == j->logits[cut] && t > cut);
    count += outside && logits_tie(j, candidate, t);
  }
  return count;
}

/* Where the backend's set is not known: the candidates that lead `own` by more than the error may all lie beyond its
 * cut, when enough others may stand in their places. */
static bool leaders_lost(const Judge *j, int32_t own) {
  double own_sigma, own_score = candidate_score(j, own, &own_sigma);
  int64_t lost = 0, room = j->call->sizes.head_width;
  if (j->call->candidates != NULL) return false;
  for (int64_t i = 0; i < j->top; i++) {
    double sigma, gap = candidate_score(j, j->set[i], &sigma) - own_score;
    if (gap <= allowance(sigma, own_sigma)) continue;
    int64_t others = rivals(j, j->set[i]);
    if (others < room) room = others;
    if (++lost > room) return false;
  }
  return lost > 0;
}

static void judge_chosen(Judge *j) {
  int32_t own = j->call->chosen[j->row];
  double best_score = 0, best_sigma = 0, own_sigma;
  if (!id_in_range(j, "chosen token", own)) return;
  int32_t best = best_candidate(j, &best_score, &best_sigma);
  if (own == best) return;
  double gap = best_score - candidate_score(j, own, &own_sigma), allowed = allowance(best_sigma, own_sigma);
  bool known = contains(j->set, j->top, own);
  /* equal logits, given exactly, and equal scores: any arithmetic ties, and the first candidate wins */
  if (gap == 0 && j->sigma == NULL && j->logits[own] == j->logits[best]) {
    wrong(j, DFLASH_OUTCOME_MISMATCH, INFINITY, "chosen %d ties with %d, which stands first", own, best);
    return;
  }
  if (!known && !logits_tie(j, j->set[j->top - 1], own))
    wrong(j, DFLASH_OUTCOME_MISMATCH, logits_score(j, j->set[j->top - 1], own), "chosen %d is no candidate (golden %d)",
          own, best);
  else if (allowed > 0 && gap <= allowed)
    wrong(j, DFLASH_OUTCOME_NEAR_TIE, 0, "chosen %d for %d, whose score leads by %.3g, within the error", own, best,
          gap);
  else if (leaders_lost(j, own))
    wrong(j, DFLASH_OUTCOME_NEAR_TIE, 0, "chosen %d for %d, which may be no candidate, within the error of its logit",
          own, best);
  else
    wrong(j, DFLASH_OUTCOME_MISMATCH, decided(gap, allowed), "chosen %d, golden %d leads by %.6g, the error is %.3g",
          own, best, gap, allowed / DFLASH_LAMBDA);
}

static void judge_scores(Judge *j) {
  if (j->call->scores == NULL || j->call->candidates == NULL) return;
  for (int64_t i = 0; i < j->top; i++) {
    double sigma, golden = candidate_score(j, j->set[i], &sigma);
    float own = j->call->scores[j->row * j->top + i];
    double score = isfinite(own) ? dflash_score((double)own, golden, sigma) : INFINITY;
    if (score > j->out->score && !dflash_outcome_is_failure(j->out->outcome)) j->out->score = score;
    if (!isfinite(own))
      wrong(j, DFLASH_OUTCOME_NONFINITE, INFINITY, "score of candidate %lld is not finite", (long long)i);
    else if (score > 1)
      wrong(j, DFLASH_OUTCOME_MISMATCH, score, "score of candidate %d is %.9g, expected %.9g (score %.3g)", j->set[i],
            (double)own, golden, score);
  }
}

void dflash_compare_tokens(const DflashTokenCall *call, DflashTokenVerdict *out) {
  *out = (DflashTokenVerdict){.outcome = DFLASH_OUTCOME_PASS, .row = -1};
  Judge j = {.call = call, .out = out, .top = call->geometry->selector_top, .previous = (int32_t)call->anchor_token};
  for (j.row = 0; j.row < call->sizes.n_draft; j.row++) {
    j.logits = call->golden_logits + j.row * call->sizes.head_width;
    j.sigma = call->logits_sigma != NULL ? call->logits_sigma + j.row * call->sizes.head_width : NULL;
    judge_plain(&j);
    if (judge_candidates(&j)) {
      judge_chosen(&j);
      judge_scores(&j);
    }
    if (dflash_outcome_is_failure(out->outcome)) return;
    j.previous = call->chosen[j.row];
  }
}
