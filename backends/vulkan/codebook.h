#ifndef DFLASH_VULKAN_CODEBOOK_H
#define DFLASH_VULKAN_CODEBOOK_H

#include "model.h"

/* Uploads a codebook (F32, F16 or BF16) as it is stored, in parts of whole rows that one binding can show; a part but
 * the last holds a multiple of 128 rows. pitch and code_pitch are 0. */
DflashStatus vulkan_codebook_open(DflashModel *model, VulkanUpload *upload, const DflashTensor *tensor,
                                  const char *name, VulkanMatrix *codebook, DflashError *error);

#endif
