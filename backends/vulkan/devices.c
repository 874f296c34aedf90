#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

#include "abi.h"
#include "instance.h"

/* How well a family of queues suits; 0: not at all. One for compute alone begins a dispatch that waits for another
 * sooner than one that also draws. */
static int family_rank(const VkQueueFamilyProperties *family) {
  if (!(family->queueFlags & VK_QUEUE_COMPUTE_BIT)) return 0;
  return 1 + !(family->queueFlags & VK_QUEUE_GRAPHICS_BIT) + 2 * (family->timestampValidBits > 0);
}

/* The best family with a compute queue: one that takes time stamps before one that does not; false: none. */
static bool find_family(VulkanApi *api, VkPhysicalDevice physical, uint32_t *family, uint32_t *stamp_bits) {
  enum { FAMILIES = 64 };
  VkQueueFamilyProperties families[FAMILIES];
  uint32_t count = 0;
  api->vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, NULL);
  if (count > FAMILIES) count = FAMILIES;
  api->vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  int best = 0;
  for (uint32_t i = 0; i < count; i++) {
    const int rank = family_rank(&families[i]);
    if (rank <= best) continue;
    best = rank;
    *family = i;
    *stamp_bits = families[i].timestampValidBits;
  }
  return best > 0;
}

static int preference(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return 0;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return 1;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return 2;
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return 4;
  default:
    return 3;
  }
}

/* Puts one more behind those that are as good. */
static void insert(VulkanFound *found, uint32_t count, VulkanFound next) {
  uint32_t at = count;
  for (; at > 0 && preference(found[at - 1].type) > preference(next.type); at--) found[at] = found[at - 1];
  found[at] = next;
}

static DflashStatus none_found(uint32_t seen, DflashError *error) {
  return dflash_error_set(error, DFLASH_UNAVAILABLE,
                          seen == 0 ? "vulkan: no driver gives a device (%u seen)"
                                    : "vulkan: no device of version 1.2 or later with a compute queue (%u seen)",
                          seen);
}

/* Those of the physical devices that can be opened. */
static DflashStatus sift(VulkanApi *api, const VkPhysicalDevice *physical, uint32_t seen, VulkanFound *found,
                         uint32_t *count, DflashError *error) {
  for (uint32_t i = 0; i < seen; i++) {
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    api->vkGetPhysicalDeviceProperties2(physical[i], &properties);
    VulkanFound next = {.physical = physical[i], .type = properties.properties.deviceType};
    uint32_t stamp_bits = 0;
    if (properties.properties.apiVersion < VK_API_VERSION_1_2) continue;
    if (!find_family(api, physical[i], &next.family, &stamp_bits)) continue;
    DflashStatus status = vulkan_traits_read(api, physical[i], &next.traits, error);
    if (status != DFLASH_OK) return status;
    next.traits.timestamp_bits = stamp_bits;
    insert(found, (*count)++, next);
  }
  if (*count == 0) return none_found(seen, error);
  for (uint32_t i = 0; i < *count; i++) snprintf(found[i].traits.id, sizeof found[i].traits.id, "%u", i);
  return DFLASH_OK;
}

/* Fills the caller's lists, both of room for `seen`. */
static DflashStatus fill(VulkanApi *api, VkInstance instance, uint32_t seen, VkPhysicalDevice *physical,
                         VulkanFound *found, uint32_t *count, DflashError *error) {
  VkResult result = VULKAN_CALL(api, vkEnumeratePhysicalDevices, instance, &seen, physical);
  if (result != VK_SUCCESS) return vulkan_result(result, error, "listing the devices");
  return sift(api, physical, seen, found, count, error);
}

DflashStatus vulkan_find(VulkanApi *api, VkInstance instance, VulkanFound **found, uint32_t *count,
                         DflashError *error) {
  *found = NULL;
  *count = 0;
  uint32_t seen = 0;
  VkResult result = VULKAN_CALL(api, vkEnumeratePhysicalDevices, instance, &seen, NULL);
  if (result != VK_SUCCESS) return vulkan_result(result, error, "listing the devices");
  DflashStatus status = DFLASH_OK;
  VkPhysicalDevice *physical = calloc(seen + 1, sizeof(VkPhysicalDevice));
  VulkanFound *list = calloc(seen + 1, sizeof *list);
  if (physical && list)
    status = fill(api, instance, seen, physical, list, count, error);
  else
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a list of %u devices", seen);
  free(physical);
  if (status == DFLASH_OK) {
    *found = list;
    return status;
  }
  free(list);
  *count = 0;
  return status;
}

/* Into the index-th of the caller's structs, which are struct_size bytes each. */
static void describe(const VulkanTraits *traits, DflashDevice *devices, uint32_t index) {
  const uint32_t size = devices->struct_size;
  DflashDevice device = {.is_cpu = traits->is_cpu, .memory_bytes = traits->memory_bytes};
  snprintf(device.id, sizeof device.id, "%s", traits->id);
  snprintf(device.name, sizeof device.name, "%s", traits->name);
  snprintf(device.driver, sizeof device.driver, "%s", traits->driver);
  vulkan_give((char *)devices + (size_t)index * size, size, &device, sizeof device);
}

DflashStatus vulkan_devices(DflashDevice *devices, uint32_t capacity, uint32_t *count, DflashError *error) {
  VulkanDevice device = {0};
  VulkanFound *found = NULL;
  *count = 0;
  DflashStatus status =
      capacity > 0 ? vulkan_check_struct(devices, sizeof devices->struct_size, "devices", error) : DFLASH_OK;
  if (status) return status;
  status = vulkan_instance_open(&device, false, error);
  if (status == DFLASH_OK) status = vulkan_find(&device.api, device.instance, &found, count, error);
  for (uint32_t i = 0; found && i < *count && i < capacity; i++) describe(&found[i].traits, devices, i);
  free(found);
  vulkan_instance_close(&device);
  return status;
}
