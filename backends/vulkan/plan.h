/* What a submission does: a list of steps, and the command buffer recorded from it. Barriers follow from what the steps
 * read and write: a step waits for those before it that touch what it writes, or write what it reads. */
#ifndef DFLASH_VULKAN_PLAN_H
#define DFLASH_VULKAN_PLAN_H

#include "kernel.h"

enum { VULKAN_DISPATCH, VULKAN_COPY, VULKAN_FILL };

typedef struct VulkanStep {
  int kind;
  const VulkanPipeline *pipeline;          /* dispatch */
  VulkanRange ranges[VULKAN_MAX_BINDINGS]; /* dispatch: as the kernel binds them; copy: from, to; fill: to */
  uint32_t push[VULKAN_PUSH_BYTES / 4];    /* dispatch; fill: [0] is the word */
  uint32_t groups[3];
  int32_t stage, layer; /* whose work it is; DFLASH_STAGE_NONE: of the stage that follows */
} VulkanStep;

/* A list that grows; `failed` is set when memory ran out and later additions do nothing: asked once, at the end. */
typedef struct VulkanSteps {
  VulkanStep *at;
  uint32_t count, capacity;
  bool failed;
} VulkanSteps;

typedef struct VulkanDispatch {
  const VulkanPipeline *pipeline;
  const VulkanRange *ranges; /* as many as the kernel binds */
  const void *push;          /* of the kernel's push_bytes */
  uint32_t groups[3];
  int32_t stage, layer;
} VulkanDispatch;

void vulkan_steps_dispatch(VulkanSteps *steps, const VulkanDispatch *dispatch);
/* Equal sizes, not 0; both sizes and offsets multiples of 4. */
void vulkan_steps_copy(VulkanSteps *steps, VulkanRange from, VulkanRange to);
void vulkan_steps_fill(VulkanSteps *steps, VulkanRange to, uint32_t word);
void vulkan_steps_close(VulkanSteps *steps);

/* A span between two time stamps, in ticks turned to nanoseconds; counted from the first stamp. */
typedef struct VulkanSpan {
  int32_t stage, layer;
  uint64_t begin_ns, end_ns;
} VulkanSpan;

/* A recorded command buffer. Its first and last command take time stamps where the device has them; `stamped` ones take
 * one after every dispatch of another stage than the next dispatch's, too. */
typedef struct VulkanPlan {
  VkCommandBuffer commands;
  VkDescriptorPool descriptors;
  VkQueryPool queries;
  VkFence fence;
  uint32_t stamps;     /* 0: the device has none */
  int32_t (*marks)[2]; /* stage and layer of the span that ends at stamp i + 1 */
  uint32_t barriers;   /* recorded between steps, for reports and tests */
  uint32_t dispatches;
} VulkanPlan;

/* skip_barrier: the number, from 1, of a barrier to leave out (a planted defect); 0 for none. */
DflashStatus vulkan_plan_open(VulkanDevice *device, const VulkanSteps *steps, bool stamped, uint32_t skip_barrier,
                              VulkanPlan *plan, DflashError *error);
void vulkan_plan_close(VulkanDevice *device, VulkanPlan *plan); /* zeroed or half open: fine */
DflashStatus vulkan_plan_run(VulkanDevice *device, VulkanPlan *plan, DflashError *error);
/* Of the last run: nanoseconds from first to last stamp; DFLASH_UNSUPPORTED without stamps. */
DflashStatus vulkan_plan_time(VulkanDevice *device, const VulkanPlan *plan, uint64_t *ns, DflashError *error);
/* Of the last run: ticks that all its stamps are multiples of apart; 1 where they are all the same. DFLASH_UNSUPPORTED
 * without stamps. */
DflashStatus vulkan_plan_step(VulkanDevice *device, const VulkanPlan *plan, uint64_t *ticks, DflashError *error);
/* Up to capacity spans; *count: how many there are, 0 of a plan that is not stamped. DFLASH_UNSUPPORTED without stamps.
 */
DflashStatus vulkan_plan_spans(VulkanDevice *device, const VulkanPlan *plan, VulkanSpan *spans, uint32_t capacity,
                               uint32_t *count, DflashError *error);

#endif
