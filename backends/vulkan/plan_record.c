#include "recording.h"

enum {
  ALL_STAGES = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
  ALL_WRITES = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
  ALL_READS = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT
};

/* What earlier submissions wrote is seen, and what they read is not overwritten before. */
static const VulkanBarrier at_start = {ALL_STAGES, ALL_STAGES, ALL_WRITES, ALL_READS | ALL_WRITES};
/* What the steps wrote is seen by the host once the fence is signalled. */
static const VulkanBarrier at_end = {ALL_STAGES, VK_PIPELINE_STAGE_HOST_BIT, ALL_WRITES, VK_ACCESS_HOST_READ_BIT};

static void record_barrier(const VulkanApi *api, VkCommandBuffer commands, const VulkanBarrier *barrier) {
  const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = barrier->from_access,
                                  .dstAccessMask = barrier->to_access};
  api->vkCmdPipelineBarrier(commands, barrier->from_stages, barrier->to_stages, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void record_dispatch(const VulkanApi *api, VkCommandBuffer commands, const VulkanStep *step,
                            VkDescriptorSet set) {
  const VulkanPipeline *p = step->pipeline;
  api->vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
  api->vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &set, 0, NULL);
  api->vkCmdPushConstants(commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, VULKAN_PUSH_BYTES, step->push);
  api->vkCmdDispatch(commands, step->groups[0], step->groups[1], step->groups[2]);
}

static void record_copy(const VulkanApi *api, VkCommandBuffer commands, const VulkanStep *step) {
  const VulkanRange *from = &step->ranges[0], *to = &step->ranges[1];
  const VkBufferCopy region = {.srcOffset = from->offset, .dstOffset = to->offset, .size = from->bytes};
  api->vkCmdCopyBuffer(commands, from->buffer, to->buffer, 1, &region);
}

static void record_fill(const VulkanApi *api, VkCommandBuffer commands, const VulkanStep *step) {
  const VulkanRange *to = &step->ranges[0];
  api->vkCmdFillBuffer(commands, to->buffer, to->offset, to->bytes, step->push[0]);
}

/* A stamp is taken when all commands before it are complete. */
static void record_stamp(const VulkanApi *api, const VulkanPlan *plan, uint32_t index) {
  if (plan->stamps == 0) return;
  const VkPipelineStageFlagBits stage =
      index == 0 ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
  api->vkCmdWriteTimestamp(plan->commands, stage, plan->queries, index);
}

static void record_start(const VulkanApi *api, const VulkanPlan *plan) {
  if (plan->stamps) api->vkCmdResetQueryPool(plan->commands, plan->queries, 0, plan->stamps);
  record_stamp(api, plan, 0);
  record_barrier(api, plan->commands, &at_start);
}

static void record_steps(const VulkanApi *api, const VulkanRecording *r, VulkanPlan *plan) {
  uint32_t barrier = 0, set = 0, stamp = 1;
  for (uint32_t i = 0; i < r->steps->count; i++) {
    const VulkanStep *step = &r->steps->at[i];
    if (r->before[i].from_stages && ++barrier != r->skip_barrier) {
      record_barrier(api, plan->commands, &r->before[i]);
      plan->barriers++;
    }
    if (step->kind == VULKAN_DISPATCH) record_dispatch(api, plan->commands, step, r->sets[set++]);
    if (step->kind == VULKAN_COPY) record_copy(api, plan->commands, step);
    if (step->kind == VULKAN_FILL) record_fill(api, plan->commands, step);
    if (r->stamp_after[i]) record_stamp(api, plan, stamp++);
  }
}

static void record_end(const VulkanApi *api, const VulkanPlan *plan) {
  record_barrier(api, plan->commands, &at_end);
  if (plan->stamps) record_stamp(api, plan, plan->stamps - 1);
}

static DflashStatus make_commands(VulkanDevice *device, VulkanPlan *plan, DflashError *error) {
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = device->pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  const VkResult result = VULKAN_CALL(&device->api, vkAllocateCommandBuffers, device->device, &info, &commands);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "making a command buffer");
  plan->commands = commands;
  return DFLASH_OK;
}

DflashStatus vulkan_plan_record(VulkanDevice *device, const VulkanRecording *recording, VulkanPlan *plan,
                                DflashError *error) {
  VulkanApi *api = &device->api;
  const DflashStatus status = make_commands(device, plan, error);
  if (status) return status;
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VkResult result = VULKAN_CALL(api, vkBeginCommandBuffer, plan->commands, &info);
  if (result != VK_SUCCESS) return vulkan_device_result(device, result, error, "beginning a command buffer");
  record_start(api, plan);
  record_steps(api, recording, plan);
  record_end(api, plan);
  result = VULKAN_CALL(api, vkEndCommandBuffer, plan->commands);
  return result == VK_SUCCESS ? DFLASH_OK : vulkan_device_result(device, result, error, "ending a command buffer");
}
