#include "reference.h"

#include <string.h>

static void fill(void *memory, int64_t count, uint32_t pattern) {
  unsigned char *bytes = memory;
  for (int64_t i = 0; i < count; i++) memcpy(bytes + 4 * i, &pattern, sizeof pattern);
}

static void fill_spare_rows(DflashSequence *sequence, uint32_t pattern) {
  const DflashGeometry *g = &sequence->model->geometry;
  const Context *context = &sequence->context;
  const int64_t count = (context->capacity - context->len) * g->kv_heads * g->head_dim;
  for (int64_t layer = 0; context->capacity > 0 && layer < g->layers; layer++) {
    fill(reference_context_k(sequence, layer, context->len), count, pattern);
    fill(reference_context_v(sequence, layer, context->len), count, pattern);
  }
}

static void fill_model(DflashModel *model, uint32_t pattern) {
  fill(model->decoded, model->options.threads * model->widest, pattern);
  if (model->integers != NULL) fill(model->integers, model->options.threads * model->widest / 4, pattern);
  fill(model->taps, 2 * (2 * model->geometry.conv_kernel + 1), pattern);
  fill(model->mix, model->geometry.head_dim, pattern);
  fill(model->gate, model->geometry.selector_rank, pattern);
  fill(model->scores, model->geometry.selector_top, pattern);
  fill(model->candidates, model->geometry.selector_top, pattern);
}

/* All but the ones. */
static void fill_scratch(const DflashModel *model, uint32_t pattern) {
  const Scratch *scratch = &model->scratch;
  fill(scratch->inputs, scratch->input_count, pattern);
  if (scratch->quantised != NULL) fill(scratch->quantised, scratch->input_count / 4, pattern);
  fill(scratch->k, scratch->key_count * model->geometry.head_dim, pattern);
  fill(scratch->v, scratch->key_count * model->geometry.head_dim, pattern);
  fill(scratch->p, scratch->key_count, pattern);
}

/* A block's values are scratch of the next one and go; a captured push is an answer and stays. */
DflashStatus reference_poison(DflashSequence *sequence, uint32_t pattern, DflashError *error) {
  DflashStatus status = reference_check_pointer("poison: sequence", sequence, error);
  if (status != DFLASH_OK) return status;
  const DflashGeometry *g = &sequence->model->geometry;
  fill(sequence->block.data, sequence->block.count, pattern);
  fill(sequence->tokens.chosen, g->block - 1, pattern);
  fill(sequence->tokens.plain, g->block - 1, pattern);
  fill(sequence->tokens.candidates, (g->block - 1) * g->selector_top, pattern);
  if (!sequence->capture) fill(sequence->push.data, sequence->push.count, pattern);
  fill_spare_rows(sequence, pattern);
  fill_model(sequence->model, pattern);
  fill_scratch(sequence->model, pattern);
  sequence->last.rows = sequence->last.n_draft = 0;
  return DFLASH_OK;
}
