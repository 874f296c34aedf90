/* What this device can do: the best of several streaming reads, and f32 multiply-adds with nothing to read. */
#include "measure.h"

#include "base/error.h"
#include "block.h"

enum { REPEATS = 6, READ_GROUPS = 4096, MULTIPLY_GROUPS = 2048, MULTIPLY_ROUNDS = 256, PROCESSOR_SHARE = 64 };

/* As much as a binding shows, but no more than 2 GiB and an eighth of the memory. */
static uint64_t stream_bytes(const VulkanTraits *traits) {
  uint64_t bytes = UINT64_C(2) << 30;
  if (bytes > traits->max_binding) bytes = traits->max_binding;
  if (bytes > traits->max_allocation) bytes = traits->max_allocation;
  if (bytes > traits->memory_bytes / 8) bytes = traits->memory_bytes / 8;
  return bytes / 4096 * 4096;
}

/* Nanoseconds of one run, by the device's clock where it has one. */
static DflashStatus time_run(DflashModel *model, VulkanPlan *plan, uint64_t *ns, DflashError *error) {
  const uint64_t begin = vulkan_now_ns();
  DflashStatus status = vulkan_plan_run(&model->device, plan, error);
  *ns = vulkan_now_ns() - begin;
  return !status && plan->stamps > 0 ? vulkan_plan_time(&model->device, plan, ns, error) : status;
}

/* Shortest of several runs of one dispatch. */
static DflashStatus best_run(DflashModel *model, int kernel, VulkanDispatch dispatch, VulkanRange fill, int repeats,
                             uint64_t *best_ns, DflashError *error) {
  VulkanSteps steps = {0}, fills = {0};
  VulkanPlan plan = {0}, filling = {0};
  DflashStatus status = vulkan_steps_kernel(model, &steps, kernel, NULL, 0, &dispatch, error);
  if (fill.bytes > 0) vulkan_steps_fill(&fills, fill, 0x3c003c01u);
  if (!status && (steps.failed || fills.failed))
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory to measure");
  if (!status && fill.bytes > 0) status = vulkan_plan_open(&model->device, &fills, false, 0, &filling, error);
  if (!status && fill.bytes > 0) status = vulkan_plan_run(&model->device, &filling, error);
  if (!status) status = vulkan_plan_open(&model->device, &steps, false, 0, &plan, error);
  *best_ns = UINT64_MAX;
  for (int i = 0; !status && i < repeats; i++) {
    uint64_t ns;
    status = time_run(model, &plan, &ns, error);
    if (!status && ns < *best_ns) *best_ns = ns > 0 ? ns : 1;
  }
  vulkan_plan_close(&model->device, &plan);
  vulkan_plan_close(&model->device, &filling);
  vulkan_steps_close(&steps);
  vulkan_steps_close(&fills);
  return status;
}

static DflashStatus read_stream(DflashModel *model, int repeats, uint64_t *bytes, uint64_t *best_ns,
                                DflashError *error) {
  VulkanBuffer sums = {0};
  DflashStatus status = DFLASH_OK;
  const bool made = model->stream.buffer == VK_NULL_HANDLE;
  *bytes = stream_bytes(&model->device.traits);
  if (made)
    status = vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, *bytes, "a streaming read", &model->stream, error);
  if (!status) status = vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, READ_GROUPS * 4, "sums", &sums, error);
  if (status) return status;
  const VulkanRange ranges[] = {vulkan_buffer_range(&model->stream, 0, *bytes),
                                vulkan_buffer_range(&sums, 0, sums.bytes)};
  const MeasurePush push = {(uint32_t)(*bytes / 16)};
  status = best_run(model, VULKAN_KERNEL_READ,
                    (VulkanDispatch){.ranges = ranges, .push = &push, .groups = {READ_GROUPS, 1, 1}},
                    made ? ranges[0] : (VulkanRange){0}, repeats, best_ns, error);
  vulkan_buffer_close(&model->device, &sums);
  return status;
}

DflashStatus vulkan_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error) {
  uint64_t bytes, ns;
  DflashStatus status = read_stream(model, REPEATS, &bytes, &ns, error);
  if (!status) *bytes_per_second = (double)bytes * 1e9 / (double)ns;
  return status;
}

DflashStatus vulkan_evict_caches(DflashModel *model, DflashError *error) {
  uint64_t bytes, ns;
  return read_stream(model, 1, &bytes, &ns, error);
}

DflashStatus vulkan_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error) {
  VulkanBuffer sums = {0};
  uint64_t ns;
  const uint32_t share = model->device.traits.is_cpu ? PROCESSOR_SHARE : 1, groups = MULTIPLY_GROUPS / share;
  DflashStatus status =
      vulkan_buffer_open(&model->device, VULKAN_ON_DEVICE, (uint64_t)groups * 256 * 4, "sums", &sums, error);
  if (status) return status;
  const VulkanRange range = vulkan_buffer_range(&sums, 0, sums.bytes);
  const MeasurePush push = {MULTIPLY_ROUNDS};
  status = best_run(model, VULKAN_KERNEL_MULTIPLY,
                    (VulkanDispatch){.ranges = &range, .push = &push, .groups = {groups, 1, 1}}, (VulkanRange){0},
                    REPEATS, &ns, error);
  vulkan_buffer_close(&model->device, &sums);
  if (!status) *operations_per_second = 2.0 * 64 * MULTIPLY_ROUNDS * 256 * groups * 1e9 / (double)ns;
  return status;
}
