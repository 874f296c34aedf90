/* The kernels for matrix units with matrix units emulated on shared memory, which any device runs. */
#ifndef DFLASH_VULKAN_TESTS_EMULATED_H
#define DFLASH_VULKAN_TESTS_EMULATED_H

#include "kernel.h"

enum {
  EMULATED_FIRST = VULKAN_KERNEL_COOP_F16,
  EMULATED_COUNT = VULKAN_KERNEL_COOP_Q4_DIRECT + 1 - EMULATED_FIRST,
  EMULATED_SHARED_BYTES = 4096 /* what they take of shared memory beyond vulkan_coop_shared, at most */
};

extern const VulkanModule vulkan_emulated[EMULATED_COUNT]; /* in the order of VULKAN_KERNELS, from EMULATED_FIRST on */

#endif
