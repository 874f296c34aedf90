/* The five storages: bytes, and one row decoded to f32.
 *
 * A value that needs more than 24 bits is rounded once: q4tp is nibble * rung (up to 28 bits), q8_2f is
 * (q * row) * col, where q * row is exact (up to 19 bits). */
#include "reference.h"

#include <math.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored weights are little-endian, and this code reads them in place"
#endif

enum { Q4TP_GROUP = 32, Q4TP_RUNGS = 32, Q4TP_CODE_BITS = 5 };

static int64_t code_bytes(int64_t groups) { return (groups * Q4TP_CODE_BITS + 7) / 8; }

uint64_t reference_storage_bytes(int32_t storage, int64_t rows, int64_t cols) {
  const int64_t groups = cols / Q4TP_GROUP;
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return (uint64_t)(rows * cols * 4);
  case DFLASH_STORAGE_F16:
  case DFLASH_STORAGE_BF16:
    return (uint64_t)(rows * cols * 2);
  case DFLASH_STORAGE_Q8_2F:
    return (uint64_t)(rows * cols + 2 * (rows + cols));
  case DFLASH_STORAGE_Q4TP:
    return cols % Q4TP_GROUP == 0 ? (uint64_t)(rows * (groups * Q4TP_GROUP / 2 + 4 + code_bytes(groups))) : 0;
  default:
    return 0;
  }
}

const char *reference_storage_name(int32_t storage) {
  switch (storage) {
  case DFLASH_STORAGE_F32:
    return "f32";
  case DFLASH_STORAGE_F16:
    return "f16";
  case DFLASH_STORAGE_BF16:
    return "bf16";
  case DFLASH_STORAGE_Q8_2F:
    return "q8_2f";
  default:
    return "q4tp";
  }
}

static float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Element `index` of 16-bit elements that may stand at an odd address. */
static uint32_t u16_at(const unsigned char *data, int64_t index) {
  uint16_t bits;
  memcpy(&bits, data + 2 * index, sizeof bits);
  return bits;
}

/* Exponent and fraction move to f32's places, 2^112 corrects the exponent's bias: exact, subnormals included. */
static float f16_at(const unsigned char *data, int64_t index) {
  const uint32_t bits = u16_at(data, index), magnitude = bits & 0x7fff;
  const float value = magnitude < 0x7c00 ? float_of_bits(magnitude << 13) * 0x1p112f
                                         : float_of_bits(0x7f800000 | (magnitude & 0x3ff) << 13);
  return bits & 0x8000 ? -value : value;
}

static void decode_f16(const unsigned char *data, int64_t cols, float *out) {
  for (int64_t i = 0; i < cols; i++) out[i] = f16_at(data, i);
}

static void decode_bf16(const unsigned char *data, int64_t cols, float *out) {
  for (int64_t i = 0; i < cols; i++) out[i] = float_of_bits(u16_at(data, i) << 16);
}

static void decode_q8_2f(const unsigned char *data, int64_t rows, int64_t cols, int64_t row, float *out) {
  const signed char *q = (const signed char *)data + row * cols;
  const unsigned char *row_scales = data + rows * cols, *columns = row_scales + 2 * rows;
  const float scale = f16_at(row_scales, row);
  for (int64_t i = 0; i < cols; i++) out[i] = ((float)q[i] * scale) * f16_at(columns, i);
}

/* Scales of a row's groups go up by equal steps: t[0] = 2^lo, t[c] = t[c - 1] * 2^step. */
static void make_ladder(float lo, float step, float rungs[Q4TP_RUNGS]) {
  const float factor = (float)exp2((double)step);
  rungs[0] = (float)exp2((double)lo);
  for (int c = 1; c < Q4TP_RUNGS; c++) rungs[c] = rungs[c - 1] * factor;
}

/* The 5 bits of a group's code; the next byte is read only where they reach into it. */
static int code_at(const unsigned char *codes, int64_t group) {
  const int64_t bit = group * Q4TP_CODE_BITS;
  const int shift = (int)(bit % 8);
  const int low = codes[bit / 8], high = shift > 8 - Q4TP_CODE_BITS ? codes[bit / 8 + 1] : 0;
  return (low | high << 8) >> shift & (Q4TP_RUNGS - 1);
}

/* One row of a q4tp matrix. */
typedef struct Q4tpRow {
  const unsigned char *nibbles, *codes;
  float rungs[Q4TP_RUNGS];
} Q4tpRow;

static void open_q4tp(const DflashTensor *tensor, int64_t row, Q4tpRow *out) {
  const int64_t rows = tensor->shape[0], row_bytes = tensor->shape[1] / 2, groups = tensor->shape[1] / Q4TP_GROUP;
  const unsigned char *data = tensor->data, *ladders = data + rows * row_bytes;
  out->nibbles = data + row * row_bytes;
  out->codes = ladders + 4 * rows + row * code_bytes(groups);
  make_ladder(f16_at(ladders, 2 * row), f16_at(ladders, 2 * row + 1), out->rungs);
}

static float q4tp_scale(const Q4tpRow *row, int64_t group) { return row->rungs[code_at(row->codes, group)]; }

/* Columns 2k and 2k + 1 share byte k; the low nibble comes first. */
static int q4tp_integer(const Q4tpRow *row, int64_t col) { return (row->nibbles[col / 2] >> col % 2 * 4 & 15) - 8; }

static void decode_q4tp(const DflashTensor *tensor, int64_t row, float *out) {
  Q4tpRow stored;
  open_q4tp(tensor, row, &stored);
  for (int64_t begin = 0; begin < tensor->shape[1]; begin += Q4TP_GROUP) {
    const float scale = q4tp_scale(&stored, begin / Q4TP_GROUP);
    for (int64_t i = begin; i < begin + Q4TP_GROUP; i++) out[i] = (float)q4tp_integer(&stored, i) * scale;
  }
}

void reference_decode_q4tp(const DflashTensor *tensor, int64_t row, int8_t *integers, float *scales) {
  const int64_t cols = tensor->shape[1], groups = cols / Q4TP_GROUP;
  Q4tpRow stored;
  open_q4tp(tensor, row, &stored);
  for (int64_t i = 0; i < cols; i++) integers[i] = (int8_t)q4tp_integer(&stored, i);
  for (int64_t group = 0; group < groups; group++) scales[group] = q4tp_scale(&stored, group);
}

void reference_decode_row(const DflashTensor *tensor, int64_t row, float *out) {
  const unsigned char *data = tensor->data;
  const int64_t rows = tensor->shape[0], cols = tensor->shape[1];
  switch (tensor->storage) {
  case DFLASH_STORAGE_F32:
    memcpy(out, data + 4 * row * cols, 4 * (size_t)cols);
    break;
  case DFLASH_STORAGE_F16:
    decode_f16(data + 2 * row * cols, cols, out);
    break;
  case DFLASH_STORAGE_BF16:
    decode_bf16(data + 2 * row * cols, cols, out);
    break;
  case DFLASH_STORAGE_Q8_2F:
    decode_q8_2f(data, rows, cols, row, out);
    break;
  default:
    decode_q4tp(tensor, row, out);
    break;
  }
}
