#include "limits.h"

#include "base/error.h"
#include "base/memory.h"
#include "held.h"
#include "pack.h"
#include "select.h"
#include "tensors.h"

/* The product of up to four factors (0: none), INT64_MAX where it does not fit. */
static int64_t product(const int64_t factors[4]) {
  int64_t value = 1;
  for (int i = 0; i < 4 && factors[i] > 0; i++)
    if (!dflash_mul_i64(value, factors[i], &value)) return INT64_MAX;
  return value;
}

/* Of an activation's element on matrix units: three parts of f16, in whole tiles of rows and of columns. */
enum { PARTS_BYTES = 6, X_ROWS = 8, MANY_ROWS = 16, UNIT_COLS = 256 };

static bool on_units(const VulkanOptions *options, const VulkanTraits *traits) {
  return options->units && (traits->coop_f16 & X_ROWS);
}

static int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

static int64_t unit_rows(int64_t rows) { return rows <= X_ROWS ? X_ROWS : round_up(rows, MANY_ROWS); }

/* Values of a block, or of a row of the context, that one binding shows whole. */
static DflashStatus check_bindings(const DflashGeometry *g, const VulkanOptions *options, const VulkanTraits *traits,
                                   DflashError *error) {
  const int64_t drafts = g->block - 1, top = g->selector_top, splits = options->splits > 0 ? options->splits : 1;
  const int64_t parts = on_units(options, traits) ? PARTS_BYTES : 0, rows = unit_rows(g->block);
  const struct {
    const char *what;
    int64_t factors[4];
  } values[] = {
      {"block * hidden", {4, g->block, g->hidden}},
      {"block * intermediate", {4, g->block, g->intermediate}},
      {"(splits + 1) * block * heads * head_dim", {4 * (splits + 1), g->block, g->heads, g->head_dim}},
      {"rows of K up to the next aligned one", {4, vulkan_held_period(g, traits), g->kv_heads, g->head_dim}},
      {"block * 2 * conv_kernel * hidden / conv_group", {4, g->block, dflash_geometry_kernel_width(g)}},
      {"the taps' count * hidden", {4, dflash_geometry_tap_width(g)}},
      {"six times block * columns of a product", {parts, rows, round_up(vulkan_widest_product(g), UNIT_COLS)}},
      {"48 times the taps' count * hidden", {parts, X_ROWS, round_up(dflash_geometry_tap_width(g), UNIT_COLS)}},
      {"2 * conv_kernel * hidden", {8, g->conv_kernel, g->hidden}},
      {"(block - 1) * vocab", {4, drafts, g->vocab}},
      {"(block - 1) * selector_top * selector_rank", {4, drafts, top, g->selector_rank}},
      {"(block - 1) * selector_top * (selector_top + 1)", {4, drafts, top, top + 1}},
      {"(block - 1) * the vocabulary's chunks * selector_top", {8, drafts, vulkan_top_chunks(traits, g->vocab), top}},
  };
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    const int64_t bytes = product(values[i].factors);
    if ((uint64_t)bytes > traits->max_binding)
      return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: %s takes %lld bytes, a binding of %s shows %llu",
                              values[i].what, (long long)bytes, traits->name, (unsigned long long)traits->max_binding);
  }
  return DFLASH_OK;
}

/* Workgroups of the dispatches whose number grows with a size (kernel.h). */
static DflashStatus check_groups(const DflashGeometry *g, const VulkanOptions *options, const VulkanTraits *traits,
                                 DflashError *error) {
  const int64_t queries = product((const int64_t[4]){g->block, dflash_geometry_rep(g)});
  const struct {
    const char *what;
    int64_t count;
    int axis;
  } dispatches[] = {
      {"heads + kv_heads", g->heads + g->kv_heads, 0},
      {"hidden / 128", g->hidden / 128 + 1, 0},
      {"the taps' count * hidden / 128", dflash_geometry_tap_width(g) / 128 + 1, 0},
      {"the vocabulary's chunks", vulkan_top_chunks(traits, g->vocab), 0},
      {"rows of a block", g->block, 0},
      {"rows of a block", on_units(options, traits) ? unit_rows(g->block) : g->block, 1},
      {"head_dim / 128", g->head_dim / 128 + 1, 0},
      {"selector_top", g->selector_top, 0},
      {"sixteen rows of a matrix", 2, 0},
      {"queries of a kv head", queries, 2},
  };
  for (size_t i = 0; i < sizeof dispatches / sizeof dispatches[0]; i++)
    if (dispatches[i].count > (int64_t)traits->max_groups[dispatches[i].axis])
      return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: %s: %lld workgroups, %s takes %u at most",
                              dispatches[i].what, (long long)dispatches[i].count, traits->name,
                              traits->max_groups[dispatches[i].axis]);
  return DFLASH_OK;
}

static int32_t storage_of(const VulkanTensor *t) {
  if (t->tensor) return t->tensor->storage;
  if (t->kind == VULKAN_VECTOR) return DFLASH_STORAGE_F32;
  if (t->kind == VULKAN_CODEBOOK) return DFLASH_STORAGE_F16;
  return t->cols % 32 == 0 ? DFLASH_STORAGE_Q4TP : DFLASH_STORAGE_Q8_2F;
}

