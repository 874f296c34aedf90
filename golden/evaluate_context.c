/* The context state: rows of the last push are its stages' values; rows of earlier pushes, which stand before them,
 * are computed from their taps. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "evaluate_internal.h"

enum { CHUNK = 2048 }; /* rows of earlier pushes at a time: bounds the memory */

typedef struct Held {
  const DflashEvaluation *e;
  DflashValue *k, *v; /* [layers], fresh */
  int64_t old;        /* rows of earlier pushes */
} Held;

static int64_t old_rows(const DflashEvaluation *e) {
  int64_t len = e->c->sizes.context_len;
  if (e->last_push < 0) return len;
  int64_t before = e->c->ops[e->last_push].pos - e->c->context_first;
  return before < len ? before : len;
}

/* Taps of held rows begin .. begin + count: in place where they follow each other, else copied into *copy. */
static const float *gather_taps(const DflashEvaluation *e, int64_t begin, int64_t count, float **copy) {
  int64_t width = dflash_geometry_tap_width(e->options->geometry), run = 1;
  const int64_t *row = e->tap_row + begin;
  while (run < count && row[run] == row[0] + run) run++;
  if (run == count) return e->c->taps + row[0] * width;
  *copy = dflash_alloc((size_t)count, (size_t)width * sizeof(float));
  for (int64_t i = 0; *copy && i < count; i++)
    memcpy(*copy + i * width, e->c->taps + row[i] * width, (size_t)width * sizeof(float));
  return *copy;
}

static float *at(float *base, int64_t offset) { return base ? base + offset : NULL; }

static DflashStatus run(const DflashEvaluation *e, int32_t stage, int64_t layer, int64_t position, int64_t rows,
                        const DflashValue *input, const DflashValue *out, DflashError *error) {
  DflashOracleCall call = dflash_evaluation_call(e, stage, layer, position);
  call.sizes.push_rows = rows;
  call.inputs[0] = input->data, call.sigmas[0] = input->chain;
  call.value = out->data, call.alone = out->alone, call.chain = out->chain;
  return dflash_oracle_stage(&call, error);
}

static DflashStatus project_layer(const Held *held, int64_t layer, int64_t begin, int64_t count,
                                  const DflashValue *norm, const DflashValue *proj, DflashError *error) {
  const DflashGeometry *g = held->e->options->geometry;
  int64_t position = held->e->c->context_first + begin, offset = begin * g->kv_heads * g->head_dim;
  const DflashValue *fresh = &held->k[layer];
  DflashValue k = {
      .data = at(fresh->data, offset), .alone = at(fresh->alone, offset), .chain = at(fresh->chain, offset)};
  fresh = &held->v[layer];
  DflashValue v = {
      .data = at(fresh->data, offset), .alone = at(fresh->alone, offset), .chain = at(fresh->chain, offset)};
  DflashStatus status = run(held->e, DFLASH_STAGE_CONTEXT_K_PROJ, layer, position, count, norm, proj, error);
  if (status == DFLASH_OK) status = run(held->e, DFLASH_STAGE_CONTEXT_K, layer, position, count, proj, &k, error);
  if (status == DFLASH_OK) status = run(held->e, DFLASH_STAGE_CONTEXT_V_PROJ, layer, position, count, norm, &v, error);
  return status;
}

/* fc, norm and every layer of a chunk. work: values and chain sigmas of fc, norm and one projection. */
static DflashStatus project_chunk(const Held *held, int64_t begin, int64_t count, float *work, DflashError *error) {
  const DflashEvaluation *e = held->e;
  bool chain = e->options->scales_chain;
  int64_t position = e->c->context_first + begin, hidden = count * e->options->geometry->hidden;
  int64_t kv = count * e->options->geometry->kv_heads * e->options->geometry->head_dim;
  float *copy = NULL;
  DflashValue taps = {.data = (float *)gather_taps(e, begin, count, &copy)};
  DflashValue fc = {.data = work, .chain = chain ? work + hidden : NULL};
  DflashValue norm = {.data = work + 2 * hidden, .chain = chain ? work + 3 * hidden : NULL};
  DflashValue proj = {.data = work + 4 * hidden, .chain = chain ? work + 4 * hidden + kv : NULL};
  DflashStatus status = DFLASH_OK;
  if (!taps.data) status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for context rows");
  if (status == DFLASH_OK) status = run(e, DFLASH_STAGE_CONTEXT_FC, 0, position, count, &taps, &fc, error);
  if (status == DFLASH_OK) status = run(e, DFLASH_STAGE_CONTEXT_NORM, 0, position, count, &fc, &norm, error);
  for (int64_t layer = 0; status == DFLASH_OK && layer < e->c->layers; layer++)
    status = project_layer(held, layer, begin, count, &norm, &proj, error);
  free(copy);
  return status;
}

