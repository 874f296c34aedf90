#include "memory.h"

#include <stdio.h>

#include "base/error.h"

enum { PIECE_ALIGN = 16 };

static uint64_t round_up(uint64_t bytes, uint64_t align) { return (bytes + align - 1) / align * align; }

/* What a kind of buffer must have of a memory type, what it likes (in that order), and what it leaves to others. */
typedef struct MemoryWish {
  VkMemoryPropertyFlags needs, likes[2], avoids;
} MemoryWish;

static const MemoryWish wishes[] = {
    [VULKAN_ON_DEVICE] = {0, {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0}, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
    [VULKAN_UPLOAD] = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                       {VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 0},
                       VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT},
    [VULKAN_INPUT] = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                      {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
                      VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
    [VULKAN_READBACK] = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                         {VK_MEMORY_PROPERTY_HOST_CACHED_BIT, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
                         VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT},
};

/* Types with other properties (protected, lazily allocated, of a vendor) are for other uses. */
static const VkMemoryPropertyFlags plain_flags =
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
    VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

static int rate(VkMemoryPropertyFlags flags, const MemoryWish *wish) {
  if ((flags & wish->needs) != wish->needs || flags & ~plain_flags) return -1;
  return (flags & wish->likes[0] ? 4 : 0) + (flags & wish->likes[1] ? 2 : 0) + (flags & wish->avoids ? 0 : 1);
}

/* The best, the first of equals. */
int vulkan_memory_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed, int kind) {
  int best = -1, best_rate = -1;
  for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
    if (!(allowed >> i & 1)) continue;
    const int rated = rate(memory->memoryTypes[i].propertyFlags, &wishes[kind]);
    if (rated <= best_rate) continue;
    best = (int)i;
    best_rate = rated;
  }
  return best;
}

static DflashStatus create_buffer(VulkanDevice *device, VulkanBuffer *buffer, const char *what, DflashError *error) {
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = buffer->bytes,
      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               (device->traits.addresses ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0u),
  };
  VkResult result = VULKAN_CALL(&device->api, vkCreateBuffer, device->device, &info, NULL, &buffer->buffer);
  if (result == VK_SUCCESS) return DFLASH_OK;
  buffer->buffer = VK_NULL_HANDLE;
  return vulkan_device_result(device, result, error, what);
}

static DflashStatus allocate(VulkanDevice *device, int kind, VulkanBuffer *buffer, const char *what,
                             DflashError *error) {
  VkMemoryRequirements needs;
  device->api.vkGetBufferMemoryRequirements(device->device, buffer->buffer, &needs);
  const int type = vulkan_memory_type(&device->memory, needs.memoryTypeBits, kind);
  if (type < 0) return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: %s: no memory type is right for it", what);
  if (needs.size > device->memory.memoryHeaps[device->memory.memoryTypes[type].heapIndex].size)
    return vulkan_device_result(device, VK_ERROR_OUT_OF_DEVICE_MEMORY, error, what);
  const VkMemoryPropertyFlags flags = device->memory.memoryTypes[type].propertyFlags;
  buffer->local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  buffer->incoherent = kind != VULKAN_ON_DEVICE && !(flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  const VkMemoryAllocateFlagsInfo with_address = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                                  .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .pNext = device->traits.addresses ? &with_address : NULL,
      .allocationSize = needs.size,
      .memoryTypeIndex = (uint32_t)type,
  };
  VkResult result = VULKAN_CALL(&device->api, vkAllocateMemory, device->device, &info, NULL, &buffer->memory);
  if (result == VK_SUCCESS) return DFLASH_OK;
  buffer->memory = VK_NULL_HANDLE;
  return vulkan_device_result(device, result, error, what);
}

static DflashStatus bind_and_map(VulkanDevice *device, int kind, VulkanBuffer *buffer, const char *what,
                                 DflashError *error) {
  VkResult result = VULKAN_CALL(&device->api, vkBindBufferMemory, device->device, buffer->buffer, buffer->memory, 0);
  if (result == VK_SUCCESS && kind != VULKAN_ON_DEVICE)
    result =
        VULKAN_CALL(&device->api, vkMapMemory, device->device, buffer->memory, 0, VK_WHOLE_SIZE, 0, &buffer->mapped);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_device_result(device, result, error, what);
}

