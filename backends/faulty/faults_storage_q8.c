#include <string.h>

#include "backends/faulty/faults_common.h"
#include "backends/faulty/faults_storage.h"
#include "model/storage.h"

static uint16_t bits_at(const uint8_t *data, int64_t index) {
  return (uint16_t)(data[2 * index] | data[2 * index + 1] << 8);
}

static float f16_at(const uint8_t *data, int64_t index) { return dflash_f16_value(bits_at(data, index)); }

static float code_at(const FaultQ8 *view, int64_t row, int64_t col) { return view->codes[row * view->cols + col]; }

static float scaled(const FaultQ8 *view, int64_t row, int64_t col, float code) {
  return code * f16_at(view->row_scales, row) * f16_at(view->columns, col);
}

float fault_q8_scales_swapped(const FaultQ8 *view, int64_t row, int64_t col) {
  return code_at(view, row, col) * f16_at(view->row_scales, col % view->rows) * f16_at(view->columns, row % view->cols);
}

float fault_q8_unsigned(const FaultQ8 *view, int64_t row, int64_t col) {
  return scaled(view, row, col, (uint8_t)view->codes[row * view->cols + col]);
}

float fault_q8_least_clamped(const FaultQ8 *view, int64_t row, int64_t col) {
  const float code = code_at(view, row, col);
  return scaled(view, row, col, code < -127 ? -127 : code);
}

float fault_q8_scale_bf16(const FaultQ8 *view, int64_t row, int64_t col) {
  return code_at(view, row, col) * dflash_bf16_value(bits_at(view->row_scales, row)) * f16_at(view->columns, col);
}

float fault_q8_scale_flushed(const FaultQ8 *view, int64_t row, int64_t col) {
  return code_at(view, row, col) * fault_u16_flushed(bits_at(view->row_scales, row)) *
         fault_u16_flushed(bits_at(view->columns, col));
}

float fault_q8_row_alone(const FaultQ8 *view, int64_t row, int64_t col) {
  return code_at(view, row, col) * f16_at(view->row_scales, row);
}

/* The column field taken by the row's index, as where it is applied to the sum. */
float fault_q8_column_of_output(const FaultQ8 *view, int64_t row, int64_t col) {
  return code_at(view, row, col) * f16_at(view->row_scales, row) * f16_at(view->columns, row % view->cols);
}

float fault_q8_next_row_scale(const FaultQ8 *view, int64_t row, int64_t col) {
  return code_at(view, row, col) * f16_at(view->row_scales, (row + 1) % view->rows) * f16_at(view->columns, col);
}

/* Bytes of two nibbles, low half first. */
float fault_q8_read_as_int4(const FaultQ8 *view, int64_t row, int64_t col) {
  const int64_t index = row * view->cols + col;
  const int pair = (uint8_t)view->codes[index / 2];
  return scaled(view, row, col, (float)((index % 2 == 0 ? pair & 15 : pair >> 4) - 8));
}

float fault_q8_product_bf16(const FaultQ8 *view, int64_t row, int64_t col) {
  return fault_round_bf16(scaled(view, row, col, code_at(view, row, col)));
}

float fault_q8_product_f16(const FaultQ8 *view, int64_t row, int64_t col) {
  return fault_round_f16(scaled(view, row, col, code_at(view, row, col)));
}

float fault_u16_other_codec_f16(uint16_t bits) { return dflash_bf16_value(bits); }

float fault_u16_other_codec_bf16(uint16_t bits) { return dflash_f16_value(bits); }

float fault_u16_flushed(uint16_t bits) { return (bits & 0x7c00) == 0 ? 0 : dflash_f16_value(bits); }

float fault_value_cut_to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits &= 0xffff0000;
  memcpy(&value, &bits, sizeof bits);
  return value;
}
