#include "recording.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

static uint32_t count_bindings(const VulkanSteps *steps) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < steps->count; i++)
    if (steps->at[i].kind == VULKAN_DISPATCH) count += vulkan_step_ranges(&steps->at[i]);
  return count;
}

static DflashStatus make_pool(VulkanDevice *device, VulkanPlan *plan, uint32_t bindings, DflashError *error) {
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, bindings};
  const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                           .maxSets = plan->dispatches,
                                           .poolSizeCount = 1,
                                           .pPoolSizes = &size};
  VkDescriptorPool pool = VK_NULL_HANDLE;
  const VkResult result = VULKAN_CALL(&device->api, vkCreateDescriptorPool, device->device, &info, NULL, &pool);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "making a descriptor pool");
  plan->descriptors = pool;
  return DFLASH_OK;
}

static DflashStatus make_sets(VulkanDevice *device, const VulkanRecording *r, const VulkanPlan *plan,
                              DflashError *error) {
  VkDescriptorSetLayout *layouts = dflash_alloc(plan->dispatches, sizeof(VkDescriptorSetLayout));
  if (!layouts) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no host memory for descriptor sets");
  uint32_t sets = 0;
  for (uint32_t i = 0; i < r->steps->count; i++)
    if (r->steps->at[i].kind == VULKAN_DISPATCH) layouts[sets++] = r->steps->at[i].pipeline->set;
  const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = plan->descriptors,
                                            .descriptorSetCount = sets,
                                            .pSetLayouts = layouts};
  const VkResult result = VULKAN_CALL(&device->api, vkAllocateDescriptorSets, device->device, &info, r->sets);
  free(layouts);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_device_result(device, result, error, "making descriptor sets");
}

/* One write a set: its bindings follow each other. */
static void fill_writes(const VulkanRecording *r, VkDescriptorBufferInfo *buffers, VkWriteDescriptorSet *writes) {
  for (uint32_t i = 0, set = 0; i < r->steps->count; i++) {
    const VulkanStep *step = &r->steps->at[i];
    if (step->kind != VULKAN_DISPATCH) continue;
    const uint32_t count = vulkan_step_ranges(step);
    for (uint32_t j = 0; j < count; j++)
      buffers[j] = (VkDescriptorBufferInfo){step->ranges[j].buffer, step->ranges[j].offset, step->ranges[j].bytes};
    writes[set] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                         .dstSet = r->sets[set],
                                         .descriptorCount = count,
                                         .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                         .pBufferInfo = buffers};
    buffers += count;
    set++;
  }
}

static DflashStatus point_sets(VulkanDevice *device, const VulkanRecording *r, const VulkanPlan *plan,
                               uint32_t bindings, DflashError *error) {
  VkDescriptorBufferInfo *buffers = dflash_alloc(bindings, sizeof *buffers);
  VkWriteDescriptorSet *writes = dflash_alloc(plan->dispatches, sizeof *writes);
  DflashStatus status = DFLASH_OK;
  if (buffers && writes) {
    fill_writes(r, buffers, writes);
    device->api.vkUpdateDescriptorSets(device->device, plan->dispatches, writes, 0, NULL);
  } else {
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no host memory for descriptors");
  }
  free(writes);
  free(buffers);
  return status;
}

DflashStatus vulkan_plan_bind(VulkanDevice *device, const VulkanRecording *recording, VulkanPlan *plan,
                              DflashError *error) {
  if (plan->dispatches == 0) return DFLASH_OK;
  const uint32_t bindings = count_bindings(recording->steps);
  DflashStatus status = make_pool(device, plan, bindings, error);
  if (!status) status = make_sets(device, recording, plan, error);
  return status ? status : point_sets(device, recording, plan, bindings, error);
}