static DflashStatus check_size(VulkanDevice *device, uint64_t bytes, const char *what, DflashError *error) {
  if (bytes <= device->traits.max_allocation && bytes <= UINT64_MAX - PIECE_ALIGN) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNSUPPORTED,
                          "vulkan: %s: %llu bytes in one buffer; the device takes at most %llu", what,
                          (unsigned long long)bytes, (unsigned long long)device->traits.max_allocation);
}

DflashStatus vulkan_buffer_open(VulkanDevice *device, int kind, uint64_t bytes, const char *what, VulkanBuffer *buffer,
                                DflashError *error) {
  *buffer = (VulkanBuffer){0};
  DflashStatus status = vulkan_device_usable(device, error, what);
  if (status == DFLASH_OK) status = check_size(device, bytes, what, error);
  if (status != DFLASH_OK) return status;
  buffer->bytes = round_up(bytes > 0 ? bytes : 1, PIECE_ALIGN);
  char text[128];
  snprintf(text, sizeof text, "%.96s: %.1f MiB", what, (double)bytes / 1048576);
  status = create_buffer(device, buffer, text, error);
  if (status == DFLASH_OK) status = allocate(device, kind, buffer, text, error);
  if (status == DFLASH_OK) status = bind_and_map(device, kind, buffer, text, error);
  if (status != DFLASH_OK) vulkan_buffer_close(device, buffer);
  return status;
}

void vulkan_buffer_close(VulkanDevice *device, VulkanBuffer *buffer) {
  if (buffer->buffer || buffer->memory) {
    vulkan_device_settle(device);
    device->api.vkDestroyBuffer(device->device, buffer->buffer, NULL);
    device->api.vkFreeMemory(device->device, buffer->memory, NULL); /* unmaps, too */
  }
  *buffer = (VulkanBuffer){0};
}

VulkanRange vulkan_buffer_range(const VulkanBuffer *buffer, uint64_t offset, uint64_t bytes) {
  return (VulkanRange){buffer->buffer, offset, bytes};
}

uint64_t vulkan_range_address(const VulkanDevice *device, VulkanRange range) {
  const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                          .buffer = range.buffer};
  if (!device->traits.addresses) return 0;
  return device->api.vkGetBufferDeviceAddress(device->device, &info) + range.offset;
}

/* The whole of it, which meets the rules on nonCoherentAtomSize whatever that is. */
static VkMappedMemoryRange whole(const VulkanBuffer *buffer) {
  return (VkMappedMemoryRange){
      .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = buffer->memory, .size = VK_WHOLE_SIZE};
}

DflashStatus vulkan_buffer_flush(VulkanDevice *device, const VulkanBuffer *buffer, DflashError *error) {
  if (!buffer->incoherent) return DFLASH_OK;
  const VkMappedMemoryRange range = whole(buffer);
  VkResult result = VULKAN_CALL(&device->api, vkFlushMappedMemoryRanges, device->device, 1, &range);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_device_result(device, result, error, "flushing mapped memory");
}

DflashStatus vulkan_buffer_invalidate(VulkanDevice *device, const VulkanBuffer *buffer, DflashError *error) {
  if (!buffer->incoherent) return DFLASH_OK;
  const VkMappedMemoryRange range = whole(buffer);
  VkResult result = VULKAN_CALL(&device->api, vkInvalidateMappedMemoryRanges, device->device, 1, &range);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_device_result(device, result, error, "reading mapped memory anew");
}

uint64_t vulkan_place(const VulkanDevice *device, uint64_t *offset, uint64_t bytes) {
  const uint64_t align = device->traits.offset_align > PIECE_ALIGN ? device->traits.offset_align : PIECE_ALIGN;
  const uint64_t begin = *offset;
  *offset = begin + round_up(bytes, align);
  return begin;
}
