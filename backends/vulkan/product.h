/* What product.c tells besides its steps, which sequence.h declares. Where a matrix is multiplied is decided here
 * alone. */
#ifndef DFLASH_VULKAN_PRODUCT_H
#define DFLASH_VULKAN_PRODUCT_H

#include "sequence.h"

/* What a product makes of x before it multiplies: nothing; something that no other product can use; integers and their
 * steps; the largest of each row; parts of f16 and their factors. */
enum { VULKAN_MADE_NOTHING, VULKAN_MADE_FOR_ONE, VULKAN_MADE_INTEGERS, VULKAN_MADE_LARGEST, VULKAN_MADE_PARTS };
/* Sets p->prepared for the next product of the same rows of the same x, which finds what *made says, and updates *made.
 * *made starts as VULKAN_MADE_NOTHING. */
void vulkan_product_follow(const DflashModel *model, VulkanProduct *p, int *made);

/* How `rows` rows of activations are multiplied with a matrix, for example "tile 8x32 q4tp, f32": rows of x and of the
 * matrix that a workgroup takes, storage, arithmetic; or "matrix units, 64 rows, 3 parts of f16, q4tp": rows of the
 * matrix that a workgroup takes, what x is turned into, storage. */
void vulkan_product_path(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, char *path, size_t size);

/* The kernel that multiplies them, with its constants: *count of them. */
int vulkan_product_kernel(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows,
                          uint32_t constants[VULKAN_MAX_CONSTANTS], uint32_t *count);

#endif
