/* What product.c tells besides its steps, which sequence.h declares. Where a matrix is multiplied is decided here
 * alone. */
#ifndef DFLASH_VULKAN_PRODUCT_H
#define DFLASH_VULKAN_PRODUCT_H

#include "sequence.h"

/* What a product makes of x before it multiplies: nothing; integers and their steps; the largest of each row; parts of
 * f16 and their factors. */
enum { VULKAN_MADE_NOTHING, VULKAN_MADE_INTEGERS, VULKAN_MADE_LARGEST, VULKAN_MADE_PARTS };
typedef struct VulkanMade {
  int what;
  const VulkanMatrix *field; /* whose column field scaled x first, so that it serves that matrix alone; NULL: none */
} VulkanMade;
VulkanMade vulkan_product_makes(const DflashModel *model, const VulkanMatrix *matrix);
/* Whether what was made is what is wanted. */
bool vulkan_made_serves(const VulkanMade *made, const VulkanMade *wanted);
/* Sets p->prepared for the next product of the same rows of the same x, which finds what *made says, and updates *made.
 * *made starts zeroed. */
void vulkan_product_follow(const DflashModel *model, VulkanProduct *p, VulkanMade *made);

/* How `rows` rows of activations are multiplied with a matrix, for example "tile 8x32 q4tp, f32": rows of x and of the
 * matrix that a workgroup takes, storage, arithmetic; or "matrix units, 64 rows, 3 parts of f16, q4tp": rows of the
 * matrix that a workgroup takes, what x is turned into, storage. */
void vulkan_product_path(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, char *path, size_t size);

/* The kernel that multiplies them, with its constants: *count of them. */
int vulkan_product_kernel(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows,
                          uint32_t constants[VULKAN_MAX_CONSTANTS], uint32_t *count);

#endif
