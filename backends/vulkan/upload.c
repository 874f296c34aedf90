#include "memory.h"

#include <string.h>

#include "base/error.h"

enum { STAGING_ALIGN = 16 };

uint64_t vulkan_staging_bytes(const VulkanTraits *traits) {
  const uint64_t most = traits->max_allocation / STAGING_ALIGN * STAGING_ALIGN;
  return most < VULKAN_STAGING_BYTES ? most : VULKAN_STAGING_BYTES;
}

static DflashStatus make_commands(VulkanDevice *device, VulkanUpload *upload, const char *what, DflashError *error) {
  const VkCommandBufferAllocateInfo commands = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = device->pool,
      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
      .commandBufferCount = 1,
  };
  VkResult result = VULKAN_CALL(&device->api, vkAllocateCommandBuffers, device->device, &commands, &upload->commands);
  if (result != VK_SUCCESS) {
    upload->commands = VK_NULL_HANDLE;
    return vulkan_device_result(device, result, error, what);
  }
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  result = VULKAN_CALL(&device->api, vkCreateFence, device->device, &fence, NULL, &upload->fence);
  if (result == VK_SUCCESS) return DFLASH_OK;
  upload->fence = VK_NULL_HANDLE;
  return vulkan_device_result(device, result, error, what);
}

static DflashStatus open_staging(VulkanDevice *device, int kind, uint64_t bytes, const char *what, VulkanUpload *upload,
                                 DflashError *error) {
  *upload = (VulkanUpload){0};
  DflashStatus status = vulkan_buffer_open(device, kind, bytes, what, &upload->staging, error);
  if (status == DFLASH_OK) status = make_commands(device, upload, what, error);
  if (status != DFLASH_OK) vulkan_upload_close(device, upload);
  return status;
}

/* What earlier submissions wrote is seen by the copies: a fence that was waited for does not give that. */
static void follow_earlier_work(VulkanDevice *device, VulkanUpload *upload) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
  device->api.vkCmdPipelineBarrier(upload->commands,
                                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                                   VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static DflashStatus begin_recording(VulkanDevice *device, VulkanUpload *upload, DflashError *error) {
  if (upload->recording) return DFLASH_OK;
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                          .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  VkResult result = VULKAN_CALL(&device->api, vkBeginCommandBuffer, upload->commands, &begin);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "recording copies");
  follow_earlier_work(device, upload);
  upload->recording = true;
  upload->used = 0;
  return DFLASH_OK;
}

/* Runs what was recorded, if anything was. */
static DflashStatus run_recorded(VulkanDevice *device, VulkanUpload *upload, DflashError *error) {
  if (!upload->recording) return DFLASH_OK;
  upload->recording = false;
  VkResult result = VULKAN_CALL(&device->api, vkEndCommandBuffer, upload->commands);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "recording copies");
  return vulkan_device_run(device, upload->commands, upload->fence, error);
}

static DflashStatus flush_and_run(VulkanDevice *device, VulkanUpload *upload, DflashError *error) {
  DflashStatus status = upload->recording ? vulkan_buffer_flush(device, &upload->staging, error) : DFLASH_OK;
  return status == DFLASH_OK ? run_recorded(device, upload, error) : status;
}

static void copy(VulkanDevice *device, VulkanUpload *upload, VulkanRange from, VulkanRange to) {
  const VkBufferCopy region = {.srcOffset = from.offset, .dstOffset = to.offset, .size = from.bytes};
  device->api.vkCmdCopyBuffer(upload->commands, from.buffer, to.buffer, 1, &region);
}

DflashStatus vulkan_upload_begin(VulkanDevice *device, VulkanUpload *upload, DflashError *error) {
  return open_staging(device, VULKAN_UPLOAD, vulkan_staging_bytes(&device->traits), "a staging buffer", upload, error);
}

