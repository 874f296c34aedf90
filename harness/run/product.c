#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/case_run.h"
#include "run/lend.h"

static DflashGuarded *product_at(const DflashProduct *product, int32_t stage, int64_t layer) {
  return &product->stages[(int64_t)stage * product->layers + layer];
}

const float *dflash_product_value(const DflashProduct *product, int32_t stage, int64_t layer) {
  return product_at(product, stage, layer)->data;
}

static bool open_value(const DflashCaseRun *run, DflashProduct *product, int32_t stage, int64_t layer) {
  const DflashGeometry *g = run->session->geometry;
  bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  if (context && (run->last_push < 0 || run->session->options->load_context)) return true;
  if (stage == DFLASH_STAGE_SELECT || !dflash_case_info(run, stage, layer)->materialised) return true;
  int64_t count = dflash_stage_rows(g, &run->c.sizes, stage) * dflash_stage_width(g, &run->c.sizes, stage);
  return dflash_guarded_open(product_at(product, stage, layer), (size_t)count);
}

static bool open_context(const DflashCaseRun *run, DflashProduct *product) {
  const DflashGeometry *g = run->session->geometry;
  size_t count = (size_t)(run->c.sizes.context_len * g->kv_heads * g->head_dim);
  for (int64_t l = 0; l < g->layers; l++)
    if (!dflash_guarded_open(&product->k[l], count) || !dflash_guarded_open(&product->v[l], count)) return false;
  return true;
}

DflashStatus dflash_product_open(DflashCaseRun *run, DflashProduct *product, DflashError *error) {
  const DflashGeometry *g = run->session->geometry;
  const DflashRunSizes *sizes = &run->c.sizes;
  product->layers = g->layers;
  product->stages = dflash_alloc((size_t)(DFLASH_STAGE_COUNT * g->layers), sizeof *product->stages);
  product->k = dflash_alloc((size_t)g->layers, sizeof *product->k);
  product->v = dflash_alloc((size_t)g->layers, sizeof *product->v);
  bool ok = product->stages != NULL && product->k != NULL && product->v != NULL;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; ok && dflash_stage_walk(g, i, &stage, &layer); i++) ok = open_value(run, product, stage, layer);
  ok = ok && open_context(run, product) && dflash_token_buffers_open(&product->tokens, g, sizes->n_draft) &&
       dflash_guarded_open(&product->logits, (size_t)(sizes->n_draft * sizes->head_width)) &&
       dflash_guarded_open(&product->selector, (size_t)(sizes->n_draft * g->selector_rank));
  if (ok) return DFLASH_OK;
  dflash_product_close(product);
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the values of a block");
}

void dflash_product_close(DflashProduct *product) {
  for (int64_t i = 0; product->stages != NULL && i < DFLASH_STAGE_COUNT * product->layers; i++)
    dflash_guarded_close(&product->stages[i]);
  for (int64_t l = 0; product->k != NULL && l < product->layers; l++) dflash_guarded_close(&product->k[l]);
  for (int64_t l = 0; product->v != NULL && l < product->layers; l++) dflash_guarded_close(&product->v[l]);
  free(product->stages);
  free(product->k);
  free(product->v);
  dflash_token_buffers_close(&product->tokens);
  dflash_guarded_close(&product->logits);
  dflash_guarded_close(&product->selector);
  memset(product, 0, sizeof *product);
}

static DflashStatus read_values(DflashCaseRun *run, DflashSequence *sequence, DflashProduct *product,
                                DflashError *error) {
  DflashSession *s = run->session;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(s->geometry, i, &stage, &layer); i++) {
    DflashGuarded *value = product_at(product, stage, layer);
    if (value->data == NULL) continue;
    dflash_guarded_poison(value);
    DflashStatus status = s->backend->read_stage(sequence, stage, layer, value->data, value->count, error);
    char label[64];
    if (status != DFLASH_OK) return dflash_error_prefix(error, "reading %s", dflash_stage_label(stage, layer, label));
  }
  for (int64_t l = 0; l < product->layers && run->c.sizes.context_len > 0; l++) {
    dflash_guarded_poison(&product->k[l]);
    dflash_guarded_poison(&product->v[l]);
    DflashStatus status = s->backend->read_context(sequence, l, run->c.context_first, run->c.sizes.context_len,
                                                   product->k[l].data, product->v[l].data, error);
    if (status != DFLASH_OK) return dflash_error_prefix(error, "reading the context of layer %lld", (long long)l);
  }
  return DFLASH_OK;
}

