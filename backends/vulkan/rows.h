/* How the kernels norm, enter, out, conv, act and heads share rows among threads. */
#ifndef DFLASH_VULKAN_ROWS_H
#define DFLASH_VULKAN_ROWS_H

#include "kernel.h"

#include "dflash/geometry.h"

/* Constants of norm, enter, out, conv and act, in this order: threads of a workgroup; columns of a piece, which a
 * thread loads and stores at once; pieces that a thread keeps (norm, enter and out); channels that share a coefficient;
 * taps (conv and out). Of heads: pairs of columns that a thread takes. None but the columns changes the order of a sum.
 * Their number, 0 of other kernels. */
uint32_t vulkan_row_constants(const VulkanTraits *traits, const DflashGeometry *g, int kernel,
                              uint32_t constants[VULKAN_MAX_CONSTANTS]);
/* Whether a workgroup keeps a whole row that takes so many pieces a thread (norm, enter and out). */
bool vulkan_row_is_kept(uint32_t turns);
/* Workgroups with these constants that a row of conv or act takes. */
uint32_t vulkan_row_groups(const uint32_t *constants, int64_t width);

#endif
