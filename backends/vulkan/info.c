/* What a model says about itself. */
#include <stdio.h>
#include <string.h>

#include "abi.h"
#include "attend.h"
#include "base/error.h"
#include "fragments.h"
#include "info.h"
#include "product.h"
#include "rows.h"
#include "select.h"
#include "sequence.h"
#include "statistics.h"

const VulkanMatrix *vulkan_model_matrix(const DflashModel *model, int32_t stage, int64_t layer) {
  const VulkanLayer *l = &model->layers[layer];
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

/* Bytes of weights of a stage that is no matrix product. */
static int64_t small_bytes(const DflashModel *model, int32_t stage, int64_t rows) {
  const DflashGeometry *g = &model->geometry;
  const int64_t drafts = rows > 1 ? rows - 1 : 1;
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
  case DFLASH_STAGE_SELECT: /* predecessors of all candidates, not of the chosen ones alone */
    return 2 * drafts * g->selector_top * (int64_t)model->predecessor.row_bytes;
  default:
    return 0;
  }
}

/* A norm runs in the dispatch of the sum before it, and a block's k in that of its q. */
static int32_t dispatch_of(const DflashGeometry *g, int32_t stage, int64_t layer) {
  if (stage == DFLASH_STAGE_ATTN_K) stage = DFLASH_STAGE_ATTN_Q;
  if (stage == DFLASH_STAGE_MLP_NORM) stage = DFLASH_STAGE_ATTN_OUT;
  if (stage == DFLASH_STAGE_ATTN_NORM && layer > 0) {
    stage = DFLASH_STAGE_MLP_OUT;
    layer--;
  }
  if (stage == DFLASH_STAGE_FINAL_NORM) {
    stage = DFLASH_STAGE_MLP_OUT;
    layer = g->layers - 1;
  }
  return stage + (int32_t)layer * DFLASH_STAGE_COUNT;
}

static const char *name_of(const DflashModel *model, int32_t stage) {
  switch (stage) {
  case DFLASH_STAGE_ATTN_MIX:
    return vulkan_attend_on_units(model) ? "split context, online softmax, matrix units"
                                         : "split context, online softmax, f32";
  case DFLASH_STAGE_SELECT:
    return "top-k by chunks and bounds, all pairs, walk";
  case DFLASH_STAGE_ATTN_OUT:
  case DFLASH_STAGE_MLP_OUT:
    return "convolution, sum and the next norm, f32";
  default:
    return "f32";
  }
}

static void name_path(const DflashModel *model, int32_t stage, int64_t layer, char *path, size_t size) {
  snprintf(path, size, "%s%s", name_of(model, stage),
           vulkan_stage_is_prepared(model, stage, layer) ? ", prepared for matrix units" : "");
}

static void name_product(const DflashModel *model, const VulkanMatrix *matrix, int32_t stage, int64_t layer,
                         int64_t rows, char *path, size_t size) {
  const uint32_t splits = vulkan_splits_apart(model, stage, layer);
  vulkan_product_path(model, matrix, rows, path, size);
  const size_t used = strlen(path);
  if (splits > 1) snprintf(path + used, size - used, ", %u sums apart", splits);
}

/* The kernel that does most of the work of a stage that is no matrix product, with its constants: *count of them. A sum
 * is in the dispatch of the norm behind it. */