DflashStatus dflash_case_block(const DflashCaseRun *run, DflashSequence *sequence, DflashBlockCall *call,
                               DflashError *error) {
  DflashLoan h;
  if (!dflash_lend(&h, run->c.h, (size_t)(run->c.sizes.rows * run->session->geometry->hidden)))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for embeddings");
  call->h = h.copy;
  DflashStatus status = run->session->backend->block(sequence, call, error);
  if (dflash_loan_return(&h) < 0) return status;
  return dflash_error_set(error, DFLASH_INTERNAL, "block wrote into the embeddings h that it was given");
}

DflashStatus dflash_product_run(DflashCaseRun *run, DflashSequence *sequence, DflashProduct *product, uint32_t poison,
                                DflashError *error) {
  const DflashBackend *b = run->session->backend;
  const DflashCase *c = &run->c;
  dflash_token_buffers_poison(&product->tokens);
  dflash_guarded_poison(&product->logits);
  dflash_guarded_poison(&product->selector);
  if (DFLASH_BACKEND_HAS(b, poison)) {
    DflashStatus status = b->poison(sequence, poison, error);
    if (status != DFLASH_OK) return dflash_error_prefix(error, "poisoning scratch");
  }
  DflashBlockCall call = {.struct_size = sizeof call,
                          .anchor_pos = c->anchor_pos,
                          .anchor_token = c->anchor_token,
                          .rows = c->sizes.rows,
                          .n_draft = c->sizes.n_draft,
                          .head_width = c->sizes.head_width,
                          .tokens = &product->tokens.tokens,
                          .logits = product->logits.data,
                          .selector_hidden = product->selector.data};
  memset(&run->block_error, 0, sizeof run->block_error);
  DflashStatus status = dflash_case_block(run, sequence, &call, &run->block_error);
  if (status != DFLASH_OK && status != DFLASH_NONFINITE) {
    if (error != NULL) *error = run->block_error;
    return status;
  }
  return read_values(run, sequence, product, error);
}

int64_t dflash_product_damage(const DflashCaseRun *run, const DflashProduct *product, char label[64]) {
  int32_t stage;
  int64_t layer, damage = dflash_token_buffers_damage(&product->tokens);
  snprintf(label, 64, "tokens");
  if (damage == 0 && (damage = dflash_guarded_damage(&product->logits)) != 0) snprintf(label, 64, "block.logits");
  if (damage == 0 && (damage = dflash_guarded_damage(&product->selector)) != 0)
    snprintf(label, 64, "block.selector_hidden");
  for (int64_t i = 0; damage == 0 && dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++) {
    const DflashGuarded *value = product_at(product, stage, layer);
    if (value->data != NULL) damage = dflash_guarded_damage(value);
    if (damage != 0) dflash_stage_label(stage, layer, label);
  }
  for (int64_t l = 0; damage == 0 && l < product->layers; l++) {
    damage = dflash_guarded_damage(&product->k[l]);
    if (damage == 0) damage = dflash_guarded_damage(&product->v[l]);
    if (damage != 0) snprintf(label, 64, "context of layer %lld", (long long)l);
  }
  return damage;
}

const DflashGuarded *dflash_product_judged(const DflashCaseRun *run, DflashVerdict *verdict) {
  const DflashStageInfo *info = dflash_case_info(run, verdict->stage, verdict->layer);
  const DflashGuarded *own = product_at(&run->product, verdict->stage, verdict->layer);
  if (info->materialised && own->data != NULL) return own;
  if (info->materialised) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "the context is loaded, not computed");
  } else {
    verdict->covered_by = info->covered_by;
    dflash_verdict_note(verdict, DFLASH_OUTCOME_COVERED, "not materialised");
  }
  return NULL;
}
