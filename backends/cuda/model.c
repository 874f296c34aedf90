#include "model.h"

#include <stdlib.h>

#include "abi.h"
#include "base/memory.h"
#include "sequence.h"
#include "tensors.h"

enum { RESERVED_BYTES = 256 };

/* Addresses are offsets until the memory is there. Offset 0 is nobody's: an address of 0 says that something is absent.
 */
static DflashStatus lay_out(DflashModel *model, const DflashWeights *weights, uint64_t *total, DflashError *error) {
  const DflashGeometry *g = &model->geometry;
  *total = RESERVED_BYTES;
  model->inv_freq = cuda_place(total, (uint64_t)(g->head_dim / 2) * sizeof(float));
  for (int64_t i = 0; i < cuda_tensor_count(g); i++) {
    const CudaTensor t = cuda_tensor_at(g, weights, model, i);
    if (!t.tensor) continue;
    DflashStatus status = cuda_tensor_check(&t, error);
    if (status) return status;
    if (t.kind == CUDA_VECTOR)
      *t.vector = cuda_place(total, (uint64_t)(t.rows * t.cols) * sizeof(float));
    else
      cuda_matrix_place(t.matrix, t.tensor->storage, t.rows, t.cols, total);
  }
  return DFLASH_OK;
}

static void move(DflashModel *model, const DflashWeights *weights) {
  const CudaAddress base = model->weights.at;
  model->inv_freq += base;
  for (int64_t i = 0; i < cuda_tensor_count(&model->geometry); i++) {
    const CudaTensor t = cuda_tensor_at(&model->geometry, weights, model, i);
    if (!t.tensor) continue;
    if (t.vector) *t.vector += base;
    if (!t.matrix) continue;
    cuda_matrix_move(t.matrix, base);
    t.matrix->team = cuda_matrix_team(t.matrix, model->device.traits.processors);
  }
}

static DflashStatus upload(DflashModel *model, const DflashWeights *weights, DflashError *error) {
  CudaDevice *device = &model->device;
  const DflashGeometry *g = &model->geometry;
  CudaUpload copies;
  DflashStatus status = cuda_upload_open(device, &copies, error);
  if (status) return status;
  status = cuda_upload_copy(device, &copies, model->inv_freq, weights->inv_freq,
                            (uint64_t)(g->head_dim / 2) * sizeof(float), error);
  for (int64_t i = 0; !status && i < cuda_tensor_count(g); i++) {
    const CudaTensor t = cuda_tensor_at(g, weights, model, i);
    if (!t.tensor) continue;
    if (t.kind == CUDA_VECTOR)
      status = cuda_upload_copy(device, &copies, *t.vector, t.tensor->data, (uint64_t)(t.rows * t.cols) * sizeof(float),
                                error);
    else
      status = cuda_matrix_upload(device, &copies, t.matrix, t.tensor->data, error);
  }
  if (!status) status = cuda_upload_end(device, &copies, error);
  cuda_upload_close(device, &copies);
  return status;
}

/* Attention takes more shared memory than a kernel has without asking. */
static DflashStatus prepare_kernels(DflashModel *model, DflashError *error) {
  return CUDA_CALL(&model->device, "the shared memory of attention", error, function_set,
                   model->device.kernels[CUDA_KERNEL_attend], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   (int)cuda_attend_shared(&model->geometry));
}

static DflashStatus open_weights(DflashModel *model, const DflashWeights *weights, DflashError *error) {
  uint64_t bytes;
  DflashStatus status = lay_out(model, weights, &bytes, error);
  if (!status) status = cuda_buffer_open(&model->device, bytes, "the weights", &model->weights, error);
  if (status) return status;
  move(model, weights);
  return upload(model, weights, error);
}

DflashStatus cuda_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error) {
  CudaOptions options;
  DflashStatus status = cuda_check_pointer(model, "model_open: model", error);
  if (status) return status;
  *model = NULL;
  status = cuda_check_desc(desc, &options, error);
  if (!status) status = cuda_check_pointer(desc->weights, "model_open: weights", error);
  if (status) return status;
  DflashModel *m = dflash_alloc(1, sizeof *m);
  if (m) m->layers = dflash_alloc((size_t)desc->geometry->layers, sizeof *m->layers);
  if (!m || !m->layers) {
    free(m);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for a model");
  }
  m->options = options;
  m->geometry = *desc->geometry;
  m->profile = desc->profile;
  status = cuda_device_open(desc->device, &m->device, error);
  if (!status) status = cuda_check_device(desc, &options, &m->device.traits, error);
  if (!status) status = prepare_kernels(m, error);
  if (!status) status = open_weights(m, desc->weights, error);
  if (!status) status = cuda_tiled_open(m, error);
  if (!status) status = cuda_fast_open(m, desc, error);
  if (status)
    cuda_model_close(m);
  else
    *model = m;
  return status;
}

void cuda_model_close(DflashModel *model) {
  cuda_nvml_close(&model->nvml);
  cuda_buffer_close(&model->device, &model->stream);
  cuda_buffer_close(&model->device, &model->fast.memory);
  cuda_buffer_close(&model->device, &model->tiled.scales);
  cuda_buffer_close(&model->device, &model->weights);
  cuda_device_close(&model->device);
  free(model->layers);
  free(model);
}
