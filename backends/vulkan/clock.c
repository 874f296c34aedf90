/* The step of the device's clock, measured. */
#include "base/error.h"
#include "measure.h"
#include "sequence.h"

enum { STAMPS = 64, THREADS = 256 };

/* Dispatches of little work, each of another stage than the one before: so many stamps. */
static DflashStatus add_dispatches(DflashModel *model, const VulkanBuffer *sums, VulkanSteps *steps,
                                   DflashError *error) {
  const VulkanRange range = vulkan_buffer_range(sums, 0, sums->bytes);
  const MeasurePush push = {1};
  DflashStatus status = DFLASH_OK;
  for (int32_t i = 0; i < STAMPS && !status; i++) {
    VulkanDispatch dispatch = {.ranges = &range, .push = &push, .groups = {1, 1, 1}, .stage = i % 2};
    status = vulkan_steps_kernel(model, steps, VULKAN_KERNEL_MULTIPLY, NULL, 0, &dispatch, error);
  }
  return status;
}

static DflashStatus measure_ticks(DflashModel *model, uint64_t *ticks, DflashError *error) {
  VulkanBuffer sums = {0};
  VulkanSteps steps = {0};
  VulkanPlan plan = {0};
  DflashStatus status =
      vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, THREADS * sizeof(float), "sums", &sums, error);
  if (!status) status = add_dispatches(model, &sums, &steps, error);
  if (!status) status = vulkan_plan_open(&model->device, &steps, true, 0, &plan, error);
  if (!status) status = vulkan_plan_run(&model->device, &plan, error);
  if (!status) status = vulkan_plan_step(&model->device, &plan, ticks, error);
  vulkan_plan_close(&model->device, &plan);
  vulkan_steps_close(&steps);
  vulkan_buffer_close(&model->device, &sums);
  return status;
}

DflashStatus vulkan_measure_step(DflashModel *model, uint64_t *ns, DflashError *error) {
  if (model->stamp_step_ns == 0) {
    uint64_t ticks = 1;
    const DflashStatus status = measure_ticks(model, &ticks, error);
    if (status) return status;
    const double step = (double)ticks * model->device.traits.timestamp_ns;
    model->stamp_step_ns = step > 1 ? (uint64_t)(step + 0.5) : 1;
  }
  *ns = model->stamp_step_ns;
  return DFLASH_OK;
}
