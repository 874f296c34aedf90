/* The kernels for matrix units with matrix units emulated on shared memory, which any device runs. */
#ifndef DFLASH_VULKAN_TESTS_EMULATED_H
#define DFLASH_VULKAN_TESTS_EMULATED_H

#include "kernel.h"

/* What they take of shared memory beyond vulkan_units_shared, for each thread. */
enum { EMULATED_SHARED_BYTES = 28 };

/* Puts them in the place of the backend's own. */
void vulkan_emulate(VulkanModule modules[VULKAN_KERNEL_COUNT]);

#endif
