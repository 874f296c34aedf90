/* The kernels for matrix units, with matrix units emulated on shared memory. */
#include "emulated.h"
#include "units_cases.h"
#include "units_product.h"

#include <string.h>

/* By --wrap: the kernels are these. */
extern const VulkanModule __real_vulkan_modules[VULKAN_KERNEL_COUNT];
extern VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];
VulkanModule __wrap_vulkan_modules[VULKAN_KERNEL_COUNT];

int main(void) {
  static DflashModel model;
  memcpy(__wrap_vulkan_modules, __real_vulkan_modules, sizeof __wrap_vulkan_modules);
  vulkan_emulate(__wrap_vulkan_modules);
  const int failed =
      test_units_open(&model, EMULATED_SHARED_BYTES) ? test_units_cases(&model, EMULATED_SHARED_BYTES, "units") : 1;
  return test_units_close(&model) ? failed : 1;
}
