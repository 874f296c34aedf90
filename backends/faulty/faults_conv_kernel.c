/* The dynamic kernels: the projection's layout, and what it is made of. */
#include <string.h>

#include "backends/faulty/faults_conv.h"

static bool is_kernel(const FaultCall *call) { return fault_is_at(call, FAULT_AT(ATTN_KERNEL) | FAULT_AT(MLP_KERNEL)); }

/* The right value goes to the scratch; the caller writes the output from it. */
static DflashStatus kernel_aside(FaultCall *call, const float **value) {
  FaultCall aside = *call;
  aside.call.output = fault_scratch(call, 2, fault_rows(call) * fault_width(call));
  if (aside.call.output == NULL) return DFLASH_OUT_OF_MEMORY;
  *value = aside.call.output;
  return fault_base(&aside);
}

DflashStatus fault_kernel_row_fastest(FaultCall *call) {
  const float *value;
  if (!is_kernel(call)) return fault_base(call);
  const DflashStatus status = kernel_aside(call, &value);
  if (status != DFLASH_OK) return status;
  const int64_t rows = fault_rows(call), width = fault_width(call);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < width; i++) call->call.output[i * rows + r] = value[r * width + i];
  return DFLASH_OK;
}

/* [tap][side][group] for [side][tap][group] */
DflashStatus fault_kernel_tap_side(FaultCall *call) {
  const float *value;
  if (!is_kernel(call)) return fault_base(call);
  const DflashStatus status = kernel_aside(call, &value);
  if (status != DFLASH_OK) return status;
  const int64_t groups = dflash_geometry_groups(&call->model->geometry), taps = call->model->geometry.conv_kernel;
  for (int64_t i = 0; i < fault_rows(call) * 2 * taps; i++) {
    const int64_t row = i / (2 * taps), side = i / taps % 2, tap = i % taps;
    memcpy(call->call.output + (row * 2 * taps + tap * 2 + side) * groups, value + i * groups,
           (size_t)groups * sizeof *value);
  }
  return DFLASH_OK;
}

DflashStatus fault_kernel_zero(FaultCall *call) {
  if (!is_kernel(call)) return fault_base(call);
  memset(call->call.output, 0, (size_t)(fault_rows(call) * fault_width(call)) * sizeof(float));
  return DFLASH_OK;
}

DflashStatus fault_kernel_unnormed(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_MLP_KERNEL) return fault_base(call);
  return fault_base_from(call, 0, DFLASH_STAGE_ATTN_OUT, call->call.layer);
}

DflashStatus fault_kernel_first_row(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || !is_kernel(call)) return status;
  const int64_t width = fault_width(call);
  for (int64_t r = 1; r < fault_rows(call); r++)
    memcpy(call->call.output + r * width, call->call.output, (size_t)width * sizeof(float));
  return DFLASH_OK;
}

DflashStatus fault_kernel_first_layer(FaultCall *call) {
  return fault_base_as(call, call->call.stage, is_kernel(call) ? 0 : call->call.layer);
}
