#include "model.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "codebook.h"
#include "limits.h"
#include "tensors.h"
#include "units.h"

/* Numbers or words, `count` of 4 bytes. */
static DflashStatus open_vector(DflashModel *model, VulkanUpload *upload, const void *data, int64_t count,
                                const char *name, VulkanRange *vector, DflashError *error) {
  const uint64_t bytes = (uint64_t)count * sizeof(float);
  DflashStatus status = vulkan_arena_take(&model->device, &model->arena, bytes, name, vector, error);
  if (!status) status = vulkan_upload_copy(&model->device, upload, *vector, data, bytes, error);
  return status;
}

/* Tensors of rank 3 are vectors: a matrix has the shape that vulkan_tensor_check asked for. */
static DflashStatus open_tensor(DflashModel *model, VulkanUpload *upload, const VulkanTensor *t, DflashError *error) {
  DflashTensor flat = *t->tensor;
  flat.rank = 2;
  flat.shape[0] = t->rows;
  flat.shape[1] = t->cols;
  DflashStatus status;
  switch (t->kind) {
  case VULKAN_VECTOR:
    status = open_vector(model, upload, flat.data, t->rows * t->cols, t->name, t->vector, error);
    break;
  case VULKAN_CODEBOOK:
    status = vulkan_codebook_open(model, upload, &flat, t->name, t->matrix, error);
    break;
  default:
    status = vulkan_matrix_open(model, upload, &flat, t->name, t->matrix, error);
  }
  return vulkan_tensor_error(t, error, status);
}

/* What the kernels for matrix units bind besides. */
static DflashStatus open_tables(DflashModel *model, VulkanUpload *upload, DflashError *error) {
  uint32_t masks[VULKAN_UNITS_MASKS], pairs[VULKAN_UNITS_PAIRS];
  vulkan_units_masks(masks);
  vulkan_units_pairs(pairs);
  DflashStatus status = open_vector(model, upload, masks, VULKAN_UNITS_MASKS, "masks", &model->masks, error);
  if (!status) status = open_vector(model, upload, pairs, VULKAN_UNITS_PAIRS, "pairs", &model->pairs, error);
  return status;
}

static DflashStatus upload_weights(DflashModel *model, const DflashWeights *weights, DflashError *error) {
  VulkanUpload upload = {0};
  const DflashGeometry *g = &model->geometry;
  DflashStatus status = vulkan_upload_begin(&model->device, &upload, error);
  if (!status)
    status = open_vector(model, &upload, weights->inv_freq, g->head_dim / 2, "inv_freq", &model->inv_freq, error);
  if (!status && model->units_fit) status = open_tables(model, &upload, error);
  for (int64_t i = 0; !status && i < vulkan_tensor_count(g); i++) {
    const VulkanTensor t = vulkan_tensor_at(g, weights, model, i);
    if (t.tensor) status = open_tensor(model, &upload, &t, error);
  }
  if (!status) status = vulkan_upload_end(&model->device, &upload, error);
  vulkan_upload_close(&model->device, &upload);
  return status;
}

static DflashStatus open_model(DflashModel *model, const DflashModelDesc *desc, DflashError *error) {
  const VulkanDeviceOptions options = {.id = desc->device,
                                       .validation = model->options.validation,
                                       .statistics = model->options.statistics,
                                       .assumed = &model->options.assumed,
                                       .fault = model->options.fault};
  DflashStatus status = vulkan_device_open(&options, &model->device, error);
  if (!status) status = vulkan_check_device(desc, &model->options, &model->device.traits, error);
  if (!status && model->options.units)
    status = vulkan_units_probe(&model->device, &model->pipelines, &model->units_fit, error);
  if (!status && model->options.units_required && !model->units_fit)
    status =
        dflash_error_set(error, DFLASH_UNSUPPORTED,
                         "vulkan: option matrix is cooperative, and the matrix units of %s hold elements where the "
                         "kernels do not expect them",
                         model->device.traits.name);
  if (!status) status = upload_weights(model, desc->weights, error);
  if (!status) status = vulkan_device_check(&model->device, error);
  return status;
}

DflashStatus vulkan_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  VulkanOptions options;
  *model = NULL;
  DflashStatus status = vulkan_check_desc(desc, &options, error);
  if (status) return status;
  if (!desc->weights) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: no weights are given");
  DflashModel *m = dflash_alloc(1, sizeof *m);
  if (!m) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a model");
  m->options = options;
  m->geometry = *desc->geometry;
  m->profile = desc->profile;
  m->layers = dflash_alloc((size_t)m->geometry.layers, sizeof *m->layers);
  status = m->layers ? open_model(m, desc, error)
                     : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a model");
  if (status) {
    vulkan_model_close(m);
    return status;
  }
  *model = m;
  return DFLASH_OK;
}

void vulkan_model_close(DflashModel *model) {
  if (!model) return;
  for (int64_t i = 0; model->layers && i < vulkan_tensor_count(&model->geometry); i++) {
    const VulkanTensor t = vulkan_tensor_at(&model->geometry, NULL, model, i);
    if (t.matrix) vulkan_matrix_close(t.matrix);
  }
  if (model->device.device) {
    vulkan_pipelines_close(&model->device, &model->pipelines);
    vulkan_buffer_close(&model->device, &model->stream);
    vulkan_arena_close(&model->device, &model->arena);
  }
  vulkan_state_close(&model->state);
  vulkan_device_close(&model->device);
  free(model->layers);
  free(model);
}
