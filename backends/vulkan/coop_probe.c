#include "coop.h"

#include <string.h>

#include "base/error.h"

enum { LANES = 32, HELD = VULKAN_COOP_HELD };

/* Thread 4 g + t: of row g columns 2 t and 2 t + 1, of row g + 8 the same, of both rows the columns 8 further on. */
static uint32_t expected_place(uint32_t lane, uint32_t n) {
  const uint32_t row = lane / 4 + (n / 2 % 2) * 8, col = lane % 4 * 2 + n % 2 + n / 4 * 8;
  return 16 * row + col;
}

bool vulkan_coop_places_fit(const uint32_t *places) {
  for (uint32_t i = 0; i < LANES * HELD; i++)
    if (places[i] != expected_place(i / HELD, i % HELD)) return false;
  return true;
}

static DflashStatus run_probe(VulkanDevice *device, VulkanPipelines *pipelines, VulkanBuffer *buffer,
                              DflashError *error) {
  VulkanSteps steps = {0};
  VulkanPlan plan = {0};
  const VulkanPipeline *pipeline;
  const MeasurePush push = {HELD};
  DflashStatus status = vulkan_pipeline_get(device, pipelines, VULKAN_KERNEL_COOP_PROBE, NULL, 0, &pipeline, error);
  if (status) return status;
  const VulkanRange range = vulkan_buffer_range(buffer, 0, buffer->bytes);
  vulkan_steps_dispatch(
      &steps,
      &(VulkanDispatch){
          .pipeline = pipeline, .ranges = &range, .push = &push, .groups = {1, 1, 1}, .stage = DFLASH_STAGE_NONE});
  status = vulkan_plan_open(device, &steps, false, 0, &plan, error);
  if (!status) status = vulkan_plan_run(device, &plan, error);
  if (!status) status = vulkan_buffer_invalidate(device, buffer, error);
  vulkan_plan_close(device, &plan);
  vulkan_steps_close(&steps);
  return status;
}

DflashStatus vulkan_coop_probe(VulkanDevice *device, VulkanPipelines *pipelines, bool *direct, DflashError *error) {
  *direct = false;
  if (!device->traits.coop_f16) return DFLASH_OK;
  VulkanBuffer buffer;
  DflashStatus status = vulkan_buffer_open(device, VULKAN_READBACK, LANES * HELD * sizeof(uint32_t),
                                           "the places of a matrix's elements", &buffer, error);
  if (status) return status;
  memset(buffer.mapped, 0xff, buffer.bytes);
  status = vulkan_buffer_flush(device, &buffer, error);
  if (!status) status = run_probe(device, pipelines, &buffer, error);
  if (!status) *direct = vulkan_coop_places_fit(buffer.mapped);
  vulkan_buffer_close(device, &buffer);
  return status;
}
