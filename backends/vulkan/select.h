/* How the choice of tokens is cut into workgroups. */
#ifndef DFLASH_VULKAN_SELECT_H
#define DFLASH_VULKAN_SELECT_H

#include "device.h"

/* What `pairs` is told of rows that `gather` fetched, beside the storages of codebooks. */
enum { VULKAN_GATHERED = 3 };

/* Threads of a workgroup of the kernels `top` and `pairs`. */
static inline uint32_t vulkan_select_threads(const VulkanTraits *traits) {
  if (traits->max_threads >= 512) return 512;
  return traits->max_threads >= 256 ? 256 : 128;
}

/* Logits that a workgroup of `top` looks at, and the workgroups of a row (kernel.h). */
static inline uint32_t vulkan_top_chunk(const VulkanTraits *traits) { return 16 * vulkan_select_threads(traits); }

static inline int64_t vulkan_top_chunks(const VulkanTraits *traits, int64_t width) {
  const int64_t chunk = vulkan_top_chunk(traits);
  return (width + 3 + chunk - 1) / chunk;
}

#endif
