#include "pack.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored weights and the device's words are little-endian, and are copied as they are"
#endif

enum { GROUP = 32, GROUP_BYTES = 16, CODE_BITS = 5, PIECE_BYTES = 16 };

static uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

int64_t vulkan_stored_code_bytes(int64_t cols) { return (cols / GROUP * CODE_BITS + 7) / 8; }

int64_t vulkan_stored_row_bytes(int32_t storage, int64_t cols) {
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return 4 * cols;
  case DFLASH_STORAGE_Q8_2F:
    return cols;
  case DFLASH_STORAGE_Q4TP:
    return cols / GROUP * GROUP_BYTES;
  default:
    return 2 * cols;
  }
}

VulkanForm vulkan_form(int32_t storage, int64_t cols) {
  VulkanForm form = {.rows = 1,
                     .weight_bytes = round_up((uint64_t)vulkan_stored_row_bytes(storage, cols), PIECE_BYTES)};
  if (storage == DFLASH_STORAGE_Q8_2F) form.scale_bytes = sizeof(float);
  if (storage == DFLASH_STORAGE_Q4TP) {
    form.scale_bytes = 2 * sizeof(float);
    form.code_bytes = round_up((uint64_t)vulkan_stored_code_bytes(cols), sizeof(uint32_t));
  }
  return form;
}

uint64_t vulkan_stored_bytes(int32_t storage, int64_t rows, int64_t cols) {
  int64_t count, bytes, extra = 0;
  const bool known = storage == DFLASH_STORAGE_F32 || storage == DFLASH_STORAGE_F16 || storage == DFLASH_STORAGE_BF16 ||
                     storage == DFLASH_STORAGE_Q8_2F || storage == DFLASH_STORAGE_Q4TP;
  if (!known || !dflash_mul_i64(rows, cols, &count) || !dflash_mul_i64(count, 8, &bytes)) return 0;
  if (storage == DFLASH_STORAGE_Q4TP && cols % GROUP) return 0;
  if (storage == DFLASH_STORAGE_Q8_2F) extra = 2 * (rows + cols);
  if (storage == DFLASH_STORAGE_Q4TP) extra = rows * (4 + vulkan_stored_code_bytes(cols));
  return (uint64_t)(rows * vulkan_stored_row_bytes(storage, cols) + extra);
}

/* Exponent and fraction stand where f32 has them once the bias is made up for by 2^112: exact, denormals included. */
float vulkan_f16_value(uint16_t bits) {
  const uint32_t magnitude = (uint32_t)(bits & 0x7fff) << 13, sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t word = 0x7f800000u | magnitude;
  float value;
  if ((bits & 0x7c00) != 0x7c00) {
    memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;
    memcpy(&word, &value, sizeof word);
  }
  word |= sign;
  memcpy(&value, &word, sizeof value);
  return value;
}

static float f16_at(const unsigned char *data, int64_t index) {
  uint16_t bits;
  memcpy(&bits, data + 2 * index, sizeof bits);
  return vulkan_f16_value(bits);
}

static int64_t cols_of(const DflashTensor *tensor) { return tensor->shape[tensor->rank - 1]; }

static int64_t rows_of(const DflashTensor *tensor) {
  int64_t rows = 1;
  for (int i = 0; i < tensor->rank - 1; i++) rows *= tensor->shape[i];
  return rows;
}

/* `count` rows of `bytes`, each with zeros up to `padded`. */
static void copy_rows(const unsigned char *from, size_t bytes, int64_t count, void *out, size_t padded) {
  unsigned char *to = out;
  for (int64_t row = 0; row < count; row++, from += bytes, to += padded) {
    memcpy(to, from, bytes);
    memset(to + bytes, 0, padded - bytes);
  }
}

void vulkan_pack_weights(const DflashTensor *tensor, int64_t first, int64_t count, void *out) {
  const int64_t cols = cols_of(tensor), bytes = vulkan_stored_row_bytes(tensor->storage, cols);
  copy_rows((const unsigned char *)tensor->data + first * bytes, (size_t)bytes, count, out,
            (size_t)vulkan_form(tensor->storage, cols).weight_bytes);
}

void vulkan_pack_tight(const DflashTensor *tensor, int64_t first, int64_t count, void *out) {
  const int64_t bytes = vulkan_stored_row_bytes(tensor->storage, cols_of(tensor));
  memcpy(out, (const unsigned char *)tensor->data + first * bytes, (size_t)(count * bytes));
}

/* exp2 correctly rounded to f32: computed in f64, rounded once. */
static void pack_ladders(const unsigned char *stored, int64_t count, float *out) {
  for (int64_t i = 0; i < 2 * count; i++) out[i] = (float)exp2((double)f16_at(stored, i));
}

void vulkan_pack_scales(const DflashTensor *tensor, int64_t first, int64_t count, void *out) {
  const int64_t rows = rows_of(tensor), cols = cols_of(tensor);
  const unsigned char *stored =
      (const unsigned char *)tensor->data + rows * vulkan_stored_row_bytes(tensor->storage, cols);
  float *scales = out;
  if (tensor->storage == DFLASH_STORAGE_Q4TP) {
    pack_ladders(stored + 4 * first, count, scales);
    return;
  }
  for (int64_t row = 0; row < count; row++) scales[row] = f16_at(stored, first + row);
}

/* Codes stand lowest bits first in bytes, and so they do in little-endian words. */
void vulkan_pack_codes(const DflashTensor *tensor, int64_t first, int64_t count, void *out) {
  const int64_t rows = rows_of(tensor), cols = cols_of(tensor), bytes = vulkan_stored_code_bytes(cols);
  const unsigned char *stored =
      (const unsigned char *)tensor->data + rows * (vulkan_stored_row_bytes(tensor->storage, cols) + 4);
  copy_rows(stored + first * bytes, (size_t)bytes, count, out, (size_t)vulkan_form(tensor->storage, cols).code_bytes);
}

void vulkan_pack_columns(const DflashTensor *tensor, int64_t first, int64_t count, void *out) {
  const int64_t rows = rows_of(tensor);
  const unsigned char *stored = (const unsigned char *)tensor->data + rows * (cols_of(tensor) + 2);
  float *columns = out;
  for (int64_t i = 0; i < count; i++) columns[i] = f16_at(stored, first + i);
}
