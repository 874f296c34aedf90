#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#include "coop_device.h"
#include "instance.h"
#include "memory.h"

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
  traits->timestamp_ns = limits->timestampPeriod;
}

static void fill_properties(const Properties *p, VulkanTraits *traits) {
  traits->is_cpu = p->base.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  traits->api_version = p->base.properties.apiVersion;
  traits->vendor = p->base.properties.vendorID;
  traits->subgroup_size = p->v11.subgroupSize;
  traits->denormals_kept = p->v12.shaderDenormPreserveFloat32 == VK_TRUE;
  fill_limits(p, traits);
  snprintf(traits->name, sizeof traits->name, "%.127s", p->base.properties.deviceName);
  snprintf(traits->driver, sizeof traits->driver, "%.50s %.70s", p->v12.driverName, p->v12.driverInfo);
}

static void fill_memory(VulkanApi *api, VkPhysicalDevice physical, VulkanTraits *traits) {
  VkPhysicalDeviceMemoryProperties memory;
  api->vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  const int input = vulkan_memory_type(&memory, UINT32_MAX, VULKAN_INPUT);
  traits->mapped_local = input >= 0 && memory.memoryTypes[input].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
        memory.memoryHeaps[i].size > traits->memory_bytes)
      traits->memory_bytes = memory.memoryHeaps[i].size;
}

typedef struct Extensions {
  VkExtensionProperties *at; /* owned */
  uint32_t count;
} Extensions;

static DflashStatus list_extensions(VulkanApi *api, VkPhysicalDevice physical, Extensions *list, DflashError *error) {
  static const char what[] = "listing a device's extensions";
  *list = (Extensions){0};
  VkResult result = VULKAN_CALL(api, vkEnumerateDeviceExtensionProperties, physical, NULL, &list->count, NULL);
  if (result != VK_SUCCESS) return vulkan_result(result, error, what);
  list->at = calloc(list->count + 1, sizeof *list->at);
  if (!list->at) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a list of extensions");
  result = VULKAN_CALL(api, vkEnumerateDeviceExtensionProperties, physical, NULL, &list->count, list->at);
  if (result == VK_SUCCESS) return DFLASH_OK;
  free(list->at);
  *list = (Extensions){0};
  return vulkan_result(result, error, what);
}

static bool has_extension(const Extensions *list, const char *name) {
  for (uint32_t i = 0; i < list->count; i++)
    if (strcmp(list->at[i].extensionName, name) == 0) return true;
  return false;
}

/* The structures of extensions that a device does not have must not be asked for. */
static void fill_features(VulkanApi *api, VkPhysicalDevice physical, const Extensions *extensions,
                          VulkanTraits *traits) {
  VkPhysicalDeviceBufferDeviceAddressFeatures addresses = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &addresses};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  if (traits->api_version >= VK_API_VERSION_1_3 ||
      has_extension(extensions, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    dot.pNext = features.pNext;
    features.pNext = &dot;
  }
  if (has_extension(extensions, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) {
    statistics.pNext = features.pNext;
    features.pNext = &statistics;
  }
  api->vkGetPhysicalDeviceFeatures2(physical, &features);
  traits->addresses = addresses.bufferDeviceAddress == VK_TRUE && features.features.shaderInt64 == VK_TRUE;
  traits->integer_dot = dot.shaderIntegerDotProduct == VK_TRUE;
  traits->statistics = statistics.pipelineExecutableInfo == VK_TRUE;
}

static void fill_address(VulkanApi *api, VkPhysicalDevice physical, const Extensions *extensions,
                         VulkanTraits *traits) {
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {.sType =
                                                     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &pci};
  if (!has_extension(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) return;
  api->vkGetPhysicalDeviceProperties2(physical, &properties);
  snprintf(traits->pci, sizeof traits->pci, "%04x:%02x:%02x.%x", pci.pciDomain, pci.pciBus, pci.pciDevice,
           pci.pciFunction);
}

DflashStatus vulkan_traits_read(VulkanApi *api, VkPhysicalDevice physical, VulkanTraits *traits, DflashError *error) {
  *traits = (VulkanTraits){0};
  Extensions extensions;
  DflashStatus status = list_extensions(api, physical, &extensions, error);
  if (status != DFLASH_OK) return status;
  VkPhysicalDeviceProperties2 plain = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  api->vkGetPhysicalDeviceProperties2(physical, &plain);
  Properties properties;
  read_properties(api, physical, plain.properties.apiVersion >= VK_API_VERSION_1_3, &properties);
  fill_properties(&properties, traits);
  fill_memory(api, physical, traits);
  fill_features(api, physical, &extensions, traits);
  fill_address(api, physical, &extensions, traits);
  if (has_extension(&extensions, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
    status = vulkan_coop_read(api, physical, traits, error);
  free(extensions.at);
  return status;
}