DflashStatus vulkan_upload_place(VulkanDevice *device, VulkanUpload *upload, VulkanRange to, uint64_t offset,
                                 uint64_t bytes, void **host, DflashError *error) {
  if (bytes == 0 || bytes > upload->staging.bytes || offset % 4 != 0 || offset > to.bytes || bytes > to.bytes - offset)
    return dflash_error_set(error, DFLASH_INTERNAL, "vulkan: an upload of %llu bytes to %llu of a range of %llu",
                            (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)to.bytes);
  DflashStatus status = DFLASH_OK;
  if (bytes > upload->staging.bytes - upload->used) status = flush_and_run(device, upload, error);
  if (status == DFLASH_OK) status = begin_recording(device, upload, error);
  if (status != DFLASH_OK) return status;
  *host = (char *)upload->staging.mapped + upload->used;
  copy(device, upload, vulkan_buffer_range(&upload->staging, upload->used, bytes),
       (VulkanRange){to.buffer, to.offset + offset, bytes});
  upload->used += (bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
  return DFLASH_OK;
}

DflashStatus vulkan_upload_copy(VulkanDevice *device, VulkanUpload *upload, VulkanRange to, const void *data,
                                uint64_t bytes, DflashError *error) {
  for (uint64_t done = 0, piece; done < bytes; done += piece) {
    void *host = NULL;
    piece = bytes - done < upload->staging.bytes ? bytes - done : upload->staging.bytes;
    DflashStatus status = vulkan_upload_place(device, upload, to, done, piece, &host, error);
    if (!host) return status;
    memcpy(host, (const char *)data + done, piece);
  }
  return DFLASH_OK;
}

DflashStatus vulkan_upload_end(VulkanDevice *device, VulkanUpload *upload, DflashError *error) {
  DflashStatus status = flush_and_run(device, upload, error);
  vulkan_upload_close(device, upload);
  return status;
}

void vulkan_upload_close(VulkanDevice *device, VulkanUpload *upload) {
  vulkan_device_settle(device);
  if (upload->commands) device->api.vkFreeCommandBuffers(device->device, device->pool, 1, &upload->commands);
  if (upload->fence) device->api.vkDestroyFence(device->device, upload->fence, NULL);
  vulkan_buffer_close(device, &upload->staging);
  *upload = (VulkanUpload){0};
}

/* What the copies wrote, for the host to read after the fence. */
static void show_to_host(VulkanDevice *device, VulkanUpload *upload) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  device->api.vkCmdPipelineBarrier(upload->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                   &barrier, 0, NULL, 0, NULL);
}

static DflashStatus download_piece(VulkanDevice *device, VulkanUpload *staging, VulkanRange from, void *data,
                                   DflashError *error) {
  DflashStatus status = begin_recording(device, staging, error);
  if (status != DFLASH_OK) return status;
  copy(device, staging, from, vulkan_buffer_range(&staging->staging, 0, from.bytes));
  show_to_host(device, staging);
  status = run_recorded(device, staging, error);
  if (status == DFLASH_OK) status = vulkan_buffer_invalidate(device, &staging->staging, error);
  if (status == DFLASH_OK) memcpy(data, staging->staging.mapped, from.bytes);
  return status;
}

DflashStatus vulkan_download(VulkanDevice *device, VulkanRange from, void *data, uint64_t bytes, DflashError *error) {
  if (bytes > from.bytes)
    return dflash_error_set(error, DFLASH_INTERNAL, "vulkan: a download of %llu bytes from a range of %llu",
                            (unsigned long long)bytes, (unsigned long long)from.bytes);
  if (bytes == 0) return DFLASH_OK;
  VulkanUpload staging;
  const uint64_t most = vulkan_staging_bytes(&device->traits), room = bytes < most ? bytes : most;
  DflashStatus status = open_staging(device, VULKAN_READBACK, room, "a buffer for reading back", &staging, error);
  for (uint64_t done = 0; status == DFLASH_OK && done < bytes; done += room) {
    const uint64_t piece = bytes - done < room ? bytes - done : room;
    const VulkanRange part = {from.buffer, from.offset + done, piece};
    status = download_piece(device, &staging, part, (char *)data + done, error);
  }
  vulkan_upload_close(device, &staging);
  return status;
}
