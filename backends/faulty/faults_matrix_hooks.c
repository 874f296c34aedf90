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
DflashStatus fault_context_kv_flat(FaultCall *call) {
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
DflashStatus fault_qkv_flat(FaultCall *call) {
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

/* The fixed part of the convolution before attention, over the context's rows. */
DflashStatus fault_context_convolved(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(CONTEXT_K_PROJ) | FAULT_AT(CONTEXT_V_PROJ))) return fault_base(call);
  const DflashGeometry *g = &call->model->geometry;
  const float *base = call->model->kept_layers[call->call.layer].attention_conv_base.data, *x = call->call.inputs[0];
  float *y = fault_copy_input(call, 0, 4);
  if (y == NULL) return DFLASH_OUT_OF_MEMORY;
  for (int64_t i = 0; i < call->call.rows * g->hidden; i++) {
    float sum = 0;
    for (int64_t o = 0; o < g->conv_kernel && o <= i / g->hidden; o++)
      sum += base[o * g->hidden + i % g->hidden] * x[i - o * g->hidden];
    y[i] = sum;
  }
  return fault_base(call);
}

DflashStatus fault_block_kv_unconvolved(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(ATTN_K_PROJ) | FAULT_AT(ATTN_V_PROJ))) return fault_base(call);
  return fault_base_from(call, 0, DFLASH_STAGE_ATTN_NORM, call->call.layer);
}

DflashStatus fault_kv_swapped(FaultCall *call) {
  switch (call->call.stage) {
  case DFLASH_STAGE_CONTEXT_K_PROJ:
    return fault_base_as(call, DFLASH_STAGE_CONTEXT_V_PROJ, call->call.layer);
  case DFLASH_STAGE_CONTEXT_V_PROJ:
    return fault_base_as(call, DFLASH_STAGE_CONTEXT_K_PROJ, call->call.layer);
  case DFLASH_STAGE_ATTN_K_PROJ:
    return fault_base_as(call, DFLASH_STAGE_ATTN_V_PROJ, call->call.layer);
  case DFLASH_STAGE_ATTN_V_PROJ:
    return fault_base_as(call, DFLASH_STAGE_ATTN_K_PROJ, call->call.layer);
  default:
    return fault_base(call);
  }
}

DflashStatus fault_layer_0_weights(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(CONTEXT_K_PROJ) | FAULT_AT(CONTEXT_V_PROJ))) return fault_base(call);
  return fault_base_as(call, call->call.stage, 0);
}

/* V is not written: what the layer before left there stays. */
DflashStatus fault_v_of_layer_before(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || !fault_is_at(call, FAULT_AT(ATTN_V_PROJ))) return status;
  const float *before = fault_block_value(call, DFLASH_STAGE_ATTN_V_PROJ, call->call.layer - 1);
  if (before != NULL)
    memcpy(call->call.output, before, (size_t)(fault_rows(call) * fault_width(call)) * sizeof *before);
  return DFLASH_OK;
}

DflashStatus fault_gate_up_swapped(FaultCall *call) {
  switch (call->call.stage) {
  case DFLASH_STAGE_MLP_GATE:
    return fault_base_as(call, DFLASH_STAGE_MLP_UP, call->call.layer);
  case DFLASH_STAGE_MLP_UP:
    return fault_base_as(call, DFLASH_STAGE_MLP_GATE, call->call.layer);
  default:
    return fault_base(call);
  }
}

/* A row as [tap][side][group]. */
DflashStatus fault_kernel_tap_before_side(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(ATTN_KERNEL) | FAULT_AT(MLP_KERNEL))) return fault_base(call);
  const int64_t taps = call->model->geometry.conv_kernel, groups = dflash_geometry_groups(&call->model->geometry);
  const float *right = other_stage(call, call->call.stage, 4);
  if (right == NULL) return DFLASH_INTERNAL;
  for (int64_t i = 0; i < fault_rows(call) * 2 * taps; i++) {
    const int64_t side = i / taps % 2, tap = i % taps;
    float *to = call->call.output + (i / (2 * taps) * 2 * taps + tap * 2 + side) * groups;
    memcpy(to, right + i * groups, (size_t)groups * sizeof *to);
  }
  return DFLASH_OK;
}

/* The value as [column][row]. */
DflashStatus fault_kernel_by_column(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(ATTN_KERNEL) | FAULT_AT(MLP_KERNEL))) return fault_base(call);
  const int64_t rows = fault_rows(call), width = fault_width(call);
  const float *right = other_stage(call, call->call.stage, 4);
  if (right == NULL) return DFLASH_INTERNAL;
  for (int64_t i = 0; i < rows * width; i++) call->call.output[i] = right[i % rows * width + i / rows];
  return DFLASH_OK;
}

/* The kernel is projected from the rows before their norm. */
DflashStatus fault_kernel_from_input(FaultCall *call) {
  if (call->call.stage == DFLASH_STAGE_MLP_KERNEL)
    return fault_base_from(call, 0, DFLASH_STAGE_ATTN_OUT, call->call.layer);
  return fault_base(call);
}

/* Side 1 of the kernel is read as if all rows of side 0 stood before it. */
DflashStatus fault_kernel_side_dense(FaultCall *call) {
  if (!fault_is_at(call, FAULT_AT(ATTN_OUT) | FAULT_AT(MLP_OUT))) return fault_base(call);
  const int64_t rows = call->call.rows, width = dflash_geometry_kernel_width(&call->model->geometry), side = width / 2;
  const float *from = call->call.inputs[2] + rows * side;
  float *kernel = fault_copy_input(call, 2, 4);
  if (kernel == NULL) return DFLASH_OUT_OF_MEMORY;
  for (int64_t r = 0; r < rows; r++) memcpy(kernel + r * width + side, from + r * side, (size_t)side * sizeof *from);
  return fault_base(call);
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

/* Rows of earlier appends never reached the drafter, their positions count. */
DflashStatus fault_push_last_chunk(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                                   DflashError *error) {
  const FaultContext *context = &sequence->context;
  const DflashGeometry *g = &sequence->model->geometry;
  const DflashStatus status = fault_push(sequence, pos, taps, rows, error);
  const size_t lost = rows > 0 && pos > context->first ? (size_t)(pos - context->first) : 0;
  const size_t bytes = lost * (size_t)(g->kv_heads * g->head_dim) * sizeof(float);
  for (int64_t layer = 0; status == DFLASH_OK && lost > 0 && layer < g->layers; layer++) {
    memset(fault_context_k(sequence, layer, 0), 0, bytes);
    memset(fault_context_v(sequence, layer, 0), 0, bytes);
  }
  return status;
}
