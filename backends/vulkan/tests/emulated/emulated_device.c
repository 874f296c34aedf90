#include "emulated_device.h"

#include <string.h>

#include "device.h"
#include "emulated.h"

enum { MOST_THREADS = 256 }; /* of a workgroup */

static bool emulated;

void vulkan_units_leave(void) { emulated = false; }

bool vulkan_units_emulate(const char *value, VulkanModule modules[VULKAN_KERNEL_COUNT]) {
  emulated = strcmp(value, "emulated") == 0;
  if (emulated) vulkan_emulate(modules);
  return emulated;
}

DflashStatus __real_vulkan_device_open(const VulkanDeviceOptions *options, VulkanDevice *device, DflashError *error);
DflashStatus __wrap_vulkan_device_open(const VulkanDeviceOptions *options, VulkanDevice *device, DflashError *error);

/* Once it is open: no feature is asked of the device that it does not have. */
DflashStatus __wrap_vulkan_device_open(const VulkanDeviceOptions *options, VulkanDevice *device, DflashError *error) {
  const DflashStatus status = __real_vulkan_device_open(options, device, error);
  if (status || !emulated) return status;
  device->traits.coop_f16 = 8;
  device->traits.shared_bytes -= MOST_THREADS * EMULATED_SHARED_BYTES;
  device->traits.max_threads = MOST_THREADS;
  return DFLASH_OK;
}
