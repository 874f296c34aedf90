#include "memory.h"

#include <stdlib.h>

#include "base/error.h"

enum { SMALLEST_BLOCK = 1 << 20, LARGEST_BLOCK = 256 << 20 };

/* Of the next block: as much as there is already, so that blocks are few and little is held that is not used. */
static uint64_t next_block(const VulkanDevice *device, const VulkanArena *arena) {
  uint64_t bytes = arena->bytes < SMALLEST_BLOCK ? SMALLEST_BLOCK : arena->bytes;
  if (bytes > LARGEST_BLOCK) bytes = LARGEST_BLOCK;
  return bytes < device->traits.max_allocation ? bytes : device->traits.max_allocation;
}

static DflashStatus grow(VulkanArena *arena, DflashError *error) {
  VulkanBuffer *blocks = realloc(arena->blocks, (arena->count + 1) * sizeof *blocks);
  if (!blocks)
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "vulkan: no memory for a list of %u blocks", arena->count + 1);
  arena->blocks = blocks;
  return DFLASH_OK;
}

/* A block of its own, so that no block is left with much unused. The block that is being filled stays the last. */
static DflashStatus take_whole(VulkanDevice *device, VulkanArena *arena, uint64_t bytes, const char *what,
                               VulkanRange *range, DflashError *error) {
  VulkanBuffer block;
  DflashStatus status = vulkan_buffer_open(device, VULKAN_ON_DEVICE, bytes, what, &block, error);
  if (status != DFLASH_OK) return status;
  *range = vulkan_buffer_range(&block, 0, bytes);
  arena->bytes += block.bytes;
  if (arena->count == 0) {
    arena->blocks[0] = block;
    arena->used = block.bytes;
  } else {
    arena->blocks[arena->count] = arena->blocks[arena->count - 1];
    arena->blocks[arena->count - 1] = block;
  }
  arena->count++;
  return DFLASH_OK;
}

static DflashStatus add_block(VulkanDevice *device, VulkanArena *arena, const char *what, DflashError *error) {
  VulkanBuffer *block = &arena->blocks[arena->count];
  DflashStatus status = vulkan_buffer_open(device, VULKAN_ON_DEVICE, next_block(device, arena), what, block, error);
  if (status != DFLASH_OK) return status;
  arena->bytes += block->bytes;
  arena->used = 0;
  arena->count++;
  return DFLASH_OK;
}

DflashStatus vulkan_arena_take(VulkanDevice *device, VulkanArena *arena, uint64_t bytes, const char *what,
                               VulkanRange *range, DflashError *error) {
  DflashStatus status = grow(arena, error);
  if (status != DFLASH_OK) return status;
  if (arena->count == 0 || bytes > arena->blocks[arena->count - 1].bytes - arena->used) {
    if (bytes > next_block(device, arena) / 4) return take_whole(device, arena, bytes, what, range, error);
    status = add_block(device, arena, what, error);
    if (status != DFLASH_OK) return status;
  }
  const VulkanBuffer *block = &arena->blocks[arena->count - 1];
  *range = vulkan_buffer_range(block, vulkan_place(device, &arena->used, bytes), bytes);
  if (arena->used > block->bytes) arena->used = block->bytes;
  return DFLASH_OK;
}

void vulkan_arena_close(VulkanDevice *device, VulkanArena *arena) {
  for (uint32_t i = 0; i < arena->count; i++) vulkan_buffer_close(device, &arena->blocks[i]);
  free(arena->blocks);
  *arena = (VulkanArena){0};
}
