#include "coop.h"

#include <string.h>

#include "product.h"

/* A matrix's kernel, and the bits of a weight as it is stored. */
typedef struct Form {
  int kernel;
  uint32_t bits, direct; /* direct: as coop_direct of the model, for kernels that there are two of */
} Form;

enum {
  LANES = 32,
  TILE_ROWS = 16,
  FEW_ROWS = 8,
  MANY_ROWS = 16,
  ENOUGH_GROUPS = 264, /* workgroups that keep a large device busy */
  FEWEST_ROUNDS = 8,   /* of a workgroup: fewer do not pay for what its sums cost in memory */
  SUM_THREADS = 256,
  PARTS_THREADS = 256,
  EXACT_PARTS = 3
};

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static Form form_of(const DflashModel *model, const VulkanMatrix *matrix) {
  const bool direct = model->coop_direct;
  if (matrix->storage == DFLASH_STORAGE_F16) return (Form){VULKAN_KERNEL_COOP_F16, 16, false};
  if (matrix->storage == DFLASH_STORAGE_Q8_2F)
    return (Form){direct ? VULKAN_KERNEL_COOP_Q8_DIRECT : VULKAN_KERNEL_COOP_Q8, 8, direct};
  if (model->profile == DFLASH_PROFILE_I8) return (Form){VULKAN_KERNEL_COOP_I8, 4, false};
  return (Form){direct ? VULKAN_KERNEL_COOP_Q4_DIRECT : VULKAN_KERNEL_COOP_Q4, 4, direct};
}

int vulkan_coop_kernel(const DflashModel *model, const VulkanMatrix *matrix) { return form_of(model, matrix).kernel; }

static uint32_t rows_of_x(const DflashModel *model) { return model->geometry.block <= FEW_ROWS ? FEW_ROWS : MANY_ROWS; }

bool vulkan_coop_takes(const DflashModel *model, const VulkanMatrix *matrix) {
  const VulkanTraits *traits = &model->device.traits;
  if (matrix->storage != DFLASH_STORAGE_F16 && matrix->storage != DFLASH_STORAGE_Q8_2F &&
      matrix->storage != DFLASH_STORAGE_Q4TP)
    return false;
  const int kernel = vulkan_coop_kernel(model, matrix);
  const uint32_t widths = kernel == VULKAN_KERNEL_COOP_I8 ? traits->coop_i8 : traits->coop_f16;
  const VulkanCoopTile tile = vulkan_coop_tile(model, matrix);
  return (widths & tile.rows) != 0 && vulkan_coop_shared(&tile, kernel) <= traits->shared_bytes;
}

uint32_t vulkan_coop_group_rows(const VulkanCoopTile *tile) {
  return TILE_ROWS * tile->tiles * (tile->threads / LANES / tile->slices);
}

/* The arrays of coop.glsl, and of coop_i8.comp. */
uint64_t vulkan_coop_shared(const VulkanCoopTile *tile, int kernel) {
  const bool int8 = kernel == VULKAN_KERNEL_COOP_I8;
  const bool ladder = int8 || kernel == VULKAN_KERNEL_COOP_Q4 || kernel == VULKAN_KERNEL_COOP_Q4_DIRECT;
  const uint32_t units = tile->step / (int8 ? 16 : 8), groups = tile->step / 32;
  uint32_t pieces = units; /* of 16 bytes that a step takes of a row of the matrix */
  if (kernel == VULKAN_KERNEL_COOP_Q4_DIRECT) pieces = groups;
  if (kernel == VULKAN_KERNEL_COOP_Q8_DIRECT) pieces = tile->step / 16;
  const uint64_t subgroups = tile->threads / LANES, tiles = subgroups * tile->tiles;
  const uint64_t weights = TILE_ROWS * (pieces | 1), sums = 4 * tile->rows;
  uint64_t bytes = 16 * tiles * (weights > sums ? weights : sums);
  bytes += 16 * (uint64_t)tile->slices * tile->rows * ((tile->parts * units) | 1);
  if (ladder) bytes += 4 * (9 * (uint64_t)vulkan_coop_group_rows(tile) + TILE_ROWS * tiles * groups);
  if (int8) bytes += 4 * (uint64_t)tile->slices * groups * tile->rows;
  return bytes;
}

