/* The tokens: candidates by logit, then the walk over the rows that scores them after the token before. */
#include <inttypes.h>
#include <math.h>

#include "backends/faulty/kernels.h"
#include "base/error.h"

/* Slots of the scratch that the kernel takes; the others are the fault's. */
enum { SLOT_GATE = 4, SLOT_SUCCESSOR, SLOT_CANDIDATES, SLOT_SCORES };

typedef struct Select {
  FaultCall *call;
  const FaultSelect *knobs;
  int64_t width, top, rank;
  float *gate, *successor;              /* [rank of the codebooks] */
  int32_t *chosen, *plain, *candidates; /* candidates [n_draft, top] */
  float *scores;                        /* [n_draft, top] */
} Select;

static float logit_at(const Select *s, int64_t row, int32_t id) {
  const float logit = s->call->call.inputs[0][row * s->call->call.head_width + id];
  return s->knobs->logit != NULL ? s->knobs->logit(s->call, row, id, logit) : logit;
}

/* Largest first, equal ones by lower id. */
static bool stands_before(const Select *s, int64_t row, int32_t a, int32_t b) {
  const float x = logit_at(s, row, a), y = logit_at(s, row, b);
  if (s->knobs->before != NULL) return s->knobs->before(s->call, x, a, y, b);
  return x > y || (x == y && a < b);
}

static DflashStatus rank_row(const Select *s, int64_t row) {
  int32_t *ids = s->candidates + row * s->top;
  int64_t kept = 0;
  for (int32_t id = 0; id < s->width; id++) {
    if (isnan(logit_at(s, row, id)))
      return dflash_error_set(s->call->error, DFLASH_NONFINITE, "faulty: select: logit %d of row %" PRId64 " is NaN",
                              id, row);
    if (kept == s->top && !stands_before(s, row, id, ids[kept - 1])) continue;
    int64_t place = kept < s->top ? kept++ : kept - 1;
    for (; place > 0 && stands_before(s, row, id, ids[place - 1]); place--) ids[place] = ids[place - 1];
    ids[place] = id;
  }
  if (s->knobs->listed != NULL) s->knobs->listed(s->call, row, s->candidates);
  return DFLASH_OK;
}

static int32_t previous_of(const Select *s, int64_t row) {
  if (s->knobs->previous != NULL) return s->knobs->previous(s->call, row, s->chosen, s->candidates);
  return row > 0 ? s->chosen[row - 1] : (int32_t)s->call->call.anchor_token;
}

/* sum((P[previous] * hp) * C[candidate]) */
static float term_of(const Select *s, int64_t row, int32_t previous, int32_t candidate) {
  const DflashWeights *kept = &s->call->model->kept;
  const int64_t rank = s->call->model->geometry.selector_rank;
  const float *hidden = s->call->call.inputs[1] + row * rank;
  if (s->knobs->term != NULL) return s->knobs->term(s->call, row, previous, candidate, hidden);
  fault_decode_row(&kept->predecessor, previous, s->gate);
  fault_decode_row(&kept->successor, candidate, s->successor);
  for (int64_t i = 0; i < s->rank; i++) s->gate[i] *= hidden[i];
  return fault_sum(s->gate, s->successor, s->rank, s->knobs->order, s->knobs->fused);
}

static DflashStatus score_row(const Select *s, int64_t row) {
  const int32_t previous = previous_of(s, row), *ids = s->candidates + row * s->top;
  float *scores = s->scores + row * s->top;
  for (int64_t c = 0; c < s->top; c++) {
    scores[c] = term_of(s, row, previous, ids[c]);
    if (!s->knobs->no_logit) scores[c] += logit_at(s, row, ids[c]);
    if (isnan(scores[c]))
      return dflash_error_set(s->call->error, DFLASH_NONFINITE,
                              "faulty: select: score of token %d in row %" PRId64 " is NaN", ids[c], row);
  }
  return DFLASH_OK;
}

static int64_t best_of(const Select *s, int64_t row) {
  const float *scores = s->scores + row * s->top;
  const int64_t count = s->knobs->top != 0 && s->knobs->top < s->top ? s->knobs->top : s->top;
  if (s->knobs->best != NULL) return s->knobs->best(s->call, row, scores, count);
  int64_t best = 0;
  for (int64_t c = 1; c < count; c++)
    if (scores[c] > scores[best] || (s->knobs->last_best && scores[c] == scores[best])) best = c;
  return best;
}

static DflashStatus select_row(const Select *s, int64_t row) {
  DflashStatus status = rank_row(s, row);
  if (status == DFLASH_OK) status = score_row(s, row);
  if (status != DFLASH_OK) return status;
  s->plain[row] = s->candidates[row * s->top];
  s->chosen[row] = s->candidates[row * s->top + best_of(s, row)];
  return DFLASH_OK;
}

DflashStatus fault_kernel_select(FaultCall *call, const FaultSelect *knobs) {
  const DflashGeometry *g = &call->model->geometry;
  const DflashTokens *tokens = call->call.tokens;
  const int64_t lists = call->call.n_draft * g->selector_top, width = call->call.head_width;
  Select s = {.call = call,
              .knobs = knobs,
              .width = knobs->width != 0 && knobs->width < width ? knobs->width : width,
              .top = g->selector_top,
              .rank = knobs->rank != 0 && knobs->rank < g->selector_rank ? knobs->rank : g->selector_rank,
              .gate = fault_scratch(call, SLOT_GATE, g->selector_rank),
              .successor = fault_scratch(call, SLOT_SUCCESSOR, g->selector_rank),
              .chosen = tokens->chosen,
              .plain = tokens->plain,
              .candidates = tokens->candidates,
              .scores = tokens->scores};
  if (s.candidates == NULL) s.candidates = (int32_t *)fault_scratch(call, SLOT_CANDIDATES, lists);
  if (s.scores == NULL) s.scores = fault_scratch(call, SLOT_SCORES, lists);
  if (s.gate == NULL || s.successor == NULL || s.candidates == NULL || s.scores == NULL) return DFLASH_OUT_OF_MEMORY;
  if (s.width < s.top) s.width = s.top;
  for (int64_t row = 0; row < call->call.n_draft; row++) {
    const DflashStatus status = select_row(&s, row);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}
