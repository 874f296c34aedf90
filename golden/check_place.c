#include "golden/check_values.h"

#include <inttypes.h>

static int32_t width_kind(int32_t stage) {
  if (stage == DFLASH_STAGE_HELD_K || stage == DFLASH_STAGE_HELD_V) return DFLASH_WIDTH_KV;
  const DflashStageRow *row = dflash_stage_row(stage);
  return row ? row->width : DFLASH_WIDTH_HIDDEN;
}

void dflash_check_place(const DflashGeometry *geometry, int32_t stage, int64_t width, int64_t index, char text[96]) {
  int64_t row = index / width, col = index % width, groups = dflash_geometry_groups(geometry);
  int64_t side = geometry->conv_kernel * groups;
  switch (width_kind(stage)) {
  case DFLASH_WIDTH_Q:
  case DFLASH_WIDTH_KV:
    snprintf(text, 96, "row %" PRId64 ", head %" PRId64 ", channel %" PRId64, row, col / geometry->head_dim,
             col % geometry->head_dim);
    return;
  case DFLASH_WIDTH_KERNEL:
    snprintf(text, 96, "row %" PRId64 ", side %" PRId64 ", tap %" PRId64 ", group %" PRId64, row, col / side,
             col % side / groups, col % groups);
    return;
  case DFLASH_WIDTH_HEAD:
    snprintf(text, 96, "row %" PRId64 ", token %" PRId64, row, col);
    return;
  default:
    snprintf(text, 96, "row %" PRId64 ", column %" PRId64, row, col);
  }
}
