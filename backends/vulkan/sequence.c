#include "sequence.h"

#include <stdlib.h>

#include "abi.h"
#include "attend.h"
#include "base/error.h"
#include "base/memory.h"
#include "settle.h"
#include "units.h"

/* Workgroups of attention wanted on a device that runs them side by side: on matrix units, with those of the block's
 * own rows, two for each of 132 multiprocessors. A processor gains nothing from many. */
enum { ATTEND_GROUPS = 512, UNITS_GROUPS = 256, MOST_SPLITS = VULKAN_MAX_PARTS - 1, SPLITS_ON_CPU = 4 };

/* No more than a binding shows the sums of, those of the block itself included. */
static uint32_t choose_splits(const DflashModel *model) {
  const DflashGeometry *g = &model->geometry;
  const VulkanTraits *t = &model->device.traits;
  if (model->options.splits > 0) return model->options.splits;
  const int64_t shown = (int64_t)(t->max_binding / 4) / (g->block * g->heads * g->head_dim) - 1;
  const int64_t tiles = vulkan_attend_tiles(model, g->block);
  const int64_t groups = vulkan_attend_on_units(model) ? UNITS_GROUPS * tiles : ATTEND_GROUPS;
  int64_t splits = t->is_cpu ? SPLITS_ON_CPU : groups / (g->kv_heads * tiles);
  if (splits > MOST_SPLITS) splits = MOST_SPLITS;
  if (splits > shown) splits = shown;
  return splits < 1 ? 1 : (uint32_t)splits;
}

DflashStatus vulkan_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                  DflashError *error) {
  *sequence = NULL;
  DflashStatus status =
      desc ? vulkan_check_struct(desc, sizeof *desc, "the description of a sequence", error) : DFLASH_OK;
  if (status) return status;
  DflashSequence *s = dflash_alloc(1, sizeof *s);
  if (!s) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a sequence");
  s->model = model;
  s->capture = desc && (desc->flags & DFLASH_SEQUENCE_CAPTURE);
  s->splits = choose_splits(model);
  s->settle_rows = vulkan_settle_rows(model);
  s->block_units = vulkan_units_bytes(model, model->geometry.block);
  s->settle_units = vulkan_units_bytes(model, s->settle_rows);
  s->held = dflash_alloc((size_t)model->geometry.layers, sizeof *s->held);
  status = s->held ? DFLASH_OK : dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a sequence");
  if (!status) status = vulkan_scratch_open(s, error);
  if (!status) status = vulkan_units_open_arrivals(s, error);
  if (status) {
    vulkan_sequence_close(s);
    return status;
  }
  *sequence = s;
  return DFLASH_OK;
}

void vulkan_sequence_close(DflashSequence *s) {
  if (!s) return;
  for (int i = 0; i < VULKAN_PLANS; i++) vulkan_plan_close(&s->model->device, &s->plans[i].plan);
  if (s->held) vulkan_context_close(s);
  vulkan_scratch_close(s);
  vulkan_buffer_close(&s->model->device, &s->arrivals);
  free(s->held);
  free(s);
}
