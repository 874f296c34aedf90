#include "rows.h"

/* A sum of a row has 512 slots (shaders/row.glsl). A workgroup of 256 threads, which every device takes, is enough
 * where there are no more pieces. Element by element, small workgroups spread over more of the device. */
enum { FEW_THREADS = 256, MANY_THREADS = 512, KEPT = 8, CONV_THREADS = 128, ACT_THREADS = 256, HEAD_THREADS = 64 };

static uint32_t ceil_div(int64_t a, int64_t b) { return (uint32_t)((a + b - 1) / b); }

static uint32_t columns_of(int64_t width) { return width % 2 == 0 ? 2 : 1; }

static uint32_t sum_threads(const VulkanTraits *traits, uint32_t pieces) {
  return pieces > FEW_THREADS && traits->max_threads >= MANY_THREADS ? MANY_THREADS : FEW_THREADS;
}

static uint32_t norm_constants(const VulkanTraits *traits, int64_t width, uint32_t *constants) {
  const uint32_t columns = columns_of(width), pieces = (uint32_t)(width / columns);
  const uint32_t threads = sum_threads(traits, pieces), turns = ceil_div(pieces, threads);
  constants[0] = threads;
  constants[1] = columns;
  constants[2] = turns < KEPT ? turns : KEPT;
  return 3;
}

static uint32_t convolution_constants(const DflashGeometry *g, uint32_t *constants) {
  constants[3] = (uint32_t)g->conv_group;
  constants[4] = (uint32_t)g->conv_kernel;
  return 5;
}

static uint32_t element_constants(uint32_t threads, int64_t width, uint32_t *constants) {
  constants[0] = threads;
  constants[1] = columns_of(width);
  constants[2] = 1;
  return 2;
}

uint32_t vulkan_row_constants(const VulkanTraits *traits, const DflashGeometry *g, int kernel,
                              uint32_t constants[VULKAN_MAX_CONSTANTS]) {
  switch (kernel) {
  case VULKAN_KERNEL_NORM:
  case VULKAN_KERNEL_ENTER:
    return norm_constants(traits, g->hidden, constants);
  case VULKAN_KERNEL_OUT:
    norm_constants(traits, g->hidden, constants);
    return convolution_constants(g, constants);
  case VULKAN_KERNEL_CONV:
    element_constants(CONV_THREADS, g->hidden, constants);
    return convolution_constants(g, constants);
  case VULKAN_KERNEL_ACT:
    return element_constants(ACT_THREADS, g->intermediate, constants);
  case VULKAN_KERNEL_HEADS:
    constants[0] = ceil_div(g->head_dim / 2, HEAD_THREADS);
    return 1;
  default:
    return 0;
  }
}

bool vulkan_row_is_kept(uint32_t turns) { return turns < KEPT; }

uint32_t vulkan_row_groups(const uint32_t *constants, int64_t width) {
  return ceil_div(width, (int64_t)constants[0] * constants[1]);
}
