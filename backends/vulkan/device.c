#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#include "assume.h"
#include "device_features.h"
#include "instance.h"

/* What the kernels are written for: the largest number of bindings, threads and bytes of shared memory. */
enum { NEEDED_BUFFERS = 10, NEEDED_THREADS = 256, NEEDED_SHARED_BYTES = 16384 };

static const uint64_t run_limit_ns = 60000000000u;

static DflashStatus check_need(const VulkanTraits *traits, const char *what, uint64_t has, uint64_t needs,
                               DflashError *error) {
  if (has >= needs) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: device %s (%s): %s: %llu; at least %llu are needed",
                          traits->id, traits->name, what, (unsigned long long)has, (unsigned long long)needs);
}

static DflashStatus check_needs(const VulkanTraits *traits, DflashError *error) {
  DflashStatus status =
      check_need(traits, "storage buffers of a kernel", traits->max_storage_buffers, NEEDED_BUFFERS, error);
  if (status == DFLASH_OK)
    status = check_need(traits, "threads of a workgroup", traits->max_threads, NEEDED_THREADS, error);
  if (status == DFLASH_OK)
    status = check_need(traits, "bytes of shared memory", traits->shared_bytes, NEEDED_SHARED_BYTES, error);
  return status;
}

/* The device of that id, or the first; of what it offers, what is assumed. */
static DflashStatus choose(VulkanDevice *device, const VulkanDeviceOptions *options, DflashError *error) {
  const char *id = options->id;
  VulkanFound *found = NULL;
  uint32_t count = 0;
  DflashStatus status = vulkan_find(&device->api, device->instance, &found, &count, error);
  if (status != DFLASH_OK) return status;
  uint32_t at = 0;
  if (id && *id)
    while (at < count && strcmp(found[at].traits.id, id) != 0) at++;
  if (at < count) {
    device->physical = found[at].physical;
    device->family = found[at].family;
    device->traits = found[at].traits;
    if (options->assumed) status = vulkan_assume(options->assumed, &device->traits, error);
    if (status == DFLASH_OK) status = check_needs(&device->traits, error);
  } else {
    status = dflash_error_set(error, DFLASH_UNAVAILABLE, "vulkan: no device '%s'; valid: 0 to %u", id, count - 1);
  }
  free(found);
  return status;
}

static DflashStatus create_device(VulkanDevice *device, DflashError *error) {
  static const float priority = 1.0f;
  VulkanFeatures features;
  vulkan_features_fill(&device->traits, device->statistics, &features);
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueFamilyIndex = device->family,
      .queueCount = 1,
      .pQueuePriorities = &priority,
  };
  const VkDeviceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = features.chain,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue,
      .enabledExtensionCount = features.extension_count,
      .ppEnabledExtensionNames = features.extensions,
  };
  VkResult result = VULKAN_CALL(&device->api, vkCreateDevice, device->physical, &info, NULL, &device->device);
  if (result == VK_SUCCESS) return DFLASH_OK;
  device->device = VK_NULL_HANDLE;
  return vulkan_device_result(device, result, error, "opening the device");
}

static DflashStatus create_pool(VulkanDevice *device, DflashError *error) {
  const VkCommandPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
      .queueFamilyIndex = device->family,
  };
  VkResult result = VULKAN_CALL(&device->api, vkCreateCommandPool, device->device, &info, NULL, &device->pool);
  if (result == VK_SUCCESS) return DFLASH_OK;
  device->pool = VK_NULL_HANDLE;
  return vulkan_device_result(device, result, error, "making a command pool");
}

DflashStatus vulkan_device_open(const VulkanDeviceOptions *options, VulkanDevice *device, DflashError *error) {
  *device = (VulkanDevice){.api.fault = options->fault};
  DflashStatus status = vulkan_instance_open(device, options->validation, error);
  if (status == DFLASH_OK) status = choose(device, options, error);
  device->statistics = options->statistics && device->traits.statistics;
  if (status == DFLASH_OK) status = create_device(device, error);
  if (status == DFLASH_OK) status = vulkan_api_device(&device->api, device->device, error);
  if (status == DFLASH_OK && device->statistics) status = vulkan_api_statistics(&device->api, device->device, error);
  if (status == DFLASH_OK) status = create_pool(device, error);
  if (status != DFLASH_OK) {
    vulkan_device_close(device);
    return status;
  }
  device->api.vkGetPhysicalDeviceMemoryProperties(device->physical, &device->memory);
  if (options->assumed) vulkan_assume_heaps(options->assumed, &device->memory);
  device->api.vkGetDeviceQueue(device->device, device->family, 0, &device->queue);
  return DFLASH_OK;
}

void vulkan_device_close(VulkanDevice *device) {
  VulkanApi *api = &device->api;
  if (device->device && api->vkDeviceWaitIdle) api->vkDeviceWaitIdle(device->device);
  if (device->pool) api->vkDestroyCommandPool(device->device, device->pool, NULL);
  if (device->device && api->vkDestroyDevice) api->vkDestroyDevice(device->device, NULL);
  device->pool = VK_NULL_HANDLE;
  device->queue = VK_NULL_HANDLE;
  device->device = VK_NULL_HANDLE;
  device->physical = VK_NULL_HANDLE;
  vulkan_instance_close(device);
}

DflashStatus vulkan_device_check(VulkanDevice *device, DflashError *error) {
  if (device->messages.count == 0) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INTERNAL, "vulkan: the validation layers spoke %u times, first: %s",
                          device->messages.count, device->messages.first);
}

DflashStatus vulkan_device_result(VulkanDevice *device, VkResult result, DflashError *error, const char *what) {
  if (result == VK_ERROR_DEVICE_LOST) device->lost = true;
  return vulkan_result(result, error, what);
}

DflashStatus vulkan_device_usable(const VulkanDevice *device, DflashError *error, const char *what) {
  if (!device->lost) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_DEVICE_LOST,
                          "vulkan: %s: the device was lost before, and the model can only be closed", what);
}

void vulkan_device_settle(VulkanDevice *device) {
  if (device->lost && device->device) device->api.vkDeviceWaitIdle(device->device);
}

/* Work was submitted, and the wait for it failed. It may run all the same, so it is waited for once more, by a call
 * that no fault is planted in; work that does not end even so is given up. */
static void wait_again(VulkanDevice *device, VkFence fence) {
  if (device->api.vkWaitForFences(device->device, 1, &fence, VK_TRUE, run_limit_ns) != VK_SUCCESS) device->lost = true;
}

DflashStatus vulkan_device_run(VulkanDevice *device, VkCommandBuffer commands, VkFence fence, DflashError *error) {
  static const char what[] = "running work on the device";
  DflashStatus status = vulkan_device_usable(device, error, what);
  if (status != DFLASH_OK) return status;
  VulkanApi *api = &device->api;
  const VkSubmitInfo submit = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  VkResult result = VULKAN_CALL(api, vkResetFences, device->device, 1, &fence);
  if (result == VK_SUCCESS) result = VULKAN_CALL(api, vkQueueSubmit, device->queue, 1, &submit, fence);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, what);
  result = VULKAN_CALL(api, vkWaitForFences, device->device, 1, &fence, VK_TRUE, run_limit_ns);
  if (result == VK_SUCCESS) return DFLASH_OK;
  wait_again(device, fence);
  return vulkan_device_result(device, result, error, what);
}
