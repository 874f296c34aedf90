/* Attention of a block's rows to the context before the anchor and to every row of the block. */
#include "reference.h"

#include <math.h>
#include <string.h>

/* The keys that one block row sees with one head: context rows from `begin` on, then the block's. */
typedef struct Keys {
  const float *context_k, *context_v, *block_k, *block_v; /* row 0, this kv head */
  int64_t stride;                                         /* from a row to the next */
  int64_t begin, context, block;                          /* first context row, how many, block rows */
} Keys;

/* Of first <= p < min(anchor, first + len), those that the window of position anchor + row leaves. */
static void see_context(const DflashModel *model, const DflashStageCall *call, int64_t row, Keys *keys) {
  const int64_t window = dflash_geometry_window(&model->geometry, call->layer);
  const int64_t held_end = call->context_first + call->context_len;
  const int64_t end = call->position < held_end ? call->position : held_end;
  int64_t begin = call->context_first;
  if (window > 0 && call->position + row + 1 - window > begin) begin = call->position + row + 1 - window;
  keys->begin = begin - call->context_first;
  keys->context = end > begin ? end - begin : 0;
}

static Keys keys_of(const DflashModel *model, const DflashStageCall *call, int64_t row, int64_t kv_head) {
  const int64_t offset = kv_head * model->geometry.head_dim;
  Keys keys = {.block_k = call->inputs[1] + offset,
               .block_v = call->inputs[2] + offset,
               .stride = model->geometry.kv_heads * model->geometry.head_dim,
               .block = call->rows};
  see_context(model, call, row, &keys);
  if (keys.context > 0) {
    keys.context_k = call->inputs[3] + offset;
    keys.context_v = call->inputs[4] + offset;
  }
  return keys;
}

static const float *key_at(const Keys *keys, int64_t j) {
  return j < keys->context ? keys->context_k + (keys->begin + j) * keys->stride
                           : keys->block_k + (j - keys->context) * keys->stride;
}

static const float *value_at(const Keys *keys, int64_t j) {
  return j < keys->context ? keys->context_v + (keys->begin + j) * keys->stride
                           : keys->block_v + (j - keys->context) * keys->stride;
}

/* softmax(scale * q . k) . v in two passes over the keys; a score is computed in both, so no row of scores is
 * kept. The largest score is subtracted: exp sees nothing above 0. */
static void attend(const Keys *keys, const float *q, int64_t head_dim, float *out) {
  const float scale = (float)(1 / sqrt((double)head_dim));
  const int64_t count = keys->context + keys->block;
  float largest = -INFINITY, total = 0;
  for (int64_t j = 0; j < count; j++) {
    const float score = reference_dot(q, key_at(keys, j), head_dim) * scale;
    if (score > largest) largest = score;
  }
  memset(out, 0, (size_t)head_dim * sizeof *out);
  for (int64_t j = 0; j < count; j++) {
    const float *value = value_at(keys, j);
    const float weight = expf(reference_dot(q, key_at(keys, j), head_dim) * scale - largest);
    total += weight;
    for (int64_t i = 0; i < head_dim; i++) out[i] += weight * value[i];
  }
  for (int64_t i = 0; i < head_dim; i++) out[i] /= total;
}

void reference_stage_attention(DflashModel *model, const DflashStageCall *call) {
  const DflashGeometry *g = &model->geometry;
  for (int64_t row = 0; row < call->rows; row++)
    for (int64_t head = 0; head < g->heads; head++) {
      const Keys keys = keys_of(model, call, row, head / dflash_geometry_rep(g));
      const int64_t offset = (row * g->heads + head) * g->head_dim;
      attend(&keys, call->inputs[0] + offset, g->head_dim, call->output + offset);
    }
}