/* What a tensor takes: in fragments, where matrix units multiply it. */
static VulkanForm form_of(const VulkanTensor *t, const VulkanOptions *options, const VulkanTraits *traits) {
  const int32_t storage = storage_of(t);
  const bool held = storage == DFLASH_STORAGE_Q4TP || storage == DFLASH_STORAGE_Q8_2F || storage == DFLASH_STORAGE_F16;
  return t->kind == VULKAN_MATRIX && held && on_units(options, traits) ? vulkan_units_form(storage, t->cols)
                                                                       : vulkan_form(storage, t->cols);
}

/* A matrix's row goes through a binding in multiples of sixteen rows, and through the staging buffer in those of four,
 * or of a tile of fragments. */
static DflashStatus check_row(const VulkanTensor *t, const VulkanForm *form, const VulkanTraits *traits,
                              DflashError *error) {
  const uint64_t row_bytes = form->weight_bytes, staging = vulkan_staging_bytes(traits);
  const uint64_t range = traits->max_binding < traits->max_allocation ? traits->max_binding : traits->max_allocation;
  const uint64_t part = range / (t->kind == VULKAN_CODEBOOK ? 128 : 16),
                 staged = staging / (form->rows > 1 ? (uint64_t)form->rows : 4);
  const uint64_t most = part < staged ? part : staged;
  if (t->kind == VULKAN_VECTOR || row_bytes <= most) return DFLASH_OK;
  return vulkan_tensor_error(t, error,
                             dflash_error_set(error, DFLASH_UNSUPPORTED, "rows of %llu bytes, %s takes %llu at most",
                                              (unsigned long long)row_bytes, traits->name, (unsigned long long)most));
}

/* Adds what a tensor takes on the device. */
static DflashStatus add_tensor(const VulkanTensor *t, const VulkanOptions *options, const VulkanTraits *traits,
                               uint64_t *total, DflashError *error) {
  const VulkanForm form = form_of(t, options, traits);
  const uint64_t rows = ((uint64_t)t->rows + form.rows - 1) / form.rows * form.rows;
  const uint64_t row_bytes = form.weight_bytes + form.scale_bytes + form.code_bytes;
  uint64_t bytes;
  DflashStatus status = check_row(t, &form, traits, error);
  if (status) return status;
  if (__builtin_mul_overflow(rows, row_bytes, &bytes) || __builtin_add_overflow(*total, bytes, total))
    *total = UINT64_MAX / 2;
  return DFLASH_OK;
}

/* The values of a block and of a settled piece, of one sequence without a context; their bindings are checked. */
static uint64_t scratch_bytes(const DflashGeometry *g, const VulkanOptions *options, const VulkanTraits *traits) {
  const int64_t row = 5 * g->hidden + 3 * g->heads * g->head_dim + 3 * g->kv_heads * g->head_dim + 3 * g->intermediate +
                      dflash_geometry_kernel_width(g);
  const int64_t draft = g->vocab + g->selector_rank + 2 * g->selector_top * (g->selector_rank + g->selector_top);
  const int64_t settled = 2 * g->hidden + dflash_geometry_tap_width(g) + g->kv_heads * g->head_dim;
  const int64_t multiplied =
      2 * g->block * vulkan_widest_product(g) + VULKAN_SETTLE_ROWS * dflash_geometry_tap_width(g);
  const uint64_t parts = on_units(options, traits) ? PARTS_BYTES * (uint64_t)multiplied : 0;
  return 4 * (uint64_t)(g->block * (row + draft) + VULKAN_SETTLE_ROWS * settled) + parts;
}

static DflashStatus check_memory(const DflashModelDesc *desc, const VulkanOptions *options, const VulkanTraits *traits,
                                 DflashError *error) {
  uint64_t weights = 0;
  for (int64_t i = 0; i < vulkan_tensor_count(desc->geometry); i++) {
    const VulkanTensor t = vulkan_tensor_at(desc->geometry, desc->weights, NULL, i);
    if (desc->weights && !t.tensor) continue; /* no head */
    DflashStatus status = t.tensor ? vulkan_tensor_check(&t, error) : DFLASH_OK;
    if (!status) status = add_tensor(&t, options, traits, &weights, error);
    if (status) return status;
  }
  const uint64_t scratch = scratch_bytes(desc->geometry, options, traits);
  if (traits->memory_bytes == 0 || weights + scratch <= traits->memory_bytes) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: weights of %llu bytes and scratch of %llu, %s has %llu",
                          (unsigned long long)weights, (unsigned long long)scratch, traits->name,
                          (unsigned long long)traits->memory_bytes);
}

DflashStatus vulkan_check_device(const DflashModelDesc *desc, const VulkanOptions *options, const VulkanTraits *traits,
                                 DflashError *error) {
  if (options->dot_required && !traits->integer_dot)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "vulkan: option dot is on, and %s has no integer dot product",
                            traits->name);
  if (options->units_required && !on_units(options, traits))
    return dflash_error_set(
        error, DFLASH_UNSUPPORTED,
        "vulkan: option matrix is cooperative, and %s has no matrix units: " VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME
        ", 16x8x16 in f16, subgroups of 32",
        traits->name);
  if (options->statistics && !traits->statistics)
    return dflash_error_set(
        error, DFLASH_UNSUPPORTED,
        "vulkan: option statistics is on, and %s has no " VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME,
        traits->name);
  DflashStatus status = check_bindings(desc->geometry, options, traits, error);
  if (!status) status = check_groups(desc->geometry, options, traits, error);
  if (!status) status = check_memory(desc, options, traits, error);
  return status;
}
