#include "recording.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

static uint32_t count_dispatches(const VulkanSteps *steps) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < steps->count; i++) count += steps->at[i].kind == VULKAN_DISPATCH;
  return count;
}

static DflashStatus recording_open(VulkanRecording *r, const VulkanPlan *plan, DflashError *error) {
  const size_t count = (size_t)r->steps->count + 1; /* no allocation of nothing */
  r->before = dflash_alloc(count, sizeof *r->before);
  r->stamp_after = dflash_alloc(count, sizeof *r->stamp_after);
  r->sets = dflash_alloc((size_t)plan->dispatches + 1, sizeof(VkDescriptorSet));
  if (r->before && r->stamp_after && r->sets) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no host memory to record %u steps", r->steps->count);
}

static void recording_close(VulkanRecording *r) {
  free(r->sets);
  free(r->stamp_after);
  free(r->before);
}

/* Where stamps go; the plan then knows how many. */
static DflashStatus place_stamps(const VulkanTraits *traits, const VulkanRecording *r, bool stamped, VulkanPlan *plan,
                                 DflashError *error) {
  if (traits->timestamp_bits == 0) return DFLASH_OK;
  plan->stamps = 2;
  if (!stamped) return DFLASH_OK;
  plan->marks = dflash_alloc((size_t)r->steps->count + 1, sizeof *plan->marks);
  if (!plan->marks) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no host memory for time stamps");
  plan->stamps = vulkan_stamps_plan(r->steps, r->stamp_after, plan->marks) + 1;
  return DFLASH_OK;
}

static DflashStatus make_queries(VulkanDevice *device, VulkanPlan *plan, DflashError *error) {
  if (plan->stamps == 0) return DFLASH_OK;
  const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                      .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                      .queryCount = plan->stamps};
  VkQueryPool queries = VK_NULL_HANDLE;
  const VkResult result = VULKAN_CALL(&device->api, vkCreateQueryPool, device->device, &info, NULL, &queries);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "making time stamps");
  plan->queries = queries;
  return DFLASH_OK;
}

static DflashStatus make_fence(VulkanDevice *device, VulkanPlan *plan, DflashError *error) {
  const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkFence fence = VK_NULL_HANDLE;
  const VkResult result = VULKAN_CALL(&device->api, vkCreateFence, device->device, &info, NULL, &fence);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "making a fence");
  plan->fence = fence;
  return DFLASH_OK;
}

static DflashStatus make(VulkanDevice *device, VulkanRecording *r, bool stamped, VulkanPlan *plan, DflashError *error) {
  DflashStatus status = recording_open(r, plan, error);
  if (!status) status = place_stamps(&device->traits, r, stamped, plan, error);
  if (!status) status = make_queries(device, plan, error);
  if (!status) status = make_fence(device, plan, error);
  if (!status) status = vulkan_plan_bind(device, r, plan, error);
  if (status) return status;
  vulkan_barriers_plan(r->steps, r->before);
  return vulkan_plan_record(device, r, plan, error);
}

DflashStatus vulkan_plan_open(VulkanDevice *device, const VulkanSteps *steps, bool stamped, uint32_t skip_barrier,
                              VulkanPlan *plan, DflashError *error) {
  *plan = (VulkanPlan){0};
  DflashStatus status = vulkan_steps_check(&device->traits, steps, error);
  if (status) return status;
  plan->dispatches = count_dispatches(steps);
  VulkanRecording r = {.steps = steps, .skip_barrier = skip_barrier};
  status = make(device, &r, stamped, plan, error);
  recording_close(&r);
  if (status) vulkan_plan_close(device, plan);
  return status;
}

void vulkan_plan_close(VulkanDevice *device, VulkanPlan *plan) {
  const VulkanApi *api = &device->api;
  vulkan_device_settle(device);
  if (plan->commands) api->vkFreeCommandBuffers(device->device, device->pool, 1, &plan->commands);
  if (plan->descriptors) api->vkDestroyDescriptorPool(device->device, plan->descriptors, NULL);
  if (plan->queries) api->vkDestroyQueryPool(device->device, plan->queries, NULL);
  if (plan->fence) api->vkDestroyFence(device->device, plan->fence, NULL);
  free(plan->marks);
  *plan = (VulkanPlan){0};
}

DflashStatus vulkan_plan_run(VulkanDevice *device, VulkanPlan *plan, DflashError *error) {
  const DflashStatus status = vulkan_device_run(device, plan->commands, plan->fence, error);
  return status ? status : vulkan_device_check(device, error);
}
