/* Exact values as f64. A q4tp value takes at most 28 bits, a q8_2f value 30: both products are exact. */
#include "model/storage_layout.h"

static void decode_f32(const unsigned char *at, int64_t count, double *out) {
  for (int64_t i = 0; i < count; i++) {
    float value;
    memcpy(&value, at + 4 * i, sizeof value);
    out[i] = (double)value;
  }
}

static void decode_f16(const unsigned char *at, int64_t count, double *out) {
  for (int64_t i = 0; i < count; i++) out[i] = (double)dflash_f16_decode(dflash_load_u16(at + 2 * i));
}

static void decode_bf16(const unsigned char *at, int64_t count, double *out) {
  for (int64_t i = 0; i < count; i++) out[i] = (double)dflash_bf16_decode(dflash_load_u16(at + 2 * i));
}

static void decode_q8(const DflashTensor *tensor, int64_t row, int64_t begin, int64_t count, double *out) {
  int64_t cols = dflash_tensor_cols(tensor);
  DflashQ8 view = dflash_q8_view(tensor->data, dflash_tensor_rows(tensor), cols);
  const int8_t *codes = view.codes + row * cols;
  double scale = (double)dflash_f16_decode(dflash_load_u16(view.rows + 2 * row));
  for (int64_t i = 0; i < count; i++) {
    double field = (double)dflash_f16_decode(dflash_load_u16(view.fields + 2 * (begin + i)));
    out[i] = codes[begin + i] * scale * field;
  }
}

static void decode_q4_group(const unsigned char nibbles[16], double scale, double out[DFLASH_Q4TP_GROUP]) {
  for (int k = 0; k < DFLASH_Q4TP_GROUP / 2; k++) {
    out[2 * k] = ((nibbles[k] & 15) - 8) * scale;
    out[2 * k + 1] = ((nibbles[k] >> 4) - 8) * scale;
  }
}

static void decode_q4tp(const DflashTensor *tensor, int64_t row, int64_t begin, int64_t count, double *out) {
  DflashQ4tp view = dflash_q4tp_view(tensor->data, dflash_tensor_rows(tensor), dflash_tensor_cols(tensor));
  float rungs[DFLASH_Q4TP_RUNGS];
  dflash_q4tp_row_ladder(&view, row, rungs);
  for (int64_t at = begin, end = begin + count; at < end;) {
    int64_t group = at / DFLASH_Q4TP_GROUP, next = (group + 1) * DFLASH_Q4TP_GROUP;
    if (next > end) next = end;
    double values[DFLASH_Q4TP_GROUP], scale = (double)rungs[dflash_q4tp_code(&view, row, group)];
    decode_q4_group(view.nibbles + (row * view.groups + group) * 16, scale, values);
    memcpy(out + (at - begin), values + at % DFLASH_Q4TP_GROUP, (size_t)(next - at) * sizeof *out);
    at = next;
  }
}

void dflash_q4tp_row(const DflashTensor *tensor, int64_t row, int16_t *codes, float *scales) {
  DflashQ4tp view = dflash_q4tp_view(tensor->data, dflash_tensor_rows(tensor), dflash_tensor_cols(tensor));
  const unsigned char *nibbles = view.nibbles + row * view.groups * (DFLASH_Q4TP_GROUP / 2);
  float rungs[DFLASH_Q4TP_RUNGS];
  dflash_q4tp_row_ladder(&view, row, rungs);
  for (int64_t g = 0; g < view.groups; g++) scales[g] = rungs[dflash_q4tp_code(&view, row, g)];
  for (int64_t k = 0; k < view.groups * (DFLASH_Q4TP_GROUP / 2); k++) {
    codes[2 * k] = (int16_t)((nibbles[k] & 15) - 8);
    codes[2 * k + 1] = (int16_t)((nibbles[k] >> 4) - 8);
  }
}

void dflash_tensor_row(const DflashTensor *tensor, int64_t row, int64_t begin, int64_t count, double *out) {
  const unsigned char *data = tensor->data;
  int64_t at = row * dflash_tensor_cols(tensor) + begin;
  switch (tensor->storage) {
  case DFLASH_STORAGE_F32:
    decode_f32(data + 4 * at, count, out);
    break;
  case DFLASH_STORAGE_F16:
    decode_f16(data + 2 * at, count, out);
    break;
  case DFLASH_STORAGE_BF16:
    decode_bf16(data + 2 * at, count, out);
    break;
  case DFLASH_STORAGE_Q8_2F:
    decode_q8(tensor, row, begin, count, out);
    break;
  default:
    decode_q4tp(tensor, row, begin, count, out);
    break;
  }
}

double dflash_tensor_at(const DflashTensor *tensor, int64_t row, int64_t col) {
  double value = 0;
  dflash_tensor_row(tensor, row, col, 1, &value);
  return value;
}
