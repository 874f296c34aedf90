#include "reference.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

static DflashStatus no_memory(DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "reference: no memory for a sequence");
}

static bool open_tokens(DflashSequence *sequence) {
  const DflashGeometry *g = &sequence->model->geometry;
  const size_t rows = (size_t)g->block - 1;
  sequence->tokens.struct_size = sizeof sequence->tokens;
  sequence->tokens.chosen = dflash_alloc(rows, sizeof(int32_t));
  sequence->tokens.plain = dflash_alloc(rows, sizeof(int32_t));
  sequence->tokens.candidates = dflash_alloc(rows * (size_t)g->selector_top, sizeof(int32_t));
  sequence->tokens.scores = reference_values_at(&sequence->block, DFLASH_STAGE_SELECT, 0);
  return sequence->tokens.chosen != NULL && sequence->tokens.plain != NULL && sequence->tokens.candidates != NULL;
}

static Sizes block_sizes(const DflashGeometry *g) {
  return (Sizes){.rows = g->block, .n_draft = g->block - 1, .head_width = g->vocab};
}

/* A capturing sequence makes its memory when it knows the push. */
static Sizes push_sizes(const DflashSequence *sequence) {
  return (Sizes){.push_rows = sequence->capture ? 0 : REFERENCE_PUSH_CHUNK};
}

static DflashStatus reserve_scratch(DflashSequence *sequence, DflashError *error) {
  const Sizes block = block_sizes(&sequence->model->geometry), push = push_sizes(sequence);
  DflashStatus status = reference_scratch_reserve(sequence->model, &block, 0, DFLASH_STAGE_COUNT - 1, error);
  if (status != DFLASH_OK) return status;
  return reference_scratch_reserve(sequence->model, &push, 0, DFLASH_STAGE_COUNT - 1, error);
}

/* Everything that a block needs, at its largest. */
static bool open_memory(DflashSequence *sequence) {
  const DflashGeometry *g = &sequence->model->geometry;
  const Sizes block = block_sizes(g), push = push_sizes(sequence);
  sequence->spans = dflash_alloc((size_t)(g->layers * DFLASH_STAGE_COUNT), sizeof *sequence->spans);
  return sequence->spans != NULL && reference_values_open(&sequence->block, g, &block, sequence->capture) &&
         reference_values_open(&sequence->push, g, &push, false) && open_tokens(sequence);
}

static DflashStatus check(const DflashModel *model, const DflashSequenceDesc *desc, DflashError *error) {
  DflashStatus status = reference_check_pointer("sequence_open: model", model, error);
  if (status == DFLASH_OK) status = reference_check_struct("sequence_open: desc", desc, sizeof *desc, error);
  if (status != DFLASH_OK) return status;
  const Range ranges[] = {{"flags", desc->flags, 0, DFLASH_SEQUENCE_CAPTURE},
                          {"reserve_rows", desc->reserve_rows, 0, REFERENCE_POSITION_MAX}};
  return reference_check_ranges("sequence_open", ranges, 2, error);
}

DflashStatus reference_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                     DflashError *error) {
  DflashStatus status = reference_check_pointer("sequence_open: sequence", sequence, error);
  if (status != DFLASH_OK) return status;
  *sequence = NULL;
  status = check(model, desc, error);
  if (status != DFLASH_OK) return status;
  DflashSequence *opened = dflash_alloc(1, sizeof *opened);
  if (opened == NULL) return no_memory(error);
  opened->model = model;
  opened->capture = (desc->flags & DFLASH_SEQUENCE_CAPTURE) != 0;
  if (!open_memory(opened)) status = no_memory(error);
  if (status == DFLASH_OK) status = reserve_scratch(opened, error);
  if (status == DFLASH_OK) status = reference_context_reserve(opened, desc->reserve_rows, error);
  if (status == DFLASH_OK)
    *sequence = opened;
  else
    reference_sequence_close(opened);
  return status;
}

void reference_sequence_close(DflashSequence *sequence) {
  if (sequence == NULL) return;
  free(sequence->tokens.candidates);
  free(sequence->tokens.plain);
  free(sequence->tokens.chosen);
  reference_values_close(&sequence->push);
  reference_values_close(&sequence->block);
  free(sequence->spans);
  free(sequence->context.rows);
  free(sequence);
}
