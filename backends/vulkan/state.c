#include "state.h"

#include "abi.h"
#include "model.h"

enum { VENDOR_NVIDIA = 0x10de };

void vulkan_state_read(VulkanState *state, const VulkanTraits *traits, const VulkanStateSource *source,
                       DflashDeviceState *found) {
  *found = (DflashDeviceState){0};
  if (traits->is_cpu) {
    vulkan_state_host(source->root, found);
    return;
  }
  if (traits->pci[0] == '\0') return;
  if (traits->vendor == VENDOR_NVIDIA && !state->tried) {
    state->tried = true;
    vulkan_nvml_open(&state->nvml, source->nvml, traits->pci);
  }
  if (state->nvml.device)
    vulkan_nvml_read(&state->nvml, found);
  else
    vulkan_state_pci(source->root, traits->pci, found);
}

void vulkan_state_close(VulkanState *state) {
  vulkan_nvml_close(&state->nvml);
  *state = (VulkanState){0};
}

DflashStatus vulkan_device_state(DflashModel *model, DflashDeviceState *state, DflashError *error) {
  static const VulkanStateSource source = {.root = "", .nvml = "libnvidia-ml.so.1"};
  DflashDeviceState found;
  DflashStatus status = vulkan_check_struct(state, sizeof state->struct_size, "device_state", error);
  if (status) return status;
  vulkan_state_read(&model->state, &model->device.traits, &source, &found);
  VULKAN_GIVE(state, found);
  return DFLASH_OK;
}
