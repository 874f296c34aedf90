/* Structs that cross the boundary may be shorter or longer than this build's. */
#ifndef DFLASH_VULKAN_ABI_H
#define DFLASH_VULKAN_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Gives `from` to a caller whose struct holds `size` bytes; its struct_size, the first member, stays. */
static inline void vulkan_give(void *to, uint32_t size, const void *from, size_t from_size) {
  const size_t count = size < from_size ? size : from_size;
  if (count > sizeof size) memcpy((char *)to + sizeof size, (const char *)from + sizeof size, count - sizeof size);
}

#define VULKAN_GIVE(to, value) vulkan_give((to), (to)->struct_size, &(value), sizeof(value))

#endif
