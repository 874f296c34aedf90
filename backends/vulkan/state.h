/* The state of a device while it is timed: clocks, temperature, power, other users. */
#ifndef DFLASH_VULKAN_STATE_H
#define DFLASH_VULKAN_STATE_H

#include "device.h"
#include "nvml.h"

/* Numbers of the bits of DflashDeviceState.valid. */
enum {
  VULKAN_STATE_CLOCK,
  VULKAN_STATE_MEMORY,
  VULKAN_STATE_CELSIUS,
  VULKAN_STATE_WATTS,
  VULKAN_STATE_THROTTLE,
  VULKAN_STATE_USERS
};

/* Where a state is read. */
typedef struct VulkanStateSource {
  const char *root; /* the folder that holds sys and proc; "" for the system's */
  const char *nvml; /* file name of NVIDIA's management library */
} VulkanStateSource;

/* What stays open from one reading to the next. */
typedef struct VulkanState {
  bool tried; /* to open nvml */
  VulkanNvml nvml;
} VulkanState;

/* Fills *found with what can be read, which may be nothing. NVIDIA's devices: their library, else files as for other
 * devices at a PCI address; a processor: the files of the host. */
void vulkan_state_read(VulkanState *state, const VulkanTraits *traits, const VulkanStateSource *source,
                       DflashDeviceState *found);
void vulkan_state_close(VulkanState *state); /* zeroed or closed: fine */

/* state_files.c: adds to *found what the files of the host, of a device at a PCI address say. */
void vulkan_state_host(const char *root, DflashDeviceState *found);
void vulkan_state_pci(const char *root, const char *pci, DflashDeviceState *found);

/* The interface's call. Nothing readable is a success with no valid bit. */
DflashStatus vulkan_device_state(DflashModel *model, DflashDeviceState *state, DflashError *error);

#endif
