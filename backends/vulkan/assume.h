/* What a device is taken to offer where that is less than it does, so that the ways of small devices can be run on any.
 * Never more: a device is not made larger by saying so. */
#ifndef DFLASH_VULKAN_ASSUME_H
#define DFLASH_VULKAN_ASSUME_H

#include "device.h"

enum {
  VULKAN_ASSUME_BINDING,    /* bytes of a storage binding */
  VULKAN_ASSUME_ALLOCATION, /* bytes of an allocation */
  VULKAN_ASSUME_SHARED,     /* bytes of a workgroup's shared memory */
  VULKAN_ASSUME_THREADS,    /* of a workgroup */
  VULKAN_ASSUME_GROUPS,     /* workgroups of a dispatch along x */
  VULKAN_ASSUME_STAMPS,     /* valid bits of a time stamp; 0: none */
  VULKAN_ASSUME_DOT,        /* integer dot product: 0 or 1 */
  VULKAN_ASSUME_ADDRESSES,  /* of buffers, for kernels: 0 or 1 */
  VULKAN_ASSUME_MAPPED,     /* device memory that the host can write, for a block's inputs: 0 or 1 */
  VULKAN_ASSUME_MEMORY,     /* bytes of a heap */
  VULKAN_ASSUME_COUNT
};

typedef struct VulkanAssumed {
  bool given[VULKAN_ASSUME_COUNT];
  uint64_t values[VULKAN_ASSUME_COUNT];
} VulkanAssumed;

/* "binding:64K,dot:0": keys once each, with whole numbers, times 1024 for each step of K, M, G. False where the text is
 * none of that. */
bool vulkan_assumed_parse(const char *text, VulkanAssumed *assumed);

/* Lowers the traits, and the heaps of a device that is open, and has the name say so. Nothing given: nothing changes. A
 * value above the device's own is DFLASH_INVALID_ARGUMENT, naming key and values. */
DflashStatus vulkan_assume(const VulkanAssumed *assumed, VulkanTraits *traits, DflashError *error);
void vulkan_assume_heaps(const VulkanAssumed *assumed, VkPhysicalDeviceMemoryProperties *memory);

/* "assumed binding 65536, dot 0; ", or "" where nothing is given. */
void vulkan_assumed_text(const VulkanAssumed *assumed, char *text, size_t size);

#endif
