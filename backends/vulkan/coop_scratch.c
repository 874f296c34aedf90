/* What products on matrix units take of a sequence's memory. */
#include "coop.h"
#include "product.h"
#include "tensors.h"

enum { MOST_SPLITS = 64, SUM_THREADS = 256 };

/* The i-th matrix of the model that is multiplied on matrix units, NULL: the i-th tensor is none. */
static const VulkanMatrix *matrix_at(DflashModel *model, int64_t i) {
  const VulkanTensor t = vulkan_tensor_at(&model->geometry, NULL, model, i);
  if (t.kind != VULKAN_MATRIX || t.matrix->rows == 0) return NULL;
  return vulkan_product_on_units(model, t.matrix) ? t.matrix : NULL;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

VulkanCoopBytes vulkan_coop_bytes(DflashModel *model, int64_t rows, uint32_t most_splits) {
  VulkanCoopBytes bytes = {0};
  for (int64_t i = 0; i < vulkan_tensor_count(&model->geometry); i++) {
    const VulkanMatrix *matrix = matrix_at(model, i);
    if (!matrix) continue;
    bytes.parts = larger(bytes.parts, vulkan_coop_parts_bytes(matrix, rows));
    bytes.found = larger(bytes.found, vulkan_coop_found_bytes(model, matrix, rows, most_splits));
    bytes.factors = (uint64_t)rows * 8;
  }
  return bytes;
}

/* Whether a binding shows what the splits of a matrix find for a block, and one dispatch sums it. */
static bool can_split(const DflashModel *model, const VulkanMatrix *matrix, uint32_t most) {
  const VulkanTraits *t = &model->device.traits;
  const uint64_t found = vulkan_coop_found_bytes(model, matrix, model->geometry.block, most);
  return found == 0 || (found <= t->max_binding && (matrix->rows - 1) / SUM_THREADS < t->max_groups[0]);
}

uint32_t vulkan_coop_most_splits(DflashModel *model) {
  uint32_t most = MOST_SPLITS;
  for (int64_t i = 0; i < vulkan_tensor_count(&model->geometry); i++) {
    const VulkanMatrix *matrix = matrix_at(model, i);
    while (matrix && !can_split(model, matrix, most)) most /= 2; /* one split finds nothing */
  }
  return most;
}
