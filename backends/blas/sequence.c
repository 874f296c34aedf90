#include "sequence.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static const DflashStageShape SHAPES[] = {
#define SHAPE(id, name, scope, group, rows, width, a, b, c, d, e) \
  {DFLASH_SCOPE_##scope,                                          \
   DFLASH_ROWS_##rows,                                            \
   DFLASH_WIDTH_##width,                                          \
   {DFLASH_STAGE_##a, DFLASH_STAGE_##b, DFLASH_STAGE_##c, DFLASH_STAGE_##d, DFLASH_STAGE_##e}},
    DFLASH_STAGES(SHAPE)
#undef SHAPE
};

const DflashStageShape *dflash_stage_shape_of(int32_t stage) { return &SHAPES[stage]; }

int64_t dflash_stage_row_width(const DflashGeometry *g, int32_t stage, int64_t head_width) {
  switch (SHAPES[stage].width) {
  case DFLASH_WIDTH_Q:
    return g->heads * g->head_dim;
  case DFLASH_WIDTH_KV:
    return g->kv_heads * g->head_dim;
  case DFLASH_WIDTH_KERNEL:
    return dflash_geometry_kernel_width(g);
  case DFLASH_WIDTH_INTERMEDIATE:
    return g->intermediate;
  case DFLASH_WIDTH_HEAD:
    return head_width;
  case DFLASH_WIDTH_RANK:
    return g->selector_rank;
  case DFLASH_WIDTH_TOP:
    return g->selector_top;
  default:
    return g->hidden;
  }
}

/* Keeps what is there when it suffices; contents are lost when it grows. */
static bool reserve_value(DflashSequence *s, int32_t stage, int64_t rows) {
  const DflashGeometry *g = &s->model->geometry;
  DflashValue *value = &s->values[stage];
  const int64_t layers = s->capture && SHAPES[stage].scope == DFLASH_SCOPE_LAYER ? g->layers : 1;
  int64_t capacity, total;
  if (!dflash_mul_i64(rows, dflash_stage_row_width(g, stage, g->vocab), &capacity)) return false;
  if (capacity <= value->capacity) return true;
  if (!dflash_mul_i64(capacity, layers, &total)) return false;
  float *data = dflash_alloc((size_t)total, sizeof(float));
  if (!data) return false;
  free(value->data);
  *value = (DflashValue){.data = data, .layers = layers, .capacity = capacity};
  return true;
}

bool dflash_sequence_reserve_push(DflashSequence *s, int64_t rows) {
  const DflashGeometry *g = &s->model->geometry;
  const int64_t tap_width = dflash_geometry_tap_width(g);
  if (rows < 1) return true;
  if (!s->capture) rows = rows < SETTLE_ROWS ? rows : SETTLE_ROWS;
  if (!dflash_workspace_reserve_product(&s->workspace, rows, tap_width)) return false;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++)
    if (SHAPES[stage].rows == DFLASH_ROWS_CONTEXT && !reserve_value(s, stage, rows)) return false;
  return true;
}

static int64_t widest_input(const DflashGeometry *g) {
  int64_t widest = g->hidden > g->intermediate ? g->hidden : g->intermediate;
  return widest > g->heads * g->head_dim ? widest : g->heads * g->head_dim;
}

static bool open_scratch(DflashSequence *s) {
  const DflashGeometry *g = &s->model->geometry;
  if (!dflash_workspace_open(&s->workspace, s->model->options.threads, g->head_dim)) return false;
  if (!dflash_workspace_reserve_product(&s->workspace, g->block, widest_input(g))) return false;
  for (int64_t layer = 0; layer < g->layers; layer++)
    if (!dflash_workspace_reserve_attention(&s->workspace, dflash_attention_lanes(g, layer, 0, g->block))) return false;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++)
    if (SHAPES[stage].rows != DFLASH_ROWS_CONTEXT &&
        !reserve_value(s, stage, SHAPES[stage].rows == DFLASH_ROWS_DRAFT ? g->block - 1 : g->block))
      return false;
  dflash_store_open(&s->own, g->kv_heads, g->head_dim);
  return dflash_store_reserve(&s->own, g->block) && dflash_selection_open(&s->selection, g);
}

static bool open_context(DflashSequence *s) {
  const DflashGeometry *g = &s->model->geometry;
  int64_t spans;
  s->stores = dflash_alloc((size_t)g->layers, sizeof *s->stores);
  if (!s->stores) return false;
  for (int64_t layer = 0; layer < g->layers; layer++) dflash_store_open(&s->stores[layer], g->kv_heads, g->head_dim);
  if (!dflash_mul_i64(g->layers + 1, DFLASH_STAGE_COUNT, &spans)) return false;
  s->spans = dflash_alloc((size_t)spans, sizeof *s->spans);
  return s->spans != NULL;
}

DflashStatus dflash_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                  DflashError *error) {
  *sequence = NULL;
  DflashSequence *s = dflash_alloc(1, sizeof *s);
  if (s) {
    s->model = model;
    s->capture = desc && (desc->flags & DFLASH_SEQUENCE_CAPTURE);
  }
  if (!s || !open_context(s) || !open_scratch(s)) {
    dflash_sequence_close(s);
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for a sequence");
  }
  *sequence = s;
  return DFLASH_OK;
}

void dflash_sequence_close(DflashSequence *s) {
  if (!s) return;
  for (int64_t layer = 0; s->stores && layer < s->model->geometry.layers; layer++)
    dflash_store_close(&s->stores[layer]);
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) free(s->values[stage].data);
  dflash_store_close(&s->own);
  dflash_selection_close(&s->selection);
  dflash_workspace_close(&s->workspace);
  free(s->stores);
  free(s->waiting);
  free(s->spans);
  free(s);
}

/* What the last push left of a context stage is a result, not scratch. */
static void poison_value(DflashSequence *s, int32_t stage, uint32_t pattern) {
  const DflashValue *value = &s->values[stage];
  const bool context = SHAPES[stage].rows == DFLASH_ROWS_CONTEXT;
  const int64_t held = context && s->capture ? s->push_rows * dflash_stage_row_width(&s->model->geometry, stage, 0) : 0;
  for (int64_t layer = 0; layer < value->layers; layer++)
    dflash_fill_pattern(value->data + layer * value->capacity + held, (size_t)(value->capacity - held), pattern);
}

DflashStatus dflash_sequence_poison(DflashSequence *s, uint32_t pattern, DflashError *error) {
  (void)error;
  const int64_t tap_width = dflash_geometry_tap_width(&s->model->geometry), waiting = s->len - s->settled;
  dflash_workspace_poison(&s->workspace, pattern);
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) poison_value(s, stage, pattern);
  dflash_store_restart(&s->own, 0);
  dflash_store_poison(&s->own, pattern);
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) dflash_store_poison(&s->stores[layer], pattern);
  if (s->waiting)
    dflash_fill_pattern(s->waiting + waiting * tap_width, (size_t)((s->waiting_capacity - waiting) * tap_width),
                        pattern);
  s->block_rows = 0;
  return DFLASH_OK;
}
