/* Structs that cross the boundary may be shorter or longer than this build's. */
#ifndef DFLASH_VULKAN_ABI_H
#define DFLASH_VULKAN_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

/* What a caller gives, which begins with its struct_size: DFLASH_INVALID_ARGUMENT, naming it, where it is NULL or ends
 * before the `needed` bytes that are read. */
static inline DflashStatus vulkan_check_struct(const void *given, size_t needed, const char *what, DflashError *error) {
  uint32_t size;
  if (!given) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: %s: not given", what);
  memcpy(&size, given, sizeof size);
  if (size >= needed) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "vulkan: %s: struct_size is %u, at least %zu is needed", what,
                          size, needed);
}

/* Gives `from` to a caller whose struct holds `size` bytes; its struct_size, the first member, stays. */
static inline void vulkan_give(void *to, uint32_t size, const void *from, size_t from_size) {
  const size_t count = size < from_size ? size : from_size;
  if (count > sizeof size) memcpy((char *)to + sizeof size, (const char *)from + sizeof size, count - sizeof size);
}

#define VULKAN_GIVE(to, value) vulkan_give((to), (to)->struct_size, &(value), sizeof(value))

#endif
