#include "model/storage.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "model/storage_layout.h"

static const struct {
  int32_t storage;
  const char *name;
} storages[] = {{DFLASH_STORAGE_F32, "f32"},
                {DFLASH_STORAGE_F16, "f16"},
                {DFLASH_STORAGE_BF16, "bf16"},
                {DFLASH_STORAGE_Q8_2F, "q8_2f"},
                {DFLASH_STORAGE_Q4TP, "q4tp"}};

enum { STORAGE_COUNT = sizeof storages / sizeof *storages };

const char *dflash_storage_name(int32_t storage) {
  for (int i = 0; i < STORAGE_COUNT; i++)
    if (storages[i].storage == storage) return storages[i].name;
  return NULL;
}

int32_t dflash_storage_find(const char *name) {
  for (int i = 0; i < STORAGE_COUNT; i++)
    if (strcmp(storages[i].name, name) == 0) return storages[i].storage;
  return -1;
}

/* Sizes are below 2^63, so the largest product, 4 * rows * cols, is below 2^128. */
static unsigned __int128 wide_bytes(int32_t storage, unsigned __int128 rows, unsigned __int128 cols) {
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return 4 * rows * cols;
  case DFLASH_STORAGE_Q8_2F:
    return rows * cols + 2 * rows + 2 * cols;
  case DFLASH_STORAGE_Q4TP:
    return rows * (cols / 2 + 4 + (cols / 32 * 5 + 7) / 8);
  default:
    return 2 * rows * cols;
  }
}

DflashStatus dflash_storage_bytes(int32_t storage, int64_t rows, int64_t cols, uint64_t *bytes, DflashError *error) {
  const char *name = dflash_storage_name(storage);
  if (!name)
    return dflash_error_set(error, DFLASH_INVALID_DATA,
                            "storage number %" PRId32 " is unknown; known are 0 f32, 1 f16, 2 bf16, 9 q8_2f, 15 q4tp",
                            storage);
  if (rows < 1 || cols < 1)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%" PRId64 " x %" PRId64 ": both sizes must be at least 1",
                            rows, cols);
  if (storage == DFLASH_STORAGE_Q4TP && cols % DFLASH_Q4TP_GROUP)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%" PRId64 " columns: q4tp takes a multiple of %d", cols,
                            DFLASH_Q4TP_GROUP);
  unsigned __int128 wide = wide_bytes(storage, (unsigned __int128)rows, (unsigned __int128)cols);
  if (wide > INT64_MAX)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "%" PRId64 " x %" PRId64 " of %s: the bytes overflow 63 bits",
                            rows, cols, name);
  *bytes = (uint64_t)wide;
  return DFLASH_OK;
}

int64_t dflash_tensor_cols(const DflashTensor *tensor) { return tensor->shape[tensor->rank - 1]; }

int64_t dflash_tensor_rows(const DflashTensor *tensor) {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < tensor->rank; i++) rows *= tensor->shape[i];
  return rows;
}
