/* attn.mix in f32: scores, their maximum, exponentials, the weighted sum of values. Keys may be taken in parts that
 * are merged. The keys that a row sees are gathered first, so that every sum runs over plain arrays. */
#include <math.h>

#include "backends/faulty/kernels.h"
#include "model/storage.h"

/* Keys of one row and head, and a state of the softmax over some of them: the largest score, the sum of exponentials
 * below it and the weighted sum of values. */
typedef struct Keys {
  float *scores, *weights, *ones; /* [capacity] */
  float *columns;                 /* values [head_dim, capacity] */
  int64_t count, capacity;
} Keys;

typedef struct State {
  float largest, total;
  float *sums; /* [head_dim] */
} State;

typedef struct Work {
  const FaultCall *call;
  const FaultAttention *knobs;
  const DflashGeometry *geometry;
  int64_t row, head, kv_head;
  double scale;
  Keys keys;
  State whole, part, step;
} Work;

bool fault_attention_sees(const FaultCall *call, int64_t row, int64_t position) {
  const int64_t window = dflash_geometry_window(&call->model->geometry, call->call.layer);
  return position < call->call.position && (window == 0 || position > call->call.position + row - window);
}

static float exponential(const FaultAttention *knobs, float x) {
  if (!knobs->f16_exp) return knobs->exp2 ? exp2f(x) : expf(x);
  return dflash_f16_value(dflash_f16_round(expf(dflash_f16_value(dflash_f16_round(x)))));
}

static void add_key(Work *work, const float *k, const float *v, int64_t position) {
  const DflashGeometry *g = work->geometry;
  const float *q = work->call->call.inputs[0] + (work->row * g->heads + work->head) * g->head_dim;
  const double log2_e = 1.4426950408889634;
  double score = (double)fault_sum(q, k, g->head_dim, work->knobs->order, work->knobs->fused) * work->scale;
  if (work->knobs->score) score = work->knobs->score(work->call, work->row, work->head, position, score);
  Keys *keys = &work->keys;
  keys->scores[keys->count] = (float)(work->knobs->exp2 ? score * log2_e : score);
  for (int64_t i = 0; i < g->head_dim; i++) keys->columns[i * keys->capacity + keys->count] = v[i];
  keys->count++;
}

static void add_context(Work *work) {
  const DflashGeometry *g = work->geometry;
  const DflashStageCall *call = &work->call->call;
  const FaultAttention *knobs = work->knobs;
  for (int64_t i = 0; i < call->context_len; i++) {
    const int64_t position = call->context_first + i, offset = (i * g->kv_heads + work->kv_head) * g->head_dim;
    if (!(knobs->sees ? knobs->sees : fault_attention_sees)(work->call, work->row, position)) continue;
    const float *k = call->inputs[3] + offset, *v = call->inputs[4] + offset;
    if (knobs->key) k = knobs->key(work->call, work->kv_head, position, k);
    if (knobs->value) v = knobs->value(work->call, work->kv_head, position, v);
    add_key(work, k, v, position);
  }
}

static void add_block(Work *work) {
  const DflashGeometry *g = work->geometry;
  const DflashStageCall *call = &work->call->call;
  for (int64_t i = 0; i < call->rows; i++) {
    const int64_t offset = (i * g->kv_heads + work->kv_head) * g->head_dim;
    if (work->knobs->sees_block && !work->knobs->sees_block(work->call, work->row, i)) continue;
    add_key(work, call->inputs[1] + offset, call->inputs[2] + offset, call->position + i);
  }
}

/* The state of keys begin .. end alone. */
static void attend(Work *work, int64_t begin, int64_t end, State *state) {
  const FaultAttention *knobs = work->knobs;
  const Keys *keys = &work->keys;
  float *weights = keys->weights + begin;
  const int64_t count = end - begin;
  state->largest = knobs->no_max ? 0.0f : -INFINITY;
  for (int64_t j = begin; j < end && !knobs->no_max; j++) state->largest = fmaxf(state->largest, keys->scores[j]);
  for (int64_t j = begin; j < end; j++) {
    float weight = exponential(knobs, keys->scores[j] - state->largest);
    keys->weights[j] = knobs->weight ? knobs->weight(work->call, j, keys->count, weight) : weight;
  }
  state->total = fault_sum(weights, keys->ones, count, knobs->order, knobs->fused);
  for (int64_t j = 0; j < count && knobs->bf16_weights; j++)
    weights[j] = dflash_bf16_value(dflash_bf16_round(weights[j]));
  for (int64_t i = 0; i < work->geometry->head_dim; i++)
    state->sums[i] = fault_sum(weights, keys->columns + i * keys->capacity + begin, count, knobs->order, knobs->fused);
}

