/* What the last block and push left: values, times, spans. */
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "base/error.h"
#include "base/memory.h"
#include "block.h"
#include "measure.h"

static DflashStatus check_stage(const DflashSequence *s, int32_t stage, int64_t layer, DflashError *error) {
  if (!s->capture)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: read_stage: the sequence does not capture");
  if (stage < 0 || stage >= DFLASH_STAGE_COUNT || layer < 0 || layer >= vulkan_stage_layers(&s->model->geometry, stage))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: read_stage: no stage %d of layer %lld", (int)stage,
                            (long long)layer);
  return DFLASH_OK;
}

static int64_t held_rows(const DflashSequence *s, int32_t stage) {
  switch (vulkan_stage_rows(stage)) {
  case DFLASH_ROWS_CONTEXT:
    return s->push_rows;
  case DFLASH_ROWS_DRAFT:
    return s->block_rows > 0 ? s->block_draft : 0;
  default:
    return s->block_rows;
  }
}

/* Where a stage's values lie. The scores of select are part of its answer. */
static VulkanRange held_range(const DflashSequence *s, int32_t stage, int64_t layer) {
  if (stage == DFLASH_STAGE_HEAD_LOGITS) return s->scratch.logits;
  if (stage == DFLASH_STAGE_SELECTOR_HIDDEN) return s->scratch.hidden;
  VulkanRange range = stage == DFLASH_STAGE_SELECT ? s->scratch.result : s->captured.stages[stage];
  const uint64_t skip = stage == DFLASH_STAGE_SELECT
                            ? (uint64_t)(s->block_draft * (2 + s->model->geometry.selector_top)) * 4
                            : (uint64_t)layer * s->captured.layer_bytes[stage];
  range.offset += skip;
  range.bytes -= skip;
  return range;
}

DflashStatus vulkan_read_stage(DflashSequence *s, int32_t stage, int64_t layer, float *values, uint64_t count,
                               DflashError *error) {
  DflashStatus status = check_stage(s, stage, layer, error);
  if (status) return status;
  const int64_t rows = held_rows(s, stage);
  const int64_t width =
      stage == DFLASH_STAGE_HEAD_LOGITS ? s->block_head : vulkan_stage_width(&s->model->geometry, stage);
  if (rows == 0) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: read_stage: nothing has run");
  const int64_t held = rows * width;
  if (count != (uint64_t)held)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: read_stage: %llu values asked for, %lld are held",
                            (unsigned long long)count, (long long)held);
  if (!values) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: read_stage: values is NULL");
  return vulkan_download(&s->model->device, held_range(s, stage, layer), values, count * sizeof(float), error);
}

/* The smallest step that CLOCK_MONOTONIC shows. */
static uint64_t host_step(void) {
  uint64_t smallest = UINT64_MAX;
  for (int i = 0; i < 64; i++) {
    const uint64_t begin = vulkan_now_ns();
    uint64_t now = begin;
    while (now == begin) now = vulkan_now_ns();
    if (now - begin < smallest) smallest = now - begin;
  }
  return smallest;
}

/* A device without time stamps is timed by the host: from submission to the end of the wait. */
DflashStatus vulkan_block_time(DflashSequence *s, DflashBlockTime *time, DflashError *error) {
  DflashStatus status = vulkan_check_struct(time, sizeof time->struct_size, "block_time", error);
  if (status) return status;
  if (!s->last) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: block_time: no block has run");
  DflashBlockTime out = {.clock = DFLASH_CLOCK_HOST, .device_ns = s->block_ns, .context_ns = s->settle_ns};
  if (s->last->plan.stamps > 0) {
    status = vulkan_plan_time(&s->model->device, &s->last->plan, &out.device_ns, error);
    if (!status) status = vulkan_measure_step(s->model, &out.resolution_ns, error);
    if (status) return status;
    out.clock = DFLASH_CLOCK_DEVICE;
  } else {
    out.resolution_ns = host_step();
  }
  VULKAN_GIVE(time, out);
  return DFLASH_OK;
}

DflashStatus vulkan_block_spans(DflashSequence *s, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                DflashError *error) {
  *count = 0;
  if (!s->last || !(s->last->flags & DFLASH_BLOCK_STAMP) || s->last->plan.stamps == 0) return DFLASH_OK;
  const uint32_t most = s->last->plan.stamps;
  VulkanSpan *found = dflash_alloc(most, sizeof *found);
  if (!found) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for %u spans", most);
  DflashStatus status = vulkan_plan_spans(&s->model->device, &s->last->plan, found, most, count, error);
  for (uint32_t i = 0; !status && i < *count && i < capacity; i++)
    spans[i] = (DflashSpan){found[i].stage, found[i].layer, found[i].begin_ns, found[i].end_ns};
  free(found);
  return status;
}
