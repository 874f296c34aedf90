/* Matrix units that are not there: option units=shared|direct makes the device have them, by emulation. */
#ifndef DFLASH_VULKAN_TESTS_UNITS_H
#define DFLASH_VULKAN_TESTS_UNITS_H

#include "kernel.h"

/* From the next device opened on: the device as it is. */
void vulkan_units_leave(void);
/* From the next device opened on: units that take 8 and 16 rows in f16 and int8, and whose elements lie (direct) or do
 * not lie (shared) where the direct kernels expect them. Puts the emulated kernels among the modules. False where the
 * value is none of the two. */
bool vulkan_units_emulate(const char *value, VulkanModule modules[VULKAN_KERNEL_COUNT]);

#endif