static int main_kernel(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                       uint32_t constants[VULKAN_MAX_CONSTANTS], uint32_t *count) {
  const int plain = stage == DFLASH_STAGE_CONTEXT_NORM ? VULKAN_KERNEL_NORM : VULKAN_KERNEL_HEADS;
  VulkanMaker maker;
  *count = 0;
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
  case DFLASH_STAGE_CONTEXT_K:
    *count = vulkan_row_constants(&model->device.traits, &model->geometry, plain, constants);
    return plain;
  case DFLASH_STAGE_ATTN_Q:
  case DFLASH_STAGE_ATTN_K:
    maker = vulkan_heads_maker(model, layer);
    break;
  case DFLASH_STAGE_ATTN_MIX:
    return vulkan_attend_kernel(model, rows, constants, count);
  case DFLASH_STAGE_SELECT:
    constants[(*count)++] = vulkan_select_threads(&model->device.traits);
    return VULKAN_KERNEL_TOP;
  default:
    if (stage == DFLASH_STAGE_ATTN_OUT) stage = DFLASH_STAGE_MLP_NORM;
    if (stage == DFLASH_STAGE_MLP_OUT) stage = vulkan_stage_after(&model->geometry, &layer);
    maker = vulkan_maker(model, stage, layer);
  }
  memcpy(constants, maker.constants, sizeof maker.constants);
  *count = maker.count;
  return maker.kernel;
}

/* Appends the statistics of the stage's kernel, which is made where it is not there yet: the model's pipelines are a
 * cache, and a caller cannot tell whether it grows. */
static DflashStatus add_statistics(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                                   DflashStageInfo *info, DflashError *error) {
  DflashModel *m = (DflashModel *)model;
  const VulkanMatrix *matrix = vulkan_model_matrix(model, stage, layer);
  const VulkanPipeline *pipeline;
  VulkanStatistics statistics;
  uint32_t constants[VULKAN_MAX_CONSTANTS], count;
  const int kernel = matrix ? vulkan_product_kernel(model, matrix, rows, constants, &count)
                            : main_kernel(model, stage, layer, rows, constants, &count);
  DflashStatus status = vulkan_pipeline_get(&m->device, &m->pipelines, kernel, constants, count, &pipeline, error);
  if (!status) status = vulkan_statistics_read(&m->device, pipeline, &statistics, error);
  if (!status) vulkan_statistics_append(&statistics, info->path, sizeof info->path);
  return status;
}

DflashStatus vulkan_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                               DflashStageInfo *info, DflashError *error) {
  DflashStatus status = vulkan_check_struct(info, sizeof info->struct_size, "stage_info", error);
  if (status) return status;
  if (stage < 0 || stage >= DFLASH_STAGE_COUNT)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: no stage %d", (int)stage);
  if (layer < 0 || layer >= vulkan_stage_layers(&model->geometry, stage) || rows < 1)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: stage %d has no layer %lld, or rows %lld < 1",
                            (int)stage, (long long)layer, (long long)rows);
  const VulkanMatrix *matrix = vulkan_model_matrix(model, stage, layer);
  DflashStageInfo out = {.materialised = 1, .covered_by = stage, .alone = 0};
  out.dispatch = dispatch_of(&model->geometry, stage, layer);
  out.weight_bytes = matrix ? matrix->row_bytes * (uint64_t)matrix->rows : (uint64_t)small_bytes(model, stage, rows);
  if (matrix)
    name_product(model, matrix, stage, layer, rows, out.path, sizeof out.path);
  else
    name_path(model, stage, layer, out.path, sizeof out.path);
  if (model->device.statistics) status = add_statistics(model, stage, layer, rows, &out, error);
  if (!status) VULKAN_GIVE(info, out);
  return status;
}

DflashStatus vulkan_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  DflashStatus status = vulkan_check_struct(info, sizeof info->struct_size, "model_info", error);
  if (status) return status;
  const VulkanTraits *t = &model->device.traits;
  DflashModelInfo out = {.repeatable = 1, .resident_bytes = model->arena.bytes};
  vulkan_assumed_text(&model->options.assumed, out.path, sizeof out.path);
  const size_t used = strlen(out.path);
  snprintf(out.path + used, sizeof out.path - used,
           "one submission a block; subgroups of %u, %llu KiB shared, bindings of %llu MiB%s%s", t->subgroup_size,
           (unsigned long long)(t->shared_bytes >> 10), (unsigned long long)(t->max_binding >> 20),
           t->denormals_kept ? "" : "; f32 denormals may be flushed", t->is_cpu ? "; a processor, not a GPU" : "");
  VULKAN_GIVE(info, out);
  return DFLASH_OK;
}
