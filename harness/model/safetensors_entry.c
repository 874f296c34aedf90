#include "model/safetensors_entry.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/memory.h"
#include "dflash/tensor.h"
#include "model/json.h"

typedef struct Dtype {
  const char *name;
  int64_t bytes;
  int32_t storage;
} Dtype;

static const Dtype dtypes[] = {
    {"F32", 4, DFLASH_STORAGE_F32},
    {"F16", 2, DFLASH_STORAGE_F16},
    {"BF16", 2, DFLASH_STORAGE_BF16},
    {"F64", 8, -1},
    {"I64", 8, -1},
    {"U64", 8, -1},
    {"I32", 4, -1},
    {"U32", 4, -1},
    {"I16", 2, -1},
    {"U16", 2, -1},
    {"I8", 1, -1},
    {"U8", 1, -1},
    {"BOOL", 1, -1},
    {"F8_E4M3", 1, -1},
    {"F8_E5M2", 1, -1},
};

static const Dtype *find_dtype(const char *name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
    if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
  return NULL;
}

/* Reads the shape into the entry and the number of elements into *elements. */
static DflashStatus read_shape(const cJSON *item, DflashSafetensorsEntry *entry, int64_t *elements,
                               DflashError *error) {
  const cJSON *shape = dflash_json_get(item, "shape"), *dimension;
  if (!cJSON_IsArray(shape))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.200s: shape is no list", entry->name);
  *elements = 1;
  cJSON_ArrayForEach(dimension, shape) {
    int64_t size;
    if (!dflash_json_integer(dimension, &size) || size < 0)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.200s: shape[%lld] is no size", entry->name,
                              (long long)entry->rank);
    if (!dflash_mul_i64(*elements, size, elements))
      return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.200s: the product of its shape overflows",
                              entry->name);
    if (entry->rank < 3) entry->shape[entry->rank] = size;
    entry->rank++;
  }
  return DFLASH_OK;
}

static DflashStatus read_offsets(const cJSON *item, DflashSafetensorsEntry *entry, DflashError *error) {
  const cJSON *offsets = dflash_json_get(item, "data_offsets");
  int64_t begin, end;
  if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
      !dflash_json_integer(cJSON_GetArrayItem(offsets, 0), &begin) ||
      !dflash_json_integer(cJSON_GetArrayItem(offsets, 1), &end) || begin < 0 || end < begin)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.200s: data_offsets is not [begin, end]", entry->name);
  entry->begin = (uint64_t)begin;
  entry->end = (uint64_t)end;
  return DFLASH_OK;
}

static DflashStatus check_bytes(const DflashSafetensorsEntry *entry, const Dtype *dtype, int64_t elements,
                                DflashError *error) {
  int64_t bytes, found = (int64_t)(entry->end - entry->begin);
  if (dtype == NULL) return DFLASH_OK;
  if (!dflash_mul_i64(elements, dtype->bytes, &bytes))
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.200s: the bytes of its shape overflow", entry->name);
  if (bytes == found) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_DATA,
                          "tensor %.200s: data_offsets span %lld bytes, its shape takes %lld in %s", entry->name,
                          (long long)found, (long long)bytes, dtype->name);
}

DflashStatus dflash_safetensors_entry(const cJSON *item, DflashSafetensorsEntry *entry, DflashError *error) {
  *entry = (DflashSafetensorsEntry){.name = item->string, .dtype = dflash_json_text(item, "dtype")};
  int64_t elements = 0;
  if (entry->dtype == NULL)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.200s: dtype is absent", entry->name);
  const Dtype *dtype = find_dtype(entry->dtype);
  entry->storage = dtype == NULL ? -1 : dtype->storage;
  DflashStatus status = read_shape(item, entry, &elements, error);
  if (status == DFLASH_OK) status = read_offsets(item, entry, error);
  return status == DFLASH_OK ? check_bytes(entry, dtype, elements, error) : status;
}
