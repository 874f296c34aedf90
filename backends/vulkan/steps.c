#include "sequence.h"

DflashStatus vulkan_steps_kernel(DflashModel *model, VulkanSteps *steps, int kernel, const uint32_t *constants,
                                 uint32_t constant_count, VulkanDispatch *dispatch, DflashError *error) {
  const DflashStatus status = vulkan_pipeline_get(&model->device, &model->pipelines, kernel, constants, constant_count,
                                                  &dispatch->pipeline, error);
  if (status) return status;
  vulkan_steps_dispatch(steps, dispatch);
  return DFLASH_OK;
}
