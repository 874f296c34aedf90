#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"
#include "base/memory.h"

static bool open_tokens(DflashTokens *tokens, const DflashGeometry *g) {
  const size_t rows = (size_t)g->block - 1, top = (size_t)g->selector_top;
  tokens->struct_size = sizeof *tokens;
  tokens->chosen = dflash_alloc(rows, sizeof *tokens->chosen);
  tokens->plain = dflash_alloc(rows, sizeof *tokens->plain);
  tokens->candidates = dflash_alloc(rows * top, sizeof *tokens->candidates);
  tokens->scores = dflash_alloc(rows * top, sizeof *tokens->scores);
  return tokens->chosen != NULL && tokens->plain != NULL && tokens->candidates != NULL && tokens->scores != NULL;
}

/* Everything that a block needs, at its largest. */
static DflashStatus open_memory(DflashSequence *sequence, int64_t reserve_rows, DflashError *error) {
  const DflashGeometry *g = &sequence->model->geometry;
  const DflashRunSizes largest = {.rows = g->block, .n_draft = g->block - 1, .head_width = g->vocab};
  sequence->spans = dflash_alloc((size_t)(g->layers * DFLASH_STAGE_COUNT), sizeof *sequence->spans);
  if (sequence->spans == NULL || !open_tokens(&sequence->tokens, g))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for a sequence");
  DflashStatus status = fault_values_reserve(&sequence->block, g, &largest, error);
  if (status == DFLASH_OK) status = fault_values_reserve(&sequence->previous, g, &largest, error);
  return status == DFLASH_OK ? fault_context_reserve(sequence, reserve_rows, error) : status;
}

static DflashStatus check(const DflashModel *model, const DflashSequenceDesc *desc, DflashError *error) {
  DflashStatus status = fault_check_pointer("sequence_open: model", model, error);
  if (status == DFLASH_OK) status = fault_check_struct("sequence_open: desc", desc, sizeof *desc, error);
  if (status != DFLASH_OK) return status;
  const FaultRange ranges[] = {{"flags", desc->flags, 0, DFLASH_SEQUENCE_CAPTURE},
                               {"reserve_rows", desc->reserve_rows, 0, FAULT_POSITION_MAX}};
  return fault_check_ranges("sequence_open", ranges, 2, error);
}

DflashStatus fault_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                 DflashError *error) {
  DflashStatus status = fault_check_pointer("sequence_open: sequence", sequence, error);
  if (status != DFLASH_OK) return status;
  *sequence = NULL;
  status = check(model, desc, error);
  if (status != DFLASH_OK) return status;
  DflashSequence *opened = dflash_alloc(1, sizeof *opened);
  if (opened == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for a sequence");
  opened->model = model;
  opened->capture = (desc->flags & DFLASH_SEQUENCE_CAPTURE) != 0;
  status = open_memory(opened, desc->reserve_rows, error);
  if (status == DFLASH_OK && model->fault->sequence_open != NULL) status = model->fault->sequence_open(opened, desc);
  if (status == DFLASH_OK)
    *sequence = opened;
  else
    fault_sequence_close(opened);
  return status;
}

void fault_sequence_close(DflashSequence *sequence) {
  if (sequence == NULL) return;
  if (sequence->model->last == sequence) sequence->model->last = NULL;
  free(sequence->tokens.chosen);
  free(sequence->tokens.plain);
  free(sequence->tokens.candidates);
  free(sequence->tokens.scores);
  free(sequence->block.data);
  free(sequence->previous.data);
  free(sequence->push.data);
  free(sequence->context.rows);
  free(sequence->spans);
  free(sequence->fault_data);
  free(sequence);
}

static void fill(void *memory, int64_t count, uint32_t pattern) {
  unsigned char *bytes = memory;
  for (int64_t i = 0; i < count; i++) memcpy(bytes + 4 * i, &pattern, sizeof pattern);
}

static void fill_tokens(const DflashTokens *tokens, int64_t rows, int64_t top, uint32_t pattern) {
  fill(tokens->chosen, rows, pattern);
  fill(tokens->plain, rows, pattern);
  fill(tokens->candidates, rows * top, pattern);
  fill(tokens->scores, rows * top, pattern);
}

/* The last block's values stay readable: the next one writes over those of the block before. */
DflashStatus fault_poison(DflashSequence *sequence, uint32_t pattern, DflashError *error) {
  const DflashStatus status = fault_check_pointer("poison: sequence", sequence, error);
  if (status != DFLASH_OK) return status;
  DflashModel *model = sequence->model;
  const FaultContext *context = &sequence->context;
  const int64_t width = model->geometry.kv_heads * model->geometry.head_dim;
  const int64_t spare = (context->capacity - context->len) * width;
  fill_tokens(&sequence->tokens, model->geometry.block - 1, model->geometry.selector_top, pattern);
  fill(sequence->previous.data, sequence->previous.count, pattern);
  for (int64_t layer = 0; spare > 0 && layer < model->geometry.layers; layer++) {
    fill(fault_context_k(sequence, layer, context->len), spare, pattern);
    fill(fault_context_v(sequence, layer, context->len), spare, pattern);
  }
  for (int slot = 0; slot < FAULT_SLOTS; slot++)
    fill(model->scratch->slots[slot].data, model->scratch->slots[slot].count, pattern);
  return model->base->poison != NULL ? model->base->poison(model->worker, pattern, error) : DFLASH_OK;
}
