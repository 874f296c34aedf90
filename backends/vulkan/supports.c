#include "abi.h"
#include "base/error.h"
#include "limits.h"
#include "sequence.h"
#include "tensors.h"

enum { MOST_HEAD_DIM = 256, MOST_TOP = 256 };

static DflashStatus check_profile(const DflashModelDesc *desc, DflashError *error) {
  const int32_t profile = desc->profile;
  if (profile == DFLASH_PROFILE_EXACT || profile == DFLASH_PROFILE_F16) return DFLASH_OK;
  if (profile == DFLASH_PROFILE_BF16)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: profile bf16 is not offered; there are exact, i8, f16");
  if (profile != DFLASH_PROFILE_I8)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: profile %d is not known", (int)profile);
  if (!desc->weights) return DFLASH_OK;
  for (int64_t i = 0; i < vulkan_tensor_count(desc->geometry); i++) {
    const VulkanTensor t = vulkan_tensor_at(desc->geometry, desc->weights, NULL, i);
    if (t.kind == VULKAN_MATRIX && t.tensor && t.tensor->storage == DFLASH_STORAGE_Q4TP) return DFLASH_OK;
  }
  return dflash_error_set(error, DFLASH_UNSUPPORTED,
                          "vulkan: profile i8 differs from exact in q4tp matrices alone, "
                          "and none of the weights is q4tp");
}

static DflashStatus check_sizes(const DflashGeometry *g, DflashError *error) {
  const struct {
    const char *name;
    int64_t value, most;
  } fields[] = {
      {"head_dim", g->head_dim, MOST_HEAD_DIM},
      {"selector_top", g->selector_top, MOST_TOP},
      {"block", g->block, VULKAN_MAX_ROWS},
      {"vocab", g->vocab, INT32_MAX},
  };
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    if (fields[i].value > fields[i].most)
      return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: %s is %lld, the limit is %lld", fields[i].name,
                              (long long)fields[i].value, (long long)fields[i].most);
  return DFLASH_OK;
}

DflashStatus vulkan_check_desc(const DflashModelDesc *desc, VulkanOptions *options, DflashError *error) {
  DflashStatus status = vulkan_check_struct(desc, sizeof *desc, "the description of a model", error);
  if (status) return status;
  if (!desc->geometry) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: no geometry is given");
  if (desc->weights && (!desc->weights->layers || !desc->weights->inv_freq))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: weights without layers or inv_freq");
  status = vulkan_options_read(desc, options, error);
  if (!status) status = check_profile(desc, error);
  if (!status) status = check_sizes(desc->geometry, error);
  return status;
}

/* The device is opened for its limits alone: no fault is planted, and nothing is checked by layers. */
DflashStatus vulkan_supports(const DflashModelDesc *desc, DflashError *error) {
  VulkanOptions options;
  VulkanDevice device = {0};
  DflashStatus status = vulkan_check_desc(desc, &options, error);
  if (status) return status;
  const VulkanDeviceOptions device_options = {.id = desc->device, .assumed = &options.assumed};
  status = vulkan_device_open(&device_options, &device, error);
  if (status) return status;
  status = vulkan_check_device(desc, &options, &device.traits, error);
  vulkan_device_close(&device);
  return status;
}
