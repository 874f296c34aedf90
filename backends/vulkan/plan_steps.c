#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "dflash/stages.h"

/* The next step, zeroed; NULL when memory ran out. */
static VulkanStep *add(VulkanSteps *steps, int kind) {
  if (steps->failed) return NULL;
  if (steps->count == steps->capacity) {
    const uint32_t capacity = steps->capacity ? 2 * steps->capacity : 64;
    VulkanStep *at = realloc(steps->at, capacity * sizeof *at);
    if (!at) {
      steps->failed = true;
      return NULL;
    }
    steps->at = at;
    steps->capacity = capacity;
  }
  VulkanStep *step = &steps->at[steps->count++];
  *step = (VulkanStep){.kind = kind, .stage = DFLASH_STAGE_NONE};
  return step;
}

void vulkan_steps_dispatch(VulkanSteps *steps, const VulkanDispatch *dispatch) {
  VulkanStep *step = add(steps, VULKAN_DISPATCH);
  if (!step) return;
  const VulkanKernelInfo *info = vulkan_kernel_info(dispatch->pipeline->kernel);
  step->pipeline = dispatch->pipeline;
  memcpy(step->ranges, dispatch->ranges, info->bindings * sizeof *step->ranges);
  memcpy(step->push, dispatch->push, info->push_bytes);
  memcpy(step->groups, dispatch->groups, sizeof step->groups);
  step->stage = dispatch->stage;
  step->layer = dispatch->layer;
}

void vulkan_steps_copy(VulkanSteps *steps, VulkanRange from, VulkanRange to) {
  VulkanStep *step = add(steps, VULKAN_COPY);
  if (!step) return;
  step->ranges[0] = from;
  step->ranges[1] = to;
}

void vulkan_steps_fill(VulkanSteps *steps, VulkanRange to, uint32_t word) {
  VulkanStep *step = add(steps, VULKAN_FILL);
  if (!step) return;
  step->ranges[0] = to;
  step->push[0] = word;
}

void vulkan_steps_close(VulkanSteps *steps) {
  free(steps->at);
  *steps = (VulkanSteps){0};
}
