/* What a sequence holds. Every row is kept until it is forgotten, and rows are projected when they are pushed. */
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"
#include "base/memory.h"

enum { CAPACITY_MIN = 16 };

static int64_t kv_width(const DflashSequence *sequence) {
  return sequence->model->geometry.kv_heads * sequence->model->geometry.head_dim;
}

/* Plane 2 * layer holds K, the next one V. */
static float *plane_row(const DflashSequence *sequence, int64_t plane, int64_t row) {
  return sequence->context.rows + (plane * sequence->context.capacity + row) * kv_width(sequence);
}

float *fault_context_k(const DflashSequence *sequence, int64_t layer, int64_t row) {
  return plane_row(sequence, 2 * layer, row);
}

float *fault_context_v(const DflashSequence *sequence, int64_t layer, int64_t row) {
  return plane_row(sequence, 2 * layer + 1, row);
}

DflashStatus fault_context_reserve(DflashSequence *sequence, int64_t rows, DflashError *error) {
  FaultContext *context = &sequence->context;
  if (rows <= context->capacity) return DFLASH_OK;
  const int64_t planes = 2 * sequence->model->geometry.layers, width = kv_width(sequence);
  int64_t capacity = context->capacity > 0 ? context->capacity : CAPACITY_MIN, floats;
  while (capacity < rows) capacity *= 2;
  float *grown = NULL;
  if (dflash_mul_i64(capacity, planes * width, &floats)) grown = dflash_alloc((size_t)floats, sizeof *grown);
  if (grown == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for %lld context rows",
                            (long long)capacity);
  for (int64_t plane = 0; context->rows != NULL && plane < planes; plane++)
    memcpy(grown + plane * capacity * width, plane_row(sequence, plane, 0),
           (size_t)(context->capacity * width) * sizeof *grown);
  free(context->rows);
  context->rows = grown;
  context->capacity = capacity;
  return DFLASH_OK;
}

/* first and len after a push at pos forgot what it forgets. */
static FaultContext forget(const FaultContext *context, int64_t pos) {
  FaultContext after = *context;
  const bool inside = pos >= context->first && pos - context->first <= context->len;
  after.len = inside ? pos - context->first : 0;
  if (!inside) after.first = pos;
  return after;
}

/* Projects all rows into `values`. */
static DflashStatus project(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                            const FaultValues *values, DflashError *error) {
  const FaultFlow flow = {.values = values, .given = taps};
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; status == DFLASH_OK; i++) {
    FaultCall call = {.model = sequence->model, .sequence = sequence, .in_block = true, .error = error};
    call.call = (DflashStageCall){.struct_size = sizeof call.call, .rows = rows, .position = pos};
    if (!dflash_stage_walk(&sequence->model->geometry, i, &call.call.stage, &call.call.layer)) break;
    if (dflash_stage_row(call.call.stage)->rows != DFLASH_ROWS_CONTEXT) break;
    status = fault_flow_run(&call, &flow);
  }
  return status;
}

static void append(DflashSequence *sequence, int64_t row, int64_t rows) {
  const size_t bytes = (size_t)(rows * kv_width(sequence)) * sizeof(float);
  for (int64_t layer = 0; rows > 0 && layer < sequence->model->geometry.layers; layer++) {
    memcpy(fault_context_k(sequence, layer, row), fault_value(&sequence->push, DFLASH_STAGE_CONTEXT_K, layer), bytes);
    memcpy(fault_context_v(sequence, layer, row), fault_value(&sequence->push, DFLASH_STAGE_CONTEXT_V_PROJ, layer),
           bytes);
  }
}

static DflashStatus check_push(const DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                               DflashError *error) {
  DflashStatus status = fault_check_pointer("push: sequence", sequence, error);
  const FaultRange count = {"rows", rows, 0, FAULT_POSITION_MAX};
  if (status == DFLASH_OK) status = fault_check_ranges("push", &count, 1, error);
  const FaultRange start = {"pos", pos, 0, FAULT_POSITION_MAX - rows};
  if (status == DFLASH_OK) status = fault_check_ranges("push", &start, 1, error);
  if (status == DFLASH_OK && rows > 0) status = fault_check_pointer("push: taps", taps, error);
  return status;
}

/* The values of the push before are let go only when nothing can fail any more. */
DflashStatus fault_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error) {
  DflashStatus status = check_push(sequence, pos, taps, rows, error);
  if (status != DFLASH_OK) return status;
  const DflashGeometry *g = &sequence->model->geometry;
  const FaultContext after = forget(&sequence->context, pos);
  const DflashRunSizes sizes = {.push_rows = rows};
  FaultValues values = {0};
  sequence->pushes++;
  status = fault_context_reserve(sequence, after.len + rows, error);
  if (status == DFLASH_OK) status = fault_values_reserve(&values, g, &sizes, error);
  if (status == DFLASH_OK) {
    fault_values_place(&values, g, &sizes);
    if (rows > 0) status = project(sequence, pos, taps, rows, &values, error);
  }
  if (status != DFLASH_OK) {
    free(values.data);
    return status;
  }
  free(sequence->push.data);
  sequence->push = values;
  sequence->last.push_rows = rows;
  append(sequence, after.len, rows);
  sequence->context.first = after.first;
  sequence->context.len = after.len + rows;
  return DFLASH_OK;
}

