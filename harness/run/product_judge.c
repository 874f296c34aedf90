/* Products of whole blocks against each other and against the golden. */
#include <stdio.h>
#include <string.h>

#include "run/case_run.h"

bool dflash_guarded_equal(const DflashGuarded *a, const DflashGuarded *b) {
  return a->count == b->count && (a->count == 0 || memcmp(a->data, b->data, a->count * sizeof(float)) == 0);
}

bool dflash_token_buffers_equal(const DflashTokenBuffers *a, const DflashTokenBuffers *b) {
  return dflash_guarded_equal(&a->chosen, &b->chosen) && dflash_guarded_equal(&a->plain, &b->plain) &&
         dflash_guarded_equal(&a->candidates, &b->candidates) && dflash_guarded_equal(&a->scores, &b->scores);
}

bool dflash_product_differs(const DflashCaseRun *run, const DflashProduct *a, const DflashProduct *b, char label[64]) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++) {
    int64_t at = (int64_t)stage * a->layers + layer;
    if (a->stages[at].data == NULL || dflash_guarded_equal(&a->stages[at], &b->stages[at])) continue;
    dflash_stage_label(stage, layer, label);
    return true;
  }
  for (int64_t l = 0; l < a->layers; l++)
    if (!dflash_guarded_equal(&a->k[l], &b->k[l]) || !dflash_guarded_equal(&a->v[l], &b->v[l])) {
      snprintf(label, 64, "context of layer %lld", (long long)l);
      return true;
    }
  snprintf(label, 64, "tokens");
  if (!dflash_token_buffers_equal(&a->tokens, &b->tokens)) return true;
  snprintf(label, 64, "block.logits");
  if (!dflash_guarded_equal(&a->logits, &b->logits)) return true;
  snprintf(label, 64, "block.selector_hidden");
  return !dflash_guarded_equal(&a->selector, &b->selector);
}

static bool tokens_fail(DflashCaseRun *run, const DflashProduct *product) {
  const DflashValue *logits = dflash_case_value(&run->c, DFLASH_STAGE_HEAD_LOGITS, 0);
  DflashVerdict verdict = {.stage = DFLASH_STAGE_SELECT};
  if (run->block_error.status != DFLASH_OK) return true;
  dflash_case_judge_tokens(run, &verdict, &product->tokens, &run->c.tokens, logits->data, logits->chain,
                           dflash_case_value(&run->c, DFLASH_STAGE_SELECTOR_HIDDEN, 0)->data, true);
  return dflash_outcome_is_failure(verdict.outcome);
}

static bool context_fails(const DflashCaseRun *run, const DflashGuarded *own, const DflashValue *golden) {
  DflashVerdict verdict = {.stage = DFLASH_STAGE_CONTEXT_K};
  if (run->c.sizes.context_len == 0) return false;
  dflash_case_judge(run, &verdict, own->data, golden->data, run->session->options->load_context ? NULL : golden->chain,
                    golden->rows, golden->width, dflash_guarded_damage(own));
  return dflash_outcome_is_failure(verdict.outcome);
}

bool dflash_product_fails(DflashCaseRun *run, const DflashProduct *product, char label[64]) {
  const DflashGeometry *g = run->session->geometry;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++) {
    const DflashGuarded *own = &product->stages[(int64_t)stage * product->layers + layer];
    if (own->data == NULL || !dflash_case_has(run, stage, layer)) continue;
    const DflashValue *golden = dflash_case_value(&run->c, stage, layer);
    DflashVerdict verdict = {.stage = stage, .layer = layer};
    dflash_case_judge(run, &verdict, own->data, golden->data, golden->chain, golden->rows, golden->width,
                      dflash_guarded_damage(own));
    if (!dflash_outcome_is_failure(verdict.outcome)) continue;
    dflash_stage_label(stage, layer, label);
    return true;
  }
  for (int64_t l = 0; l < product->layers; l++)
    if (context_fails(run, &product->k[l], &run->c.held_k[l]) ||
        context_fails(run, &product->v[l], &run->c.held_v[l])) {
      snprintf(label, 64, "context of layer %lld", (long long)l);
      return true;
    }
  snprintf(label, 64, "select");
  return tokens_fail(run, product);
}
