/* Weights on their way to the base: changed by the fault, and kept for it. */
#include "model/weights.h"

#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/storage.h"

static DflashStatus no_memory(DflashError *error) {
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for weights");
}

void *fault_alter(DflashTensor *tensor, int32_t storage, uint64_t bytes, DflashError *error) {
  void *data = dflash_alloc((size_t)bytes, 1);
  if (data == NULL) {
    no_memory(error);
    return NULL;
  }
  tensor->storage = storage;
  tensor->bytes = bytes;
  tensor->data = data;
  return data;
}

void fault_decode_row(const DflashTensor *tensor, int64_t row, float *out) {
  enum { PIECE = 256 };
  double values[PIECE];
  const int64_t cols = dflash_tensor_cols(tensor);
  for (int64_t begin = 0; begin < cols; begin += PIECE) {
    const int64_t count = cols - begin < PIECE ? cols - begin : PIECE;
    dflash_tensor_row(tensor, row, begin, count, values);
    for (int64_t i = 0; i < count; i++) out[begin + i] = (float)values[i];
  }
}

float *fault_alter_f32(DflashTensor *tensor, DflashError *error) {
  const DflashTensor before = *tensor;
  const int64_t rows = dflash_tensor_rows(&before), cols = dflash_tensor_cols(&before);
  float *values = fault_alter(tensor, DFLASH_STORAGE_F32, (uint64_t)(rows * cols) * sizeof(float), error);
  for (int64_t row = 0; values != NULL && row < rows; row++) fault_decode_row(&before, row, values + row * cols);
  return values;
}

/* A set of the tensors of `given`: their data stay where they are. */
static DflashStatus open_set(const DflashGeometry *geometry, const DflashWeights *given, DflashWeightSet *set,
                             DflashError *error) {
  const DflashStatus status = dflash_weight_set_open(geometry, set, error);
  if (status != DFLASH_OK) return status;
  set->weights = *given;
  set->weights.layers = set->layers;
  set->weights.inv_freq = set->inv_freq;
  memcpy(set->layers, given->layers, (size_t)geometry->layers * sizeof *set->layers);
  memcpy(set->inv_freq, given->inv_freq, (size_t)(geometry->head_dim / 2) * sizeof *set->inv_freq);
  return DFLASH_OK;
}

/* Tensor `index` of a set and its name; the head comes last. NULL past it. */
static DflashTensor *tensor_at(const DflashGeometry *geometry, DflashWeightSet *set, int64_t index,
                               DflashWeightEntry *entry) {
  const int64_t count = dflash_weight_count(geometry);
  if (index > count) return NULL;
  if (index == count)
    dflash_weight_head_entry(geometry, entry);
  else
    dflash_weight_entry(geometry, index, entry);
  return index == count ? &set->weights.head : dflash_weight_at(geometry, set, index);
}

DflashStatus fault_weights_alter(const Fault *fault, const DflashGeometry *geometry, const DflashWeights *given,
                                 DflashWeightSet *altered, DflashError *error) {
  DflashWeightEntry entry;
  DflashTensor *tensor;
  DflashStatus status = open_set(geometry, given, altered, error);
  for (int64_t i = 0; status == DFLASH_OK && fault->weight != NULL; i++) {
    tensor = tensor_at(geometry, altered, i, &entry);
    if (tensor == NULL) break;
    if (tensor->data != NULL) status = fault->weight(fault, geometry, entry.name, tensor, error);
  }
  if (status == DFLASH_OK && fault->inv_freq != NULL) fault->inv_freq(fault, geometry, altered->inv_freq);
  return status;
}

void fault_weights_close(const DflashGeometry *geometry, const DflashWeights *given, DflashWeightSet *altered) {
  DflashWeightSet before;
  DflashWeightEntry entry;
  if (altered->layers == NULL || open_set(geometry, given, &before, NULL) != DFLASH_OK) return;
  for (int64_t i = 0; i <= dflash_weight_count(geometry); i++) {
    DflashTensor *tensor = tensor_at(geometry, altered, i, &entry);
    if (tensor->data == tensor_at(geometry, &before, i, &entry)->data) continue;
    free((void *)tensor->data);
    tensor->data = NULL;
  }
  dflash_weight_set_close(&before);
  dflash_weight_set_close(altered);
}

static DflashStatus keep(DflashTensor *tensor, DflashError *error) {
  void *copy = dflash_alloc((size_t)tensor->bytes, 1);
  if (copy == NULL) {
    tensor->data = NULL;
    return no_memory(error);
  }
  memcpy(copy, tensor->data, (size_t)tensor->bytes);
  tensor->data = copy;
  return DFLASH_OK;
}

DflashStatus fault_weights_keep(DflashModel *model, const DflashWeights *given, DflashError *error) {
  const char *patterns = model->fault->keeps;
  DflashWeightSet set;
  DflashWeightEntry entry;
  DflashStatus status = open_set(&model->geometry, given, &set, error);
  if (status != DFLASH_OK) return status;
  for (int64_t i = 0; i <= dflash_weight_count(&model->geometry); i++) {
    DflashTensor *tensor = tensor_at(&model->geometry, &set, i, &entry);
    const bool kept = patterns != NULL && tensor->data != NULL && dflash_glob_match(patterns, entry.name);
    if (!kept || status != DFLASH_OK)
      tensor->data = NULL;
    else
      status = keep(tensor, error);
  }
  model->kept = set.weights;
  model->kept_layers = set.layers;
  return status;
}

void fault_weights_drop(DflashModel *model) {
  DflashWeightSet set = {
      .weights = model->kept, .layers = model->kept_layers, .inv_freq = (float *)model->kept.inv_freq};
  DflashWeightEntry entry;
  if (set.layers == NULL) return;
  for (int64_t i = 0; i <= dflash_weight_count(&model->geometry); i++) {
    DflashTensor *tensor = tensor_at(&model->geometry, &set, i, &entry);
    free((void *)tensor->data);
    tensor->data = NULL;
  }
  dflash_weight_set_close(&set);
}

const DflashTensor *fault_weight(const DflashModel *model, int32_t stage, int64_t layer) {
  const DflashTensor *tensor = dflash_stage_weight(&model->kept, stage, layer);
  return tensor != NULL && tensor->data != NULL ? tensor : NULL;
}
