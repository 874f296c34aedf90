/* What NVIDIA's management library says of a device. No header of it is needed: its functions are found by name, and
 * one that is missing leaves out what it would tell. */
#ifndef DFLASH_VULKAN_NVML_H
#define DFLASH_VULKAN_NVML_H

#include <stdbool.h>
#include <stddef.h>

#include "dflash/backend.h"

/* Lists processes: *count is the room in `infos`, then how many there are. An entry begins with the process's number,
 * an unsigned int. Results of all functions: 0 is success. */
typedef struct VulkanNvmlList {
  int (*read)(void *device, unsigned *count, void *infos);
  size_t entry_bytes;
} VulkanNvmlList;

typedef struct VulkanNvml {
  void *library;
  void *device; /* NULL: not open */
  int (*shut_down)(void);
  int (*clock)(void *device, int type, unsigned *mhz);
  int (*temperature)(void *device, int sensor, unsigned *celsius);
  int (*power)(void *device, unsigned *milliwatts);
  int (*throttle)(void *device, unsigned long long *reasons);
  VulkanNvmlList compute, graphics;
} VulkanNvml;

/* The device at a PCI address "domain:bus:device.function". False, and nothing is open: no library, or it does not
 * start, or it knows no such device. */
bool vulkan_nvml_open(VulkanNvml *nvml, const char *library, const char *pci);
void vulkan_nvml_close(VulkanNvml *nvml); /* zeroed or closed: fine */

/* Adds what can be read now to *state, with its valid bits. */
void vulkan_nvml_read(const VulkanNvml *nvml, DflashDeviceState *state);

#endif
