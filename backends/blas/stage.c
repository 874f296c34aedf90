/* A stage alone: the caller's inputs, checked, into the kernel that a block runs. */
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "sequence.h"

static DflashStatus refuse(DflashError *error, const char *what, int64_t value) {
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: stage: %s is %lld, out of range", what,
                          (long long)value);
}

static DflashStatus check_draft(const DflashGeometry *g, const DflashStageCall *c, DflashError *error) {
  const bool logits = c->stage == DFLASH_STAGE_HEAD_LOGITS || c->stage == DFLASH_STAGE_SELECT;
  if (c->n_draft < 1 || c->n_draft >= g->block || (c->stage != DFLASH_STAGE_SELECT && c->n_draft >= c->rows))
    return refuse(error, "n_draft", c->n_draft);
  if (logits && (c->head_width < g->selector_top || c->head_width > g->vocab))
    return refuse(error, "head_width", c->head_width);
  if (c->stage == DFLASH_STAGE_SELECT && (c->anchor_token < 0 || c->anchor_token >= g->vocab))
    return refuse(error, "anchor_token", c->anchor_token);
  return DFLASH_OK;
}

static DflashStatus check_rows(const DflashGeometry *g, const DflashStageCall *c, DflashError *error) {
  const DflashStageShape *shape = dflash_stage_shape_of(c->stage);
  const int64_t most = shape->rows == DFLASH_ROWS_CONTEXT ? POSITION_MAX : g->block;
  const int64_t layers = shape->scope == DFLASH_SCOPE_LAYER ? g->layers : 1;
  if (c->layer < 0 || c->layer >= layers) return refuse(error, "layer", c->layer);
  if (c->stage != DFLASH_STAGE_SELECT && (c->rows < 1 || c->rows > most)) return refuse(error, "rows", c->rows);
  if (c->position < 0 || c->position > POSITION_MAX) return refuse(error, "position", c->position);
  return shape->rows == DFLASH_ROWS_DRAFT ? check_draft(g, c, error) : DFLASH_OK;
}

static DflashStatus check_pointers(const DflashStageCall *c, DflashError *error) {
  const DflashStageShape *shape = dflash_stage_shape_of(c->stage);
  const bool select = c->stage == DFLASH_STAGE_SELECT;
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
    const int32_t source = shape->inputs[i];
    const bool held = source == DFLASH_STAGE_HELD_K || source == DFLASH_STAGE_HELD_V;
    if (source != DFLASH_STAGE_NONE && !(held && c->context_len == 0) && !c->inputs[i])
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: stage: input %d is not given", i);
  }
  if (select ? !c->tokens || !c->tokens->chosen || !c->tokens->plain : !c->output)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: stage: no room for the result");
  return DFLASH_OK;
}

static DflashStatus check_call(const DflashSequence *s, const DflashStageCall *c, DflashError *error) {
  int64_t end;
  if (c->stage < 0 || c->stage >= DFLASH_STAGE_COUNT) return refuse(error, "stage", c->stage);
  DflashStatus status = check_rows(&s->model->geometry, c, error);
  if (!status) status = check_pointers(c, error);
  if (status) return status;
  if (c->stage == DFLASH_STAGE_HEAD_LOGITS && !s->model->has_head)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: stage: the model was opened without a head");
  if (c->stage == DFLASH_STAGE_ATTN_MIX &&
      (c->context_first < 0 || c->context_len < 0 || !dflash_add_i64(c->context_first, c->context_len, &end) ||
       end > POSITION_MAX))
    return refuse(error, "context_len", c->context_len);
  return DFLASH_OK;
}

/* The context that the caller gives, held as production holds it. */
static bool hold_context(DflashSequence *s, const DflashStageCall *c, DflashStore *store) {
  const DflashGeometry *g = &s->model->geometry;
  dflash_store_open(store, g->kv_heads, g->head_dim);
  dflash_store_restart(store, c->context_first);
  if (!dflash_store_reserve(store, c->context_first - store->base + c->context_len) ||
      !dflash_workspace_reserve_attention(&s->workspace, dflash_attention_lanes(g, c->layer, c->context_len, g->block)))
    return false;
  if (c->context_len > 0) dflash_store_append(store, c->inputs[3], c->inputs[4], c->context_len);
  return true;
}

DflashStatus dflash_stage_alone(DflashSequence *s, const DflashStageCall *call, DflashError *error) {
  const DflashMatrix *matrix;
  DflashStore store = {0};
  DflashStatus status = check_call(s, call, error);
  if (status) return status;
  matrix = dflash_model_matrix(s->model, call->stage, call->layer);
  const bool room = (!matrix || dflash_workspace_reserve_product(&s->workspace, call->rows, matrix->cols)) &&
                    (call->stage != DFLASH_STAGE_ATTN_MIX || hold_context(s, call, &store));
  const DflashRun run = {.model = s->model,
                         .workspace = &s->workspace,
                         .rows = call->rows,
                         .position = call->position,
                         .n_draft = call->n_draft,
                         .head_width = call->head_width,
                         .anchor_token = call->anchor_token,
                         .store = &store,
                         .first = call->context_first,
                         .len = call->context_len,
                         .own = &s->own,
                         .selection = &s->selection,
                         .tokens = call->tokens};
  if (room)
    status =
        dflash_run_stage(&run, call->stage, call->layer, call->inputs,
                         call->stage == DFLASH_STAGE_SELECT ? dflash_value(s, call->stage, 0) : call->output, error);
  else
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: stage: no memory for its inputs");
  dflash_store_close(&store);
  return status;
}
