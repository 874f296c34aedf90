/* Products on matrix units: which matrices they take, and the steps of a product. Storages q4tp, q8_2f and f16. */
#ifndef DFLASH_VULKAN_COOP_H
#define DFLASH_VULKAN_COOP_H

#include "sequence.h"

/* How a product is cut: the constants of the kernels coop_*, in kernel.h's order. */
typedef struct VulkanCoopTile {
  uint32_t threads, rows, tiles, slices, step, depth, parts;
} VulkanCoopTile;

/* Asks the device where the elements of a matrix are: *direct is what a model's coop_direct is set to, false where
 * there are no matrix units. Runs a kernel and waits for it. */
DflashStatus vulkan_coop_probe(VulkanDevice *device, VulkanPipelines *pipelines, bool *direct, DflashError *error);
/* Whether they are as the direct kernels expect: places[lane][n], n below VULKAN_COOP_HELD, as coop_probe.comp finds
 * them. */
enum { VULKAN_COOP_HELD = 8 };
bool vulkan_coop_places_fit(const uint32_t *places);

/* Whether the device's matrix units take this matrix in the model's profile. */
bool vulkan_coop_takes(const DflashModel *model, const VulkanMatrix *matrix);
/* For a matrix that they take. Nothing here depends on the rows of a call. */
VulkanCoopTile vulkan_coop_tile(const DflashModel *model, const VulkanMatrix *matrix);
/* Bytes of shared memory of a workgroup. */
uint64_t vulkan_coop_shared(const VulkanCoopTile *tile, int kernel);
/* The kernel that multiplies. */
int vulkan_coop_kernel(const DflashModel *model, const VulkanMatrix *matrix);
/* Workgroups that share the columns of a row of the matrix, `most` of them at most. */
uint32_t vulkan_coop_splits(const VulkanCoopTile *tile, const VulkanMatrix *matrix, uint32_t most);

/* Device memory for a product of `rows` rows, beside that of VulkanProduct: as large as the largest of all products. */
typedef struct VulkanCoopScratch {
  VulkanRange parts;    /* vulkan_coop_parts_bytes(matrix, rows) */
  VulkanRange factors;  /* 8 bytes a row */
  VulkanRange found;    /* 4 * splits * rows * out_rows bytes; any range where there is one split */
  uint32_t most_splits; /* the same whatever the rows: it changes the order of sums */
} VulkanCoopScratch;

uint64_t vulkan_coop_parts_bytes(const VulkanMatrix *matrix, int64_t rows);
uint64_t vulkan_coop_found_bytes(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, uint32_t most);

/* The steps of a product, as vulkan_steps_product makes them on the tile kernels; `prepared`: parts and factors, or
 * words and scales, are there. */
DflashStatus vulkan_steps_coop_product(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                       const VulkanCoopScratch *scratch, DflashError *error);

#endif
