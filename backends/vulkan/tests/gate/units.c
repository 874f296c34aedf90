#include "units.h"

#include <string.h>

#include "coop.h"
#include "emulated.h"

static struct { bool there, direct; } units;

void vulkan_units_leave(void) { units.there = false; }

bool vulkan_units_emulate(const char *value, VulkanModule modules[VULKAN_KERNEL_COUNT]) {
  units.direct = strcmp(value, "direct") == 0;
  units.there = units.direct || strcmp(value, "shared") == 0;
  if (units.there) memcpy(modules + EMULATED_FIRST, vulkan_emulated, sizeof vulkan_emulated);
  return units.there;
}

DflashStatus __real_vulkan_device_open(const VulkanDeviceOptions *options, VulkanDevice *device, DflashError *error);
DflashStatus __wrap_vulkan_device_open(const VulkanDeviceOptions *options, VulkanDevice *device, DflashError *error);

/* Once it is open: no feature is asked of the device that it does not have. */
DflashStatus __wrap_vulkan_device_open(const VulkanDeviceOptions *options, VulkanDevice *device, DflashError *error) {
  const DflashStatus status = __real_vulkan_device_open(options, device, error);
  if (status || !units.there) return status;
  device->traits.coop_f16 = device->traits.coop_i8 = 8 | 16;
  device->traits.shared_bytes -= EMULATED_SHARED_BYTES;
  return DFLASH_OK;
}

DflashStatus __real_vulkan_coop_probe(VulkanDevice *device, VulkanPipelines *pipelines, bool *direct,
                                      DflashError *error);
DflashStatus __wrap_vulkan_coop_probe(VulkanDevice *device, VulkanPipelines *pipelines, bool *direct,
                                      DflashError *error);

DflashStatus __wrap_vulkan_coop_probe(VulkanDevice *device, VulkanPipelines *pipelines, bool *direct,
                                      DflashError *error) {
  if (!units.there) return __real_vulkan_coop_probe(device, pipelines, direct, error);
  *direct = units.direct;
  return DFLASH_OK;
}
