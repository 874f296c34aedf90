/* A block: every stage in data-flow order, each by the function that also runs it alone. */
#include "reference.h"

#include <string.h>

#include "base/error.h"

/* Where a stage's input stands. */
static const float *input_of(const DflashSequence *sequence, const DflashBlockCall *call, int32_t source,
                             int64_t layer) {
  const int64_t last = sequence->model->geometry.layers - 1;
  switch (source) {
  case DFLASH_STAGE_NONE:
    return NULL;
  case DFLASH_STAGE_RESIDUAL:
    return layer == 0 ? call->h : reference_values_at(&sequence->block, DFLASH_STAGE_MLP_OUT, layer - 1);
  case DFLASH_STAGE_LAST:
    return reference_values_at(&sequence->block, DFLASH_STAGE_MLP_OUT, last);
  case DFLASH_STAGE_HELD_K:
    return sequence->context.len > 0 ? reference_context_k(sequence, layer, 0) : NULL;
  case DFLASH_STAGE_HELD_V:
    return sequence->context.len > 0 ? reference_context_v(sequence, layer, 0) : NULL;
  default:
    return reference_values_at(&sequence->block, source, layer);
  }
}

static DflashStatus run_stage(DflashSequence *sequence, const DflashBlockCall *call, int32_t stage, int64_t layer,
                              DflashError *error) {
  DflashStageCall one = {.struct_size = sizeof one,
                         .stage = stage,
                         .layer = layer,
                         .rows = call->rows,
                         .position = call->anchor_pos,
                         .n_draft = call->n_draft,
                         .head_width = call->head_width,
                         .anchor_token = call->anchor_token,
                         .context_first = sequence->context.first,
                         .context_len = sequence->context.len,
                         .output = reference_values_at(&sequence->block, stage, layer),
                         .tokens = &sequence->tokens};
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++)
    one.inputs[i] = input_of(sequence, call, reference_stage_row(stage)->inputs[i], layer);
  return reference_stage_run(sequence->model, &one, error);
}

static DflashStatus stamp_stage(DflashSequence *sequence, const DflashBlockCall *call, int32_t stage, int64_t layer,
                                uint64_t start, DflashError *error) {
  if ((call->flags & DFLASH_BLOCK_STAMP) == 0) return run_stage(sequence, call, stage, layer, error);
  const uint64_t begin = reference_clock_now() - start;
  const DflashStatus status = run_stage(sequence, call, stage, layer, error);
  const uint64_t end = reference_clock_now() - start;
  sequence->spans[sequence->span_count++] = (DflashSpan){stage, (int32_t)layer, begin, end};
  return status;
}

/* Only select, the last one, can fail. */
static DflashStatus run_all(DflashSequence *sequence, const DflashBlockCall *call, uint64_t start, DflashError *error) {
  for (int64_t layer = 0; layer < sequence->model->geometry.layers; layer++)
    for (int32_t stage = DFLASH_STAGE_ATTN_NORM; stage <= DFLASH_STAGE_MLP_OUT; stage++)
      stamp_stage(sequence, call, stage, layer, start, NULL);
  for (int32_t stage = DFLASH_STAGE_FINAL_NORM; stage < DFLASH_STAGE_SELECT; stage++)
    stamp_stage(sequence, call, stage, 0, start, NULL);
  return stamp_stage(sequence, call, DFLASH_STAGE_SELECT, 0, start, error);
}

static DflashStatus check_tokens(const DflashTokens *tokens, DflashError *error) {
  DflashStatus status = reference_check_struct("block: tokens", tokens, sizeof *tokens, error);
  if (status == DFLASH_OK) status = reference_check_pointer("block: chosen", tokens->chosen, error);
  if (status == DFLASH_OK) status = reference_check_pointer("block: plain", tokens->plain, error);
  return status;
}

static DflashStatus check(const DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  DflashStatus status = reference_check_pointer("block: sequence", sequence, error);
  if (status == DFLASH_OK) status = reference_check_struct("block: call", call, sizeof *call, error);
  if (status != DFLASH_OK) return status;
  const DflashGeometry *g = &sequence->model->geometry;
  const Range ranges[] = {{"flags", call->flags, 0, DFLASH_BLOCK_STAMP},
                          {"rows", call->rows, 2, g->block},
                          {"n_draft", call->n_draft, 1, call->rows - 1},
                          {"head_width", call->head_width, g->selector_top, g->vocab},
                          {"anchor_token", call->anchor_token, 0, g->vocab - 1},
                          {"anchor_pos", call->anchor_pos, 0, REFERENCE_POSITION_MAX - g->block}};
  status = reference_check_ranges("block", ranges, sizeof ranges / sizeof *ranges, error);
  if (status == DFLASH_OK) status = reference_check_pointer("block: h", call->h, error);
  if (status == DFLASH_OK) status = check_tokens(call->tokens, error);
  if (status == DFLASH_OK && sequence->model->weights.head.data == NULL)
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: block: the model was opened without a head");
  return status;
}

static void copy_value(const DflashSequence *sequence, int32_t stage, float *out) {
  if (out == NULL) return;
  const int64_t width = reference_stage_width(&sequence->model->geometry, &sequence->last, stage);
  const size_t count = (size_t)(reference_stage_rows(&sequence->last, stage) * width);
  memcpy(out, reference_values_at(&sequence->block, stage, 0), count * sizeof(float));
}

static void copy_tokens(const DflashSequence *sequence, const DflashTokens *out) {
  const size_t rows = (size_t)sequence->last.n_draft, top = (size_t)sequence->model->geometry.selector_top;
  const DflashTokens *own = &sequence->tokens;
  memcpy(out->chosen, own->chosen, rows * sizeof(int32_t));
  memcpy(out->plain, own->plain, rows * sizeof(int32_t));
  if (out->candidates != NULL) memcpy(out->candidates, own->candidates, rows * top * sizeof(int32_t));
  if (out->scores != NULL) memcpy(out->scores, own->scores, rows * top * sizeof(float));
}

DflashStatus reference_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  DflashStatus status = check(sequence, call, error);
  if (status != DFLASH_OK) return status;
  sequence->last.rows = call->rows;
  sequence->last.n_draft = call->n_draft;
  sequence->last.head_width = call->head_width;
  if (call->flags & DFLASH_BLOCK_STAMP) sequence->span_count = 0;
  const uint64_t start = reference_clock_now();
  status = run_all(sequence, call, start, error);
  copy_value(sequence, DFLASH_STAGE_HEAD_LOGITS, call->logits);
  copy_value(sequence, DFLASH_STAGE_SELECTOR_HIDDEN, call->selector_hidden);
  if (status == DFLASH_OK) copy_tokens(sequence, call->tokens);
  sequence->block_ns = reference_clock_now() - start;
  return status;
}
