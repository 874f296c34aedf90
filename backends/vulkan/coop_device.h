/* Matrix units of a device, as the kernels units_* use them: VK_KHR_cooperative_matrix. */
#ifndef DFLASH_VULKAN_COOP_DEVICE_H
#define DFLASH_VULKAN_COOP_DEVICE_H

#include "device.h"
#include "ids.h"

/* Fills traits->coop_f16 of a device that lists the extension; api_version is filled already. It stays 0
 * where subgroups have not exactly 32 threads, or the memory model or the types that the kernels need are missing. */
DflashStatus vulkan_coop_read(VulkanApi *api, VkPhysicalDevice physical, VulkanTraits *traits, DflashError *error);

/* What is switched on for them: with the extension, features of Vulkan 1.2. Must not move once filled. */
typedef struct VulkanCoopFeatures {
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
  VkPhysicalDeviceVulkan12Features core;
} VulkanCoopFeatures;

/* The chain of structures that begins with these and goes on with `next`. */
void *vulkan_coop_chain(VulkanCoopFeatures *features, const VulkanTraits *traits, void *next);

#endif
