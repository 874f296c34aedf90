/* What a sequence holds. Every row is kept until it is forgotten, so no rewind is too deep, and rows are
 * projected when they are pushed, so none waits. */
#include "reference.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { CAPACITY_MIN = 64 };

static int64_t kv_width(const DflashSequence *sequence) {
  return sequence->model->geometry.kv_heads * sequence->model->geometry.head_dim;
}

/* Plane 2 * layer holds K, the next one V. */
static float *plane_row(const DflashSequence *sequence, int64_t plane, int64_t index) {
  return sequence->context.rows + (plane * sequence->context.capacity + index) * kv_width(sequence);
}

float *reference_context_k(const DflashSequence *sequence, int64_t layer, int64_t index) {
  return plane_row(sequence, 2 * layer, index);
}

float *reference_context_v(const DflashSequence *sequence, int64_t layer, int64_t index) {
  return plane_row(sequence, 2 * layer + 1, index);
}

static float *new_rows(const DflashSequence *sequence, int64_t capacity) {
  int64_t floats;
  if (!dflash_mul_i64(capacity, 2 * sequence->model->geometry.layers * kv_width(sequence), &floats)) return NULL;
  return dflash_alloc((size_t)floats, sizeof(float));
}

DflashStatus reference_context_reserve(DflashSequence *sequence, int64_t rows, DflashError *error) {
  Context *context = &sequence->context;
  if (rows <= context->capacity) return DFLASH_OK;
  int64_t capacity = rows > CAPACITY_MIN ? rows : CAPACITY_MIN;
  if (capacity < 2 * context->capacity) capacity = 2 * context->capacity;
  float *grown = new_rows(sequence, capacity);
  if (grown == NULL)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "reference: no memory for %" PRId64 " context rows", capacity);
  const Sizes sizes = {.rows = sequence->model->geometry.block, .context_len = capacity};
  DflashStatus status =
      reference_scratch_reserve(sequence->model, &sizes, DFLASH_STAGE_ATTN_MIX, DFLASH_STAGE_ATTN_MIX, error);
  if (status != DFLASH_OK) {
    free(grown);
    return status;
  }
  const int64_t width = kv_width(sequence);
  if (context->len > 0)
    for (int64_t plane = 0; plane < 2 * sequence->model->geometry.layers; plane++)
      memcpy(grown + plane * capacity * width, plane_row(sequence, plane, 0),
             (size_t)(context->len * width) * sizeof(float));
  free(context->rows);
  context->rows = grown;
  context->capacity = capacity;
  return DFLASH_OK;
}

void reference_context_forget(Context *context, int64_t pos) {
  const bool inside = pos >= context->first && pos - context->first <= context->len;
  context->len = inside ? pos - context->first : 0;
  if (!inside) context->first = pos;
}

DflashStatus reference_truncate(DflashSequence *sequence, int64_t pos, DflashError *error) {
  DflashStatus status = reference_check_pointer("truncate: sequence", sequence, error);
  if (status != DFLASH_OK) return status;
  Context *context = &sequence->context;
  if (pos <= context->first)
    context->len = 0;
  else if (pos - context->first < context->len)
    context->len = pos - context->first;
  return DFLASH_OK;
}

DflashStatus reference_reset(DflashSequence *sequence, DflashError *error) {
  DflashStatus status = reference_check_pointer("reset: sequence", sequence, error);
  if (status == DFLASH_OK) sequence->context.first = sequence->context.len = 0;
  return status;
}

static DflashStatus check_load(const DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                               const float *const *v, DflashError *error) {
  const Range length = {"len", len, 0, REFERENCE_POSITION_MAX};
  const Range start = {"first", first, 0, REFERENCE_POSITION_MAX - len};
  DflashStatus status = reference_check_ranges("load", &length, 1, error);
  if (status == DFLASH_OK) status = reference_check_ranges("load", &start, 1, error);
  if (status != DFLASH_OK || len == 0) return status;
  status = reference_check_pointer("load: k", k, error);
  if (status == DFLASH_OK) status = reference_check_pointer("load: v", v, error);
  for (int64_t layer = 0; status == DFLASH_OK && layer < sequence->model->geometry.layers; layer++)
    if (k[layer] == NULL || v[layer] == NULL)
      status = dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: load: k or v of layer %" PRId64 " is NULL",
                                layer);
  return status;
}

DflashStatus reference_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                            const float *const *v, DflashError *error) {
  DflashStatus status = reference_check_pointer("load: sequence", sequence, error);
  if (status == DFLASH_OK) status = check_load(sequence, first, len, k, v, error);
  if (status == DFLASH_OK) status = reference_context_reserve(sequence, len, error);
  if (status != DFLASH_OK) return status;
  const size_t bytes = (size_t)(len * kv_width(sequence)) * sizeof(float);
  for (int64_t layer = 0; len > 0 && layer < sequence->model->geometry.layers; layer++) {
    memcpy(reference_context_k(sequence, layer, 0), k[layer], bytes);
    memcpy(reference_context_v(sequence, layer, 0), v[layer], bytes);
  }
  sequence->context.first = first;
  sequence->context.len = len;
  return DFLASH_OK;
}

static DflashStatus check_layer(const char *call, const DflashSequence *sequence, int64_t layer, DflashError *error) {
  DflashStatus status = reference_check_pointer(call, sequence, error);
  if (status != DFLASH_OK) return status;
  const Range range = {"layer", layer, 0, sequence->model->geometry.layers - 1};
  return reference_check_ranges(call, &range, 1, error);
}

DflashStatus reference_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                            DflashError *error) {
  DflashStatus status = check_layer("span", sequence, layer, error);
  if (status == DFLASH_OK) status = reference_check_pointer("span: first", first, error);
  if (status == DFLASH_OK) status = reference_check_pointer("span: len", len, error);
  if (status == DFLASH_OK) status = reference_check_pointer("span: kept_from", kept_from, error);
  if (status != DFLASH_OK) return status;
  *first = *kept_from = sequence->context.first;
  *len = sequence->context.len;
  return DFLASH_OK;
}

DflashStatus reference_read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k,
                                    float *v, DflashError *error) {
  DflashStatus status = check_layer("read_context", sequence, layer, error);
  if (status != DFLASH_OK) return status;
  const Context *context = &sequence->context;
  const Range count = {"rows", rows, 0, context->len};
  const Range start = {"pos", pos, context->first, context->first + context->len - rows};
  status = reference_check_ranges("read_context", &count, 1, error);
  if (status == DFLASH_OK) status = reference_check_ranges("read_context", &start, 1, error);
  if (status != DFLASH_OK || rows == 0) return status;
  status = reference_check_pointer("read_context: k", k, error);
  if (status == DFLASH_OK) status = reference_check_pointer("read_context: v", v, error);
  if (status != DFLASH_OK) return status;
  const size_t bytes = (size_t)(rows * kv_width(sequence)) * sizeof(float);
  memcpy(k, reference_context_k(sequence, layer, pos - context->first), bytes);
  memcpy(v, reference_context_v(sequence, layer, pos - context->first), bytes);
  return DFLASH_OK;
}
