/* One entry of a safetensors header. */
#ifndef DFLASH_MODEL_SAFETENSORS_ENTRY_H
#define DFLASH_MODEL_SAFETENSORS_ENTRY_H

#include <stdint.h>

#include "dflash/status.h"

struct cJSON;

typedef struct DflashSafetensorsEntry {
  const char *name, *dtype; /* in the JSON tree */
  int32_t storage;          /* DFLASH_STORAGE_*, or -1 for a dtype that weights do not have */
  int64_t rank;
  int64_t shape[3]; /* the first ones */
  uint64_t begin, end;
} DflashSafetensorsEntry;

/* Reads dtype, shape and data_offsets. Where the dtype is known, its shape must give the bytes. */
DflashStatus dflash_safetensors_entry(const struct cJSON *item, DflashSafetensorsEntry *entry, DflashError *error);

#endif
