#include "recording.h"

#include <inttypes.h>

#include "base/error.h"

static DflashStatus check_groups(const VulkanTraits *traits, const VulkanStep *step, const char *name,
                                 DflashError *error) {
  for (int i = 0; i < 3; i++) {
    if (step->groups[i] == 0)
      return dflash_error_set(error, DFLASH_INTERNAL, "vulkan: kernel %s: no workgroups along %c", name, 'x' + i);
    if (step->groups[i] > traits->max_groups[i])
      return dflash_error_set(error, DFLASH_UNSUPPORTED,
                              "vulkan: kernel %s: %" PRIu32 " workgroups along %c; this device takes up to %" PRIu32,
                              name, step->groups[i], 'x' + i, traits->max_groups[i]);
  }
  return DFLASH_OK;
}

static DflashStatus check_binding(const VulkanTraits *traits, const VulkanRange *range, const char *name,
                                  uint32_t binding, DflashError *error) {
  if (range->bytes > traits->max_binding)
    return dflash_error_set(error, DFLASH_UNSUPPORTED,
                            "vulkan: kernel %s: binding %" PRIu32 " of %" PRIu64
                            " bytes; this device takes up to %" PRIu64,
                            name, binding, range->bytes, traits->max_binding);
  if (!range->buffer || range->bytes == 0 || range->offset % traits->offset_align)
    return dflash_error_set(
        error, DFLASH_INTERNAL,
        "vulkan: kernel %s: binding %" PRIu32 ": %" PRIu64 " bytes at offset %" PRIu64
        " of %s; a buffer, a byte or more and an offset that is a multiple of %" PRIu64 " are needed",
        name, binding, range->bytes, range->offset, range->buffer ? "a buffer" : "nothing", traits->offset_align);
  return DFLASH_OK;
}

static DflashStatus check_dispatch(const VulkanTraits *traits, const VulkanStep *step, DflashError *error) {
  const VulkanKernelInfo *info = vulkan_kernel_info(step->pipeline->kernel);
  DflashStatus status = check_groups(traits, step, info->name, error);
  for (uint32_t i = 0; i < info->bindings && !status; i++)
    status = check_binding(traits, &step->ranges[i], info->name, i, error);
  return status;
}

static bool whole_words(const VulkanRange *range) {
  return range->buffer && range->bytes != 0 && range->bytes % 4 == 0 && range->offset % 4 == 0;
}

static DflashStatus check_transfer(const VulkanStep *step, DflashError *error) {
  const uint32_t count = vulkan_step_ranges(step);
  for (uint32_t i = 0; i < count; i++) {
    const VulkanRange *range = &step->ranges[i];
    if (!whole_words(range) || range->bytes != step->ranges[0].bytes)
      return dflash_error_set(error, DFLASH_INTERNAL,
                              "vulkan: a %s of %" PRIu64 " bytes at offset %" PRIu64
                              ": equal sizes in whole words of a buffer are needed",
                              step->kind == VULKAN_COPY ? "copy" : "fill", range->bytes, range->offset);
  }
  return DFLASH_OK;
}

DflashStatus vulkan_steps_check(const VulkanTraits *traits, const VulkanSteps *steps, DflashError *error) {
  if (steps->failed)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no host memory for the list of steps");
  DflashStatus status = DFLASH_OK;
  for (uint32_t i = 0; i < steps->count && !status; i++) {
    const VulkanStep *step = &steps->at[i];
    status = step->kind == VULKAN_DISPATCH ? check_dispatch(traits, step, error) : check_transfer(step, error);
  }
  return status;
}
