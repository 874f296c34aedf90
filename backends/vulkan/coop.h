/* Products on matrix units: which matrices they take, and the steps of a product. Storages q4tp, q8_2f and f16. */
#ifndef DFLASH_VULKAN_COOP_H
#define DFLASH_VULKAN_COOP_H

#include "sequence.h"

/* How a product is cut: the constants of the kernels coop_*, in kernel.h's order. */
typedef struct VulkanCoopTile {
  uint32_t threads, rows, tiles, slices, step, depth, parts;
} VulkanCoopTile;
enum { VULKAN_COOP_CONSTANTS = 7 };
void vulkan_coop_constants(const VulkanCoopTile *tile, uint32_t constants[VULKAN_COOP_CONSTANTS]);

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
/* Rows of the matrix that a workgroup takes. */
uint32_t vulkan_coop_group_rows(const VulkanCoopTile *tile);
/* Bytes of shared memory of a workgroup. */
uint64_t vulkan_coop_shared(const VulkanCoopTile *tile, int kernel);
/* The kernel that multiplies. */
int vulkan_coop_kernel(const DflashModel *model, const VulkanMatrix *matrix);
/* Workgroups that share the columns of a row of the matrix, `most` of them at most. */
uint32_t vulkan_coop_splits(const VulkanCoopTile *tile, const VulkanMatrix *matrix, uint32_t most);

/* Bytes of VulkanProduct's parts and found, for a product of `rows` rows; found 0: nothing is written there. */
uint64_t vulkan_coop_parts_bytes(const VulkanMatrix *matrix, int64_t rows);
uint64_t vulkan_coop_found_bytes(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, uint32_t most);

/* coop_scratch.c: bytes for any product of `rows` rows that the model has on matrix units; all 0 where it has none. */
typedef struct VulkanCoopBytes {
  uint64_t parts, factors, found;
} VulkanCoopBytes;
VulkanCoopBytes vulkan_coop_bytes(DflashModel *model, int64_t rows, uint32_t most_splits);
/* The most splits of a block's products: as many as the device shows, and sums, the results of. */
uint32_t vulkan_coop_most_splits(DflashModel *model);

/* The steps of a product, as vulkan_steps_product makes them on the tile kernels; `prepared`: parts and factors, or
 * words and scales, are there. */
DflashStatus vulkan_steps_coop_product(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                       DflashError *error);

#endif
