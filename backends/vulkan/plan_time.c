#include "schedule.h"

#include "base/error.h"

static DflashStatus read_stamp(VulkanDevice *device, const VulkanPlan *plan, uint32_t index, uint64_t *ticks,
                               DflashError *error) {
  const VkResult result = VULKAN_CALL(&device->api, vkGetQueryPoolResults, device->device, plan->queries, index, 1,
                                      sizeof *ticks, ticks, sizeof *ticks, VK_QUERY_RESULT_64_BIT);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_device_result(device, result, error, "reading a time stamp");
}

static DflashStatus no_stamps(DflashError *error) {
  return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: this device's queue takes no time stamps");
}

DflashStatus vulkan_plan_time(VulkanDevice *device, const VulkanPlan *plan, uint64_t *ns, DflashError *error) {
  if (plan->stamps == 0) return no_stamps(error);
  uint64_t first = 0, last = 0;
  DflashStatus status = read_stamp(device, plan, 0, &first, error);
  if (!status) status = read_stamp(device, plan, plan->stamps - 1, &last, error);
  if (!status) *ns = vulkan_ticks_ns(&device->traits, first, last);
  return status;
}

DflashStatus vulkan_plan_step(VulkanDevice *device, const VulkanPlan *plan, uint64_t *ticks, DflashError *error) {
  if (plan->stamps == 0) return no_stamps(error);
  uint64_t first = 0, next = 0, step = 0;
  DflashStatus status = read_stamp(device, plan, 0, &first, error);
  for (uint32_t i = 1; i < plan->stamps && !status; i++) {
    status = read_stamp(device, plan, i, &next, error);
    if (!status) step = vulkan_ticks_step(&device->traits, step, first, next);
  }
  if (!status) *ticks = step > 0 ? step : 1;
  return status;
}

DflashStatus vulkan_plan_spans(VulkanDevice *device, const VulkanPlan *plan, VulkanSpan *spans, uint32_t capacity,
                               uint32_t *count, DflashError *error) {
  if (plan->stamps == 0) return no_stamps(error);
  *count = plan->marks ? plan->stamps - 1 : 0;
  if (*count == 0 || capacity == 0) return DFLASH_OK;
  uint64_t first = 0, ticks = 0, begin_ns = 0;
  DflashStatus status = read_stamp(device, plan, 0, &first, error);
  for (uint32_t i = 0; i < *count && i < capacity && !status; i++) {
    status = read_stamp(device, plan, i + 1, &ticks, error);
    if (status) break;
    const uint64_t end_ns = vulkan_ticks_ns(&device->traits, first, ticks);
    spans[i] = (VulkanSpan){plan->marks[i][0], plan->marks[i][1], begin_ns, end_ns};
    begin_ns = end_ns;
  }
  return status;
}
