#include <math.h>
#include <string.h>

#include "backends/faulty/faults_matrix.h"

DflashStatus fault_matrix_stage(FaultCall *call) {
  const FaultMatrixAt *at = call->model->fault->knobs;
  return fault_is_at(call, at->stages) ? fault_kernel_matrix(call, &at->matrix) : fault_base(call);
}

DflashStatus fault_change_stage(FaultCall *call) {
  const FaultChangeAt *at = call->model->fault->knobs;
  if (!fault_is_at(call, at->stages)) return fault_base(call);
  if (at->input != NULL) {
    float *x = fault_copy_input(call, 0, 4);
    if (x == NULL) return DFLASH_OUT_OF_MEMORY;
    at->input(call, x, fault_input_rows(call, 0), fault_input_width(call, 0));
  }
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK && at->output != NULL)
    at->output(call, call->call.output, fault_rows(call), fault_width(call));
  return status;
}

/* A stage of the same inputs, computed into scratch; NULL on error. */
static float *other_stage(FaultCall *call, int32_t stage, int slot) {
  FaultCall other = *call;
  other.call.stage = stage;
  other.call.output = fault_scratch(call, slot, fault_rows(&other) * fault_width(&other));
  return other.call.output != NULL && fault_base(&other) == DFLASH_OK ? other.call.output : NULL;
}

/* One of the two stages whose values stand side by side in a row, K first. */
typedef struct Pair {
  const float *k, *v;
  int64_t rows, width;
  bool second;
} Pair;

static DflashStatus open_pair(FaultCall *call, int32_t k_stage, int32_t v_stage, Pair *pair) {
  pair->k = other_stage(call, k_stage, 4);
  pair->v = other_stage(call, v_stage, 5);
  pair->rows = fault_rows(call);
  pair->width = fault_width(call);
  pair->second = call->call.stage == v_stage;
  return pair->k != NULL && pair->v != NULL ? DFLASH_OK : DFLASH_INTERNAL;
}

/* The rows [K, V] taken as one run of rows of half the width: row r of K is row r of the run. */
DflashStatus fault_kv_copied_flat(FaultCall *call) {
  Pair pair;
  if (!fault_is_at(call, FAULT_AT(CONTEXT_K_PROJ) | FAULT_AT(CONTEXT_V_PROJ))) return fault_base(call);
  const DflashStatus status = open_pair(call, DFLASH_STAGE_CONTEXT_K_PROJ, DFLASH_STAGE_CONTEXT_V_PROJ, &pair);
  for (int64_t r = 0; status == DFLASH_OK && r < pair.rows; r++) {
    const int64_t part = r + (pair.second ? 1 : 0);
    const float *from = (part % 2 == 0 ? pair.k : pair.v) + part / 2 * pair.width;
    memcpy(call->call.output + r * pair.width, from, (size_t)pair.width * sizeof *from);
  }
  return status;
}

/* The fused matrix has K and V of head 0, then of head 1; it is cut into halves. */
DflashStatus fault_kv_heads_interleaved(FaultCall *call) {
  const int64_t head_dim = call->model->geometry.head_dim, heads = call->model->geometry.kv_heads;
  Pair pair;
  DflashStatus status;
  if (fault_is_at(call, FAULT_AT(CONTEXT_K_PROJ) | FAULT_AT(CONTEXT_V_PROJ)))
    status = open_pair(call, DFLASH_STAGE_CONTEXT_K_PROJ, DFLASH_STAGE_CONTEXT_V_PROJ, &pair);
  else if (fault_is_at(call, FAULT_AT(ATTN_K_PROJ) | FAULT_AT(ATTN_V_PROJ)))
    status = open_pair(call, DFLASH_STAGE_ATTN_K_PROJ, DFLASH_STAGE_ATTN_V_PROJ, &pair);
  else
    return fault_base(call);
  for (int64_t i = 0; status == DFLASH_OK && i < pair.rows * heads; i++) {
    const int64_t part = i % heads + (pair.second ? heads : 0);
    const float *from = (part % 2 == 0 ? pair.k : pair.v) + i / heads * pair.width + part / 2 * head_dim;
    memcpy(call->call.output + i * head_dim, from, (size_t)head_dim * sizeof *from);
  }
  return status;
}

/* Rows [q, k, v] copied as one run: q's row r begins where r rows of q's own width end. */
DflashStatus fault_qkv_copied_flat(FaultCall *call) {
  const DflashGeometry *g = &call->model->geometry;
  const int64_t q_width = g->heads * g->head_dim, kv = g->kv_heads * g->head_dim, pitch = q_width + 2 * kv;
  if (!fault_is_at(call, FAULT_AT(ATTN_Q_PROJ))) return fault_base(call);
  const float *q = other_stage(call, DFLASH_STAGE_ATTN_Q_PROJ, 4), *k = other_stage(call, DFLASH_STAGE_ATTN_K_PROJ, 5),
              *v = other_stage(call, DFLASH_STAGE_ATTN_V_PROJ, 6);
  if (q == NULL || k == NULL || v == NULL) return DFLASH_INTERNAL;
  for (int64_t i = 0; i < fault_rows(call) * q_width; i++) {
    const int64_t row = i / pitch, at = i % pitch;
    if (at < q_width)
      call->call.output[i] = q[row * q_width + at];
    else
      call->call.output[i] = at < q_width + kv ? k[row * kv + at - q_width] : v[row * kv + at - q_width - kv];
  }
  return DFLASH_OK;
}

/* Rows with an element above 4096 are to be scaled down by 2 to a power; the result is scaled up, the rows are not. */
DflashStatus fault_scale_not_applied(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || !fault_is_at(call, FAULT_AT(CONTEXT_FC))) return status;
  float largest = 0;
  for (int64_t i = 0; i < fault_input_rows(call, 0) * fault_input_width(call, 0); i++)
    largest = fmaxf(largest, fabsf(call->call.inputs[0][i]));
  float scale = 1;
  while (largest * scale > 4096) scale /= 2;
  for (int64_t i = 0; i < fault_rows(call) * fault_width(call); i++) call->call.output[i] /= scale;
  return DFLASH_OK;
}
