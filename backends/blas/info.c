/* What a model says about itself. */
#include <stdio.h>

#include "abi.h"
#include "base/error.h"
#include "model.h"

/* Rows and inputs of every stage are in the public table; only what depends on this backend stands here. */
static const int32_t SCOPES[] = {
#define SCOPE(id, name, scope, ...) DFLASH_SCOPE_##scope,
    DFLASH_STAGES(SCOPE)
#undef SCOPE
};

const DflashMatrix *dflash_model_matrix(const DflashModel *model, int32_t stage, int64_t layer) {
  const DflashLayer *l = &model->layers[layer];
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_FC:
    return &model->fc;
  case DFLASH_STAGE_CONTEXT_K_PROJ:
  case DFLASH_STAGE_ATTN_K_PROJ:
    return &l->k;
  case DFLASH_STAGE_CONTEXT_V_PROJ:
  case DFLASH_STAGE_ATTN_V_PROJ:
    return &l->v;
  case DFLASH_STAGE_ATTN_KERNEL:
    return &l->attention_kernel;
  case DFLASH_STAGE_ATTN_Q_PROJ:
    return &l->q;
  case DFLASH_STAGE_ATTN_O_PROJ:
    return &l->o;
  case DFLASH_STAGE_MLP_KERNEL:
    return &l->mlp_kernel;
  case DFLASH_STAGE_MLP_GATE:
    return &l->gate;
  case DFLASH_STAGE_MLP_UP:
    return &l->up;
  case DFLASH_STAGE_MLP_DOWN:
    return &l->down;
  case DFLASH_STAGE_HEAD_LOGITS:
    return &model->head;
  case DFLASH_STAGE_SELECTOR_HIDDEN:
    return &model->selector_hidden;
  default:
    return NULL;
  }
}

static int64_t codebook_bytes(const DflashModel *model, int64_t rows) {
  const int64_t width = model->predecessor.storage == DFLASH_STORAGE_F32 ? 4 : 2;
  const int64_t drafts = rows > 1 ? rows - 1 : 1;
  return drafts * (model->geometry.selector_top + 1) * model->geometry.selector_rank * width;
}

/* Bytes of weights of a stage that is no matrix product. */
static int64_t small_bytes(const DflashModel *model, int32_t stage, int64_t rows) {
  const DflashGeometry *g = &model->geometry;
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
  case DFLASH_STAGE_ATTN_NORM:
  case DFLASH_STAGE_MLP_NORM:
  case DFLASH_STAGE_FINAL_NORM:
    return g->hidden * 4;
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_Q:
  case DFLASH_STAGE_ATTN_K:
    return (g->head_dim + g->head_dim / 2) * 4;
  case DFLASH_STAGE_ATTN_CONV_IN:
  case DFLASH_STAGE_ATTN_OUT:
  case DFLASH_STAGE_MLP_CONV_IN:
  case DFLASH_STAGE_MLP_OUT:
    return g->conv_kernel * g->hidden * 4;
  case DFLASH_STAGE_SELECT:
    return codebook_bytes(model, rows);
  default:
    return 0;
  }
}

DflashStatus dflash_model_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                                     DflashStageInfo *info, DflashError *error) {
  if (stage < 0 || stage >= DFLASH_STAGE_COUNT)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: no stage %d", (int)stage);
  const int64_t layers = SCOPES[stage] == DFLASH_SCOPE_LAYER ? model->geometry.layers : 1;
  if (layer < 0 || layer >= layers || rows < 1)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: stage %d has no layer %lld, or rows %lld < 1",
                            (int)stage, (long long)layer, (long long)rows);
  const DflashMatrix *matrix = dflash_model_matrix(model, stage, layer);
  const int threads = model->options.threads;
  DflashStageInfo out = {.materialised = 1, .covered_by = stage, .alone = 1};
  out.dispatch = stage + (int32_t)layer * DFLASH_STAGE_COUNT;
  const DflashKernel *k = model->options.kernel;
  const bool opened = matrix && matrix->form != FORM_F32 && rows > (k->open_groups - 1) * k->group;
  if (matrix) {
    out.weight_bytes = matrix->pages.bytes;
    snprintf(out.path, sizeof out.path, "%s panels, %s%s, %d threads", k->name, dflash_matrix_form_name(matrix->form),
             opened ? " opened per block" : "", threads);
  } else {
    out.weight_bytes = (uint64_t)small_bytes(model, stage, rows);
    snprintf(out.path, sizeof out.path, "%s loops, f32, %d threads", k->name, threads);
  }
  DFLASH_GIVE(info, out);
  return DFLASH_OK;
}

DflashStatus dflash_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  (void)error;
  DflashModelInfo out = {.repeatable = 1, .resident_bytes = model->resident_bytes};
  snprintf(out.path, sizeof out.path, "%s panels, form %s, %d threads; equal bits for any number of rows or threads",
           model->options.kernel->name, model->stored ? "stored" : "f32", model->options.threads);
  DFLASH_GIVE(info, out);
  return DFLASH_OK;
}
