#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/checkpoint.h"
#include "model/json.h"
#include "model/safetensors_entry.h"

enum { LENGTH_BYTES = 8 };

struct DflashSafetensors {
  cJSON *root; /* names and dtypes of the entries point into it */
  const unsigned char *data;
  uint64_t data_bytes;
  DflashSafetensorsEntry *entries; /* in name order */
  uint64_t count;
};

static DflashStatus parse_header(const unsigned char *file, uint64_t size, DflashSafetensors *parsed,
                                 DflashError *error) {
  if (size < LENGTH_BYTES)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "the file has %llu bytes, a safetensors file has at least %d",
                            (unsigned long long)size, LENGTH_BYTES);
  uint64_t length;
  memcpy(&length, file, sizeof length);
  if (length > size - LENGTH_BYTES)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "the header's length is %llu, the file has %llu bytes after it",
                            (unsigned long long)length, (unsigned long long)(size - LENGTH_BYTES));
  parsed->data = file + LENGTH_BYTES + length;
  parsed->data_bytes = size - LENGTH_BYTES - length;
  return dflash_json_parse((const char *)file + LENGTH_BYTES, length, "safetensors header", &parsed->root, error);
}

static DflashStatus read_entries(DflashSafetensors *parsed, DflashError *error) {
  int items = cJSON_GetArraySize(parsed->root);
  parsed->entries = dflash_alloc((size_t)items + 1, sizeof *parsed->entries);
  if (parsed->entries == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "safetensors header: out of memory");
  for (const cJSON *item = parsed->root->child; item != NULL; item = item->next) {
    if (strcmp(item->string, "__metadata__") == 0) continue;
    DflashStatus status = dflash_safetensors_entry(item, &parsed->entries[parsed->count++], error);
    if (status != DFLASH_OK) return status;
  }
  return DFLASH_OK;
}

static int compare_places(const void *a, const void *b) {
  const DflashSafetensorsEntry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const DflashSafetensorsEntry *)a)->name, ((const DflashSafetensorsEntry *)b)->name);
}

/* Without gap or overlap, from the header's end to the file's. */
static DflashStatus check_cover(DflashSafetensors *parsed, DflashError *error) {
  uint64_t at = 0;
  qsort(parsed->entries, parsed->count, sizeof *parsed->entries, compare_places);
  for (uint64_t i = 0; i < parsed->count; i++) {
    const DflashSafetensorsEntry *entry = &parsed->entries[i];
    if (entry->begin != at)
      return dflash_error_set(
          error, DFLASH_INVALID_DATA, "tensor %.200s begins at %llu of the data, expected %llu (%s)", entry->name,
          (unsigned long long)entry->begin, (unsigned long long)at, entry->begin < at ? "overlap" : "gap");
    at = entry->end;
  }
  if (at != parsed->data_bytes)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "the tensors end at %llu, the file's data has %llu bytes",
                            (unsigned long long)at, (unsigned long long)parsed->data_bytes);
  return DFLASH_OK;
}

static DflashStatus sort_names(DflashSafetensors *parsed, DflashError *error) {
  qsort(parsed->entries, parsed->count, sizeof *parsed->entries, compare_names);
  for (uint64_t i = 1; i < parsed->count; i++)
    if (compare_names(&parsed->entries[i - 1], &parsed->entries[i]) == 0)
      return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %.200s is there twice", parsed->entries[i].name);
  return DFLASH_OK;
}

DflashStatus dflash_safetensors_parse(const void *file, uint64_t size, DflashSafetensors **out, DflashError *error) {
  *out = NULL;
  DflashSafetensors *parsed = dflash_alloc(1, sizeof *parsed);
  if (parsed == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "safetensors: out of memory");
  DflashStatus status = parse_header(file, size, parsed, error);
  if (status == DFLASH_OK) status = read_entries(parsed, error);
  if (status == DFLASH_OK) status = check_cover(parsed, error);
  if (status == DFLASH_OK) status = sort_names(parsed, error);
  if (status == DFLASH_OK)
    *out = parsed;
  else
    dflash_safetensors_close(parsed);
  return status;
}

DflashStatus dflash_safetensors_find(const DflashSafetensors *file, const char *name, DflashTensor *tensor,
                                     DflashError *error) {
  DflashSafetensorsEntry key = {.name = name};
  const DflashSafetensorsEntry *entry = bsearch(&key, file->entries, file->count, sizeof key, compare_names);
  if (entry == NULL) return dflash_error_set(error, DFLASH_UNAVAILABLE, "tensor %s is missing", name);
  if (entry->storage < 0)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %s has dtype %.32s, expected BF16, F16 or F32", name,
                            entry->dtype);
  if (entry->rank < 1 || entry->rank > 3)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "tensor %s has %lld dimensions, expected 1 to 3", name,
                            (long long)entry->rank);
  *tensor = (DflashTensor){.storage = entry->storage, .rank = (int32_t)entry->rank, .bytes = entry->end - entry->begin};
  memcpy(tensor->shape, entry->shape, sizeof tensor->shape);
  tensor->data = file->data + entry->begin;
  return DFLASH_OK;
}

void dflash_safetensors_close(DflashSafetensors *file) {
  if (file == NULL) return;
  cJSON_Delete(file->root);
  free(file->entries);
  free(file);
}
