/* What is switched on when a device is opened, beyond Vulkan 1.2. */
#ifndef DFLASH_VULKAN_DEVICE_FEATURES_H
#define DFLASH_VULKAN_DEVICE_FEATURES_H

#include "coop_device.h"

enum { VULKAN_EXTENSIONS_MAX = 3 };

/* Must not move once filled: the structures point at each other. */
typedef struct VulkanFeatures {
  const char *extensions[VULKAN_EXTENSIONS_MAX];
  uint32_t extension_count;
  void *chain; /* for pNext */
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics;
  VulkanCoopFeatures coop;
  VkPhysicalDeviceBufferDeviceAddressFeatures addresses; /* without coop, which has it among its own */
  VkPhysicalDeviceFeatures2 basic;
} VulkanFeatures;

/* statistics: of kernels, wanted; the device must have them. */
void vulkan_features_fill(const VulkanTraits *traits, bool statistics, VulkanFeatures *features);

#endif
