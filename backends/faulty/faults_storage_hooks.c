#include "backends/faulty/faults_storage.h"
#include "base/text.h"
#include "model/storage.h"

typedef struct Row {
  const FaultDecode *decode;
  const DflashTensor *tensor; /* as stored */
  int64_t index, cols;
  float *out;
} Row;

static float f16_at(const uint8_t *data) { return dflash_f16_value((uint16_t)(data[0] | data[1] << 8)); }

static void read_ladder(const FaultQ4tpReader *reader, const FaultQ4tp *view, int64_t row,
                        float rungs[FAULT_Q4TP_RUNGS]) {
  const uint8_t *pair = view->ladders + 4 * row;
  const float lo = f16_at(pair), step = f16_at(pair + 2);
  const bool flushed = reader->flush_step && (pair[3] & 0x7c) == 0;
  if (flushed || reader->ladder_swapped) {
    const uint16_t lo_bits = (uint16_t)(pair[0] | pair[1] << 8), step_bits = (uint16_t)(pair[2] | pair[3] << 8);
    dflash_q4tp_ladder(flushed ? lo_bits : step_bits, flushed ? 0 : lo_bits, rungs);
  } else if (reader->ladder != NULL) {
    reader->ladder(lo, step, rungs);
  } else {
    fault_q4tp_ladder(view, row, rungs);
  }
}

static void read_q4tp(const Row *row) {
  const FaultQ4tpReader *reader = row->decode->q4tp;
  const FaultQ4tp view = fault_q4tp(row->tensor, row->tensor->data);
  float rungs[FAULT_Q4TP_RUNGS];
  read_ladder(reader, &view, row->index, rungs);
  for (int64_t i = 0; i < row->cols; i++) {
    const int64_t group = i / FAULT_Q4TP_GROUP;
    const int code =
        reader->code != NULL ? reader->code(&view, row->index, group) : fault_q4tp_code(&view, row->index, group);
    const int value =
        reader->value != NULL ? reader->value(&view, row->index, i) : fault_q4tp_value(&view, row->index, i);
    row->out[i] = (float)value * rungs[code];
  }
}

static void read_q8(const Row *row) {
  const int64_t rows = dflash_tensor_rows(row->tensor);
  FaultQ8 view = {.codes = row->tensor->data, .rows = rows, .cols = row->cols};
  view.row_scales = (const uint8_t *)view.codes + rows * row->cols;
  view.columns = view.row_scales + 2 * rows;
  for (int64_t i = 0; i < row->cols; i++) row->out[i] = row->decode->q8(&view, row->index, i);
}

static void read_u16(const Row *row) {
  const uint8_t *data = (const uint8_t *)row->tensor->data + 2 * row->index * row->cols;
  for (int64_t i = 0; i < row->cols; i++)
    row->out[i] = row->decode->u16((uint16_t)(data[2 * i] | data[2 * i + 1] << 8));
}

static void read_row(const Row *row) {
  if (row->decode->q4tp != NULL) {
    read_q4tp(row);
  } else if (row->decode->q8 != NULL) {
    read_q8(row);
  } else if (row->decode->u16 != NULL) {
    read_u16(row);
  } else {
    fault_decode_row(row->tensor, row->index, row->out);
    for (int64_t i = 0; i < row->cols; i++) row->out[i] = row->decode->value(row->out[i]);
  }
}

DflashStatus fault_decode_weight(const Fault *fault, const DflashGeometry *geometry, const char *name,
                                 DflashTensor *tensor, DflashError *error) {
  const FaultDecode *decode = fault->knobs;
  const DflashTensor stored = *tensor;
  const int64_t rows = dflash_tensor_rows(&stored), cols = dflash_tensor_cols(&stored);
  (void)geometry;
  if (stored.storage != decode->storage || stored.rank != 2) return DFLASH_OK;
  if (decode->names != NULL && !dflash_glob_match(decode->names, name)) return DFLASH_OK;
  float *values = fault_alter(tensor, DFLASH_STORAGE_F32, (uint64_t)(rows * cols) * sizeof *values, error);
  if (values == NULL) return DFLASH_OUT_OF_MEMORY;
  for (int64_t row = 0; row < rows; row++) {
    const Row one = {decode, &stored, row, cols, values + row * cols};
    read_row(&one);
  }
  return DFLASH_OK;
}
