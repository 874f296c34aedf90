#include "emulated.h"

#include <string.h>

#include "emulated_attend.h"
#include "emulated_f16.h"
#include "emulated_f16_at.h"
#include "emulated_probe.h"
#include "emulated_q4.h"
#include "emulated_q4_at.h"
#include "emulated_q8.h"
#include "emulated_q8_at.h"

static const struct {
  int kernel;
  VulkanModule module;
} EMULATED[] = {{VULKAN_KERNEL_UNITS_F16, {"emulated_f16", MODULE_emulated_f16}},
                {VULKAN_KERNEL_UNITS_Q8, {"emulated_q8", MODULE_emulated_q8}},
                {VULKAN_KERNEL_UNITS_Q4, {"emulated_q4", MODULE_emulated_q4}},
                {VULKAN_KERNEL_UNITS_F16_AT, {"emulated_f16_at", MODULE_emulated_f16_at}},
                {VULKAN_KERNEL_UNITS_Q8_AT, {"emulated_q8_at", MODULE_emulated_q8_at}},
                {VULKAN_KERNEL_UNITS_Q4_AT, {"emulated_q4_at", MODULE_emulated_q4_at}},
                {VULKAN_KERNEL_ATTEND_UNITS, {"emulated_attend", MODULE_emulated_attend}},
                {VULKAN_KERNEL_UNITS_PROBE, {"emulated_probe", MODULE_emulated_probe}}};

void vulkan_emulate(VulkanModule modules[VULKAN_KERNEL_COUNT]) {
  for (size_t i = 0; i < sizeof EMULATED / sizeof *EMULATED; i++) modules[EMULATED[i].kernel] = EMULATED[i].module;
}
