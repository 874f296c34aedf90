/* The parts of vulkan_plan_open. */
#ifndef DFLASH_VULKAN_RECORDING_H
#define DFLASH_VULKAN_RECORDING_H

#include "schedule.h"

/* What lives while a plan is made. The arrays are as long as the list of steps, sets as its dispatches. */
typedef struct VulkanRecording {
  const VulkanSteps *steps;
  VulkanBarrier *before;
  bool *stamp_after;
  VkDescriptorSet *sets;
  uint32_t skip_barrier;
} VulkanRecording;

/* DFLASH_UNSUPPORTED, naming the step, for what the device's limits forbid; DFLASH_INTERNAL for a step that no device
 * could take. */
DflashStatus vulkan_steps_check(const VulkanTraits *traits, const VulkanSteps *steps, DflashError *error);
/* Makes plan->descriptors and from it recording->sets, one a dispatch, pointing at the dispatch's ranges. */
DflashStatus vulkan_plan_bind(VulkanDevice *device, const VulkanRecording *recording, VulkanPlan *plan,
                              DflashError *error);
/* Makes and fills plan->commands. */
DflashStatus vulkan_plan_record(VulkanDevice *device, const VulkanRecording *recording, VulkanPlan *plan,
                                DflashError *error);

#endif
