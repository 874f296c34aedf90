#include <math.h>

#include "backends/faulty/faults_lawful.h"
#include "backends/faulty/kernel_matrix.h"
#include "model/stage_table.h"
#include "model/storage.h"

static DflashStatus by_conv(FaultCall *call, const FaultKernels *k) {
  return k->conv != NULL ? fault_kernel_conv(call, k->conv) : fault_base(call);
}

static DflashStatus by_norm(FaultCall *call, const FaultKernels *k) {
  return k->norm != NULL ? fault_kernel_norm(call, k->norm) : fault_base(call);
}

DflashStatus fault_by_kernels(FaultCall *call) {
  const FaultKernels *k = call->model->fault->knobs;
  if (dflash_stage_is_matrix(call->call.stage))
    return k->matrix != NULL ? fault_kernel_matrix(call, k->matrix) : fault_base(call);
  switch (call->call.stage) {
  case DFLASH_STAGE_ATTN_CONV_IN:
  case DFLASH_STAGE_ATTN_OUT:
  case DFLASH_STAGE_MLP_CONV_IN:
  case DFLASH_STAGE_MLP_OUT:
    return by_conv(call, k);
  case DFLASH_STAGE_ATTN_MIX:
    return k->attention != NULL ? fault_kernel_attention(call, k->attention) : fault_base(call);
  case DFLASH_STAGE_MLP_ACT:
    return k->act != NULL ? fault_kernel_act(call, k->act) : fault_base(call);
  case DFLASH_STAGE_SELECT:
    return k->select != NULL ? fault_kernel_select(call, k->select) : fault_base(call);
  default:
    return by_norm(call, k);
  }
}

/* ---- scales that are applied elsewhere ---- */

static const DflashTensor *matrix_of(const FaultCall *call) {
  return fault_weight(call->model, call->call.stage, call->call.layer);
}

/* The f16 scales of a q8_2f matrix: of its rows, then of its columns. They may stand at an odd address. */
static float q8_scale(const DflashTensor *tensor, int64_t index) {
  const uint8_t *scale = (const uint8_t *)tensor->data + tensor->shape[0] * tensor->shape[1] + 2 * index;
  return dflash_f16_value((uint16_t)(scale[0] | scale[1] << 8));
}

static void q8_codes(const FaultCall *call, int64_t row, float *w, int64_t count) {
  const int8_t *codes = (const int8_t *)matrix_of(call)->data + row * count;
  for (int64_t i = 0; i < count; i++) w[i] = codes[i];
}

static void q8_columns(const FaultCall *call, int64_t row, float *x, int64_t count) {
  const DflashTensor *tensor = matrix_of(call);
  (void)row;
  for (int64_t i = 0; i < count; i++) x[i] *= q8_scale(tensor, tensor->shape[0] + i);
}

static float q8_sum(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  return fault_sum(w, x, count, FAULT_ORDER_LANES, false) * q8_scale(matrix_of(call), out);
}

static void q4_codes(const FaultCall *call, int64_t row, float *w, int64_t count) {
  const DflashTensor *tensor = matrix_of(call);
  const FaultQ4tp view = fault_q4tp(tensor, tensor->data);
  for (int64_t i = 0; i < count; i++) w[i] = (float)fault_q4tp_value(&view, row, i);
}

static float q4_sum(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count) {
  const DflashTensor *tensor = matrix_of(call);
  const FaultQ4tp view = fault_q4tp(tensor, tensor->data);
  float rungs[FAULT_Q4TP_RUNGS], sum = 0;
  fault_q4tp_ladder(&view, out, rungs);
  for (int64_t group = 0; group < count / FAULT_Q4TP_GROUP; group++) {
    const int64_t begin = group * FAULT_Q4TP_GROUP;
    const float part = fault_sum(w + begin, x + begin, FAULT_Q4TP_GROUP, FAULT_ORDER_PAIRWISE, false);
    sum += part * rungs[fault_q4tp_code(&view, out, group)];
  }
  return sum;
}

DflashStatus fault_by_folding(FaultCall *call) {
  static const FaultMatrix q8 = {.weights = q8_codes, .input = q8_columns, .sum = q8_sum};
  static const FaultMatrix q4 = {.weights = q4_codes, .sum = q4_sum};
  const DflashTensor *tensor = dflash_stage_is_matrix(call->call.stage) ? matrix_of(call) : NULL;
  if (tensor != NULL && tensor->storage == DFLASH_STORAGE_Q8_2F) return fault_kernel_matrix(call, &q8);
  if (tensor != NULL && tensor->storage == DFLASH_STORAGE_Q4TP) return fault_kernel_matrix(call, &q4);
  return fault_base(call);
}
