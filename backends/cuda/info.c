#include "info.h"

#include <stdio.h>

#include "abi.h"
#include "sequence.h"

const CudaMatrix *cuda_model_matrix(const DflashModel *model, int32_t stage, int64_t layer) {
  const CudaLayer *l = &model->layers[layer];
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
    return &l->attn_kernel;
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
    return &model->selector;
  default:
    return NULL;
  }
}

/* Bytes of weights of a stage that is no product. */
static uint64_t small_bytes(const DflashModel *model, int32_t stage, int64_t rows) {
  const DflashGeometry *g = &model->geometry;
  const int64_t drafts = rows > 1 ? rows - 1 : 1, top = g->selector_top;
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
  case DFLASH_STAGE_ATTN_NORM:
  case DFLASH_STAGE_MLP_NORM:
  case DFLASH_STAGE_FINAL_NORM:
    return (uint64_t)g->hidden * 4;
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_Q:
  case DFLASH_STAGE_ATTN_K:
    return (uint64_t)(g->head_dim + g->head_dim / 2) * 4;
  case DFLASH_STAGE_ATTN_CONV_IN:
  case DFLASH_STAGE_ATTN_OUT:
  case DFLASH_STAGE_MLP_CONV_IN:
  case DFLASH_STAGE_MLP_OUT:
    return (uint64_t)(g->conv_kernel * g->hidden) * 4;
  case DFLASH_STAGE_SELECT: /* of all candidates that may come before, not of the chosen ones alone */
    return (uint64_t)(1 + (drafts - 1) * top) * cuda_matrix_bytes(&model->predecessor, 1) +
           (uint64_t)(drafts * top) * cuda_matrix_bytes(&model->successor, 1);
  default:
    return 0;
  }
}

static const char *product_text(const DflashModel *model, const CudaMatrix *m) {
  if (model->profile == DFLASH_PROFILE_I8 && m->storage == DFLASH_STORAGE_Q4TP) return "int8 dots, f32 sums";
  return model->profile == DFLASH_PROFILE_F16 ? "activations in f16, f32 sums" : "f32";
}

static void name_product(const DflashModel *model, const CudaMatrix *m, int64_t rows, char *path, size_t size) {
  const bool any = m->cols % CUDA_LANE_COLUMNS != 0;
  const int at_once = rows <= CUDA_FEW_ROWS || any ? CUDA_FEW_ROWS : CUDA_MANY_ROWS;
  snprintf(path, size, "plain %s%s, %s, %d rows at once, %d warp%s a tile", cuda_storage_name(m->storage),
           any ? " by elements" : "", product_text(model, m), at_once, (int)m->team, m->team == 1 ? "" : "s");
}

/* Rows of a push, where they are many. */
static void name_tiled(const DflashModel *model, const CudaMatrix *m, char *path, size_t size) {
  snprintf(path, size, "tiled %s, activations in %s, f32 sums, tiles of %d x %d rows", cuda_storage_name(m->storage),
           model->profile == DFLASH_PROFILE_F16 ? "f16" : "three bf16 parts", TILED_WEIGHTS,
           (int)model->tiled.tile_rows);
}

static void name_path(int32_t stage, char *path, size_t size) {
  const char *text = "plain f32";
  if (stage == DFLASH_STAGE_ATTN_MIX) text = "plain f32, context in parts, online softmax";
  if (stage == DFLASH_STAGE_SELECT) text = "plain: best of chunks, all pairs, walk";
  if (stage == DFLASH_STAGE_MLP_ACT) text = "plain f64";
  snprintf(path, size, "%s", text);
}

/* ---- the fast path ---- */

static bool is_fast(const DflashModel *model, int32_t stage, int64_t rows) {
  return cuda_stage_rows(stage) != DFLASH_ROWS_CONTEXT && stage != DFLASH_STAGE_SELECT && cuda_fast_takes(model, rows);
}