DflashStatus fault_truncate(DflashSequence *sequence, int64_t pos, DflashError *error) {
  const DflashStatus status = fault_check_pointer("truncate: sequence", sequence, error);
  if (status != DFLASH_OK) return status;
  FaultContext *context = &sequence->context;
  if (pos <= context->first)
    context->len = 0;
  else if (pos - context->first < context->len)
    context->len = pos - context->first;
  return DFLASH_OK;
}

DflashStatus fault_reset(DflashSequence *sequence, DflashError *error) {
  const DflashStatus status = fault_check_pointer("reset: sequence", sequence, error);
  if (status == DFLASH_OK) sequence->context.first = sequence->context.len = 0;
  return status;
}

static DflashStatus check_load(const DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                               const float *const *v, DflashError *error) {
  const FaultRange length = {"len", len, 0, FAULT_POSITION_MAX};
  const FaultRange start = {"first", first, 0, FAULT_POSITION_MAX - len};
  DflashStatus status = fault_check_pointer("load: sequence", sequence, error);
  if (status == DFLASH_OK) status = fault_check_ranges("load", &length, 1, error);
  if (status == DFLASH_OK) status = fault_check_ranges("load", &start, 1, error);
  if (status != DFLASH_OK || len == 0) return status;
  status = fault_check_pointer("load: k", k, error);
  if (status == DFLASH_OK) status = fault_check_pointer("load: v", v, error);
  for (int64_t layer = 0; status == DFLASH_OK && layer < sequence->model->geometry.layers; layer++)
    if (k[layer] == NULL || v[layer] == NULL)
      status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: load: k or v of layer %lld is NULL",
                                (long long)layer);
  return status;
}

DflashStatus fault_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                        const float *const *v, DflashError *error) {
  DflashStatus status = check_load(sequence, first, len, k, v, error);
  if (status == DFLASH_OK) status = fault_context_reserve(sequence, len, error);
  if (status != DFLASH_OK) return status;
  const size_t bytes = (size_t)(len * kv_width(sequence)) * sizeof(float);
  for (int64_t layer = 0; len > 0 && layer < sequence->model->geometry.layers; layer++) {
    memcpy(fault_context_k(sequence, layer, 0), k[layer], bytes);
    memcpy(fault_context_v(sequence, layer, 0), v[layer], bytes);
  }
  sequence->context.first = first;
  sequence->context.len = len;
  return DFLASH_OK;
}

static DflashStatus check_layer(const char *call, const DflashSequence *sequence, int64_t layer, DflashError *error) {
  const DflashStatus status = fault_check_pointer(call, sequence, error);
  if (status != DFLASH_OK) return status;
  const FaultRange range = {"layer", layer, 0, sequence->model->geometry.layers - 1};
  return fault_check_ranges(call, &range, 1, error);
}

DflashStatus fault_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                        DflashError *error) {
  DflashStatus status = check_layer("span", sequence, layer, error);
  if (status == DFLASH_OK) status = fault_check_pointer("span: first", first, error);
  if (status == DFLASH_OK) status = fault_check_pointer("span: len", len, error);
  if (status == DFLASH_OK) status = fault_check_pointer("span: kept_from", kept_from, error);
  if (status != DFLASH_OK) return status;
  *first = *kept_from = sequence->context.first;
  *len = sequence->context.len;
  return DFLASH_OK;
}

DflashStatus fault_read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                DflashError *error) {
  DflashStatus status = check_layer("read_context", sequence, layer, error);
  if (status != DFLASH_OK) return status;
  const FaultContext *context = &sequence->context;
  const FaultRange count = {"rows", rows, 0, context->len};
  const FaultRange start = {"pos", pos, context->first, context->first + context->len - rows};
  status = fault_check_ranges("read_context", &count, 1, error);
  if (status == DFLASH_OK) status = fault_check_ranges("read_context", &start, 1, error);
  if (status != DFLASH_OK || rows == 0) return status;
  status = fault_check_pointer("read_context: k", k, error);
  if (status == DFLASH_OK) status = fault_check_pointer("read_context: v", v, error);
  if (status != DFLASH_OK) return status;
  const size_t bytes = (size_t)(rows * kv_width(sequence)) * sizeof(float);
  memcpy(k, fault_context_k(sequence, layer, pos - context->first), bytes);
  memcpy(v, fault_context_v(sequence, layer, pos - context->first), bytes);
  return DFLASH_OK;
}
