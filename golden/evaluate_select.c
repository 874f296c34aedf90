#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "evaluate_internal.h"

static void free_tokens(DflashTokensValue *tokens) {
  free(tokens->chosen);
  free(tokens->plain);
  free(tokens->candidates);
  free(tokens->scores);
  free(tokens->alone);
  free(tokens->chain);
  *tokens = (DflashTokensValue){0};
}

static bool open_tokens(const DflashEvaluation *e, DflashTokensValue *fresh) {
  size_t rows = (size_t)e->c->sizes.n_draft, top = (size_t)e->options->geometry->selector_top;
  fresh->chosen = dflash_alloc(rows, sizeof(int32_t));
  fresh->plain = dflash_alloc(rows, sizeof(int32_t));
  fresh->candidates = dflash_alloc(rows, top * sizeof(int32_t));
  fresh->scores = dflash_alloc(rows, top * sizeof(double));
  if (e->options->scales_alone) fresh->alone = dflash_alloc(rows, top * sizeof(float));
  if (e->options->scales_chain) fresh->chain = dflash_alloc(rows, top * sizeof(float));
  return fresh->chosen && fresh->plain && fresh->candidates && fresh->scores &&
         (!e->options->scales_alone || fresh->alone) && (!e->options->scales_chain || fresh->chain);
}

#define ADOPT(member)                 \
  do {                                \
    if (!stored->member) {            \
      stored->member = fresh->member; \
      fresh->member = NULL;           \
    }                                 \
  } while (0)

static void settle_tokens(const DflashEvaluation *e, DflashTokensValue *fresh) {
  const DflashEvaluate *o = e->options;
  DflashTokensValue *stored = &e->c->tokens;
  if (o->visit_tokens) o->visit_tokens(o->visit_context, stored->chosen ? stored : NULL, fresh);
  if (o->visit)
    o->visit(o->visit_context, DFLASH_STAGE_SELECT, 0, "select", NULL, NULL,
             e->c->sizes.n_draft * o->geometry->selector_top);
  ADOPT(chosen);
  ADOPT(plain);
  ADOPT(candidates);
  ADOPT(scores);
  ADOPT(alone);
  ADOPT(chain);
}

static bool complete(const DflashTokensValue *tokens) {
  return tokens->chosen && tokens->plain && tokens->candidates && tokens->scores;
}

DflashStatus dflash_evaluation_select(const DflashEvaluation *e, DflashError *error) {
  const DflashEvaluate *o = e->options;
  const DflashCase *c = e->c;
  if (!complete(&c->tokens) && !o->values)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "case %s: output is absent", c->name);
  const DflashValue *logits = dflash_case_value(c, DFLASH_STAGE_HEAD_LOGITS, 0);
  const DflashValue *hidden = dflash_case_value(c, DFLASH_STAGE_SELECTOR_HIDDEN, 0);
  DflashTokensValue fresh = {0};
  DflashOracleSelect call = {o->geometry,   o->weights,    c->sizes, c->anchor_token, logits->data, hidden->data,
                             logits->chain, hidden->chain, NULL,     &fresh,          o->profile};
  DflashStatus status = DFLASH_OK;
  if (!open_tokens(e, &fresh)) status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "select: no memory for tokens");
  if (status == DFLASH_OK) status = dflash_oracle_select(&call, error);
  if (status == DFLASH_OK) settle_tokens(e, &fresh);
  free_tokens(&fresh);
  return status;
}
