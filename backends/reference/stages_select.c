/* The tokens: each row's best candidates by logit, then a walk that scores them after the token before. */
#include "reference.h"

#include <inttypes.h>
#include <math.h>

#include "base/error.h"

/* The `top` largest logits, largest first, equal ones by lower token id. */
static DflashStatus rank_row(const float *logits, int64_t width, int64_t top, int64_t row, int32_t *ids,
                             DflashError *error) {
  int64_t kept = 0;
  for (int64_t token = 0; token < width; token++) {
    if (isnan(logits[token]))
      return dflash_error_set(error, DFLASH_NONFINITE, "reference: select: logit %" PRId64 " of row %" PRId64 " is NaN",
                              token, row);
    if (kept == top && !(logits[token] > logits[ids[top - 1]])) continue;
    int64_t place = kept < top ? kept++ : top - 1;
    for (; place > 0 && logits[token] > logits[ids[place - 1]]; place--) ids[place] = ids[place - 1];
    ids[place] = (int32_t)token;
  }
  return DFLASH_OK;
}

static void codebook_row(const DflashModel *model, const DflashTensor *codebook, int64_t token, float *out) {
  reference_decode_row(codebook, token, out);
  reference_round_value(model, out, model->geometry.selector_rank);
}

/* score(c) = logit(c) + sum((P[previous] * hp) * C[c]) */
static DflashStatus score_row(DflashModel *model, const DflashStageCall *call, int64_t row, int64_t previous,
                              const int32_t *ids, float *scores, DflashError *error) {
  const int64_t rank = model->geometry.selector_rank;
  const float *logits = call->inputs[0] + row * call->head_width, *hidden = call->inputs[1] + row * rank;
  float *gate = model->gate, *successor = model->decoded;
  codebook_row(model, &model->weights.predecessor, previous, gate);
  for (int64_t i = 0; i < rank; i++) gate[i] *= hidden[i];
  for (int64_t c = 0; c < model->geometry.selector_top; c++) {
    codebook_row(model, &model->weights.successor, ids[c], successor);
    scores[c] = logits[ids[c]] + reference_dot(&model->options.sums, gate, successor, rank);
    if (isnan(scores[c]))
      return dflash_error_set(error, DFLASH_NONFINITE, "reference: select: score of token %d in row %" PRId64 " is NaN",
                              ids[c], row);
  }
  return DFLASH_OK;
}

/* The first of the best. */
static int64_t best_of(const float *scores, int64_t count) {
  int64_t best = 0;
  for (int64_t c = 1; c < count; c++)
    if (scores[c] > scores[best]) best = c;
  return best;
}

DflashStatus reference_stage_select(DflashModel *model, const DflashStageCall *call, DflashError *error) {
  const int64_t top = model->geometry.selector_top;
  const DflashTokens *tokens = call->tokens;
  int64_t previous = call->anchor_token;
  for (int64_t row = 0; row < call->n_draft; row++) {
    int32_t *ids = tokens->candidates != NULL ? tokens->candidates + row * top : model->candidates;
    float *scores = tokens->scores != NULL ? tokens->scores + row * top : model->scores;
    const float *logits = call->inputs[0] + row * call->head_width;
    DflashStatus status = rank_row(logits, call->head_width, top, row, ids, error);
    if (status == DFLASH_OK) status = score_row(model, call, row, previous, ids, scores, error);
    if (status != DFLASH_OK) return status;
    tokens->plain[row] = ids[0];
    tokens->chosen[row] = ids[best_of(scores, top)];
    previous = tokens->chosen[row];
  }
  return DFLASH_OK;
}
