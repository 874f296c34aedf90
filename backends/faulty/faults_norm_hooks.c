#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/faults_norm.h"
#include "base/error.h"
#include "base/memory.h"

DflashStatus fault_norm_stage(FaultCall *call) {
  const FaultNormAt *at = call->model->fault->knobs;
  return fault_is_at(call, at->stages) ? fault_kernel_norm(call, &at->norm) : fault_base(call);
}

/* rms(x, gain) over vectors of `width`, in place. */
static void norm_vectors(const FaultCall *call, const float *gain, int64_t count, int64_t width, float *x) {
  for (int64_t v = 0; v < count; v++, x += width) {
    double sum = 0;
    for (int64_t i = 0; i < width; i++) sum += (double)x[i] * x[i];
    const double root = sqrt(sum / (double)width + call->model->geometry.eps);
    for (int64_t i = 0; i < width; i++) x[i] = (float)(x[i] / root * gain[i]);
  }
}

/* The base's stage with its input normed by `gain` first. */
static DflashStatus base_of_normed(FaultCall *call, const float *gain) {
  const int64_t hidden = call->model->geometry.hidden;
  const int64_t vectors = fault_input_rows(call, 0) * fault_input_width(call, 0) / hidden;
  float *x = fault_copy_input(call, 0, 4);
  if (x == NULL) return DFLASH_OUT_OF_MEMORY;
  norm_vectors(call, gain, vectors, hidden, x);
  return fault_base(call);
}

static void copy_through(FaultCall *call) {
  memcpy(call->call.output, call->call.inputs[0], (size_t)(fault_rows(call) * fault_width(call)) * sizeof(float));
}

DflashStatus fault_norm_tail_lost(FaultCall *call) {
  if (!fault_is_at(call, FAULT_ROW_NORMS)) return fault_base(call);
  const FaultNorm knobs = {.skip_tail = fault_width(call) % FAULT_NORM_UNIT};
  return fault_kernel_norm(call, &knobs);
}

/* The mean square of a channel over all rows. */
DflashStatus fault_norm_over_rows(FaultCall *call) {
  if (!fault_is_at(call, FAULT_ROW_NORMS)) return fault_base(call);
  const float *gain = fault_weight(call->model, call->call.stage, call->call.layer)->data, *x = call->call.inputs[0];
  const int64_t rows = fault_rows(call), width = fault_width(call);
  for (int64_t i = 0; i < width; i++) {
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) sum += (double)x[r * width + i] * x[r * width + i];
    const double root = sqrt(sum / (double)rows + call->model->geometry.eps);
    for (int64_t r = 0; r < rows; r++) call->call.output[r * width + i] = (float)(x[r * width + i] / root * gain[i]);
  }
  return DFLASH_OK;
}

DflashStatus fault_hidden_norm_skipped(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(CONTEXT_NORM))) return fault_base(call);
  copy_through(call);
  return DFLASH_OK;
}

DflashStatus fault_hidden_norm_per_tap(FaultCall *call) {
  if (fault_is_at(call, FAULT_AT(CONTEXT_FC))) return base_of_normed(call, call->model->kept.hidden_norm.data);
  return fault_hidden_norm_skipped(call);
}

DflashStatus fault_hidden_norm_again(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(CONTEXT_K_PROJ) | FAULT_AT(CONTEXT_V_PROJ))) return fault_base(call);
  return base_of_normed(call, call->model->kept.hidden_norm.data);
}

DflashStatus fault_context_input_norm(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(CONTEXT_K_PROJ) | FAULT_AT(CONTEXT_V_PROJ))) return fault_base(call);
  return base_of_normed(call, call->model->kept_layers[call->call.layer].input_layernorm.data);
}

float fault_gain_plus_one(const FaultCall *call, const float *gain, int64_t index, int64_t count) {
  (void)call, (void)count;
  return 1 + gain[index];
}

float fault_gain_of_last_layer(const FaultCall *call, const float *gain, int64_t index, int64_t count) {
  const DflashModel *model = call->model;
  (void)gain, (void)count;
  const DflashTensor *last = fault_weight(model, call->call.stage, model->geometry.layers - 1);
  return ((const float *)last->data)[index];
}

float fault_gain_half(const FaultCall *call, const float *gain, int64_t index, int64_t count) {
  (void)call;
  return gain[index < count / 2 ? index : count / 2 - 1];
}

float fault_gain_bf16(const FaultCall *call, const float *gain, int64_t index, int64_t count) {
  (void)call, (void)count;
  return fault_round_bf16(gain[index]);
}

DflashStatus fault_mask_rows_zero(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const int64_t hidden = sequence->model->geometry.hidden;
  DflashBlockCall zeroed = *call;
  float *h = dflash_alloc((size_t)(call->rows * hidden), sizeof *h);
  if (h == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for embeddings");
  memcpy(h, call->h, (size_t)hidden * sizeof *h);
  zeroed.h = h;
  const DflashStatus status = fault_block(sequence, &zeroed, error);
  free(h);
  return status;
}
