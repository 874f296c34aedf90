/* A tensor of arbitrary storage, shape and bytes. The first byte chooses the storage, the second the rank and how the
 * shape is read; what passes the check must decode to finite values, without a read past its bytes. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/storage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
  if (!condition) abort();
}

typedef struct Input {
  const uint8_t *at;
  size_t left;
} Input;

static uint64_t take(Input *input, size_t bytes) {
  uint64_t value = 0;
  if (bytes > input->left) bytes = input->left;
  memcpy(&value, input->at, bytes);
  input->at += bytes;
  input->left -= bytes;
  return value;
}

static DflashTensor read_form(Input *input) {
  static const int32_t storages[] = {DFLASH_STORAGE_F32, DFLASH_STORAGE_F16, DFLASH_STORAGE_BF16, DFLASH_STORAGE_Q8_2F,
                                     DFLASH_STORAGE_Q4TP};
  uint8_t choice = (uint8_t)take(input, 1), form = (uint8_t)take(input, 1);
  int wide = form >> 7, groups = form >> 6 & 1;
  DflashTensor tensor = {.storage = choice < 250 ? storages[choice % 5] : choice, .rank = form & 7};
  for (int32_t i = 0; i < 3; i++) {
    tensor.shape[i] = (int64_t)take(input, wide ? 8 : 1);
    if (groups && i + 1 == tensor.rank && !wide) tensor.shape[i] *= 32;
  }
  return tensor;
}

static void decode_all(const DflashTensor *tensor) {
  int64_t cols = dflash_tensor_cols(tensor);
  double *values = malloc((size_t)cols * sizeof *values);
  require(values != NULL);
  for (int64_t row = 0; row < dflash_tensor_rows(tensor); row++) {
    dflash_tensor_row(tensor, row, 0, cols, values);
    for (int64_t col = 0; col < cols; col++) require(isfinite(values[col]) != 0);
    require(dflash_tensor_at(tensor, row, cols / 2) == values[cols / 2]);
  }
  free(values);
}

/* Every value that fits a storage's range must survive encoding as something the check accepts. */
static void encode_again(const DflashTensor *tensor) {
  int64_t rows = dflash_tensor_rows(tensor), cols = dflash_tensor_cols(tensor);
  if (tensor->storage != DFLASH_STORAGE_F32) return;
  for (int32_t storage = 0; storage < 16; storage++) {
    DflashTensor encoded = {.storage = storage, .rank = 2, .shape = {rows, cols}};
    if (dflash_storage_bytes(storage, rows, cols, &encoded.bytes, NULL) != DFLASH_OK) continue;
    void *out = malloc(encoded.bytes);
    require(out != NULL);
    encoded.data = out;
    if (dflash_storage_encode(storage, tensor->data, rows, cols, out, NULL) == DFLASH_OK) {
      require(dflash_tensor_check(&encoded, "encoded", NULL) == DFLASH_OK);
      decode_all(&encoded);
    }
    free(out);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Input input = {data, size};
  DflashTensor tensor = read_form(&input);
  void *copy = malloc(input.left ? input.left : 1); /* aligned, and exactly as long */
  require(copy != NULL);
  memcpy(copy, input.at, input.left);
  tensor.data = copy;
  tensor.bytes = input.left;
  DflashError error = {0};
  DflashStatus status = dflash_tensor_check(&tensor, "fuzzed", &error);
  if (status == DFLASH_OK) {
    decode_all(&tensor);
    encode_again(&tensor);
  } else {
    require(status == DFLASH_INVALID_DATA && error.message[0] != '\0');
  }
  free(copy);
  return 0;
}
