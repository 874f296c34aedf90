/* What product.c tells besides its steps, which sequence.h declares. */
#ifndef DFLASH_VULKAN_PRODUCT_H
#define DFLASH_VULKAN_PRODUCT_H

#include "sequence.h"

/* How `rows` rows of activations are multiplied with a matrix, for example "tile 8x32 q4tp, f32": rows of x and of the
 * matrix that a workgroup takes, storage, arithmetic. */
void vulkan_product_path(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, char *path, size_t size);

/* The kernel that multiplies them, with its constants: *count of them. */
int vulkan_product_kernel(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows,
                          uint32_t constants[VULKAN_MAX_CONSTANTS], uint32_t *count);

/* Steps before a product: x in int8, into words and scales; the largest magnitude of each row, into largest. */
DflashStatus vulkan_steps_quantise(DflashModel *model, VulkanSteps *steps, const VulkanProduct *p, DflashError *error);
DflashStatus vulkan_steps_largest(DflashModel *model, VulkanSteps *steps, const VulkanProduct *p, DflashError *error);

#endif
