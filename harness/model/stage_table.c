#include "model/stage_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STAGE_ROW(id, name, scope, group, rows, width, i0, i1, i2, i3, i4) \
  {name,                                                                   \
   DFLASH_SCOPE_##scope,                                                   \
   DFLASH_GROUP_##group,                                                   \
   DFLASH_ROWS_##rows,                                                     \
   DFLASH_WIDTH_##width,                                                   \
   {DFLASH_STAGE_##i0, DFLASH_STAGE_##i1, DFLASH_STAGE_##i2, DFLASH_STAGE_##i3, DFLASH_STAGE_##i4}},
static const DflashStageRow stage_rows[DFLASH_STAGE_COUNT] = {DFLASH_STAGES(STAGE_ROW)};

#define GROUP_LABEL(id, label) label,
static const char *const group_labels[DFLASH_GROUP_COUNT] = {DFLASH_GROUPS(GROUP_LABEL)};

const DflashStageRow *dflash_stage_row(int32_t stage) {
  return stage >= 0 && stage < DFLASH_STAGE_COUNT ? &stage_rows[stage] : NULL;
}

int32_t dflash_stage_find(const char *name) {
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++)
    if (strcmp(stage_rows[stage].name, name) == 0) return stage;
  return DFLASH_STAGE_NONE;
}

const char *dflash_group_label(int32_t group) {
  return group >= 0 && group < DFLASH_GROUP_COUNT ? group_labels[group] : NULL;
}

int64_t dflash_stage_layers(const DflashGeometry *geometry, int32_t stage) {
  const DflashStageRow *row = dflash_stage_row(stage);
  return row && row->scope == DFLASH_SCOPE_LAYER ? geometry->layers : 1;
}

int32_t dflash_stage_source(const DflashGeometry *geometry, int32_t stage, int64_t layer, int index,
                            int64_t *source_layer) {
  int32_t source = dflash_stage_row(stage)->inputs[index];
  const DflashStageRow *row = dflash_stage_row(source);
  *source_layer = row && row->scope == DFLASH_SCOPE_ONCE ? 0 : layer;
  if (source == DFLASH_STAGE_TAPS) *source_layer = 0;
  if (source == DFLASH_STAGE_LAST) {
    *source_layer = geometry->layers - 1;
    return DFLASH_STAGE_MLP_OUT;
  }
  if (source == DFLASH_STAGE_RESIDUAL && layer > 0) {
    *source_layer = layer - 1;
    return DFLASH_STAGE_MLP_OUT;
  }
  return source;
}

/* End of the run of stages from `begin` that are walked together, layer by layer. */
static int32_t run_end(int32_t begin) {
  const DflashStageRow *first = &stage_rows[begin];
  int32_t end = begin + 1;
  while (end < DFLASH_STAGE_COUNT && stage_rows[end].scope == first->scope &&
         (stage_rows[end].rows == DFLASH_ROWS_CONTEXT) == (first->rows == DFLASH_ROWS_CONTEXT))
    end++;
  return end;
}

int dflash_stage_walk(const DflashGeometry *geometry, int64_t index, int32_t *stage, int64_t *layer) {
  for (int32_t begin = 0; index >= 0 && begin < DFLASH_STAGE_COUNT;) {
    int32_t end = run_end(begin);
    int64_t length = end - begin, count = length * dflash_stage_layers(geometry, begin);
    if (index < count) {
      *stage = begin + (int32_t)(index % length);
      *layer = index / length;
      return 1;
    }
    index -= count;
    begin = end;
  }
  return 0;
}

static const char *source_name(int32_t stage) {
  switch (stage) {
  case DFLASH_STAGE_TAPS:
    return "taps";
  case DFLASH_STAGE_RESIDUAL:
    return "h";
  case DFLASH_STAGE_LAST:
    return "last";
  case DFLASH_STAGE_HELD_K:
    return "context_state.k";
  case DFLASH_STAGE_HELD_V:
    return "context_state.v";
  default:
    return "none";
  }
}

const char *dflash_stage_label(int32_t stage, int64_t layer, char text[64]) {
  const DflashStageRow *row = dflash_stage_row(stage);
  int held = stage == DFLASH_STAGE_HELD_K || stage == DFLASH_STAGE_HELD_V;
  const char *name = row ? row->name : source_name(stage);
  if (held || (row && row->scope == DFLASH_SCOPE_LAYER))
    snprintf(text, 64, "%s/%" PRId64, name, layer);
  else
    snprintf(text, 64, "%s", name);
  return text;
}
