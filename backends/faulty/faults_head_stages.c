/* The head and the selector's projection: other rows, parts of them, too little precision. */
#include "backends/faulty/faults_head.h"

#include <string.h>

static int64_t clamp_row(int64_t row, int64_t rows) { return row < 0 ? 0 : row >= rows ? rows - 1 : row; }

/* Row r of the copy is row r + add of x. */
static void shift_rows(float *copy, const float *x, int64_t rows, int64_t width, int64_t add) {
  for (int64_t r = 0; r < rows; r++)
    memcpy(copy + r * width, x + clamp_row(r + add, rows) * width, (size_t)width * sizeof *copy);
}

DflashStatus fault_head_rows(FaultCall *call) {
  const FaultHead *head = call->model->fault->knobs;
  if (call->call.stage != head->at) return fault_base(call);
  const int64_t rows = fault_input_rows(call, 0), width = fault_input_width(call, 0);
  const float *x = call->call.inputs[0];
  if (head->input != 0) {
    const float *value = fault_block_value(call, head->input, call->model->geometry.layers - 1);
    if (value != NULL) x = value;
  }
  float *copy = fault_scratch(call, 2, rows * width);
  if (copy == NULL) return DFLASH_OUT_OF_MEMORY;
  shift_rows(copy, x, rows, width, head->rows_from_end ? rows - 1 - call->call.n_draft : head->rows_add);
  if (head->half_columns != 0)
    for (int64_t r = 0; r < rows; r++) {
      const int64_t columns = width / head->half_columns;
      memset(copy + r * width + columns, 0, (size_t)(width - columns) * sizeof *copy);
    }
  call->call.inputs[0] = copy;
  return fault_base(call);
}

/* Columns from `first` on of every row become zero. */
static void clear_columns(FaultCall *call, int64_t first) {
  const int64_t width = fault_width(call);
  for (int64_t r = 0; r < fault_rows(call); r++)
    memset(call->call.output + r * width + first, 0, (size_t)(width - first) * sizeof(float));
}

DflashStatus fault_head_half(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK && call->call.stage == DFLASH_STAGE_HEAD_LOGITS) clear_columns(call, fault_width(call) / 2);
  return status;
}

DflashStatus fault_head_tail(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK && call->call.stage == DFLASH_STAGE_HEAD_LOGITS)
    clear_columns(call, fault_width(call) / 64 * 64);
  return status;
}

/* The right logits of `width` tokens in the scratch. */
static DflashStatus logits_aside(FaultCall *call, int64_t width, float **logits) {
  FaultCall aside = *call;
  *logits = fault_scratch(call, 2, call->call.n_draft * width);
  if (*logits == NULL) return DFLASH_OUT_OF_MEMORY;
  aside.call.head_width = width;
  aside.call.output = *logits;
  return fault_base(&aside);
}

DflashStatus fault_head_pitch(FaultCall *call) {
  float *logits;
  if (call->call.stage != DFLASH_STAGE_HEAD_LOGITS) return fault_base(call);
  const DflashStatus status = logits_aside(call, call->model->geometry.vocab, &logits);
  if (status != DFLASH_OK) return status;
  memcpy(call->call.output, logits, (size_t)(fault_rows(call) * fault_width(call)) * sizeof *logits);
  return DFLASH_OK;
}

DflashStatus fault_head_ids(FaultCall *call) {
  float *logits;
  if (call->call.stage != DFLASH_STAGE_HEAD_LOGITS) return fault_base(call);
  const int64_t width = fault_width(call);
  const DflashStatus status = logits_aside(call, width, &logits);
  if (status != DFLASH_OK) return status;
  for (int64_t r = 0; r < fault_rows(call); r++)
    for (int64_t id = 0; id < width; id++)
      call->call.output[r * width + id] = logits[r * width + (id + 1 < width ? id + 1 : id)];
  return DFLASH_OK;
}

DflashStatus fault_head_last_row(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  const int64_t rows = fault_rows(call), width = fault_width(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_HEAD_LOGITS || rows < 2) return status;
  float *last = call->call.output + (rows - 1) * width;
  memcpy(last, last - width, (size_t)width * sizeof *last);
  return DFLASH_OK;
}

DflashStatus fault_head_stale_row(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_HEAD_LOGITS) return status;
  const int64_t width = fault_width(call);
  memset(call->call.output + (fault_rows(call) - 1) * width, 0, (size_t)width * sizeof(float));
  return DFLASH_OK;
}

DflashStatus fault_selector_part(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK && call->call.stage == DFLASH_STAGE_SELECTOR_HIDDEN)
    clear_columns(call, fault_width(call) / 2);
  return status;
}

DflashStatus fault_selector_transposed(FaultCall *call) {
  const int64_t rows = fault_rows(call), width = fault_width(call);
  if (call->call.stage != DFLASH_STAGE_SELECTOR_HIDDEN) return fault_base(call);
  FaultCall aside = *call;
  aside.call.output = fault_scratch(call, 2, rows * width);
  if (aside.call.output == NULL) return DFLASH_OUT_OF_MEMORY;
  const DflashStatus status = fault_base(&aside);
  for (int64_t r = 0; status == DFLASH_OK && r < rows; r++)
    for (int64_t i = 0; i < width; i++) call->call.output[i * rows + r] = aside.call.output[r * width + i];
  return status;
}

DflashStatus fault_head_precision(FaultCall *call) {
  const FaultPrecision *knobs = call->model->fault->knobs;
  return call->call.stage == knobs->at ? fault_kernel_matrix(call, &knobs->matrix) : fault_base(call);
}

float fault_sum_f16(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  float sum = 0;
  (void)call, (void)out;
  for (int64_t i = 0; i < count; i++) sum = fault_round_f16(sum + w[i] * x[i]);
  return sum;
}

float fault_sum_bf16(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  float sum = 0;
  (void)call, (void)out;
  for (int64_t i = 0; i < count; i++) sum = fault_round_bf16(sum + w[i] * x[i]);
  return sum;
}
