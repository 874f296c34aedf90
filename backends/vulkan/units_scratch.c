/* What products on matrix units take of a sequence's memory. */
#include "held.h"
#include "tensors.h"
#include "units.h"

enum { X_ROWS = 8, MANY_ROWS = 16 };

/* The i-th matrix of the model that is multiplied on matrix units, NULL: the i-th tensor is none. */
static const VulkanMatrix *matrix_at(DflashModel *model, int64_t i) {
  const VulkanTensor t = vulkan_tensor_at(&model->geometry, NULL, model, i);
  return t.kind == VULKAN_MATRIX && t.matrix->pieces > 0 ? t.matrix : NULL;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

VulkanUnitsBytes vulkan_units_bytes(DflashModel *model, int64_t most_rows) {
  VulkanUnitsBytes bytes = {0};
  for (int64_t i = 0; i < vulkan_tensor_count(&model->geometry); i++) {
    const VulkanMatrix *matrix = matrix_at(model, i);
    if (!matrix) continue;
    const VulkanUnitsBytes own = vulkan_units_product_bytes(model, matrix, most_rows);
    bytes.words = larger(bytes.words, own.words);
    bytes.factors = larger(bytes.factors, own.factors);
    bytes.found = larger(bytes.found, own.found);
    bytes.arrivals = larger(bytes.arrivals, own.arrivals);
  }
  return bytes;
}

/* Rows are prepared by tiles: one, or an even number of them. */
int64_t vulkan_units_most_rows(DflashModel *model, int64_t rows) {
  const VulkanTraits *traits = &model->device.traits;
  const uint64_t words = vulkan_units_bytes(model, X_ROWS).words;
  if (words == 0) return rows;
  const int64_t shown = (int64_t)(traits->max_binding / words) * X_ROWS;
  if (rows > shown) rows = shown;
  if (rows > (int64_t)traits->max_groups[1]) rows = traits->max_groups[1];
  if (rows >= MANY_ROWS) return rows / MANY_ROWS * MANY_ROWS;
  return rows < X_ROWS ? rows : X_ROWS;
}

/* They are 0 again after each product, of blocks and of settled pieces alike. */
DflashStatus vulkan_units_open_arrivals(DflashSequence *s, DflashError *error) {
  VulkanDevice *device = &s->model->device;
  VulkanSteps steps = {0};
  uint64_t bytes = 0;
  s->arrival_bytes = larger(s->block_units.arrivals, s->settle_units.arrivals);
  if (s->arrival_bytes == 0) return DFLASH_OK;
  for (int i = 0; i < VULKAN_AT_ONCE; i++) s->arrivals_at[i] = vulkan_place(device, &bytes, s->arrival_bytes);
  DflashStatus status = vulkan_buffer_open(device, VULKAN_ON_DEVICE, bytes, "arrival counters", &s->arrivals, error);
  if (status) return status;
  vulkan_steps_fill(&steps, vulkan_buffer_range(&s->arrivals, 0, bytes), 0);
  return vulkan_steps_run(s->model, &steps, NULL, error);
}

VulkanRange vulkan_units_arrivals(const DflashSequence *s, int product) {
  return (VulkanRange){s->arrivals.buffer, s->arrivals_at[product], s->arrival_bytes};
}
