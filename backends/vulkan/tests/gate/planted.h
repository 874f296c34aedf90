/* Faults planted in the backend: option plant=NAME chooses one, plant=none is the backend as it is.
 * Option units has matrix units emulated (emulated_device.h). */
#ifndef DFLASH_VULKAN_TESTS_PLANTED_H
#define DFLASH_VULKAN_TESTS_PLANTED_H

#include "kernel.h"

/* A kernel whose module is another one; made by the build from plants.cmake. */
typedef struct VulkanPlant {
  const char *name;
  int kernel;
  VulkanModule module;
} VulkanPlant;

extern const VulkanPlant vulkan_plants[];
extern const int vulkan_plant_count;

#endif