static void clear(const Work *work, State *state) {
  state->largest = work->knobs->no_max ? 0.0f : -INFINITY;
  state->total = 0.0f;
  for (int64_t i = 0; i < work->geometry->head_dim; i++) state->sums[i] = 0.0f;
}

static void merge(const Work *work, State *into, const State *part) {
  const FaultAttention *knobs = work->knobs;
  const float largest = fmaxf(into->largest, part->largest);
  float a = exponential(knobs, into->largest - largest), b = exponential(knobs, part->largest - largest);
  if (knobs->merge_unscaled) a = b = 1.0f;
  into->total = into->total * a + part->total * b;
  for (int64_t i = 0; i < work->geometry->head_dim; i++) into->sums[i] = into->sums[i] * a + part->sums[i] * b;
  into->largest = largest;
}

static void attend_online(Work *work, int64_t begin, int64_t end, State *state) {
  clear(work, state);
  for (int64_t j = begin; j < end; j++) {
    attend(work, j, j + 1, &work->step);
    merge(work, state, &work->step);
  }
}

static void attend_parts(Work *work) {
  const int64_t count = work->keys.count, splits = work->knobs->splits > 1 ? work->knobs->splits : 1;
  clear(work, &work->whole);
  for (int64_t s = 0; s < splits; s++) {
    const int64_t begin = count * s / splits, end = count * (s + 1) / splits;
    if (begin == end && !work->knobs->merge_empty) continue;
    (work->knobs->online ? attend_online : attend)(work, begin, end, &work->part);
    merge(work, &work->whole, &work->part);
  }
}

/* A slot is the largest score, the total and the sums, kept from call to call. */
static bool attend_slots(Work *work, FaultCall *call) {
  enum { TILE = 16 };
  const int64_t width = work->geometry->head_dim + 2, count = work->keys.count;
  float *slots = fault_scratch(call, 3, work->knobs->slots * width);
  if (slots == NULL) return false;
  clear(work, &work->whole);
  for (int64_t s = 0; s < work->knobs->slots; s++) {
    State slot = {slots[s * width], slots[s * width + 1], slots + s * width + 2};
    if (s * TILE < count) attend(work, s * TILE, count < (s + 1) * TILE ? count : (s + 1) * TILE, &slot);
    slots[s * width] = slot.largest;
    slots[s * width + 1] = slot.total;
    merge(work, &work->whole, &slot);
  }
  return true;
}

static void finish(const Work *work, float *out) {
  const FaultAttention *knobs = work->knobs;
  float total = work->whole.total;
  if (knobs->null_key) total += exponential(knobs, -work->whole.largest);
  if (knobs->denominator_add != 0.0) total += (float)knobs->denominator_add;
  for (int64_t i = 0; i < work->geometry->head_dim; i++)
    out[i] = knobs->no_division ? work->whole.sums[i] : work->whole.sums[i] / total;
}

static bool reserve(Work *work, FaultCall *call) {
  const int64_t head_dim = work->geometry->head_dim;
  Keys *keys = &work->keys;
  keys->capacity = call->call.context_len + call->call.rows;
  float *lines = fault_scratch(call, 0, 3 * keys->capacity);
  float *sums = fault_scratch(call, 1, 3 * head_dim);
  keys->columns = fault_scratch(call, 2, head_dim * keys->capacity);
  if (lines == NULL || sums == NULL || keys->columns == NULL) return false;
  keys->scores = lines;
  keys->weights = lines + keys->capacity;
  keys->ones = lines + 2 * keys->capacity;
  for (int64_t j = 0; j < keys->capacity; j++) keys->ones[j] = 1.0f;
  work->whole.sums = sums;
  work->part.sums = sums + head_dim;
  work->step.sums = sums + 2 * head_dim;
  return true;
}

DflashStatus fault_kernel_attention(FaultCall *call, const FaultAttention *knobs) {
  const DflashGeometry *g = &call->model->geometry;
  Work work = {.call = call, .knobs = knobs, .geometry = g, .scale = 1.0 / sqrt((double)g->head_dim)};
  if (knobs->scale) work.scale = knobs->scale(call);
  if (!reserve(&work, call)) return DFLASH_OUT_OF_MEMORY;
  for (work.row = 0; work.row < call->call.rows; work.row++)
    for (work.head = 0; work.head < g->heads; work.head++) {
      work.kv_head = knobs->kv_head ? knobs->kv_head(call, work.head) : work.head / dflash_geometry_rep(g);
      work.keys.count = 0;
      add_context(&work);
      add_block(&work);
      if (knobs->slots == 0)
        attend_parts(&work);
      else if (!attend_slots(&work, call))
        return DFLASH_OUT_OF_MEMORY;
      finish(&work, call->call.output + (work.row * g->heads + work.head) * g->head_dim);
    }
  return DFLASH_OK;
}
