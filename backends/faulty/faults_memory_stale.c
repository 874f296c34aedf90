/* What an earlier call, block or sequence left behind. */
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/faults_memory.h"
#include "base/error.h"
#include "base/memory.h"

/* The zero border before the first row holds the last row of the call before. */
DflashStatus fault_stale_border(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_ATTN_CONV_IN) return fault_base(call);
  const DflashGeometry *g = &call->model->geometry;
  const DflashTensor *tensor = fault_weight(call->model, call->call.stage, call->call.layer);
  const DflashStatus status = fault_base(call);
  float *border = fault_scratch(call, 0, g->hidden);
  if (border == NULL || tensor == NULL) return DFLASH_OUT_OF_MEMORY;
  if (status != DFLASH_OK || g->conv_kernel < 2) return status;
  const int64_t groups = dflash_geometry_groups(g);
  const float *base = tensor->data, *dynamic = call->call.inputs[1];
  for (int64_t i = 0; i < g->hidden; i++)
    call->call.output[i] += (base[g->hidden + i] + dynamic[groups + i / g->conv_group]) * border[i];
  memcpy(border, call->call.inputs[0] + (call->call.rows - 1) * g->hidden, (size_t)g->hidden * sizeof *border);
  return status;
}

/* Keys that a layer sees are cut into parts of eight; a part that no kernel wrote joins the mean of the two. */
DflashStatus fault_stale_parts(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_ATTN_MIX) return fault_base(call);
  enum { PART = 8 };
  const int64_t window = dflash_geometry_window(&call->model->geometry, call->call.layer);
  const int64_t count = fault_rows(call) * fault_width(call);
  const DflashStatus status = fault_base(call);
  float *kept = fault_scratch(call, 0, 1 + count), *output = call->call.output;
  if (kept == NULL) return DFLASH_OUT_OF_MEMORY;
  if (status != DFLASH_OK) return status;
  int64_t keys = call->call.context_len;
  if (window > 0 && keys > window) keys = window;
  const int64_t parts = keys / PART;
  for (int64_t i = 0; kept[0] > (float)parts && i < count; i++) output[i] = 0.5F * (output[i] + kept[1 + i]);
  kept[0] = (float)parts;
  memcpy(kept + 1, output, (size_t)count * sizeof *kept);
  return status;
}

/* Sums start at what the accumulators hold. */
DflashStatus fault_stale_sums(FaultCall *call) {
  const int64_t count = fault_rows(call) * fault_width(call);
  const DflashStatus status = fault_base(call);
  float *sums = fault_scratch(call, 0, count);
  if (sums == NULL) return DFLASH_OUT_OF_MEMORY;
  for (int64_t i = 0; status == DFLASH_OK && i < count; i++) call->call.output[i] = sums[i] += call->call.output[i];
  return status;
}

/* Values of the model's last block. */
typedef struct Kept {
  int64_t count;
  float values[];
} Kept;

/* Those that were kept; the new ones, which stay unchanged, are kept in their place. */
static Kept *exchange(DflashModel *model, const float *values, int64_t count) {
  Kept *before = model->fault_data;
  Kept *now = malloc(sizeof *now + (size_t)count * sizeof *values);
  if (now == NULL) return NULL;
  now->count = count;
  memcpy(now->values, values, (size_t)count * sizeof *values);
  model->fault_data = now;
  if (before == NULL || before->count == count) return before;
  free(before);
  return NULL;
}

DflashStatus fault_late_output(FaultCall *call) {
  const int64_t count = fault_rows(call) * fault_width(call);
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK) return status;
  Kept *before = exchange(call->model, call->call.output, count);
  if (before != NULL) memcpy(call->call.output, before->values, (size_t)count * sizeof(float));
  free(before);
  return DFLASH_OK;
}

DflashStatus fault_late_input(FaultCall *call) {
  Kept *before = exchange(call->model, call->call.inputs[0], fault_input_rows(call, 0) * fault_input_width(call, 0));
  if (before != NULL) call->call.inputs[0] = before->values;
  const DflashStatus status = fault_base(call);
  free(before);
  return status;
}

/* The sequence that ran the model's last block, when it is another one. */
static DflashSequence *other_of(const DflashSequence *sequence) {
  return sequence->model->last != sequence ? sequence->model->last : NULL;
}

DflashStatus fault_visible_other(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                                 int64_t *len, const float **k, const float **v, DflashError *error) {
  (void)call;
  (void)first;
  (void)error;
  const DflashSequence *other = other_of(sequence);
  if (other == NULL || other->context.len < *len || *len == 0) return DFLASH_OK;
  *k = fault_context_k(other, layer, 0);
  *v = fault_context_v(other, layer, 0);
  return DFLASH_OK;
}

DflashStatus fault_visible_spare(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                                 int64_t *len, const float **k, const float **v, DflashError *error) {
  (void)call;
  (void)layer;
  (void)first;
  (void)k;
  (void)v;
  (void)error;
  if (*len > 0 && *len < sequence->context.capacity) *len += 1;
  return DFLASH_OK;
}

/* The block's own K and V go to rows that the other sequence holds. */
DflashStatus fault_block_over_other(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const DflashSequence *other = other_of(sequence);
  const DflashGeometry *g = &sequence->model->geometry;
  const size_t bytes = (size_t)(call->rows * g->kv_heads * g->head_dim) * sizeof(float);
  const DflashStatus status = fault_block(sequence, call, error);
  if (status != DFLASH_OK || other == NULL || other->context.len < call->rows) return status;
  const int64_t row = other->context.len - call->rows;
  for (int64_t layer = 0; layer < g->layers; layer++) {
    memcpy(fault_context_k(other, layer, row), fault_value(&sequence->block, DFLASH_STAGE_ATTN_K, layer), bytes);
    memcpy(fault_context_v(other, layer, row), fault_value(&sequence->block, DFLASH_STAGE_ATTN_V_PROJ, layer), bytes);
  }
  return status;
}

/* The call returns before the last token is copied. */
DflashStatus fault_tokens_unfinished(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  int32_t *last = &call->tokens->chosen[call->n_draft - 1];
  const int32_t before = *last;
  const DflashStatus status = fault_block(sequence, call, error);
  *last = before;
  return status;
}
