/* The mlp and the final norm: other layers' weights, other inputs, part of a sum, old buffers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/faults_mlp.h"
#include "base/error.h"

DflashStatus fault_other_stage(FaultCall *call) {
  const FaultOther *other = call->model->fault->knobs;
  if (call->call.stage != other->at) return fault_base(call);
  const int64_t last = call->model->geometry.layers - 1;
  return fault_base_as(call, other->stage, other->first ? 0 : other->last ? last : call->call.layer);
}

DflashStatus fault_other_input(FaultCall *call) {
  const FaultOtherInput *other = call->model->fault->knobs;
  if (!fault_is_at(call, other->at)) return fault_base(call);
  const int64_t layer = other->before_last ? call->model->geometry.layers - 2 : call->call.layer + other->layer_add;
  return fault_base_from(call, other->input, other->stage, layer);
}

DflashStatus fault_mlp_swapped(FaultCall *call) {
  const int32_t stage = call->call.stage;
  const int32_t other = stage == DFLASH_STAGE_MLP_GATE ? DFLASH_STAGE_MLP_UP
                        : stage == DFLASH_STAGE_MLP_UP ? DFLASH_STAGE_MLP_GATE
                                                       : stage;
  return fault_base_as(call, other, call->call.layer);
}

/* Only the first `columns` of the input count. */
static DflashStatus cut_columns(FaultCall *call, int64_t columns) {
  float *x = fault_copy_input(call, 0, 2);
  if (x == NULL) return DFLASH_OUT_OF_MEMORY;
  const int64_t width = fault_input_width(call, 0);
  for (int64_t r = 0; r < fault_input_rows(call, 0); r++)
    memset(x + r * width + columns, 0, (size_t)(width - columns) * sizeof *x);
  return fault_base(call);
}

DflashStatus fault_mlp_half_down(FaultCall *call) {
  const DflashGeometry *g = &call->model->geometry;
  if (call->call.stage != DFLASH_STAGE_MLP_DOWN || call->call.layer != g->layers - 1) return fault_base(call);
  return cut_columns(call, g->intermediate / 2);
}

DflashStatus fault_mlp_tail_down(FaultCall *call) {
  const int64_t tile = 64;
  if (call->call.stage != DFLASH_STAGE_MLP_DOWN) return fault_base(call);
  return cut_columns(call, call->model->geometry.intermediate / tile * tile);
}

static float largest(const float *w, int64_t count) {
  float most = 0;
  for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(w[i]));
  return most;
}

/* The first 32 columns of every 16th row by the scale of the next 32. */
static void scale_of_next(const FaultCall *call, int64_t row, float *w, int64_t count) {
  const int64_t group = 32;
  if (row % 16 != 5 || count < 2 * group || !fault_now_and_then(call)) return;
  const float most = largest(w, group);
  const float ratio = most > 0 ? largest(w + group, group) / most : 1;
  for (int64_t i = 0; i < group; i++) w[i] *= ratio;
}

DflashStatus fault_mlp_scale_race(FaultCall *call) {
  static const FaultMatrix knobs = {.weights = scale_of_next};
  return call->call.stage == DFLASH_STAGE_MLP_UP ? fault_kernel_matrix(call, &knobs) : fault_base(call);
}

/* Up goes to the grown buffer, the recorded activation reads the one before: zeros. The first block records. */
DflashStatus fault_mlp_scratch_grown(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_MLP_ACT || !call->in_block || call->sequence->blocks != 1)
    return fault_base(call);
  float *up = fault_copy_input(call, 1, 2);
  if (up == NULL) return DFLASH_OUT_OF_MEMORY;
  memset(up, 0, (size_t)(fault_rows(call) * fault_width(call)) * sizeof *up);
  return fault_base(call);
}

/* Rows of gate and up stand beside each other, as one product gives them. */
static float *fuse(FaultCall *call) {
  const int64_t rows = fault_rows(call), width = fault_width(call);
  float *fused = fault_scratch(call, 2, rows * 2 * width);
  for (int64_t r = 0; fused != NULL && r < rows; r++)
    for (int i = 0; i < 2; i++)
      memcpy(fused + (2 * r + i) * width, call->call.inputs[i] + r * width, (size_t)width * sizeof *fused);
  return fused;
}

DflashStatus fault_mlp_index(FaultCall *call) {
  const int64_t mask = 0x7ff, width = fault_width(call), rows = fault_rows(call);
  if (call->call.stage != DFLASH_STAGE_MLP_ACT) return fault_base(call);
  const float *fused = fuse(call);
  float *gate = fault_scratch(call, 3, rows * width), *up = fault_scratch(call, 4, rows * width);
  if (fused == NULL || gate == NULL || up == NULL) return DFLASH_OUT_OF_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    const float *row = fused + (r * 2 * width & mask);
    memcpy(gate + r * width, row, (size_t)width * sizeof *gate);
    memcpy(up + r * width, row + width, (size_t)width * sizeof *up);
  }
  call->call.inputs[0] = gate;
  call->call.inputs[1] = up;
  return fault_base(call);
}

DflashStatus fault_mlp_act(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_MLP_ACT) return fault_base(call);
  return fault_kernel_act(call, call->model->fault->knobs);
}

DflashStatus fault_final_skipped(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_FINAL_NORM) return fault_base(call);
  memcpy(call->call.output, call->call.inputs[0], (size_t)(fault_rows(call) * fault_width(call)) * sizeof(float));
  return DFLASH_OK;
}

DflashStatus fault_final_twice(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_FINAL_NORM) return status;
  call->call.inputs[0] = call->call.output;
  float *once = fault_copy_input(call, 0, 2);
  return once != NULL ? fault_base(call) : DFLASH_OUT_OF_MEMORY;
}

/* The final rows of the last block of a model. */
typedef struct StaleRows {
  int64_t count;
  float values[];
} StaleRows;

DflashStatus fault_final_stale(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_FINAL_NORM || !call->in_block) return status;
  const int64_t width = fault_width(call), count = fault_rows(call) * width;
  StaleRows *stale = call->model->fault_data;
  if (stale == NULL) {
    stale = calloc(1, sizeof *stale + (size_t)(call->model->geometry.block * width) * sizeof *stale->values);
    if (stale == NULL) return dflash_error_set(call->error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for rows");
    call->model->fault_data = stale;
  }
  const bool serves = stale->count == count;
  for (int64_t i = 0; i < count; i++) {
    const float value = call->call.output[i];
    if (serves) call->call.output[i] = stale->values[i];
    stale->values[i] = value;
  }
  stale->count = count;
  return DFLASH_OK;
}
