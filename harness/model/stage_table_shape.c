#include "model/stage_table.h"

int64_t dflash_stage_rows(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage) {
  (void)geometry;
  switch (stage) {
  case DFLASH_STAGE_TAPS:
    return sizes->push_rows;
  case DFLASH_STAGE_RESIDUAL:
  case DFLASH_STAGE_LAST:
    return sizes->rows;
  case DFLASH_STAGE_HELD_K:
  case DFLASH_STAGE_HELD_V:
    return sizes->context_len;
  default:
    break;
  }
  const DflashStageRow *row = dflash_stage_row(stage);
  if (!row) return 0;
  switch (row->rows) {
  case DFLASH_ROWS_CONTEXT:
    return sizes->push_rows;
  case DFLASH_ROWS_DRAFT:
    return sizes->n_draft;
  default:
    return sizes->rows;
  }
}

static int64_t width_value(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t width) {
  switch (width) {
  case DFLASH_WIDTH_Q:
    return geometry->heads * geometry->head_dim;
  case DFLASH_WIDTH_KV:
    return geometry->kv_heads * geometry->head_dim;
  case DFLASH_WIDTH_KERNEL:
    return dflash_geometry_kernel_width(geometry);
  case DFLASH_WIDTH_INTERMEDIATE:
    return geometry->intermediate;
  case DFLASH_WIDTH_HEAD:
    return sizes->head_width;
  case DFLASH_WIDTH_RANK:
    return geometry->selector_rank;
  case DFLASH_WIDTH_TOP:
    return geometry->selector_top;
  default:
    return geometry->hidden;
  }
}

int64_t dflash_stage_width(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage) {
  const DflashStageRow *row = dflash_stage_row(stage);
  if (row) return width_value(geometry, sizes, row->width);
  switch (stage) {
  case DFLASH_STAGE_TAPS:
    return dflash_geometry_tap_width(geometry);
  case DFLASH_STAGE_RESIDUAL:
  case DFLASH_STAGE_LAST:
    return geometry->hidden;
  case DFLASH_STAGE_HELD_K:
  case DFLASH_STAGE_HELD_V:
    return width_value(geometry, sizes, DFLASH_WIDTH_KV);
  default:
    return 0;
  }
}

/* Heads of a value whose shape shows them; 0 for the others. */
static int64_t split_heads(const DflashGeometry *geometry, int32_t stage) {
  switch (stage) {
  case DFLASH_STAGE_ATTN_Q:
    return geometry->heads;
  case DFLASH_STAGE_ATTN_K:
  case DFLASH_STAGE_CONTEXT_K_PROJ:
  case DFLASH_STAGE_CONTEXT_V_PROJ:
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_HELD_K:
  case DFLASH_STAGE_HELD_V:
    return geometry->kv_heads;
  default:
    return 0;
  }
}

int dflash_stage_shape(const DflashGeometry *geometry, const DflashRunSizes *sizes, int32_t stage, int64_t shape[3]) {
  int64_t heads = split_heads(geometry, stage);
  shape[0] = dflash_stage_rows(geometry, sizes, stage);
  shape[1] = heads ? heads : dflash_stage_width(geometry, sizes, stage);
  shape[2] = heads ? geometry->head_dim : 1;
  return heads ? 3 : 2;
}
