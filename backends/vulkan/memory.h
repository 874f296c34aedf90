/* Memory of a device: buffers, pieces of them, and copies to and from the host. */
#ifndef DFLASH_VULKAN_MEMORY_H
#define DFLASH_VULKAN_MEMORY_H

#include "device.h"

/* A piece of a buffer, as a binding or a copy sees it. Offsets meet traits.offset_align and 16. */
typedef struct VulkanRange {
  VkBuffer buffer;
  uint64_t offset, bytes;
} VulkanRange;

enum {
  VULKAN_ON_DEVICE, /* device local where there is such memory */
  VULKAN_UPLOAD,    /* mapped, written by the host */
  VULKAN_INPUT,     /* the same, device local where there is such memory: kernels read it in place */
  VULKAN_READBACK   /* mapped, read by the host; cached where there is such memory */
};

/* The memory type for a kind of buffer out of the bits allowed; -1: there is none. */
int vulkan_memory_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed, int kind);

/* One buffer with memory of its own. Usage: storage, both directions of copies, and addresses where the device has
 * them. */
typedef struct VulkanBuffer {
  VkBuffer buffer;
  VkDeviceMemory memory;
  uint64_t bytes;
  void *mapped;    /* NULL for VULKAN_ON_DEVICE */
  bool incoherent; /* flush after host writes, invalidate before host reads */
  bool local;      /* the device's own memory */
} VulkanBuffer;

/* No memory: DFLASH_OUT_OF_MEMORY, saying for what and how much; above the device's limit: DFLASH_UNSUPPORTED. On
 * failure *buffer is zeroed. Sizes are rounded up to 16. */
DflashStatus vulkan_buffer_open(VulkanDevice *device, int kind, uint64_t bytes, const char *what, VulkanBuffer *buffer,
                                DflashError *error);
void vulkan_buffer_close(VulkanDevice *device, VulkanBuffer *buffer); /* zeroed: fine */
VulkanRange vulkan_buffer_range(const VulkanBuffer *buffer, uint64_t offset, uint64_t bytes);
/* Where kernels find it; 0 on a device without addresses. */
uint64_t vulkan_range_address(const VulkanDevice *device, VulkanRange range);
/* What the host wrote reaches the device; what the device wrote reaches the host. */
DflashStatus vulkan_buffer_flush(VulkanDevice *device, const VulkanBuffer *buffer, DflashError *error);
DflashStatus vulkan_buffer_invalidate(VulkanDevice *device, const VulkanBuffer *buffer, DflashError *error);

/* Lays pieces one after the other: bytes rounded up to a multiple of the device's alignment. *offset moves on. */
uint64_t vulkan_place(const VulkanDevice *device, uint64_t *offset, uint64_t bytes);

/* Pieces of device memory that live as long as the arena, in blocks of 1 to 256 MiB: each as large as all before it. A
 * piece that does not fit into the last one, and is more than a quarter of the next, has a block of its own. */
typedef struct VulkanArena {
  VulkanBuffer *blocks;
  uint32_t count;
  uint64_t used;  /* of the last block, the one that is being filled */
  uint64_t bytes; /* of all blocks */
} VulkanArena;

DflashStatus vulkan_arena_take(VulkanDevice *device, VulkanArena *arena, uint64_t bytes, const char *what,
                               VulkanRange *range, DflashError *error);
void vulkan_arena_close(VulkanDevice *device, VulkanArena *arena);

/* Host data into device memory through a staging buffer: calls collect copies, run when the staging buffer is full and
 * at vulkan_upload_end. */
typedef struct VulkanUpload {
  VulkanBuffer staging;
  VkCommandBuffer commands;
  VkFence fence;
  uint64_t used;
  bool recording;
} VulkanUpload;

DflashStatus vulkan_upload_begin(VulkanDevice *device, VulkanUpload *upload, DflashError *error);
/* Bytes of the staging buffer: VULKAN_STAGING_BYTES, or what the device allocates at once. */
enum { VULKAN_STAGING_BYTES = 16 << 20 };
uint64_t vulkan_staging_bytes(const VulkanTraits *traits);
/* Room for `bytes` (1 .. vulkan_staging_bytes) to be filled by the caller before the next call; they go to `offset` of
 * the range, a multiple of 4. */
DflashStatus vulkan_upload_place(VulkanDevice *device, VulkanUpload *upload, VulkanRange to, uint64_t offset,
                                 uint64_t bytes, void **host, DflashError *error);
/* The same for data that stand ready, of any size that fits the range. */
DflashStatus vulkan_upload_copy(VulkanDevice *device, VulkanUpload *upload, VulkanRange to, const void *data,
                                uint64_t bytes, DflashError *error);
DflashStatus vulkan_upload_end(VulkanDevice *device, VulkanUpload *upload, DflashError *error);
void vulkan_upload_close(VulkanDevice *device, VulkanUpload *upload); /* after a failure too */

/* Waits for a copy out of a range, in pieces. For reading back, not for the block's path. */
DflashStatus vulkan_download(VulkanDevice *device, VulkanRange from, void *data, uint64_t bytes, DflashError *error);

#endif
