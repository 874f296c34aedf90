#include "schedule.h"

uint32_t vulkan_step_ranges(const VulkanStep *step) {
  if (step->kind == VULKAN_DISPATCH) return vulkan_kernel_info(step->pipeline->kernel)->bindings;
  return step->kind == VULKAN_COPY ? 2 : 1;
}

uint32_t vulkan_step_writes(const VulkanStep *step) {
  if (step->kind == VULKAN_DISPATCH) return vulkan_kernel_info(step->pipeline->kernel)->writes;
  return step->kind == VULKAN_COPY ? 1u << 1 : 1u << 0;
}

static bool overlap(const VulkanRange *a, const VulkanRange *b) {
  return a->buffer == b->buffer && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* True when one of the two writes what the other reads or writes. */
static bool conflict(const VulkanStep *a, const VulkanStep *b) {
  const uint32_t a_count = vulkan_step_ranges(a), b_count = vulkan_step_ranges(b);
  const uint32_t a_writes = vulkan_step_writes(a), b_writes = vulkan_step_writes(b);
  for (uint32_t i = 0; i < a_count; i++)
    for (uint32_t j = 0; j < b_count; j++)
      if ((a_writes >> i & 1 || b_writes >> j & 1) && overlap(&a->ranges[i], &b->ranges[j])) return true;
  return false;
}

static VkPipelineStageFlags stage_of(const VulkanStep *step) {
  return step->kind == VULKAN_DISPATCH ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT;
}

static VkAccessFlags writes_of(const VulkanStep *step) {
  return step->kind == VULKAN_DISPATCH ? VK_ACCESS_SHADER_WRITE_BIT : VK_ACCESS_TRANSFER_WRITE_BIT;
}

/* A kernel may read what it writes. */
static VkAccessFlags accesses_of(const VulkanStep *step) {
  if (step->kind == VULKAN_FILL) return VK_ACCESS_TRANSFER_WRITE_BIT;
  const VkAccessFlags reads = step->kind == VULKAN_DISPATCH ? VK_ACCESS_SHADER_READ_BIT : VK_ACCESS_TRANSFER_READ_BIT;
  return reads | writes_of(step);
}

static bool conflicts_since(const VulkanSteps *steps, uint32_t first, uint32_t step) {
  for (uint32_t i = first; i < step; i++)
    if (conflict(&steps->at[i], &steps->at[step])) return true;
  return false;
}

/* The barrier between steps first .. middle and steps middle .. end. */
static VulkanBarrier barrier_between(const VulkanSteps *steps, uint32_t first, uint32_t middle, uint32_t end) {
  VulkanBarrier barrier = {0};
  for (uint32_t i = first; i < middle; i++) {
    barrier.from_stages |= stage_of(&steps->at[i]);
    barrier.from_access |= writes_of(&steps->at[i]);
  }
  for (uint32_t i = middle; i < end; i++) {
    barrier.to_stages |= stage_of(&steps->at[i]);
    barrier.to_access |= accesses_of(&steps->at[i]);
  }
  return barrier;
}

uint32_t vulkan_barriers_plan(const VulkanSteps *steps, VulkanBarrier *before) {
  uint32_t count = 0, previous = 0, first = 0; /* the last two places of a barrier */
  for (uint32_t i = 0; i < steps->count; i++) {
    before[i] = (VulkanBarrier){0};
    if (!conflicts_since(steps, first, i)) continue;
    if (count++) before[first] = barrier_between(steps, previous, first, i);
    previous = first;
    first = i;
  }
  if (count) before[first] = barrier_between(steps, previous, first, steps->count);
  return count;
}
