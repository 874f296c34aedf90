/* One safetensors file: whatever is found lies inside it and has the bytes of its shape. */
#include <stdlib.h>

#include "model/checkpoint.h"
#include "model/storage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const DflashTensor *tensor, const uint8_t *data, size_t size) {
  const uint8_t *begin = tensor->data;
  uint64_t bytes;
  if (begin < data || begin > data + size || tensor->bytes > (uint64_t)(data + size - begin)) abort();
  for (int32_t i = 0; i < tensor->rank; i++)
    if (tensor->shape[i] == 0) return; /* no such tensor is a weight */
  if (dflash_storage_bytes(tensor->storage, dflash_tensor_rows(tensor), dflash_tensor_cols(tensor), &bytes, NULL) !=
          DFLASH_OK ||
      bytes != tensor->bytes)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const names[] = {"a", "b", "norm.weight", "lm_head.weight"};
  DflashSafetensors *file;
  DflashTensor tensor;
  if (dflash_safetensors_parse(data, size, &file, NULL) == DFLASH_OK)
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
      if (dflash_safetensors_find(file, names[i], &tensor, NULL) == DFLASH_OK) check_inside(&tensor, data, size);
  dflash_safetensors_close(file);
  return 0;
}
