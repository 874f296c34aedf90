/* From the form in which weights are stored (dflash/tensor.h) to the one that the kernels read (kernel.h). */
#ifndef DFLASH_VULKAN_PACK_H
#define DFLASH_VULKAN_PACK_H

#include <stdbool.h>

#include "dflash/tensor.h"

/* What a row takes on the device. */
typedef struct VulkanForm {
  int64_t rows;          /* whose weights and codes are packed together: 1, or the 16 of a tile of fragments */
  uint64_t weight_bytes; /* a multiple of 16 */
  uint64_t scale_bytes;  /* 0: none */
  uint64_t code_bytes;   /* a multiple of 4; 0: none */
} VulkanForm;

/* cols < 2^56; q4tp takes whole groups of 32. */
VulkanForm vulkan_form(int32_t storage, int64_t cols);
VulkanForm vulkan_units_form(int32_t storage, int64_t cols); /* fragments, units.h: q4tp, q8_2f, f16 */
/* Bytes of a stored matrix; 0: the storage is unknown, cannot hold the columns, or the size is beyond 63 bits. */
uint64_t vulkan_stored_bytes(int32_t storage, int64_t rows, int64_t cols);

/* Bytes of a stored row: of its elements (of q4tp and q8_2f its integers), and of q4tp's codes. */
int64_t vulkan_stored_row_bytes(int32_t storage, int64_t cols);
int64_t vulkan_stored_code_bytes(int64_t cols);

float vulkan_f16_value(uint16_t bits); /* exact; infinities and NaN stay */

/* Rows first .. first + count of a matrix, seen as rows x its last dimension, tightly one after the other into `out`,
 * which is written once, from its beginning on: it may be uncached. */
typedef void VulkanPack(const DflashTensor *tensor, int64_t first, int64_t count, void *out);
VulkanPack vulkan_pack_weights;
VulkanPack vulkan_pack_scales;  /* q4tp: exp2(lo), exp2(step); q8_2f: the row's scale */
VulkanPack vulkan_pack_codes;   /* q4tp */
VulkanPack vulkan_pack_columns; /* q8_2f: the column field, `first` and `count` in columns */
VulkanPack vulkan_pack_tight;   /* f32, f16, bf16: as stored */
/* Fragments of matrix units (units.h), tile by tile, the last filled up with rows of 0; `first` is a multiple of 16. */
VulkanPack vulkan_pack_fragments;
VulkanPack vulkan_pack_fragment_codes; /* q4tp */

#endif
