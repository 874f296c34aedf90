#ifndef DFLASH_VULKAN_INFO_H
#define DFLASH_VULKAN_INFO_H

#include "model.h"

/* The interface's model_info and stage_info. */
DflashStatus vulkan_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error);
DflashStatus vulkan_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                               DflashStageInfo *info, DflashError *error);
/* The matrix of a stage; NULL: it is no product. */
const VulkanMatrix *vulkan_model_matrix(const DflashModel *model, int32_t stage, int64_t layer);

#endif
