#include "model/checkpoint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/json.h"
#include "model/safetensors_shards.h"
#include "model/storage.h"

static DflashStatus read_config(const char *folder, DflashGeometry *geometry, DflashError *error) {
  const DflashShards place = {.folder = (char *)folder};
  char *path = dflash_shards_path(&place, "config.json"), *text = NULL;
  uint64_t size = 0;
  if (path == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: out of memory", folder);
  DflashStatus status = dflash_read_file(path, DFLASH_JSON_LIMIT, &text, &size, error);
  if (status == DFLASH_OK) {
    status = dflash_checkpoint_config(text, size, geometry, error);
    if (status != DFLASH_OK) dflash_error_prefix(error, "%s", folder);
  }
  free(text);
  free(path);
  return status;
}

/* An f16 or bf16 tensor as f32, which holds every value of both. */
static DflashStatus widen(DflashTensor *tensor, const char *name, void **owned, DflashError *error) {
  uint64_t count = tensor->bytes / 2;
  const unsigned char *bits = tensor->data;
  float *values = dflash_alloc(count, sizeof *values);
  if (values == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "tensor %s: out of memory", name);
  for (uint64_t i = 0; i < count; i++) {
    uint16_t half;
    memcpy(&half, bits + 2 * i, sizeof half);
    values[i] = tensor->storage == DFLASH_STORAGE_F16 ? dflash_f16_value(half) : dflash_bf16_value(half);
  }
  *owned = values;
  tensor->storage = DFLASH_STORAGE_F32;
  tensor->bytes = count * sizeof *values;
  tensor->data = values;
  return DFLASH_OK;
}

/* Shape and bytes are those of the entry once its storage is set aside. */
static DflashStatus check_form(const DflashWeightEntry *entry, const DflashTensor *tensor, DflashError *error) {
  DflashWeightEntry any = *entry;
  any.kind = DFLASH_KIND_MATRIX;
  return dflash_weight_check(&any, tensor, error);
}

/* Checks a tensor as found, and gives it the form that weights have. */
static DflashStatus take_tensor(const DflashWeightEntry *entry, DflashTensor *tensor, void **owned,
                                DflashError *error) {
  DflashStatus status = check_form(entry, tensor, error);
  if (status != DFLASH_OK) return status;
  bool vector = entry->kind == DFLASH_KIND_VECTOR || entry->kind == DFLASH_KIND_BASE;
  if (vector && tensor->storage != DFLASH_STORAGE_F32)
    status = widen(tensor, entry->name, owned, error);
  else
    status = dflash_tensor_align(tensor, entry->name, owned, error);
  if (status == DFLASH_OK) status = dflash_weight_check(entry, tensor, error);
  return status == DFLASH_OK ? dflash_tensor_check(tensor, entry->name, error) : status;
}

static DflashStatus import_tensor(DflashShards *shards, const DflashWeightEntry *entry, DflashTensor *tensor,
                                  void **owned, DflashError *error) {
  int64_t shard;
  DflashStatus status = dflash_shards_find(shards, entry->name, tensor, &shard, error);
  if (status == DFLASH_UNAVAILABLE)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: tensor %s is missing", shards->folder, entry->name);
  if (status != DFLASH_OK) return status;
  status = take_tensor(entry, tensor, owned, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s/%s", shards->folder, shards->shards[shard].file);
  return status;
}

/* Fills tensors[0 .. count), and owned[] with the copies among them. */
static DflashStatus import_all(DflashShards *shards, DflashCheckpoint *checkpoint, DflashTensor *tensors, int64_t count,
                               DflashError *error) {
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; i < count && status == DFLASH_OK; i++) {
    DflashWeightEntry entry;
    dflash_weight_entry(&checkpoint->geometry, i, &entry);
    void **owned = &checkpoint->owned[checkpoint->owned_count];
    status = import_tensor(shards, &entry, &tensors[i], owned, error);
    if (*owned != NULL) checkpoint->owned_count++;
  }
  return status;
}

/* The set is made last: only then is it known that the files hold tensors as large as the configuration claims. */
static DflashStatus fill_set(DflashCheckpoint *checkpoint, const DflashTensor *tensors, int64_t count,
                             DflashError *error) {
  DflashStatus status = dflash_weight_set_open(&checkpoint->geometry, &checkpoint->set, error);
  for (int64_t i = 0; i < count && status == DFLASH_OK; i++)
    *dflash_weight_at(&checkpoint->geometry, &checkpoint->set, i) = tensors[i];
  return status;
}

static DflashStatus take_mappings(DflashShards *shards, DflashCheckpoint *checkpoint, DflashError *error) {
  checkpoint->mappings = dflash_alloc((size_t)shards->count, sizeof *checkpoint->mappings);
  if (checkpoint->mappings == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "checkpoint: out of memory");
  checkpoint->mapping_count = shards->count;
  for (int64_t i = 0; i < shards->count; i++) {
    checkpoint->mappings[i] = shards->shards[i].mapping;
    shards->shards[i].mapping = (DflashMapping){0};
  }
  return DFLASH_OK;
}

static DflashStatus import_weights(DflashShards *shards, DflashCheckpoint *checkpoint, DflashError *error) {
  int64_t count = dflash_weight_count(&checkpoint->geometry);
  checkpoint->owned = dflash_alloc((size_t)count, sizeof *checkpoint->owned);
  DflashTensor *tensors = checkpoint->owned == NULL ? NULL : dflash_alloc((size_t)count, sizeof *tensors);
  if (tensors == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "checkpoint: out of memory");
  DflashStatus status = import_all(shards, checkpoint, tensors, count, error);
  if (status == DFLASH_OK) status = fill_set(checkpoint, tensors, count, error);
  if (status == DFLASH_OK) status = take_mappings(shards, checkpoint, error);
  free(tensors);
  return status;
}

DflashStatus dflash_checkpoint_open(const char *folder, DflashCheckpoint *checkpoint, DflashError *error) {
  DflashShards shards = {0};
  *checkpoint = (DflashCheckpoint){0};
  DflashStatus status = read_config(folder, &checkpoint->geometry, error);
  if (status != DFLASH_OK) return status;
  status = dflash_shards_open(folder, &shards, error);
  if (status == DFLASH_OK) status = import_weights(&shards, checkpoint, error);
  dflash_shards_close(&shards);
  if (status != DFLASH_OK) dflash_checkpoint_close(checkpoint);
  return status;
}

void dflash_checkpoint_close(DflashCheckpoint *checkpoint) {
  dflash_weight_set_close(&checkpoint->set);
  for (int64_t i = 0; i < checkpoint->owned_count; i++) free(checkpoint->owned[i]);
  for (int64_t i = 0; i < checkpoint->mapping_count; i++) dflash_unmap_file(&checkpoint->mappings[i]);
  free(checkpoint->owned);
  free(checkpoint->mappings);
  *checkpoint = (DflashCheckpoint){0};
}
