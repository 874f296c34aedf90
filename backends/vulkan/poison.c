/* Fills what no call may read before it is written. */
#include "base/error.h"
#include "sequence.h"

static void fill(VulkanSteps *steps, const VulkanBuffer *buffer, uint64_t from, uint64_t to, uint32_t pattern) {
  if (buffer->buffer && to > from) vulkan_steps_fill(steps, vulkan_buffer_range(buffer, from, to - from), pattern);
}

/* Rows before the first kept one and after the last settled one. */
static void fill_held(const DflashSequence *s, VulkanSteps *steps, const VulkanHeld *held, uint32_t pattern) {
  const uint64_t row = (uint64_t)(s->model->geometry.kv_heads * s->model->geometry.head_dim) * 4;
  const uint64_t kept = (uint64_t)(held->kept - held->base) * row;
  const uint64_t end = (uint64_t)(s->first + s->settled - held->base) * row, all = (uint64_t)held->capacity * row;
  const VulkanBuffer *buffers[] = {&held->k, &held->v};
  for (int i = 0; i < 2 && held->capacity > 0; i++) {
    fill(steps, buffers[i], 0, kept, pattern);
    fill(steps, buffers[i], end, all, pattern);
  }
}

DflashStatus vulkan_poison(DflashSequence *s, uint32_t pattern, DflashError *error) {
  VulkanDevice *device = &s->model->device;
  VulkanSteps steps = {0};
  VulkanPlan plan = {0};
  fill(&steps, &s->device_scratch, 0, s->device_scratch.bytes, pattern);
  fill(&steps, &s->readback, 0, s->readback.bytes, pattern);
  fill(&steps, &s->captured.block, 0, s->captured.block.bytes, pattern);
  fill(&steps, &s->settle_scratch, 0, s->settle_scratch.bytes, pattern);
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) fill_held(s, &steps, &s->held[layer], pattern);
  DflashStatus status = steps.failed
                            ? dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory to poison a sequence")
                            : DFLASH_OK;
  if (!status) status = vulkan_plan_open(device, &steps, false, 0, &plan, error);
  if (!status) status = vulkan_plan_run(device, &plan, error);
  vulkan_plan_close(device, &plan);
  vulkan_steps_close(&steps);
  s->block_rows = 0;
  return status;
}
