/* What a model says about itself. */
#ifndef DFLASH_CUDA_INFO_H
#define DFLASH_CUDA_INFO_H

#include "model.h"

/* The matrix that a stage multiplies by; NULL when it is no product. */
const CudaMatrix *cuda_model_matrix(const DflashModel *model, int32_t stage, int64_t layer);

DflashStatus cuda_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                             DflashStageInfo *info, DflashError *error);
DflashStatus cuda_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error);

#endif
