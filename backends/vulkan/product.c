/* Products of a matrix with rows of activations: which kernel, how its work is cut, and what the profile needs before.
 */
#include "product.h"

#include <stdio.h>

#include "units.h"

enum {
  TEAMS = 8,
  FEW_ROWS = 8,
  MANY_ROWS = 16,
  MAX_WEIGHT_ROWS = 4,
  MANY_PASS = 8,
  FEW_PASS = 4,
  ENOUGH_GROUPS = 256,
  QUANTISE_COLS = 4 * 32
};

static const struct StorageKernels {
  int32_t storage;
  int exact, half;
  const char *name;
} KERNELS[] = {{DFLASH_STORAGE_F32, VULKAN_KERNEL_MATRIX_F32, VULKAN_KERNEL_HALF_F32, "f32"},
               {DFLASH_STORAGE_F16, VULKAN_KERNEL_MATRIX_F16, VULKAN_KERNEL_HALF_F16, "f16"},
               {DFLASH_STORAGE_BF16, VULKAN_KERNEL_MATRIX_BF16, VULKAN_KERNEL_HALF_BF16, "bf16"},
               {DFLASH_STORAGE_Q8_2F, VULKAN_KERNEL_MATRIX_Q8, VULKAN_KERNEL_HALF_Q8, "q8_2f"},
               {DFLASH_STORAGE_Q4TP, VULKAN_KERNEL_MATRIX_Q4, VULKAN_KERNEL_HALF_Q4, "q4tp"}};

/* Matrices are made with one of these storages. */
static const struct StorageKernels *storage_kernels(const VulkanMatrix *matrix) {
  size_t i = 0;
  while (KERNELS[i].storage != matrix->storage) i++;
  return &KERNELS[i];
}

static bool takes_int8(const DflashModel *model, const VulkanMatrix *matrix) {
  return model->profile == DFLASH_PROFILE_I8 && matrix->storage == DFLASH_STORAGE_Q4TP;
}

static bool takes_half(const DflashModel *model) { return model->profile == DFLASH_PROFILE_F16; }

static bool has_dot(const DflashModel *model) { return model->options.dot && model->device.traits.integer_dot; }

