#include "kernel.h"

static const VulkanKernelInfo kernels[VULKAN_KERNEL_COUNT] = {
#define KERNEL_ROW(id, module, bindings, writes, push) {#module, bindings, writes, sizeof(push)},
    VULKAN_KERNELS(KERNEL_ROW)
#undef KERNEL_ROW
};

#define KERNEL_LIMITS(id, module, bindings, writes, push)                                     \
  _Static_assert((bindings) >= 1 && (bindings) <= VULKAN_MAX_BINDINGS, #module ": bindings"); \
  _Static_assert((writes) != 0 && (writes) >> (bindings) == 0, #module ": bindings written"); \
  _Static_assert(sizeof(push) <= VULKAN_PUSH_BYTES && sizeof(push) % 4 == 0, #module ": push constants");
VULKAN_KERNELS(KERNEL_LIMITS)
#undef KERNEL_LIMITS

const VulkanKernelInfo *vulkan_kernel_info(int kernel) {
  return kernel >= 0 && kernel < VULKAN_KERNEL_COUNT ? &kernels[kernel] : NULL;
}
