#include "reference.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static DflashStatus no_memory(DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "reference: no memory for the model");
}

static int64_t tap_floats(const DflashModel *model) { return 2 * (2 * model->geometry.conv_kernel + 1); }

static int64_t row_elements(const DflashModel *model) { return model->options.threads * model->widest; }

static bool open_scratch(DflashModel *model) {
  const size_t rank = (size_t)model->geometry.selector_rank, top = (size_t)model->geometry.selector_top;
  model->decoded = dflash_alloc((size_t)row_elements(model), sizeof(float));
  model->taps = dflash_alloc((size_t)tap_floats(model), sizeof(float));
  model->mix = dflash_alloc((size_t)model->geometry.head_dim, sizeof(float));
  model->gate = dflash_alloc(rank, sizeof(float));
  model->scores = dflash_alloc(top, sizeof(float));
  model->candidates = dflash_alloc(top, sizeof(int32_t));
  if (model->profile == DFLASH_PROFILE_I8) model->integers = dflash_alloc((size_t)row_elements(model), 1);
  if (model->profile == DFLASH_PROFILE_I8 && model->integers == NULL) return false;
  return model->decoded != NULL && model->taps != NULL && model->mix != NULL && model->gate != NULL &&
         model->scores != NULL && model->candidates != NULL;
}

static bool open_pool(DflashModel *model) {
  if (model->options.threads > 1) model->pool = dflash_pool_open(model->options.threads);
  return model->options.threads == 1 || model->pool != NULL;
}

static DflashStatus fill(DflashModel *model, const DflashModelDesc *desc, DflashError *error) {
  const size_t half = (size_t)desc->geometry->head_dim / 2;
  model->profile = desc->profile;
  model->geometry = *desc->geometry;
  model->layers = dflash_alloc((size_t)desc->geometry->layers, sizeof *model->layers);
  model->inv_freq = dflash_alloc(half, sizeof(float));
  if (model->layers == NULL || model->inv_freq == NULL) return no_memory(error);
  memcpy(model->inv_freq, desc->weights->inv_freq, half * sizeof(float));
  DflashStatus status = reference_options_check(desc, &model->options, error);
  if (status == DFLASH_OK) status = reference_tensors_copy(model, desc->weights, error);
  if (status == DFLASH_OK && !(open_scratch(model) && open_pool(model))) status = no_memory(error);
  model->weights.inv_freq = model->inv_freq;
  return status;
}

DflashStatus reference_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  DflashStatus status = reference_check_pointer("model_open: model", model, error);
  if (status != DFLASH_OK) return status;
  *model = NULL;
  status = reference_supports(desc, error);
  if (status == DFLASH_OK) status = reference_check_pointer("model_open: weights", desc->weights, error);
  if (status == DFLASH_OK) status = reference_check_pointer("model_open: layers", desc->weights->layers, error);
  if (status == DFLASH_OK) status = reference_check_pointer("model_open: inv_freq", desc->weights->inv_freq, error);
  if (status != DFLASH_OK) return status;
  DflashModel *opened = dflash_alloc(1, sizeof *opened);
  if (opened == NULL) return no_memory(error);
  status = fill(opened, desc, error);
  if (status == DFLASH_OK)
    *model = opened;
  else
    reference_model_close(opened);
  return status;
}

void reference_model_close(DflashModel *model) {
  if (model == NULL) return;
  dflash_pool_close(model->pool);
  free(model->stream);
  free(model->candidates);
  free(model->scores);
  free(model->gate);
  free(model->mix);
  free(model->taps);
  free(model->integers);
  free(model->decoded);
  reference_scratch_close(&model->scratch);
  free(model->storage);
  free(model->inv_freq);
  free(model->layers);
  free(model);
}

static void describe_path(const DflashModel *model, char *path, size_t size) {
  const Options *o = &model->options;
  snprintf(path, size, "%s, weights as stored, %d thread%s; sums %s%s, terms %s",
           reference_profile_text(model->profile), o->threads, o->threads == 1 ? "" : "s",
           reference_order_name(o->sums.order), o->sums.fused ? " with fma" : "", o->apart ? "apart" : "plain");
}

DflashStatus reference_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  DflashStatus status = reference_check_pointer("model_info: model", model, error);
  if (status != DFLASH_OK) return status;
  DflashModelInfo value = {.repeatable = 1};
  const DflashGeometry *g = &model->geometry;
  const int64_t floats = row_elements(model) + tap_floats(model) + g->head_dim + g->selector_rank + 2 * g->selector_top;
  value.resident_bytes = model->storage_bytes + (uint64_t)floats * sizeof(float) + reference_scratch_bytes(model);
  if (model->integers != NULL) value.resident_bytes += (uint64_t)row_elements(model);
  describe_path(model, value.path, sizeof value.path);
  return reference_answer("model_info: info", info, &value, sizeof value, error);
}

/* The walk of select reads the row of each previous token and of each candidate. */
static uint64_t select_bytes(const DflashModel *model, int64_t rows) {
  const DflashGeometry *g = &model->geometry;
  const DflashTensor *before = &model->weights.predecessor, *after = &model->weights.successor;
  const uint64_t row_before = before->bytes / (uint64_t)g->vocab, row_after = after->bytes / (uint64_t)g->vocab;
  return (uint64_t)(rows - 1) * (row_before + (uint64_t)g->selector_top * row_after);
}

/* How a matrix stage takes its products; a row of a codebook is read, not multiplied. */
static const char *product_text(const DflashModel *model, int32_t stage, int32_t storage) {
  if (stage == DFLASH_STAGE_SELECT) return "dot in f32";
  if (model->profile == DFLASH_PROFILE_I8 && storage == DFLASH_STORAGE_Q4TP) return "int8 dots, their sum in f32";
  return model->profile == DFLASH_PROFILE_F16 ? "dot of f16 in f32" : "dot in f32";
}

static void describe(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows, DflashStageInfo *info) {
  const DflashTensor *weight = reference_stage_weight(model, stage, layer);
  info->materialised = 1;
  info->covered_by = stage;
  info->alone = 1;
  info->dispatch = (int32_t)(layer * DFLASH_STAGE_COUNT + stage);
  info->weight_bytes = weight == NULL ? 0 : stage == DFLASH_STAGE_SELECT ? select_bytes(model, rows) : weight->bytes;
  snprintf(info->path, sizeof info->path, "%s", "scalar f32");
  if (weight == NULL || weight->data == NULL || weight->rank != 2) return;
  const int threads = stage == DFLASH_STAGE_SELECT ? 1 : model->options.threads;
  snprintf(info->path, sizeof info->path, "rows of %s, %s, %d thread%s", reference_storage_name(weight->storage),
           product_text(model, stage, weight->storage), threads, threads == 1 ? "" : "s");
}

DflashStatus reference_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                                  DflashStageInfo *info, DflashError *error) {
  DflashStatus status = reference_check_pointer("stage_info: model", model, error);
  if (status == DFLASH_OK) status = reference_stage_check(model, stage, layer, error);
  const Range range = {"rows", rows, 1, REFERENCE_POSITION_MAX};
  if (status == DFLASH_OK) status = reference_check_ranges("stage_info", &range, 1, error);
  if (status != DFLASH_OK) return status;
  DflashStageInfo value = {0};
  describe(model, stage, layer, rows, &value);
  return reference_answer("stage_info: info", info, &value, sizeof value, error);
}
