#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "model/storage.h"
#include "model/weights.h"

static const char *allowed_storages(int kind) {
  switch (kind) {
  case DFLASH_KIND_MATRIX:
    return "f32, f16, bf16, q8_2f or q4tp";
  case DFLASH_KIND_CODEBOOK:
    return "f16, bf16 or f32";
  default:
    return "f32";
  }
}

static int storage_allowed(int kind, int32_t storage) {
  int dense = storage == DFLASH_STORAGE_F16 || storage == DFLASH_STORAGE_BF16;
  int packed = storage == DFLASH_STORAGE_Q8_2F || storage == DFLASH_STORAGE_Q4TP;
  return storage == DFLASH_STORAGE_F32 || (kind == DFLASH_KIND_MATRIX && (dense || packed)) ||
         (kind == DFLASH_KIND_CODEBOOK && dense);
}

static DflashStatus check_storage(const DflashWeightEntry *entry, const DflashTensor *tensor, DflashError *error) {
  if (storage_allowed(entry->kind, tensor->storage)) return DFLASH_OK;
  const char *name = dflash_storage_name(tensor->storage);
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: storage is %s (number %" PRId32 "), expected %s",
                          entry->name, name ? name : "unknown", tensor->storage, allowed_storages(entry->kind));
}

static void shape_text(int32_t rank, const int64_t *shape, char text[80]) {
  int used = snprintf(text, 80, "[");
  for (int32_t i = 0; i < rank && i < 3; i++)
    used += snprintf(text + used, 80 - (size_t)used, "%s%" PRId64, i ? ", " : "", shape[i]);
  snprintf(text + used, 80 - (size_t)used, "]");
}

static DflashStatus check_shape(const DflashWeightEntry *entry, const DflashTensor *tensor, DflashError *error) {
  int same = tensor->rank == entry->rank;
  for (int32_t i = 0; same && i < entry->rank; i++) same = tensor->shape[i] == entry->shape[i];
  if (same) return DFLASH_OK;
  char found[80], expected[80];
  shape_text(tensor->rank, tensor->shape, found);
  shape_text(entry->rank, entry->shape, expected);
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "%s: rank %" PRId32 " and shape %s, expected rank %" PRId32 " and %s", entry->name,
                          tensor->rank, found, entry->rank, expected);
}

DflashStatus dflash_weight_check(const DflashWeightEntry *entry, const DflashTensor *tensor, DflashError *error) {
  DflashStatus status = check_storage(entry, tensor, error);
  if (status == DFLASH_OK) status = check_shape(entry, tensor, error);
  if (status != DFLASH_OK) return status;
  uint64_t bytes;
  status = dflash_storage_bytes(tensor->storage, dflash_tensor_rows(tensor), dflash_tensor_cols(tensor), &bytes, error);
  if (status != DFLASH_OK) return dflash_error_prefix(error, "%s", entry->name), status;
  if (tensor->bytes == bytes) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: %" PRIu64 " bytes, expected %" PRIu64, entry->name,
                          tensor->bytes, bytes);
}
