#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#include "instance.h"

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Everything that a device of version 1.2 or 1.3 says of itself. */
typedef struct Properties {
  VkPhysicalDeviceProperties2 base;
  VkPhysicalDeviceVulkan11Properties v11;
  VkPhysicalDeviceVulkan12Properties v12;
  VkPhysicalDeviceVulkan13Properties v13;
} Properties;

static void read_properties(VulkanApi *api, VkPhysicalDevice physical, bool is_13, Properties *p) {
  *p = (Properties){
      .base = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &p->v11},
      .v11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &p->v12},
      .v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .pNext = is_13 ? &p->v13 : NULL},
      .v13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES},
  };
  api->vkGetPhysicalDeviceProperties2(physical, &p->base);
}

static void fill_limits(const Properties *p, VulkanTraits *traits) {
  const VkPhysicalDeviceLimits *limits = &p->base.properties.limits;
  traits->max_threads = (uint32_t)min_u64(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]);
  memcpy(traits->max_groups, limits->maxComputeWorkGroupCount, sizeof traits->max_groups);
  traits->max_storage_buffers =
      (uint32_t)min_u64(limits->maxPerStageDescriptorStorageBuffers, limits->maxDescriptorSetStorageBuffers);
  traits->shared_bytes = limits->maxComputeSharedMemorySize;
  traits->max_binding = limits->maxStorageBufferRange;
  traits->max_allocation = p->v11.maxMemoryAllocationSize;
  if (traits->api_version >= VK_API_VERSION_1_3)
    traits->max_allocation = min_u64(traits->max_allocation, p->v13.maxBufferSize);
  traits->offset_align = limits->minStorageBufferOffsetAlignment;
  traits->flush_align = limits->nonCoherentAtomSize;
  traits->timestamp_ns = limits->timestampPeriod;
}

static void fill_properties(const Properties *p, VulkanTraits *traits) {
  traits->is_cpu = p->base.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  traits->api_version = p->base.properties.apiVersion;
  traits->subgroup_size = p->v11.subgroupSize;
  traits->denormals_kept = p->v12.shaderDenormPreserveFloat32 == VK_TRUE;
  fill_limits(p, traits);
  snprintf(traits->name, sizeof traits->name, "%.127s", p->base.properties.deviceName);
  snprintf(traits->driver, sizeof traits->driver, "%.50s %.70s", p->v12.driverName, p->v12.driverInfo);
}

static void fill_memory(VulkanApi *api, VkPhysicalDevice physical, VulkanTraits *traits) {
  VkPhysicalDeviceMemoryProperties memory;
  api->vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
        memory.memoryHeaps[i].size > traits->memory_bytes)
      traits->memory_bytes = memory.memoryHeaps[i].size;
}

/* Whether a device of version 1.2 has an extension. */
static DflashStatus has_extension(VulkanApi *api, VkPhysicalDevice physical, const char *name, bool *has,
                                  DflashError *error) {
  uint32_t count = 0;
  VkResult result = VULKAN_CALL(api, vkEnumerateDeviceExtensionProperties, physical, NULL, &count, NULL);
  if (result != VK_SUCCESS) return vulkan_result(result, error, "listing a device's extensions");
  VkExtensionProperties *extensions = calloc(count + 1, sizeof *extensions);
  if (!extensions) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a list of extensions");
  result = VULKAN_CALL(api, vkEnumerateDeviceExtensionProperties, physical, NULL, &count, extensions);
  *has = false;
  for (uint32_t i = 0; result == VK_SUCCESS && i < count; i++) *has |= strcmp(extensions[i].extensionName, name) == 0;
  free(extensions);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_result(result, error, "listing a device's extensions");
}

static DflashStatus fill_dot(VulkanApi *api, VkPhysicalDevice physical, VulkanTraits *traits, DflashError *error) {
  bool present = traits->api_version >= VK_API_VERSION_1_3;
  if (!present) {
    DflashStatus status =
        has_extension(api, physical, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, &present, error);
    if (status != DFLASH_OK) return status;
  }
  if (!present) return DFLASH_OK;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &dot};
  api->vkGetPhysicalDeviceFeatures2(physical, &features);
  traits->integer_dot = dot.shaderIntegerDotProduct == VK_TRUE;
  return DFLASH_OK;
}

DflashStatus vulkan_traits_read(VulkanApi *api, VkPhysicalDevice physical, VulkanTraits *traits, DflashError *error) {
  *traits = (VulkanTraits){0};
  VkPhysicalDeviceProperties2 plain = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  api->vkGetPhysicalDeviceProperties2(physical, &plain);
  Properties properties;
  read_properties(api, physical, plain.properties.apiVersion >= VK_API_VERSION_1_3, &properties);
  fill_properties(&properties, traits);
  fill_memory(api, physical, traits);
  return fill_dot(api, physical, traits, error);
}
