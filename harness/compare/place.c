#include <stdio.h>

#include "compare/pattern.h"
#include "model/stage_table.h"

DflashUnit dflash_stage_unit(const DflashGeometry *g, int32_t stage) {
  switch (dflash_stage_row(stage)->width) {
  case DFLASH_WIDTH_Q:
    return (DflashUnit){g->head_dim, "head", "channel"};
  case DFLASH_WIDTH_KV:
    return (DflashUnit){g->head_dim, "kv head", "channel"};
  case DFLASH_WIDTH_KERNEL:
    return (DflashUnit){dflash_geometry_groups(g), "side and tap", "group"};
  case DFLASH_WIDTH_HIDDEN:
    return (DflashUnit){g->conv_group, "group", "channel"};
  default:
    return (DflashUnit){1, "column", "column"};
  }
}

void dflash_place_name(const DflashGeometry *g, int32_t stage, int64_t row, int64_t col, char *text, size_t size) {
  long long r = row, c = col;
  switch (dflash_stage_row(stage)->width) {
  case DFLASH_WIDTH_Q:
  case DFLASH_WIDTH_KV:
    snprintf(text, size, "row %lld, %s %lld, channel %lld", r, dflash_stage_unit(g, stage).name, c / g->head_dim,
             c % g->head_dim);
    break;
  case DFLASH_WIDTH_KERNEL: {
    long long groups = dflash_geometry_groups(g);
    snprintf(text, size, "row %lld, side %lld, tap %lld, group %lld", r, c / groups / g->conv_kernel,
             c / groups % g->conv_kernel, c % groups);
    break;
  }
  case DFLASH_WIDTH_HEAD:
    snprintf(text, size, "draft row %lld, token %lld", r, c);
    break;
  case DFLASH_WIDTH_RANK:
    snprintf(text, size, "draft row %lld, rank %lld", r, c);
    break;
  case DFLASH_WIDTH_TOP:
    snprintf(text, size, "draft row %lld, candidate %lld", r, c);
    break;
  case DFLASH_WIDTH_HIDDEN:
    snprintf(text, size, "row %lld, channel %lld (group %lld)", r, c, c / (long long)g->conv_group);
    break;
  default:
    snprintf(text, size, "row %lld, channel %lld", r, c);
    break;
  }
}
