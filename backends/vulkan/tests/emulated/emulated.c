#include "emulated.h"

#include <string.h>

#include "emulated_f16.h"
#include "emulated_probe.h"
#include "emulated_q4.h"
#include "emulated_q8.h"

static const struct {
  int kernel;
  VulkanModule module;
} EMULATED[] = {{VULKAN_KERNEL_UNITS_F16, {"emulated_f16", MODULE_emulated_f16}},
                {VULKAN_KERNEL_UNITS_Q8, {"emulated_q8", MODULE_emulated_q8}},
                {VULKAN_KERNEL_UNITS_Q4, {"emulated_q4", MODULE_emulated_q4}},
                {VULKAN_KERNEL_UNITS_PROBE, {"emulated_probe", MODULE_emulated_probe}}};

void vulkan_emulate(VulkanModule modules[VULKAN_KERNEL_COUNT]) {
  for (size_t i = 0; i < sizeof EMULATED / sizeof *EMULATED; i++) modules[EMULATED[i].kernel] = EMULATED[i].module;
}
