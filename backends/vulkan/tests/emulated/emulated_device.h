/* Matrix units that are not there, for programs linked with --wrap=vulkan_device_open. */
#ifndef DFLASH_VULKAN_TESTS_EMULATED_DEVICE_H
#define DFLASH_VULKAN_TESTS_EMULATED_DEVICE_H

#include "kernel.h"

/* From the next device opened on: the device as it is. */
void vulkan_units_leave(void);
/* From the next device opened on: units that take 16 x 16 times 16 x 8 in f16. Puts the emulated kernels among the
 * modules. False where the value is not "emulated". */
bool vulkan_units_emulate(const char *value, VulkanModule modules[VULKAN_KERNEL_COUNT]);

#endif
