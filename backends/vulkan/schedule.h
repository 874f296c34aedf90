/* Where barriers and time stamps stand in a list of steps. Pure functions: no device is asked. */
#ifndef DFLASH_VULKAN_SCHEDULE_H
#define DFLASH_VULKAN_SCHEDULE_H

#include "plan.h"

/* How many ranges a step touches, and a bit for each that it writes. */
uint32_t vulkan_step_ranges(const VulkanStep *step);
uint32_t vulkan_step_writes(const VulkanStep *step);

/* One global memory barrier; from_stages 0: none is needed. */
typedef struct VulkanBarrier {
  VkPipelineStageFlags from_stages, to_stages;
  VkAccessFlags from_access, to_access;
} VulkanBarrier;

/* before[i], for every step: what stands before it. The fewest barriers that order every two steps of which one writes
 * what the other touches. A barrier waits for all steps since the one before it, for all steps up to the next: so
 * barriers form a chain, and what one made available the later ones make visible. Returns how many there are. */
uint32_t vulkan_barriers_plan(const VulkanSteps *steps, VulkanBarrier *before);

/* after[i], for every step: whether a time stamp follows it, so that spans of unlike stages or layers part. A span
 * starts where the one before ended: dispatches of no stage, copies and fills belong to the span that follows, at the
 * end to the last one. marks: stage and layer of each span, room for one a step and one more. Returns the number of
 * spans, at least 1; the last one ends with the list, without a stamp in `after`. */
uint32_t vulkan_stamps_plan(const VulkanSteps *steps, bool *after, int32_t (*marks)[2]);

/* The largest number of ticks that both `step` and the time between two readings are multiples of; 0 of 0 and 0. */
uint64_t vulkan_ticks_step(const VulkanTraits *traits, uint64_t step, uint64_t begin, uint64_t end);

/* Nanoseconds between two readings of the device's clock, which wraps at its valid bits. */
uint64_t vulkan_ticks_ns(const VulkanTraits *traits, uint64_t begin, uint64_t end);

#endif
