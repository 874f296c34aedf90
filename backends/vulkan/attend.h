/* How attention is cut into workgroups. */
#ifndef DFLASH_VULKAN_ATTEND_H
#define DFLASH_VULKAN_ATTEND_H

#include "model.h"

/* Constants of the kernel `attend` for blocks of `rows` rows: head_dim, queries a workgroup takes, keys a step. */
void vulkan_attend_constants(const DflashModel *model, int64_t rows, uint32_t constants[3]);

#endif
