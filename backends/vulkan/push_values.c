#include "base/error.h"
#include "base/memory.h"
#include "settle.h"

static DflashStatus place(DflashModel *model, VulkanPushValues *values, int32_t stage, uint64_t *bytes,
                          DflashError *error) {
  const DflashGeometry *g = &model->geometry;
  int64_t layer, all;
  if (!dflash_mul_i64(values->rows, 4 * vulkan_stage_width(g, stage), &layer) ||
      !dflash_mul_i64(layer, vulkan_stage_layers(g, stage), &all) || all > INT64_MAX / VULKAN_CONTEXT_STAGES / 2)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory to capture a push of %lld rows",
                            (long long)values->rows);
  values->layer_bytes[stage] = (uint64_t)layer;
  values->stages[stage] =
      (VulkanRange){.offset = vulkan_place(&model->device, bytes, (uint64_t)all), .bytes = (uint64_t)all};
  return DFLASH_OK;
}

DflashStatus vulkan_push_values_open(DflashModel *model, int64_t rows, VulkanPushValues *values, DflashError *error) {
  uint64_t bytes = 0;
  DflashStatus status = DFLASH_OK;
  *values = (VulkanPushValues){.rows = rows};
  for (int32_t stage = 0; !status && stage < VULKAN_CONTEXT_STAGES; stage++)
    status = place(model, values, stage, &bytes, error);
  if (!status)
    status =
        vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, bytes, "the stages of a push", &values->buffer, error);
  for (int32_t stage = 0; stage < VULKAN_CONTEXT_STAGES; stage++) values->stages[stage].buffer = values->buffer.buffer;
  return status;
}

void vulkan_push_values_keep(DflashSequence *s, VulkanPushValues *values) {
  vulkan_buffer_close(&s->model->device, &s->captured.push);
  s->captured.push = values->buffer;
  for (int32_t stage = 0; stage < VULKAN_CONTEXT_STAGES; stage++) {
    s->captured.stages[stage] = values->stages[stage];
    s->captured.layer_bytes[stage] = values->layer_bytes[stage];
  }
}