/* The more parts of x, the more rows of the matrix share what a workgroup reads of it; fewer, where shared memory is
 * short. */
VulkanCoopTile vulkan_coop_tile(const DflashModel *model, const VulkanMatrix *matrix) {
  const int kernel = vulkan_coop_kernel(model, matrix);
  const bool exact = model->profile != DFLASH_PROFILE_F16 && kernel != VULKAN_KERNEL_COOP_I8;
  const uint32_t subgroups = !exact ? 4 : form_of(model, matrix).direct ? 8 : 6;
  VulkanCoopTile tile = {.threads = subgroups * LANES,
                         .rows = rows_of_x(model),
                         .tiles = 2,
                         .slices = 1,
                         .step = 64,
                         .depth = matrix->storage == DFLASH_STORAGE_Q4TP ? 4 : 2,
                         .parts = exact ? EXACT_PARTS : 1};
  while (tile.threads > LANES && vulkan_coop_shared(&tile, kernel) > model->device.traits.shared_bytes)
    tile.threads -= LANES;
  return tile;
}

void vulkan_coop_constants(const VulkanCoopTile *tile, uint32_t constants[VULKAN_COOP_CONSTANTS]) {
  const uint32_t values[VULKAN_COOP_CONSTANTS] = {tile->threads, tile->rows,  tile->tiles, tile->slices,
                                                  tile->step,    tile->depth, tile->parts};
  memcpy(constants, values, sizeof values);
}

static int64_t rounds_of(const VulkanCoopTile *tile, const VulkanMatrix *matrix) {
  return ceil_div(matrix->cols, (int64_t)tile->step * tile->slices);
}

static int64_t rounds_of_split(const VulkanCoopTile *tile, const VulkanMatrix *matrix, uint32_t most) {
  const int64_t rounds = rounds_of(tile, matrix);
  int64_t splits = ceil_div(ENOUGH_GROUPS, ceil_div(matrix->rows, vulkan_coop_group_rows(tile)));
  if (splits > most) splits = most;
  const int64_t each = splits > 0 ? ceil_div(rounds, splits) : rounds;
  return each < FEWEST_ROUNDS ? FEWEST_ROUNDS : each;
}

uint32_t vulkan_coop_splits(const VulkanCoopTile *tile, const VulkanMatrix *matrix, uint32_t most) {
  return (uint32_t)ceil_div(rounds_of(tile, matrix), rounds_of_split(tile, matrix, most));
}

uint64_t vulkan_coop_parts_bytes(const VulkanMatrix *matrix, int64_t rows) {
  return (uint64_t)(rows * EXACT_PARTS * 2 * ceil_div(matrix->cols, 16)) * 16;
}

uint64_t vulkan_coop_found_bytes(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows, uint32_t most) {
  const VulkanCoopTile tile = vulkan_coop_tile(model, matrix);
  const uint32_t splits = vulkan_coop_splits(&tile, matrix, most);
  return splits == 1 ? 0 : (uint64_t)(splits * rows * matrix->rows) * 4;
}

/* A product under way. */
typedef struct Coop {
  DflashModel *model;
  VulkanSteps *steps;
  const VulkanProduct *product;
  Form form;
  VulkanCoopTile tile;
  uint32_t splits;
} Coop;

static DflashStatus add_step(const Coop *c, int kernel, const uint32_t *constants, uint32_t count,
                             VulkanDispatch dispatch, DflashError *error) {
  dispatch.stage = c->product->stage;
  dispatch.layer = c->product->layer;
  return vulkan_steps_kernel(c->model, c->steps, kernel, constants, count, &dispatch, error);
}

