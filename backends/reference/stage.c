/* Which function computes a stage, and a stage alone on given inputs. */
#include "reference.h"

#include "base/error.h"

typedef void (*StageFn)(DflashModel *model, const DflashStageCall *call);

static const StageFn functions[DFLASH_STAGE_COUNT] = {
    [DFLASH_STAGE_CONTEXT_FC] = reference_stage_matrix,
    [DFLASH_STAGE_CONTEXT_NORM] = reference_stage_norm,
    [DFLASH_STAGE_CONTEXT_K_PROJ] = reference_stage_matrix,
    [DFLASH_STAGE_CONTEXT_V_PROJ] = reference_stage_matrix,
    [DFLASH_STAGE_CONTEXT_K] = reference_stage_norm_rotate,
    [DFLASH_STAGE_ATTN_NORM] = reference_stage_norm,
    [DFLASH_STAGE_ATTN_KERNEL] = reference_stage_matrix,
    [DFLASH_STAGE_ATTN_CONV_IN] = reference_stage_conv,
    [DFLASH_STAGE_ATTN_Q_PROJ] = reference_stage_matrix,
    [DFLASH_STAGE_ATTN_K_PROJ] = reference_stage_matrix,
    [DFLASH_STAGE_ATTN_V_PROJ] = reference_stage_matrix,
    [DFLASH_STAGE_ATTN_Q] = reference_stage_norm_rotate,
    [DFLASH_STAGE_ATTN_K] = reference_stage_norm_rotate,
    [DFLASH_STAGE_ATTN_MIX] = reference_stage_attention,
    [DFLASH_STAGE_ATTN_O_PROJ] = reference_stage_matrix,
    [DFLASH_STAGE_ATTN_OUT] = reference_stage_conv_residual,
    [DFLASH_STAGE_MLP_NORM] = reference_stage_norm,
    [DFLASH_STAGE_MLP_KERNEL] = reference_stage_matrix,
    [DFLASH_STAGE_MLP_CONV_IN] = reference_stage_conv,
    [DFLASH_STAGE_MLP_GATE] = reference_stage_matrix,
    [DFLASH_STAGE_MLP_UP] = reference_stage_matrix,
    [DFLASH_STAGE_MLP_ACT] = reference_stage_activation,
    [DFLASH_STAGE_MLP_DOWN] = reference_stage_matrix,
    [DFLASH_STAGE_MLP_OUT] = reference_stage_conv_residual,
    [DFLASH_STAGE_FINAL_NORM] = reference_stage_norm,
    [DFLASH_STAGE_HEAD_LOGITS] = reference_stage_draft_matrix,
    [DFLASH_STAGE_SELECTOR_HIDDEN] = reference_stage_draft_matrix,
};

DflashStatus reference_stage_run(DflashModel *model, const DflashStageCall *call, DflashError *error) {
  const DflashStageCall rounded = reference_call_rounded(model, call);
  if (call->stage == DFLASH_STAGE_SELECT) return reference_stage_select(model, &rounded, error);
  functions[call->stage](model, &rounded);
  const Sizes sizes = reference_call_sizes(call);
  const int64_t rows = reference_stage_rows(&sizes, call->stage);
  reference_round_value(model, call->output, rows * reference_stage_width(&model->geometry, &sizes, call->stage));
  return DFLASH_OK;
}

static bool uses_position(int32_t stage) {
  return stage == DFLASH_STAGE_CONTEXT_K || stage == DFLASH_STAGE_ATTN_Q || stage == DFLASH_STAGE_ATTN_K ||
         stage == DFLASH_STAGE_ATTN_MIX;
}

static DflashStatus check_rows(const DflashModel *model, const DflashStageCall *call, DflashError *error) {
  const StageRow *row = reference_stage_row(call->stage);
  const bool push = row->rows == DFLASH_ROWS_CONTEXT;
  const Range rows = {"rows", call->rows, push ? 1 : 2, push ? REFERENCE_POSITION_MAX : model->geometry.block};
  const Range position = {"position", call->position, 0, REFERENCE_POSITION_MAX - call->rows};
  DflashStatus status = reference_check_ranges(row->name, &rows, 1, error);
  if (status == DFLASH_OK && uses_position(call->stage))
    status = reference_check_ranges(row->name, &position, 1, error);
  if (status != DFLASH_OK || call->stage != DFLASH_STAGE_ATTN_MIX) return status;
  const Range context[] = {{"context_len", call->context_len, 0, REFERENCE_POSITION_MAX},
                           {"context_first", call->context_first, 0, REFERENCE_POSITION_MAX - call->context_len}};
  return reference_check_ranges(row->name, context, 2, error);
}

static DflashStatus check_draft(const DflashModel *model, const DflashStageCall *call, DflashError *error) {
  const DflashGeometry *g = &model->geometry;
  const char *name = reference_stage_row(call->stage)->name;
  const Range draft = {"n_draft", call->n_draft, 1, g->block - 1};
  const Range head = {"head_width", call->head_width, g->selector_top, g->vocab};
  const Range anchor = {"anchor_token", call->anchor_token, 0, g->vocab - 1};
  DflashStatus status = reference_check_ranges(name, &draft, 1, error);
  if (status == DFLASH_OK && call->stage != DFLASH_STAGE_SELECTOR_HIDDEN)
    status = reference_check_ranges(name, &head, 1, error);
  if (status == DFLASH_OK && call->stage == DFLASH_STAGE_SELECT)
    status = reference_check_ranges(name, &anchor, 1, error);
  if (status == DFLASH_OK && call->stage == DFLASH_STAGE_HEAD_LOGITS && model->weights.head.data == NULL)
    status =
        dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: %s: the model was opened without a head", name);
  return status;
}

/* Held rows may be NULL when there are none. */
static DflashStatus check_pointers(const DflashStageCall *call, DflashError *error) {
  const StageRow *row = reference_stage_row(call->stage);
  for (int i = 0; i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++) {
    const bool held = row->inputs[i] == DFLASH_STAGE_HELD_K || row->inputs[i] == DFLASH_STAGE_HELD_V;
    if (call->inputs[i] == NULL && !(held && call->context_len == 0))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: %s: input %d is NULL", row->name, i);
  }
  if (call->stage != DFLASH_STAGE_SELECT) return reference_check_pointer("stage: output", call->output, error);
  DflashStatus status = reference_check_struct("select: tokens", call->tokens, sizeof *call->tokens, error);
  if (status == DFLASH_OK) status = reference_check_pointer("select: chosen", call->tokens->chosen, error);
  if (status == DFLASH_OK) status = reference_check_pointer("select: plain", call->tokens->plain, error);
  return status;
}

DflashStatus reference_stage(DflashSequence *sequence, const DflashStageCall *call, DflashError *error) {
  DflashStatus status = reference_check_pointer("stage: sequence", sequence, error);
  if (status == DFLASH_OK) status = reference_check_struct("stage: call", call, sizeof *call, error);
  if (status == DFLASH_OK) status = reference_stage_check(sequence->model, call->stage, call->layer, error);
  if (status != DFLASH_OK) return status;
  const bool draft = reference_stage_row(call->stage)->rows == DFLASH_ROWS_DRAFT;
  status = draft ? check_draft(sequence->model, call, error) : check_rows(sequence->model, call, error);
  if (status == DFLASH_OK) status = check_pointers(call, error);
  if (status != DFLASH_OK) return status;
  const Sizes sizes = reference_call_sizes(call);
  status = reference_scratch_reserve(sequence->model, &sizes, call->stage, call->stage, error);
  return status == DFLASH_OK ? reference_stage_run(sequence->model, call, error) : status;
}
