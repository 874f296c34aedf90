/* What follows a sub-layer: whose kernel, whose residual, and in which precision the stream is kept. */
#include <math.h>
#include <string.h>

#include "backends/faulty/faults_conv.h"

#define F16_MAX 65504.0F

float fault_conv_residual_f16(const FaultCall *call, const float *h, int64_t row, int64_t channel) {
  return fault_round_f16(h[row * call->model->geometry.hidden + channel]);
}

float fault_conv_residual_bf16(const FaultCall *call, const float *h, int64_t row, int64_t channel) {
  return fault_round_bf16(h[row * call->model->geometry.hidden + channel]);
}

/* Other threads already wrote the sum of the channel before where this one reads its operand. */
float fault_conv_residual_in_place(const FaultCall *call, const float *h, int64_t row, int64_t channel) {
  const int64_t index = row * call->model->geometry.hidden + channel;
  const bool late = channel % 32 == 31 && fault_now_and_then(call);
  return late ? h[index] + call->call.inputs[1][index] : h[index];
}

DflashStatus fault_conv_stage(FaultCall *call) {
  const FaultConvKnobs *knobs = call->model->fault->knobs;
  return fault_is_at(call, knobs->stages) ? fault_kernel_conv(call, &knobs->conv) : fault_base(call);
}

DflashStatus fault_conv_skipped(FaultCall *call) {
  const FaultConvKnobs *knobs = call->model->fault->knobs;
  const bool after = fault_is_at(call, FAULT_AT(ATTN_OUT) | FAULT_AT(MLP_OUT));
  const DflashStageCall *c = &call->call;
  if (!fault_is_at(call, knobs->stages)) return fault_base(call);
  for (int64_t i = 0; i < fault_rows(call) * fault_width(call); i++)
    c->output[i] = after ? c->inputs[0][i] + c->inputs[1][i] : c->inputs[0][i];
  return DFLASH_OK;
}

DflashStatus fault_conv_last_row(FaultCall *call) {
  const int64_t rows = call->call.rows, hidden = call->model->geometry.hidden;
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_ATTN_CONV_IN) return status;
  if (rows == call->model->geometry.block) return DFLASH_OK;
  const int64_t last = (rows - 1) * hidden;
  memcpy(call->call.output + last, call->call.inputs[0] + last, (size_t)hidden * sizeof(float));
  return DFLASH_OK;
}

DflashStatus fault_conv_base_first(FaultCall *call) {
  return fault_base_as(call, call->call.stage, call->call.stage == DFLASH_STAGE_ATTN_CONV_IN ? 0 : call->call.layer);
}

DflashStatus fault_conv_base_swapped(FaultCall *call) {
  const int32_t stage = call->call.stage;
  const int32_t other = stage == DFLASH_STAGE_ATTN_CONV_IN  ? DFLASH_STAGE_MLP_CONV_IN
                        : stage == DFLASH_STAGE_MLP_CONV_IN ? DFLASH_STAGE_ATTN_CONV_IN
                                                            : stage;
  return fault_base_as(call, other, call->call.layer);
}

DflashStatus fault_conv_again(FaultCall *call) {
  const float *convolved = fault_block_value(call, DFLASH_STAGE_ATTN_CONV_IN, call->call.layer);
  if (call->call.stage != DFLASH_STAGE_ATTN_OUT || convolved == NULL) return fault_base(call);
  FaultCall kernel = *call;
  kernel.call.stage = DFLASH_STAGE_ATTN_KERNEL;
  kernel.call.inputs[0] = convolved;
  kernel.call.output = fault_scratch(call, 2, fault_input_rows(call, 2) * fault_input_width(call, 2));
  if (kernel.call.output == NULL) return DFLASH_OUT_OF_MEMORY;
  const DflashStatus status = fault_base(&kernel);
  if (status != DFLASH_OK) return status;
  call->call.inputs[2] = kernel.call.output;
  return fault_base(call);
}

DflashStatus fault_conv_kernel_of_attn(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_MLP_OUT) return fault_base(call);
  return fault_base_from(call, 2, DFLASH_STAGE_ATTN_KERNEL, call->call.layer);
}

DflashStatus fault_conv_kernel_of_layer(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_ATTN_OUT) return fault_base(call);
  return fault_base_from(call, 2, DFLASH_STAGE_ATTN_KERNEL, call->call.layer - 1);
}

DflashStatus fault_conv_residual_conv(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_ATTN_OUT) return fault_base(call);
  return fault_base_from(call, 0, DFLASH_STAGE_ATTN_CONV_IN, call->call.layer);
}

DflashStatus fault_conv_residual_norm(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_ATTN_OUT) return fault_base(call);
  return fault_base_from(call, 0, DFLASH_STAGE_ATTN_NORM, call->call.layer);
}

DflashStatus fault_conv_residual_layer(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_MLP_OUT) return fault_base(call);
  return fault_base_from(call, 0, DFLASH_STAGE_MLP_OUT, call->call.layer - 1);
}

static DflashStatus change_out(FaultCall *call, float (*change)(float)) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || !fault_is_at(call, FAULT_AT(ATTN_OUT) | FAULT_AT(MLP_OUT))) return status;
  for (int64_t i = 0; i < fault_rows(call) * fault_width(call); i++)
    call->call.output[i] = change(call->call.output[i]);
  return DFLASH_OK;
}

static float clamp_f16(float value) { return fmaxf(-F16_MAX, fminf(F16_MAX, value)); }

DflashStatus fault_conv_out_f16(FaultCall *call) { return change_out(call, fault_round_f16); }

DflashStatus fault_conv_out_clamped(FaultCall *call) { return change_out(call, clamp_f16); }
