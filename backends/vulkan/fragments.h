/* Kernels that make an activation and prepare it for the products on matrix units that read it (units.h), so that no
 * dispatch does only that; and kernels that add the sums of splits that products left apart. */
#ifndef DFLASH_VULKAN_FRAGMENTS_H
#define DFLASH_VULKAN_FRAGMENTS_H

#include "sequence.h"

enum { VULKAN_FORMS = 2, VULKAN_SUMS = 3 };

/* The kernel that makes the values of a stage: one of enter, out, conv, act and mix, or the same with `_fragments`. */
typedef struct VulkanMaker {
  int plain, kernel;
  uint32_t constants[VULKAN_MAX_CONSTANTS], count;
  const VulkanMatrix *forms[VULKAN_FORMS]; /* it prepares what these want, and all that want the same; NULL: no more */
  uint32_t splits[VULKAN_SUMS];            /* that it adds, of the products that it reads; 1: none, 0: no product */
} VulkanMaker;

/* stage: attn.norm, attn.conv_in, attn.mix, mlp.norm, mlp.conv_in, mlp.act or final.norm. Decided by model and device
 * alone. */
VulkanMaker vulkan_maker(const DflashModel *model, int32_t stage, int64_t layer);
/* The norm behind mlp.out of a layer: attn.norm of the next one, which *layer becomes, or final.norm (0). */
int32_t vulkan_stage_after(const DflashGeometry *g, int64_t *layer);
/* Whether it is one of those stages, and products find its values prepared. */
bool vulkan_stage_is_prepared(const DflashModel *model, int32_t stage, int64_t layer);

/* The kernel of attn.q and attn.k: heads, or heads_sums, which adds the splits of q, k and v. */
VulkanMaker vulkan_heads_maker(const DflashModel *model, int64_t layer);
/* Splits of a product of a block that the kernel that reads it adds; 1: it has none, or adds them itself. */
uint32_t vulkan_splits_apart(const DflashModel *model, int32_t stage, int64_t layer);

/* What the kernel binds behind the ranges of the plain one (kernel.h), which are there, in `ranges`. */
void vulkan_maker_ranges(const DflashModel *model, const VulkanMaker *maker, const VulkanScratch *scratch,
                         VulkanRange *ranges);
void vulkan_heads_ranges(const VulkanMaker *maker, const VulkanScratch *scratch, VulkanRange *ranges);
/* Workgroups along x of mix: heads, and as many more as prepare the groups past the last column. */
uint32_t vulkan_mix_groups(const DflashGeometry *g, const VulkanMaker *maker);

#endif
