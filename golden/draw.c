#include "golden/draw.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/storage.h"

DflashRandom dflash_draw_stream(uint64_t seed, const char *name, const char *part) {
  char text[160];
  snprintf(text, sizeof text, "weights/%s%s", name, part);
  return dflash_random_stream(seed, text);
}

int dflash_draw_ends_with(const char *name, const char *suffix) {
  size_t n = strlen(name), m = strlen(suffix);
  return n >= m && strcmp(name + n - m, suffix) == 0;
}

uint64_t dflash_draw_root(uint64_t n) {
  uint64_t root = 0;
  for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
    if ((root | bit) * (root | bit) <= n) root |= bit;
  return root;
}

float dflash_draw_inverse_root(uint64_t n) {
  int shift = 0; /* n * 4^shift has at least 42 bits, so its root has 21 */
  while (n < (UINT64_C(1) << 42)) {
    n <<= 2;
    shift++;
  }
  return (float)(UINT64_C(1) << shift) / (float)dflash_draw_root(n);
}

/* The exponent, then eight binary digits of the mantissa's logarithm by squaring. */
int dflash_draw_log2(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  int result = (int)((bits >> 23) & 0xff) - 127;
  uint64_t m = (bits & 0x7fffff) | 0x800000; /* 1.23 fixed point */
  for (int digit = 0; digit < 8; digit++) {
    m = (m * m) >> 23;
    int carry = m >= (UINT64_C(1) << 24);
    result = result * 2 + carry;
    if (carry) m >>= 1;
  }
  return result;
}

void dflash_draw_normal(DflashRandom stream, uint64_t begin, size_t count, float deviation, float *out) {
  enum { CHUNK = 256 };
  const int64_t mean = INT64_C(2) * 0xffffffff;
  const float scale = deviation * (0x1.bb67aep+0f * 0x1p-32f); /* the sum deviates by 2^32 / sqrt(3) */
  uint32_t words[4 * CHUNK];
  while (count > 0) {
    size_t take = count < CHUNK ? count : CHUNK;
    dflash_random_fill(stream, 4 * begin, 4 * take, words);
    for (size_t i = 0; i < take; i++) {
      const uint32_t *w = words + 4 * i;
      out[i] = (float)((int64_t)w[0] + w[1] + w[2] + w[3] - mean) * scale;
    }
    begin += take;
    out += take;
    count -= take;
  }
}

int32_t dflash_draw_storage(const DflashWeightEntry *entry, const char *storage) {
  static const char *const names[] = {"f32", "f16", "bf16", "q8_2f"};
  int32_t found = -1;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(storage, names[i]) == 0) found = dflash_storage_find(names[i]);
  if (strcmp(storage, "sidecar") == 0) return entry->sidecar_storage;
  if (found < 0) return -1;
  if (entry->kind == DFLASH_KIND_VECTOR || entry->kind == DFLASH_KIND_BASE) return DFLASH_STORAGE_F32;
  if (entry->kind == DFLASH_KIND_CODEBOOK && found == DFLASH_STORAGE_Q8_2F) return DFLASH_STORAGE_F16;
  return found;
}

DflashStatus dflash_draw_open(const DflashWeightEntry *entry, int32_t storage, DflashTensor *tensor,
                              DflashError *error) {
  *tensor = (DflashTensor){.storage = storage, .rank = entry->rank};
  memcpy(tensor->shape, entry->shape, sizeof tensor->shape);
  DflashStatus status =
      dflash_storage_bytes(storage, dflash_tensor_rows(tensor), dflash_tensor_cols(tensor), &tensor->bytes, error);
  if (status != DFLASH_OK) dflash_error_prefix(error, "%s", entry->name);
  if (status != DFLASH_OK) return status;
  tensor->data = dflash_alloc((size_t)tensor->bytes, 1);
  if (!tensor->data)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "%s: no memory for %llu bytes", entry->name,
                            (unsigned long long)tensor->bytes);
  return DFLASH_OK;
}

void dflash_draw_repeat_rows(const DflashTensor *tensor, int64_t period, int64_t rows) {
  unsigned char *data = (unsigned char *)(uintptr_t)tensor->data;
  int64_t all = dflash_tensor_rows(tensor), cols = dflash_tensor_cols(tensor);
  size_t element = tensor->storage == DFLASH_STORAGE_F32 ? 4 : tensor->storage == DFLASH_STORAGE_Q8_2F ? 1 : 2;
  size_t row_bytes = element * (size_t)cols;
  for (int64_t i = period; i < rows; i++) {
    memcpy(data + (size_t)i * row_bytes, data + (size_t)(i % period) * row_bytes, row_bytes);
    if (tensor->storage != DFLASH_STORAGE_Q8_2F) continue;
    unsigned char *scales = data + (size_t)all * (size_t)cols;
    memcpy(scales + 2 * i, scales + 2 * (i % period), 2);
  }
}
