#include "schedule.h"

#include "dflash/stages.h"

static void mark(int32_t at[2], const VulkanStep *step) {
  at[0] = step ? step->stage : DFLASH_STAGE_NONE;
  at[1] = step ? step->layer : 0;
}

uint32_t vulkan_stamps_plan(const VulkanSteps *steps, bool *after, int32_t (*marks)[2]) {
  uint32_t spans = 0, last_at = 0;
  const VulkanStep *last = NULL; /* dispatch of a stage */
  for (uint32_t i = 0; i < steps->count; i++) {
    const VulkanStep *step = &steps->at[i];
    after[i] = false;
    if (step->kind != VULKAN_DISPATCH || step->stage == DFLASH_STAGE_NONE) continue;
    if (last && (step->stage != last->stage || step->layer != last->layer)) {
      after[last_at] = true;
      mark(marks[spans++], last);
    }
    last = step;
    last_at = i;
  }
  mark(marks[spans++], last);
  return spans;
}

static uint64_t ticks_between(const VulkanTraits *traits, uint64_t begin, uint64_t end) {
  const uint32_t bits = traits->timestamp_bits;
  const uint64_t mask = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  return (end - begin) & mask;
}

uint64_t vulkan_ticks_step(const VulkanTraits *traits, uint64_t step, uint64_t begin, uint64_t end) {
  uint64_t rest = ticks_between(traits, begin, end);
  while (rest > 0) {
    const uint64_t next = step % rest;
    step = rest;
    rest = next;
  }
  return step;
}

uint64_t vulkan_ticks_ns(const VulkanTraits *traits, uint64_t begin, uint64_t end) {
  return (uint64_t)((double)ticks_between(traits, begin, end) * traits->timestamp_ns + 0.5);
}