static int fast_product_of(int32_t stage) {
  switch (stage) {
  case DFLASH_STAGE_ATTN_KERNEL:
    return FAST_ATTN_KERNEL;
  case DFLASH_STAGE_ATTN_O_PROJ:
    return FAST_O;
  case DFLASH_STAGE_MLP_KERNEL:
    return FAST_MLP_KERNEL;
  case DFLASH_STAGE_MLP_GATE:
  case DFLASH_STAGE_MLP_UP:
    return FAST_GATE_UP;
  case DFLASH_STAGE_MLP_DOWN:
    return FAST_DOWN;
  case DFLASH_STAGE_SELECTOR_HIDDEN:
    return FAST_SELECTOR;
  default:
    return stage == DFLASH_STAGE_HEAD_LOGITS ? FAST_HEAD : FAST_QKV;
  }
}

static void name_fast(const DflashModel *model, int32_t stage, const CudaMatrix *m, char *path, size_t size) {
  const bool f16 = model->profile == DFLASH_PROFILE_F16;
  const char *text = "fast: f32, in the one kernel";
  if (stage == DFLASH_STAGE_ATTN_MIX)
    text = f16 ? "fast: context in 16 parts, tf32, f32 sums" : "fast: context in 16 parts, three bf16 parts, f32 sums";
  if (m)
    snprintf(path, size, "fast: %s stream, activations in %s, f32 sums", cuda_storage_name(m->storage),
             f16 ? "f16" : "three bf16 parts");
  else
    snprintf(path, size, "%s", text);
}

static void describe_fast(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows, DflashStageInfo *out) {
  const CudaMatrix *m = cuda_model_matrix(model, stage, layer);
  out->alone = 0;
  out->dispatch = (int32_t)(cuda_fast_span(stage) + layer * DFLASH_STAGE_COUNT);
  out->weight_bytes =
      m ? (uint64_t)m->rows * cuda_fast_row_bytes(fast_product_of(stage)) : small_bytes(model, stage, rows);
  name_fast(model, stage, m, out->path, sizeof out->path);
}

static void describe_plain(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows, DflashStageInfo *out) {
  const CudaMatrix *m = cuda_model_matrix(model, stage, layer);
  out->alone = 1;
  out->dispatch = (int32_t)(stage + layer * DFLASH_STAGE_COUNT);
  out->weight_bytes = m ? cuda_matrix_bytes(m, m->rows) : small_bytes(model, stage, rows);
  const bool push = cuda_stage_rows(stage) == DFLASH_ROWS_CONTEXT;
  if (m && push && cuda_tiled_takes(model, m, rows))
    name_tiled(model, m, out->path, sizeof out->path);
  else if (m)
    name_product(model, m, rows, out->path, sizeof out->path);
  else
    name_path(stage, out->path, sizeof out->path);
}

/* ---- answers ---- */

DflashStatus cuda_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                             DflashStageInfo *info, DflashError *error) {
  DflashStatus status = cuda_check_struct(info, sizeof info->struct_size, "stage_info: info", error);
  if (!status) status = cuda_check_stage(model, stage, layer, error);
  if (!status && rows < 1)
    status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: stage_info: rows is %lld, valid is 1 or more",
                              (long long)rows);
  if (status) return status;
  DflashStageInfo out = {.materialised = 1, .covered_by = stage};
  if (is_fast(model, stage, rows))
    describe_fast(model, stage, layer, rows, &out);
  else
    describe_plain(model, stage, layer, rows, &out);
  cuda_answer(info, &out, sizeof out);
  return DFLASH_OK;
}

DflashStatus cuda_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  const CudaTraits *t = &model->device.traits;
  DflashModelInfo out = {.repeatable = 1,
                         .resident_bytes = model->weights.bytes + model->fast.memory.bytes + model->tiled.scales.bytes};
  DflashStatus status = cuda_check_struct(info, sizeof info->struct_size, "model_info: info", error);
  if (status) return status;
  const char *how =
      model->fast.kernel ? "one kernel and the choice, weights packed and stored" : "plain kernels, not fast: ";
  snprintf(out.path, sizeof out.path,
           "one graph a block, %s%s; compute capability %d.%d, %d processors, %llu MiB of L2", how, model->fast.why,
           t->major, t->minor, t->processors, (unsigned long long)(t->l2_bytes >> 20));
  cuda_answer(info, &out, sizeof out);
  return DFLASH_OK;
}
