/* How attention is cut into workgroups. */
#ifndef DFLASH_VULKAN_ATTEND_H
#define DFLASH_VULKAN_ATTEND_H

#include "model.h"

/* The number of the kernel's constants (kernel.h). */
enum { VULKAN_ATTEND_CONSTANTS = 4 };

/* Whether attention runs on matrix units. */
bool vulkan_attend_on_units(const DflashModel *model);
/* The kernel of attention for blocks of `rows` rows, with its constants. */
int vulkan_attend_kernel(const DflashModel *model, int64_t rows, uint32_t constants[VULKAN_MAX_CONSTANTS],
                         uint32_t *count);
/* Constants of the kernel `attend` for blocks of `rows` rows. */
void vulkan_attend_constants(const DflashModel *model, int64_t rows, uint32_t constants[VULKAN_ATTEND_CONSTANTS]);
/* Constant 0 of the kernel `mix`. */
uint32_t vulkan_mix_threads(const VulkanTraits *traits);
/* Tiles of queries in such a block. */
uint32_t vulkan_attend_tiles(const DflashModel *model, int64_t rows);
/* Parts, at most, in which `rows` rows of a context are seen where `splits` share them; one where there are none. */
uint32_t vulkan_attend_parts(int64_t rows, uint32_t splits);

#endif
