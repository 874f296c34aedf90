#include "backends/faulty/faults_common.h"

#include <string.h>

#include "model/storage.h"

DflashStatus fault_base_as(FaultCall *call, int32_t stage, int64_t layer) {
  FaultCall other = *call;
  other.call.stage = stage;
  other.call.layer = layer;
  return fault_base(&other);
}

const float *fault_block_value(const FaultCall *call, int32_t stage, int64_t layer) {
  if (!call->in_block || layer < 0 || layer >= call->model->geometry.layers) return NULL;
  return fault_value(&call->sequence->block, stage, layer);
}

DflashStatus fault_base_from(FaultCall *call, int input, int32_t stage, int64_t layer) {
  const float *value = fault_block_value(call, stage, layer);
  if (value != NULL) call->call.inputs[input] = value;
  return fault_base(call);
}

float *fault_copy_input(FaultCall *call, int input, int slot) {
  const int64_t count = fault_input_rows(call, input) * fault_input_width(call, input);
  float *copy = fault_scratch(call, slot, count);
  if (copy == NULL) return NULL;
  memcpy(copy, call->call.inputs[input], (size_t)count * sizeof *copy);
  call->call.inputs[input] = copy;
  return copy;
}

bool fault_now_and_then(const FaultCall *call) { return call->in_block && call->model->blocks % 2 == 0; }

float fault_round_f16(float value) { return dflash_f16_value(dflash_f16_round(value)); }

float fault_round_bf16(float value) { return dflash_bf16_value(dflash_bf16_round(value)); }
