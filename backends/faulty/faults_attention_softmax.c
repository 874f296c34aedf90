/* Key heads, the scale, the softmax and the merge of its parts. */
#include <math.h>

#include "backends/faulty/faults_attention.h"

DflashStatus fault_attention_mix(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_ATTN_MIX) return fault_base(call);
  return fault_kernel_attention(call, call->model->fault->knobs);
}

/* ---- key heads ---- */

static int64_t head_modulo(const FaultCall *call, int64_t head) { return head % call->model->geometry.kv_heads; }
const FaultAttention fault_head_modulo = {.kv_head = head_modulo};

static int64_t head_clamped(const FaultCall *call, int64_t head) {
  const int64_t last = call->model->geometry.kv_heads - 1;
  return head < last ? head : last;
}
const FaultAttention fault_head_clamped = {.kv_head = head_clamped};

static int64_t head_shifted(const FaultCall *call, int64_t head) {
  const DflashGeometry *g = &call->model->geometry;
  return (head + 1) / dflash_geometry_rep(g) % g->kv_heads;
}
const FaultAttention fault_head_shifted = {.kv_head = head_shifted};

/* ---- the scale ---- */

static double scale_none(const FaultCall *call) {
  (void)call;
  return 1.0;
}
const FaultAttention fault_scale_none = {.scale = scale_none};

static double scale_hidden(const FaultCall *call) {
  const DflashGeometry *g = &call->model->geometry;
  return 1.0 / sqrt((double)g->hidden / (double)g->heads);
}
const FaultAttention fault_scale_hidden = {.scale = scale_hidden};

static double scale_squared(const FaultCall *call) { return 1.0 / (double)call->model->geometry.head_dim; }
const FaultAttention fault_scale_squared = {.scale = scale_squared};

static int64_t padded(int64_t size) {
  int64_t power = 1;
  while (power < size) power *= 2;
  return power;
}

static double scale_padded(const FaultCall *call) { return 1.0 / sqrt((double)padded(call->model->geometry.head_dim)); }
const FaultAttention fault_scale_padded = {.scale = scale_padded};

/* ---- the softmax ---- */

const FaultAttention fault_no_max = {.no_max = true};
const FaultAttention fault_null_key = {.null_key = true};
const FaultAttention fault_plus_one = {.denominator_add = 1.0};
const FaultAttention fault_no_division = {.no_division = true};
const FaultAttention fault_half_exp = {.f16_exp = true};
const FaultAttention fault_bf16_weights = {.bf16_weights = true};

static float weight_first_twice(const FaultCall *call, int64_t index, int64_t count, float weight) {
  (void)call;
  (void)count;
  return index == 0 ? 2.0f * weight : weight;
}
const FaultAttention fault_first_twice = {.weight = weight_first_twice};

/* ---- parts ---- */

const FaultAttention fault_merge_unscaled = {.splits = 3, .merge_unscaled = true};
const FaultAttention fault_merge_empty = {.splits = 64, .merge_empty = true};
const FaultAttention fault_stale_slots = {.slots = 8};

/* Keys past the last whole tile are lost where there is a whole one. */
static float weight_in_tiles(int64_t tile, int64_t index, int64_t count, float weight) {
  return count >= tile && index >= count / tile * tile ? 0.0f : weight;
}
static float weight_of_tail_16(const FaultCall *call, int64_t index, int64_t count, float weight) {
  (void)call;
  return weight_in_tiles(16, index, count, weight);
}
const FaultAttention fault_tail_16 = {.weight = weight_of_tail_16};

static float weight_of_tail_32(const FaultCall *call, int64_t index, int64_t count, float weight) {
  (void)call;
  return weight_in_tiles(32, index, count, weight);
}
const FaultAttention fault_tail_32 = {.weight = weight_of_tail_32};
