/* The Vulkan instance behind a device, and the devices that it sees. */
#ifndef DFLASH_VULKAN_INSTANCE_H
#define DFLASH_VULKAN_INSTANCE_H

#include "device.h"

/* Fills api, instance and messenger of the device. On failure vulkan_instance_close is still to be called. */
DflashStatus vulkan_instance_open(VulkanDevice *device, bool validation, DflashError *error);
void vulkan_instance_close(VulkanDevice *device); /* zeroed or half open: fine */

/* messages.c: a messenger that notes warnings and errors in *messages. */
VkDebugUtilsMessengerCreateInfoEXT vulkan_messenger_info(VulkanMessages *messages);

/* A device that can be opened. */
typedef struct VulkanFound {
  VkPhysicalDevice physical;
  uint32_t family;
  VkPhysicalDeviceType type;
  VulkanTraits traits;
} VulkanFound;

/* Every device of version 1.2 or later with a compute queue, best first: discrete, integrated, virtual, others,
 * processors; equal ones in the driver's order. Ids are places in this list. None is DFLASH_UNAVAILABLE. The caller
 * frees *found. */
DflashStatus vulkan_find(VulkanApi *api, VkInstance instance, VulkanFound **found, uint32_t *count, DflashError *error);

/* traits.c: all but the id and the time stamps' bits. */
DflashStatus vulkan_traits_read(VulkanApi *api, VkPhysicalDevice physical, VulkanTraits *traits, DflashError *error);

#endif