static DflashStatus make_parts(const Coop *c, DflashError *error) {
  const VulkanProduct *p = c->product;
  const VulkanMatrix *matrix = p->matrix;
  const PartsPush push = {(uint32_t)p->rows, (uint32_t)matrix->cols, (uint32_t)p->x_first, (uint32_t)p->x_stride,
                          matrix->storage == DFLASH_STORAGE_Q8_2F};
  DflashStatus status = DFLASH_OK;
  if (c->tile.parts == 1) status = vulkan_steps_largest(c->model, c->steps, p, error); /* of all rows of the call */
  if (status) return status;
  const VulkanRange ranges[] = {p->x, matrix->columns, p->largest, p->parts, p->factors};
  const uint32_t constants[] = {c->tile.parts, c->form.bits, c->form.direct};
  return add_step(c, VULKAN_KERNEL_PARTS, constants, 3,
                  (VulkanDispatch){.ranges = ranges,
                                   .push = &push,
                                   .groups = {(uint32_t)ceil_div(matrix->cols, 8 * PARTS_THREADS), push.rows, 1}},
                  error);
}

static DflashStatus prepare(const Coop *c, DflashError *error) {
  if (c->product->prepared) return DFLASH_OK;
  if (c->form.kernel != VULKAN_KERNEL_COOP_I8) return make_parts(c, error);
  return vulkan_steps_quantise(c->model, c->steps, c->product, error);
}

/* The first out_rows rows of a part: into y, or one split after the other into `found`. */
static DflashStatus multiply(const Coop *c, const VulkanPart *part, int64_t out_rows, DflashError *error) {
  const VulkanProduct *p = c->product;
  const VulkanCoopTile *tile = &c->tile;
  const bool split = c->splits > 1, int8 = c->form.kernel == VULKAN_KERNEL_COOP_I8;
  const CoopPush push = {.rows = (uint32_t)p->rows,
                         .cols = (uint32_t)p->matrix->cols,
                         .out_rows = (uint32_t)out_rows,
                         .out_first = (uint32_t)part->first,
                         .pitch = p->matrix->pitch,
                         .code_pitch = p->matrix->code_pitch,
                         .y_first = split ? 0 : (uint32_t)p->y_first,
                         .y_stride = (uint32_t)(split ? p->out_rows : p->y_stride),
                         .rounds = (uint32_t)rounds_of_split(tile, p->matrix, p->most_splits),
                         .split_stride = (uint32_t)(p->rows * p->out_rows)};
  const VulkanRange ranges[] = {
      part->weights,          part->scales, part->codes, int8 ? p->words : p->parts, int8 ? p->scales : p->factors,
      split ? p->found : p->y};
  uint32_t constants[VULKAN_COOP_CONSTANTS];
  vulkan_coop_constants(tile, constants);
  return add_step(c, c->form.kernel, constants, VULKAN_COOP_CONSTANTS,
                  (VulkanDispatch){.ranges = ranges,
                                   .push = &push,
                                   .groups = {(uint32_t)ceil_div(out_rows, vulkan_coop_group_rows(tile)),
                                              (uint32_t)ceil_div(p->rows, tile->rows), c->splits}},
                  error);
}

static DflashStatus sum_splits(const Coop *c, DflashError *error) {
  const VulkanProduct *p = c->product;
  if (c->splits == 1) return DFLASH_OK;
  const CoopSumPush push = {c->splits, (uint32_t)p->rows, (uint32_t)p->out_rows, (uint32_t)p->y_first,
                            (uint32_t)p->y_stride};
  const VulkanRange ranges[] = {p->found, p->y};
  return add_step(c, VULKAN_KERNEL_COOP_SUM, NULL, 0,
                  (VulkanDispatch){.ranges = ranges,
                                   .push = &push,
                                   .groups = {(uint32_t)ceil_div(p->out_rows, SUM_THREADS), push.rows, 1}},
                  error);
}

DflashStatus vulkan_steps_coop_product(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                       DflashError *error) {
  Coop c = {model, steps, product, form_of(model, product->matrix), vulkan_coop_tile(model, product->matrix), 0};
  c.splits = vulkan_coop_splits(&c.tile, product->matrix, product->most_splits);
  DflashStatus status = prepare(&c, error);
  for (uint32_t i = 0; i < product->matrix->part_count && !status; i++) {
    const VulkanPart *part = &product->matrix->parts[i];
    const int64_t left = product->out_rows - part->first;
    if (left <= 0) break;
    status = multiply(&c, part, left < part->rows ? left : part->rows, error);
  }
  return status ? status : sum_splits(&c, error);
}
