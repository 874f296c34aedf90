/* What a call of a stage alone must hold. */
#include "abi.h"
#include "alone.h"

static bool uses_position(int32_t stage) {
  return stage == DFLASH_STAGE_CONTEXT_K || stage == DFLASH_STAGE_ATTN_Q || stage == DFLASH_STAGE_ATTN_K ||
         stage == DFLASH_STAGE_ATTN_MIX;
}

static DflashStatus check_range(int32_t stage, const char *name, int64_t value, int64_t least, int64_t most,
                                DflashError *error) {
  if (value >= least && value <= most) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: %s is %lld, valid is %lld to %lld",
                          cuda_stage_name(stage), name, (long long)value, (long long)least, (long long)most);
}

static DflashStatus check_rows(const DflashModel *model, const DflashStageCall *c, DflashError *error) {
  const bool push = cuda_stage_rows(c->stage) == DFLASH_ROWS_CONTEXT;
  DflashStatus status =
      check_range(c->stage, "rows", c->rows, push ? 1 : 2, push ? CUDA_POSITION_MAX : model->geometry.block, error);
  if (!status && uses_position(c->stage))
    status = check_range(c->stage, "position", c->position, 0, CUDA_POSITION_MAX, error);
  if (status || c->stage != DFLASH_STAGE_ATTN_MIX) return status;
  status = check_range(c->stage, "context_len", c->context_len, 0, CUDA_POSITION_MAX, error);
  if (!status) status = check_range(c->stage, "context_first", c->context_first, 0, CUDA_POSITION_MAX, error);
  return status;
}

static DflashStatus check_draft(const DflashModel *model, const DflashStageCall *c, DflashError *error) {
  const DflashGeometry *g = &model->geometry;
  DflashStatus status = check_range(c->stage, "n_draft", c->n_draft, 1, g->block - 1, error);
  if (!status && c->stage != DFLASH_STAGE_SELECTOR_HIDDEN)
    status = check_range(c->stage, "head_width", c->head_width, g->selector_top, g->vocab, error);
  if (!status && c->stage == DFLASH_STAGE_SELECT)
    status = check_range(c->stage, "anchor_token", c->anchor_token, 0, g->vocab - 1, error);
  if (status || c->stage != DFLASH_STAGE_HEAD_LOGITS || model->head.rows > 0) return status;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: head.logits: the model was opened without a head");
}

static DflashStatus check_pointers(const DflashStageCall *c, DflashError *error) {
  for (int i = 0; i < DFLASH_STAGE_INPUTS && cuda_stage_input(c->stage, i) != DFLASH_STAGE_NONE; i++) {
    const int32_t source = cuda_stage_input(c->stage, i);
    const bool held = source == DFLASH_STAGE_HELD_K || source == DFLASH_STAGE_HELD_V;
    if (!c->inputs[i] && !(held && c->context_len == 0))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: input %d is NULL", cuda_stage_name(c->stage),
                              i);
  }
  if (c->stage != DFLASH_STAGE_SELECT) return cuda_check_pointer(c->output, "stage: output", error);
  DflashStatus status = cuda_check_struct(c->tokens, sizeof *c->tokens, "stage: tokens", error);
  if (!status) status = cuda_check_pointer(c->tokens->chosen, "stage: chosen", error);
  if (!status) status = cuda_check_pointer(c->tokens->plain, "stage: plain", error);
  return status;
}

DflashStatus cuda_alone_check(const DflashModel *model, const DflashStageCall *c, DflashError *error) {
  DflashStatus status = cuda_check_struct(c, sizeof *c, "stage: call", error);
  if (!status) status = cuda_check_stage(model, c->stage, c->layer, error);
  if (status) return status;
  const bool draft = cuda_stage_rows(c->stage) == DFLASH_ROWS_DRAFT;
  status = draft ? check_draft(model, c, error) : check_rows(model, c, error);
  return status ? status : check_pointers(c, error);
}