static int choose_kernel(const DflashModel *model, const VulkanMatrix *matrix) {
  if (takes_int8(model, matrix)) return has_dot(model) ? VULKAN_KERNEL_MATRIX_I8_DOT : VULKAN_KERNEL_MATRIX_I8;
  return takes_half(model) ? storage_kernels(matrix)->half : storage_kernels(matrix)->exact;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Shared memory of the largest tile: of x or sums, ladders of scales, a word (shaders/product.glsl). With less than
 * that the smaller one takes 13444 bytes. */
enum { ROOMY_BYTES = 144 * MANY_PASS * 16 + TEAMS * MAX_WEIGHT_ROWS * 33 * 4 + 4 };

/* Rows of x that a workgroup takes, rows of the matrix that a team of its threads takes, rows of x in shared memory at
 * a time: as many as leave enough workgroups, because each reads all of its rows of x. None changes the order of a sum.
 */
static void choose_tile(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, uint32_t tile[3]) {
  const bool roomy = model->device.traits.shared_bytes >= ROOMY_BYTES;
  tile[0] = rows <= FEW_ROWS || (!roomy && takes_int8(model, matrix)) ? FEW_ROWS : MANY_ROWS;
  tile[1] = roomy ? MAX_WEIGHT_ROWS : MAX_WEIGHT_ROWS / 2;
  tile[2] = roomy ? MANY_PASS : FEW_PASS;
  while (tile[1] > 1 && ceil_div(matrix->rows, TEAMS * (int64_t)tile[1]) < ENOUGH_GROUPS) tile[1] /= 2;
}

/* Weights in fragments are for the matrix units alone. */
static bool on_units(const VulkanMatrix *matrix) { return matrix->pieces > 0; }

VulkanMade vulkan_product_makes(const DflashModel *model, const VulkanMatrix *matrix) {
  const bool units = on_units(matrix);
  if (takes_int8(model, matrix)) return (VulkanMade){VULKAN_MADE_INTEGERS, NULL};
  if (!units && !takes_half(model)) return (VulkanMade){VULKAN_MADE_NOTHING, NULL};
  return (VulkanMade){units ? VULKAN_MADE_PARTS : VULKAN_MADE_LARGEST,
                      matrix->storage == DFLASH_STORAGE_Q8_2F ? matrix : NULL};
}

bool vulkan_made_serves(const VulkanMade *made, const VulkanMade *wanted) {
  return wanted->what != VULKAN_MADE_NOTHING && made->what == wanted->what && made->field == wanted->field;
}

void vulkan_product_follow(const DflashModel *model, VulkanProduct *p, VulkanMade *made) {
  const VulkanMade wanted = vulkan_product_makes(model, p->matrix);
  p->prepared = vulkan_made_serves(made, &wanted);
  if (wanted.what != VULKAN_MADE_NOTHING) *made = wanted;
}

static void units_path(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, char *path, size_t size) {
  const VulkanUnitsTile tile = vulkan_units_tile(model, matrix, rows);
  char x[32] = "int8 in f16";
  if (!vulkan_units_integers(model, matrix->storage))
    snprintf(x, sizeof x, "%u part%s of f16", tile.parts, tile.parts == 1 ? "" : "s");
  snprintf(path, size, "matrix units, %u rows, %s, %s", vulkan_units_group_rows(&tile), x,
           storage_kernels(matrix)->name);
}

void vulkan_product_path(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, char *path, size_t size) {
  uint32_t tile[3];
  if (on_units(matrix)) {
    units_path(model, matrix, rows, path, size);
    return;
  }
  choose_tile(model, matrix, rows, tile);
  const char *arithmetic = "f32";
  if (takes_int8(model, matrix)) arithmetic = has_dot(model) ? "packed int8 dots" : "int8";
  if (takes_half(model)) arithmetic = "x in f16, f32";
  snprintf(path, size, "tile %ux%u %s, %s", tile[0], TEAMS * tile[1], storage_kernels(matrix)->name, arithmetic);
}

int vulkan_product_kernel(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows,
                          uint32_t constants[VULKAN_MAX_CONSTANTS], uint32_t *count) {
  if (on_units(matrix)) {
    const VulkanUnitsTile tile = vulkan_units_tile(model, matrix, rows);
    vulkan_units_constants(&tile, constants);
    *count = VULKAN_UNITS_CONSTANTS;
    return vulkan_units_kernel(model, matrix);
  }
  choose_tile(model, matrix, rows, constants);
  *count = 3;
  return choose_kernel(model, matrix);
}

/* x in int8, into words and scales. */
static DflashStatus quantise(DflashModel *model, VulkanSteps *steps, const VulkanProduct *p, DflashError *error) {
  const QuantisePush push = {(uint32_t)p->rows, (uint32_t)p->matrix->cols, (uint32_t)p->x_first, (uint32_t)p->x_stride};
  VulkanDispatch dispatch = {.ranges = (const VulkanRange[]){p->x, p->words, p->scales},
                             .push = &push,
                             .groups = {(uint32_t)ceil_div(p->matrix->cols, QUANTISE_COLS), push.rows, 1},
                             .stage = p->stage,
                             .layer = p->layer};
  return vulkan_steps_kernel(model, steps, VULKAN_KERNEL_QUANTISE, NULL, 0, &dispatch, error);
}

/* The largest magnitude of each row, into largest. */
static DflashStatus find_largest(DflashModel *model, VulkanSteps *steps, const VulkanProduct *p, DflashError *error) {
  const LargestPush push = {(uint32_t)p->matrix->cols, (uint32_t)p->x_first, (uint32_t)p->x_stride,
                            p->matrix->storage == DFLASH_STORAGE_Q8_2F};
  VulkanDispatch dispatch = {.ranges = (const VulkanRange[]){p->x, p->matrix->columns, p->largest},
                             .push = &push,
                             .groups = {(uint32_t)p->rows, 1, 1},
                             .stage = p->stage,
                             .layer = p->layer};
  return vulkan_steps_kernel(model, steps, VULKAN_KERNEL_LARGEST, NULL, 0, &dispatch, error);
}

static DflashStatus prepare(DflashModel *model, VulkanSteps *steps, const VulkanProduct *p, DflashError *error) {
  if (p->prepared) return DFLASH_OK;
  if (takes_int8(model, p->matrix)) return quantise(model, steps, p, error);
  return takes_half(model) ? find_largest(model, steps, p, error) : DFLASH_OK;
}

/* The first out_rows rows of a part. Quantised rows stand alone in words and scales, from row 0. */
static DflashStatus multiply(DflashModel *model, VulkanSteps *steps, const VulkanProduct *p, const VulkanPart *part,
                             int64_t out_rows, DflashError *error) {
  const VulkanMatrix *matrix = p->matrix;
  const bool int8 = takes_int8(model, matrix);
  uint32_t tile[3];
  choose_tile(model, matrix, p->rows, tile);
  const MatrixPush push = {.rows = (uint32_t)p->rows,
                           .cols = (uint32_t)matrix->cols,
                           .out_rows = (uint32_t)out_rows,
                           .out_first = (uint32_t)part->first,
                           .pitch = matrix->pitch,
                           .code_pitch = matrix->code_pitch,
                           .x_first = int8 ? 0 : (uint32_t)p->x_first,
                           .x_stride = int8 ? (uint32_t)matrix->cols : (uint32_t)p->x_stride,
                           .y_first = (uint32_t)p->y_first,
                           .y_stride = (uint32_t)p->y_stride};
  const VulkanRange ranges[] = {part->weights,
                                part->scales,
                                part->codes,
                                matrix->columns,
                                int8 ? p->words : p->x,
                                p->y,
                                int8 ? p->scales : p->largest};
  VulkanDispatch dispatch = {
      .ranges = ranges,
      .push = &push,
      .groups = {(uint32_t)ceil_div(out_rows, TEAMS * (int64_t)tile[1]), (uint32_t)ceil_div(p->rows, tile[0]), 1},
      .stage = p->stage,
      .layer = p->layer};
  return vulkan_steps_kernel(model, steps, choose_kernel(model, matrix), tile, 3, &dispatch, error);
}

DflashStatus vulkan_steps_product(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                  DflashError *error) {
  if (on_units(product->matrix)) return vulkan_steps_units_product(model, steps, product, error);
  DflashStatus status = prepare(model, steps, product, error);
  for (uint32_t i = 0; i < product->matrix->part_count && !status; i++) {
    const VulkanPart *part = &product->matrix->parts[i];
    const int64_t left = product->out_rows - part->first;
    if (left <= 0) break;
    status = multiply(model, steps, product, part, left < part->rows ? left : part->rows, error);
  }
  return status;
}
