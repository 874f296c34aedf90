/* Attention of a block's rows to the context before the anchor and to every row of the block. */
#include "reference.h"

#include <math.h>
#include <string.h>

/* Keys that are folded at a time where the softmax is online. */
enum { SPLIT = 32 };

/* What the block sees with one kv head, in scratch: context rows, then the block's. Row 0 sees all of it; a window
 * hides more from later rows, always at the start. */
typedef struct Keys {
  const DflashModel *model;
  int64_t count, context; /* all, and how many of them are context rows */
  float *k;               /* [count, head_dim], scaled by 2^k_exponent */
  float *v;               /* [head_dim, count], scaled by 2^v_exponent */
  int k_exponent, v_exponent;
} Keys;

/* Context rows that block row `row` sees: *begin is the first, as an index into what is held. Of first <= p <
 * min(anchor, first + len), those that the window of position anchor + row leaves. */
static int64_t see_context(const DflashModel *model, const DflashStageCall *call, int64_t row, int64_t *begin) {
  const int64_t window = dflash_geometry_window(&model->geometry, call->layer);
  const int64_t held_end = call->context_first + call->context_len;
  const int64_t end = call->position < held_end ? call->position : held_end;
  int64_t from = call->context_first;
  if (window > 0 && call->position + row + 1 - window > from) from = call->position + row + 1 - window;
  *begin = from - call->context_first;
  return end > from ? end - from : 0;
}

/* Key j is row `row` of k and v, each [rows, kv_heads, head_dim]. */
static void take_key(Keys *keys, int64_t j, const float *k, const float *v, int64_t row, int64_t kv_head) {
  const DflashGeometry *g = &keys->model->geometry;
  const int64_t at = (row * g->kv_heads + kv_head) * g->head_dim;
  memcpy(keys->k + j * g->head_dim, k + at, (size_t)g->head_dim * sizeof *k);
  for (int64_t i = 0; i < g->head_dim; i++) keys->v[i * keys->count + j] = v[at + i];
}

static Keys take_keys(DflashModel *model, const DflashStageCall *call, int64_t kv_head) {
  int64_t begin;
  Keys keys = {.model = model, .k = model->scratch.k, .v = model->scratch.v};
  keys.context = see_context(model, call, 0, &begin);
  keys.count = keys.context + call->rows;
  for (int64_t j = 0; j < keys.context; j++) take_key(&keys, j, call->inputs[3], call->inputs[4], begin + j, kv_head);
  for (int64_t r = 0; r < call->rows; r++)
    take_key(&keys, keys.context + r, call->inputs[1], call->inputs[2], r, kv_head);
  keys.k_exponent = reference_scale_operand(model, keys.k, keys.count * model->geometry.head_dim);
  keys.v_exponent = reference_scale_operand(model, keys.v, keys.count * model->geometry.head_dim);
  return keys;
}

/* A query, and its softmax so far: of the keys folded in, the largest score, and relative to it the weights' sum and
 * the weighted sum of values. */
typedef struct Query {
  const float *q; /* scaled by 2^exponent */
  int exponent;
  float largest, total;
  float *mix; /* [head_dim] */
} Query;

/* Folds keys begin .. end in. The largest score is subtracted: exp sees nothing above 0. */
static void fold(const Keys *keys, int64_t begin, int64_t end, Query *query) {
  const DflashModel *model = keys->model;
  const Summation *sums = &model->options.sums;
  const int64_t head_dim = model->geometry.head_dim, count = end - begin;
  const float scale = (float)(1 / sqrt((double)head_dim));
  float largest = query->largest, *p = model->scratch.p;
  reference_dots(sums, query->q, keys->k + begin * head_dim, head_dim, count, head_dim, p);
  for (int64_t j = 0; j < count; j++) {
    p[j] = ldexpf(p[j], -(query->exponent + keys->k_exponent)) * scale;
    if (p[j] > largest) largest = p[j];
  }
  for (int64_t j = 0; j < count; j++) p[j] = expf(p[j] - largest);
  const float kept = expf(query->largest - largest); /* 0 for the first keys */
  query->total = query->total * kept + reference_dot(sums, p, model->scratch.ones, count);
  query->largest = largest;
  reference_round_operand(model, p, count);
  reference_dots(sums, p, keys->v + begin, keys->count, head_dim, count, model->mix);
  for (int64_t i = 0; i < head_dim; i++) query->mix[i] = query->mix[i] * kept + model->mix[i];
}

/* softmax(scale * q . k) . v over keys `start` and on */
static void attend(const Keys *keys, int64_t start, Query *query) {
  const int64_t head_dim = keys->model->geometry.head_dim, split = keys->model->options.apart ? SPLIT : keys->count;
  query->largest = -INFINITY;
  query->total = 0;
  memset(query->mix, 0, (size_t)head_dim * sizeof *query->mix);
  for (int64_t begin = start; begin < keys->count; begin += split)
    fold(keys, begin, begin + split < keys->count ? begin + split : keys->count, query);
  for (int64_t i = 0; i < head_dim; i++) query->mix[i] = ldexpf(query->mix[i], -keys->v_exponent) / query->total;
}

void reference_stage_attention(DflashModel *model, const DflashStageCall *call) {
  const DflashGeometry *g = &model->geometry;
  const int64_t rep = dflash_geometry_rep(g);
  Query query = {0};
  const float *q = reference_activations(model, call->inputs[0], call->rows * g->heads * g->head_dim, &query.exponent);
  for (int64_t kv_head = 0; kv_head < g->kv_heads; kv_head++) {
    const Keys keys = take_keys(model, call, kv_head);
    for (int64_t row = 0; row < call->rows; row++) {
      int64_t begin;
      const int64_t hidden = keys.context - see_context(model, call, row, &begin);
      for (int64_t head = kv_head * rep; head < (kv_head + 1) * rep; head++) {
        const int64_t at = (row * g->heads + head) * g->head_dim;
        query.q = q + at;
        query.mix = call->output + at;
        attend(&keys, hidden, &query);
      }
    }
  }
}