static DflashStatus project_old(const Held *held, DflashError *error) {
  const DflashGeometry *g = held->e->options->geometry;
  int64_t chunk = held->old < CHUNK ? held->old : CHUNK;
  size_t width = (size_t)(4 * g->hidden + 2 * g->kv_heads * g->head_dim);
  float *work = dflash_alloc((size_t)chunk, width * sizeof *work);
  if (!work) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for context rows");
  DflashStatus status = DFLASH_OK;
  for (int64_t begin = 0; status == DFLASH_OK && begin < held->old; begin += chunk) {
    int64_t count = held->old - begin < chunk ? held->old - begin : chunk;
    status = project_chunk(held, begin, count, work, error);
  }
  free(work);
  return status;
}

static void copy_rows(float *to, const float *from, int64_t skip, int64_t count) {
  if (to && from) memcpy(to + skip, from, (size_t)count * sizeof *to);
}

/* Rows of the last push. */
static void copy_new(const Held *held, DflashValue *fresh, int32_t stage, int64_t layer) {
  const DflashValue *from = dflash_case_value(held->e->c, stage, layer);
  int64_t skip = held->old * fresh->width, count = (fresh->rows - held->old) * fresh->width;
  if (count == 0) return;
  copy_rows(fresh->data, from->data, skip, count);
  copy_rows(fresh->alone, from->alone, skip, count);
  copy_rows(fresh->chain, from->chain, skip, count);
}

static bool wanted(const DflashValue *value) { return value->data || value->alone || value->chain; }

static DflashStatus open_values(const Held *held, bool *any, DflashError *error) {
  const DflashCase *c = held->e->c;
  DflashStatus status = DFLASH_OK;
  for (int64_t l = 0; status == DFLASH_OK && l < c->layers; l++) {
    status = dflash_evaluation_fresh(held->e, DFLASH_STAGE_HELD_K, l, &c->held_k[l], &held->k[l], error);
    if (status == DFLASH_OK)
      status = dflash_evaluation_fresh(held->e, DFLASH_STAGE_HELD_V, l, &c->held_v[l], &held->v[l], error);
    *any = *any || wanted(&held->k[l]) || wanted(&held->v[l]);
  }
  return status;
}

static void settle_values(const Held *held) {
  DflashCase *c = held->e->c;
  for (int64_t l = 0; l < c->layers; l++) {
    copy_new(held, &held->k[l], DFLASH_STAGE_CONTEXT_K, l);
    copy_new(held, &held->v[l], DFLASH_STAGE_CONTEXT_V_PROJ, l);
    dflash_evaluation_settle(held->e, DFLASH_STAGE_HELD_K, l, &c->held_k[l], &held->k[l]);
    dflash_evaluation_settle(held->e, DFLASH_STAGE_HELD_V, l, &c->held_v[l], &held->v[l]);
  }
}

DflashStatus dflash_evaluation_context_state(const DflashEvaluation *e, DflashError *error) {
  int64_t layers = e->c->layers;
  DflashValue *values = dflash_alloc((size_t)layers, 2 * sizeof *values);
  if (!values) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the context state");
  Held held = {e, values, values + layers, old_rows(e)};
  bool any = false;
  DflashStatus status = open_values(&held, &any, error);
  if (status == DFLASH_OK && any && held.old > 0) status = project_old(&held, error);
  if (status == DFLASH_OK) settle_values(&held);
  for (int64_t i = 0; i < 2 * layers; i++) dflash_evaluation_free(&values[i]);
  free(values);
  return status;
}
