/* From taps to K and V: which rows are multiplied, and at which position K is rotated. */
#include <string.h>

#include "backends/faulty/faults_context.h"

/* ---- taps ---- */

/* context.fc on a copy of its input; NULL when the stage is another, or memory is out. */
static float *own_taps(FaultCall *call, DflashStatus *status) {
  *status = DFLASH_OK;
  if (call->call.stage != DFLASH_STAGE_CONTEXT_FC) {
    *status = fault_base(call);
    return NULL;
  }
  const int64_t count = call->call.rows * dflash_geometry_tap_width(&call->model->geometry);
  float *taps = fault_scratch(call, 4, count);
  if (taps == NULL) {
    *status = DFLASH_OUT_OF_MEMORY;
    return NULL;
  }
  memcpy(taps, call->call.inputs[0], (size_t)count * sizeof *taps);
  return taps;
}

static DflashStatus base_of(FaultCall *call, const float *input) {
  call->call.inputs[0] = input;
  return fault_base(call);
}

DflashStatus fault_taps_swapped(FaultCall *call) {
  const DflashGeometry *g = &call->model->geometry;
  const size_t bytes = (size_t)g->hidden * sizeof(float);
  const float *given = call->call.inputs[0];
  DflashStatus status;
  float *taps = own_taps(call, &status);
  if (taps == NULL) return status;
  for (int64_t row = 0; row < call->call.rows && g->taps.count > 1; row++) {
    const int64_t at = row * dflash_geometry_tap_width(g);
    memcpy(taps + at, given + at + g->hidden, bytes);
    memcpy(taps + at + g->hidden, given + at, bytes);
  }
  return base_of(call, taps);
}

/* ---- chunks ---- */

/* Rows of a chunk of 64 are read from the first one. */
DflashStatus fault_chunk_64(FaultCall *call) {
  enum { CHUNK = 64 };
  const int64_t width = dflash_geometry_tap_width(&call->model->geometry);
  DflashStatus status;
  float *taps = own_taps(call, &status);
  if (taps == NULL) return status;
  for (int64_t row = CHUNK; row < call->call.rows; row++)
    memcpy(taps + row * width, taps + row % CHUNK * width, (size_t)width * sizeof *taps);
  return base_of(call, taps);
}

/* ---- positions of context rows ---- */

/* The base at another position; the call stays as it is. */
static DflashStatus base_at(FaultCall *call, int64_t position) {
  FaultCall other = *call;
  other.call.position = position;
  return fault_base(&other);
}

/* Chunks of 32 rows, each at the position of the first one. */
DflashStatus fault_k_chunk_32(FaultCall *call) {
  enum { CHUNK = 32 };
  if (call->call.stage != DFLASH_STAGE_CONTEXT_K) return fault_base(call);
  const int64_t width = fault_width(call), rows = call->call.rows;
  DflashStatus status = DFLASH_OK;
  for (int64_t row = 0; status == DFLASH_OK && row < rows; row += CHUNK) {
    FaultCall chunk = *call;
    chunk.call.inputs[0] += row * width;
    chunk.call.output += row * width;
    chunk.call.rows = rows - row < CHUNK ? rows - row : CHUNK;
    status = fault_base(&chunk);
  }
  return status;
}

/* The row's index in the context for its position. A push past the end or before the first row starts at 0. */
DflashStatus fault_k_by_index(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_CONTEXT_K || !call->in_block) return fault_base(call);
  const FaultContext *context = &call->sequence->context;
  const int64_t index = call->call.position - context->first;
  return base_at(call, index >= 0 && index <= context->len ? index : 0);
}

/* The end of what is held for the position, as if nothing were rewound. */
DflashStatus fault_k_by_count(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_CONTEXT_K || !call->in_block) return fault_base(call);
  const FaultContext *context = &call->sequence->context;
  return context->len > 0 ? base_at(call, context->first + context->len) : fault_base(call);
}

static float gain_of_q(const FaultCall *call, const float *gain, int64_t index, int64_t count) {
  (void)gain;
  (void)count;
  const float *q = call->model->kept_layers[call->call.layer].q_norm.data;
  return q[index];
}
const FaultNorm fault_k_gain_of_q = {.gain = gain_of_q};
const FaultNorm fault_k_first_position = {.position_first = true};

DflashStatus fault_k_kernel(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_CONTEXT_K) return fault_base(call);
  return fault_kernel_norm(call, call->model->fault->knobs);
}
