#include "source.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* Exponent and fraction moved to f32's places and scaled by 2^112: exact, denormals included. */
float dflash_source_f16(uint16_t bits) {
  const uint32_t magnitude = (uint32_t)(bits & 0x7fff) << 13, sign = (uint32_t)(bits & 0x8000) << 16;
  float value;
  memcpy(&value, &magnitude, sizeof value);
  value *= 0x1p112f;
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  if ((bits & 0x7c00) == 0x7c00) word = 0x7f800000u | magnitude; /* infinity, NaN */
  word |= sign;
  memcpy(&value, &word, sizeof value);
  return value;
}

float dflash_source_f16_at(const unsigned char *data, int64_t index) {
  uint16_t bits;
  memcpy(&bits, data + 2 * index, sizeof bits);
  return dflash_source_f16(bits);
}

static int64_t code_bytes(int64_t groups) { return groups / 8 * 5 + (groups % 8 * 5 + 7) / 8; }

/* Bytes of one row and of what stands once; false when the storage cannot take the columns. */
static bool storage_bytes(int32_t storage, int64_t cols, int64_t *per_row, int64_t *once) {
  *once = 0;
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return dflash_mul_i64(cols, 4, per_row);
  case DFLASH_STORAGE_F16:
  case DFLASH_STORAGE_BF16:
    return dflash_mul_i64(cols, 2, per_row);
  case DFLASH_STORAGE_Q8_2F:
    return dflash_mul_i64(cols, 2, once) && dflash_add_i64(cols, 2, per_row);
  case DFLASH_STORAGE_Q4TP:
    *per_row = cols / 32 * 16 + 4 + code_bytes(cols / 32);
    return cols % 32 == 0;
  default:
    return false;
  }
}

static int has_shape(const DflashTensor *tensor, int64_t rows, int64_t cols) {
  if (tensor->rank < 1 || tensor->rank > 3) return 0;
  int64_t folded = 1;
  for (int i = 0; i < tensor->rank - 1; i++)
    if (tensor->shape[i] < 1 || !dflash_mul_i64(folded, tensor->shape[i], &folded)) return 0;
  return folded == rows && tensor->shape[tensor->rank - 1] == cols;
}

DflashStatus dflash_source_check(const DflashTensor *tensor, const char *name, int64_t layer, int64_t rows,
                                 int64_t cols, int vector, DflashError *error) {
  int64_t per_row, once, bytes;
  if (!tensor->data)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: %s of layer %lld has no data", name,
                            (long long)layer);
  if (!has_shape(tensor, rows, cols))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: %s of layer %lld is not %lld x %lld", name,
                            (long long)layer, (long long)rows, (long long)cols);
  if ((vector && tensor->storage != DFLASH_STORAGE_F32) || !storage_bytes(tensor->storage, cols, &per_row, &once))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "blas: %s of layer %lld has storage %d, which cannot hold it", name, (long long)layer,
                            (int)tensor->storage);
  if (!dflash_mul_i64(per_row, rows, &bytes) || !dflash_add_i64(bytes, once, &bytes) || tensor->bytes < (uint64_t)bytes)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: %s of layer %lld has %llu bytes, too few", name,
                            (long long)layer, (unsigned long long)tensor->bytes);
  return DFLASH_OK;
}

DflashSourceQ8 dflash_source_q8(const DflashTensor *tensor, int64_t rows, int64_t cols) {
  const unsigned char *data = tensor->data;
  return (DflashSourceQ8){
      .values = tensor->data, .row_scales = data + rows * cols, .columns = data + rows * cols + 2 * rows};
}

DflashSourceQ4 dflash_source_q4(const DflashTensor *tensor, int64_t rows, int64_t cols) {
  const unsigned char *data = tensor->data;
  const int64_t groups = cols / 32;
  return (DflashSourceQ4){.nibbles = data,
                          .ladders = data + rows * groups * 16,
                          .codes = data + rows * groups * 16 + rows * 4,
                          .groups = groups,
                          .code_bytes = code_bytes(groups)};
}

/* exp2 correctly rounded to f32: libm's f64 value is within a unit of f64, rounded once. */
void dflash_source_q4_rungs(const DflashSourceQ4 *source, int64_t row, float rungs[Q4_RUNGS]) {
  const float factor = (float)exp2((double)dflash_source_f16_at(source->ladders, 2 * row + 1));
  rungs[0] = (float)exp2((double)dflash_source_f16_at(source->ladders, 2 * row));
  for (int c = 1; c < Q4_RUNGS; c++) rungs[c] = rungs[c - 1] * factor;
}

int dflash_source_q4_code(const DflashSourceQ4 *source, int64_t row, int64_t group) {
  const unsigned char *codes = source->codes + row * source->code_bytes + group * 5 / 8;
  const int bit = (int)(group * 5 % 8);
  unsigned window = codes[0];
  if (bit > 3) window |= (unsigned)codes[1] << 8;
  return (int)(window >> bit & 31);
}

static void q4_values(const DflashSourceQ4 *source, int64_t row, int64_t begin, int64_t count,
                      const float rungs[Q4_RUNGS], float *out) {
  const unsigned char *nibbles = source->nibbles + (row * source->groups * 32 + begin) / 2;
  for (int64_t g = 0; g < count / 32; g++, nibbles += 16, out += 32) {
    const float scale = rungs[dflash_source_q4_code(source, row, begin / 32 + g)];
    for (int i = 0; i < 16; i++) {
      out[2 * i] = (float)((nibbles[i] & 15) - 8) * scale;
      out[2 * i + 1] = (float)((nibbles[i] >> 4) - 8) * scale;
    }
  }
}

static void q8_values(const DflashSourceQ8 *source, int64_t cols, int64_t row, int64_t begin, int64_t count,
                      float *out) {
  const double scale = dflash_source_f16_at(source->row_scales, row);
  const int8_t *values = source->values + row * cols + begin;
  for (int64_t i = 0; i < count; i++)
    out[i] = (float)(values[i] * scale * dflash_source_f16_at(source->columns, begin + i));
}

static void bf16_values(const unsigned char *data, int64_t count, float *out) {
  for (int64_t i = 0; i < count; i++) {
    uint16_t bits;
    memcpy(&bits, data + 2 * i, sizeof bits);
    const uint32_t wide = (uint32_t)bits << 16;
    memcpy(out + i, &wide, sizeof wide);
  }
}

void dflash_source_values(const DflashTensor *tensor, int64_t rows, int64_t cols, int64_t row, int64_t begin,
                          int64_t count, const float rungs[Q4_RUNGS], float *out) {
  const unsigned char *data = tensor->data;
  const int64_t at = row * cols + begin;
  if (tensor->storage == DFLASH_STORAGE_F32) {
    memcpy(out, data + 4 * at, (size_t)count * 4);
  } else if (tensor->storage == DFLASH_STORAGE_F16) {
    for (int64_t i = 0; i < count; i++) out[i] = dflash_source_f16_at(data, at + i);
  } else if (tensor->storage == DFLASH_STORAGE_BF16) {
    bf16_values(data + 2 * at, count, out);
  } else if (tensor->storage == DFLASH_STORAGE_Q8_2F) {
    const DflashSourceQ8 source = dflash_source_q8(tensor, rows, cols);
    q8_values(&source, cols, row, begin, count, out);
  } else {
    const DflashSourceQ4 source = dflash_source_q4(tensor, rows, cols);
    q4_values(&source, row, begin, count, rungs, out);
  }
}
