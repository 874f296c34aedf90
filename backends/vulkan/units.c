#include "units.h"

#include <string.h>

enum {
  LANES = 32,
  TILE_ROWS = 16,
  X_ROWS = 8,
  GROUP_COLS = 32,
  EXACT_PARTS = 3,
  FRAGMENT_BYTES = 512, /* of a subgroup: 16 a thread */
  MANY_X_TILES = 2,     /* that a workgroup takes of more than X_ROWS rows */
  PREPARE_GROUPS = 16,  /* of columns, a workgroup */
  ROUND_STEPS = 2,
  MOST_SPLITS = 32,
  SPLIT_ROWS = 32 /* of x, that splits are chosen for at most: more of them are workgroups enough */
};

/* How products are cut: the first line that a matrix fits. Pieces, shares and splits change the order of sums: they
 * follow from the matrix and the profile alone. */
static const struct Cut {
  int32_t storage;
  uint32_t parts;
  int64_t rows, most_cols; /* of the matrix: at least, at most */
  uint32_t threads, tiles, x_way, pieces, rung_step, shares;
  int64_t wanted, cols; /* workgroups that keep a large device busy; columns that are worth one at least */
} CUTS[] = {{DFLASH_STORAGE_Q4TP, 3, 8192, INT64_MAX, 32, 2, VULKAN_X_CACHE, 1, 1, 8, 1, 680},
            {DFLASH_STORAGE_Q4TP, 3, 0, 8192, 32, 1, VULKAN_X_CACHE, 2, 1, 10, 1, 680},
            {DFLASH_STORAGE_Q4TP, 3, 0, INT64_MAX, 64, 2, VULKAN_X_AHEAD, 2, 1, 1, 528, 680},
            {DFLASH_STORAGE_Q4TP, 1, 8192, INT64_MAX, 32, 2, VULKAN_X_CACHE, 2, 1, 1, 1, 680},
            {DFLASH_STORAGE_Q4TP, 1, 0, 8192, 32, 1, VULKAN_X_CACHE, 2, 1, 10, 1, 680},
            {DFLASH_STORAGE_Q4TP, 1, 0, INT64_MAX, 32, 2, VULKAN_X_CACHE, 2, 1, 1, 1000, 680},
            {DFLASH_STORAGE_Q8_2F, 3, 8192, INT64_MAX, 256, 2, VULKAN_X_SHARED, 2, 1, 1, 528, 512},
            {DFLASH_STORAGE_Q8_2F, 3, 0, INT64_MAX, 128, 1, VULKAN_X_SHARED, 4, 1, 1, 528, 512},
            {DFLASH_STORAGE_Q8_2F, 1, 0, INT64_MAX, 128, 1, VULKAN_X_SHARED, 4, 1, 1, 528, 512},
            {DFLASH_STORAGE_F16, 3, 0, INT64_MAX, 128, 1, VULKAN_X_CACHE, 2, 1, 1, 528, 512},
            {DFLASH_STORAGE_F16, 1, 0, INT64_MAX, 128, 1, VULKAN_X_CACHE, 2, 1, 1, 528, 512}};

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int vulkan_units_kernel(const DflashModel *model, const VulkanMatrix *matrix) {
  const bool at = model->device.traits.addresses;
  if (matrix->storage == DFLASH_STORAGE_F16) return at ? VULKAN_KERNEL_UNITS_F16_AT : VULKAN_KERNEL_UNITS_F16;
  if (matrix->storage == DFLASH_STORAGE_Q8_2F) return at ? VULKAN_KERNEL_UNITS_Q8_AT : VULKAN_KERNEL_UNITS_Q8;
  return at ? VULKAN_KERNEL_UNITS_Q4_AT : VULKAN_KERNEL_UNITS_Q4;
}

bool vulkan_units_integers(const DflashModel *model, int32_t storage) {
  return model->profile == DFLASH_PROFILE_I8 && storage == DFLASH_STORAGE_Q4TP;
}

uint32_t vulkan_units_parts(const DflashModel *model, int32_t storage) {
  return model->profile == DFLASH_PROFILE_F16 || vulkan_units_integers(model, storage) ? 1 : EXACT_PARTS;
}

/* NULL: of another storage. */
static const struct Cut *cut_of(const DflashModel *model, const VulkanMatrix *matrix) {
  const uint32_t parts = vulkan_units_parts(model, matrix->storage);
  for (size_t i = 0; i < sizeof CUTS / sizeof *CUTS; i++) {
    const struct Cut *cut = &CUTS[i];
    if (cut->storage == matrix->storage && cut->parts == parts && cut->rows <= matrix->rows &&
        cut->most_cols >= matrix->cols)
      return cut;
  }
  return NULL;
}

static VulkanUnitsTile tile_with(const struct Cut *cut, int64_t rows, uint32_t shares) {
  return (VulkanUnitsTile){.threads = cut->threads * shares,
                           .x_tiles = rows <= X_ROWS ? 1 : MANY_X_TILES,
                           .tiles = cut->tiles,
                           .x_way = cut->x_way,
                           .parts = cut->parts,
                           .pieces = cut->pieces,
                           .rung_step = cut->rung_step,
                           .shares = shares,
                           .plain = cut->storage == DFLASH_STORAGE_Q4TP && cut->parts == 1};
}

static bool fits(const VulkanTraits *traits, const VulkanUnitsTile *tile, int32_t storage) {
  return tile->threads <= traits->max_threads && vulkan_units_shared(tile, storage) <= traits->shared_bytes;
}

/* Subgroups that share rows: as many as are wanted at most, that divide the rounds of the columns, and for which the
 * device has room whatever the rows of x. */
static uint32_t shares_of(const VulkanTraits *traits, const struct Cut *cut, int64_t pieces) {
  const int64_t rounds = pieces / cut->pieces / ROUND_STEPS;
  uint32_t shares = cut->shares;
  for (; shares > 1; shares--) {
    const VulkanUnitsTile tile = tile_with(cut, MANY_X_TILES * X_ROWS, shares);
    if (rounds % shares == 0 && fits(traits, &tile, cut->storage)) break;
  }
  return shares;
}

VulkanUnitsTile vulkan_units_tile(const DflashModel *model, const VulkanMatrix *matrix, int64_t rows) {
  const struct Cut *cut = cut_of(model, matrix);
  return tile_with(cut, rows, shares_of(&model->device.traits, cut, matrix->pieces));
}

void vulkan_units_constants(const VulkanUnitsTile *tile, uint32_t constants[VULKAN_UNITS_CONSTANTS]) {
  const uint32_t values[VULKAN_UNITS_CONSTANTS] = {tile->threads, tile->x_tiles,   tile->tiles,
                                                   tile->x_way,   tile->parts,     tile->pieces,
                                                   tile->plain,   tile->rung_step, tile->shares};
  memcpy(constants, values, sizeof values);
}

uint32_t vulkan_units_group_rows(const VulkanUnitsTile *tile) {
  return TILE_ROWS * tile->tiles * (tile->threads / LANES / tile->shares);
}

/* The arrays of units.comp. */
uint64_t vulkan_units_shared(const VulkanUnitsTile *tile, int32_t storage) {
  enum { RUNGS = 32, SPARE_ROWS = 4, WORD = 4 };
  const uint64_t groups = (uint64_t)tile->pieces * (uint64_t)vulkan_units_piece(storage) / GROUP_COLS;
  const uint64_t x_groups = 2 * tile->x_tiles * groups;
  const uint64_t rows = TILE_ROWS * tile->tiles + SPARE_ROWS, bands = tile->threads / LANES / tile->shares;
  const uint64_t left = (tile->shares - 1) * bands * tile->tiles * tile->x_tiles * FRAGMENT_BYTES; /* sums */
  uint64_t bytes = WORD + (tile->shares > 1 ? left : 4 * WORD); /* is_last, and what shares leave */
  bytes += tile->x_way == VULKAN_X_SHARED ? x_groups * (tile->parts * FRAGMENT_BYTES + X_ROWS * WORD)
                                          : 4 * WORD + 2 * WORD; /* x, or one word and factor of it */
  if (storage == DFLASH_STORAGE_Q4TP) bytes += RUNGS / tile->rung_step * WORD * rows * bands;
  return bytes;
}

bool vulkan_units_take(const DflashModel *model, int32_t storage) {
  const VulkanTraits *traits = &model->device.traits;
  const uint32_t parts = vulkan_units_parts(model, storage);
  bool known = false;
  if (!model->options.units || !model->units_fit || !(traits->coop_f16 & X_ROWS)) return false;
  for (size_t i = 0; i < sizeof CUTS / sizeof *CUTS; i++) {
    if (CUTS[i].storage != storage || CUTS[i].parts != parts) continue;
    const VulkanUnitsTile tile = tile_with(&CUTS[i], MANY_X_TILES * X_ROWS, 1);
    known = true;
    if (!fits(traits, &tile, storage)) return false;
  }
  return known;
}

/* ---- sizes ---- */

/* Tiles of 8 rows of x, a multiple of what a workgroup takes. */
static int64_t x_tiles_of(int64_t rows) {
  return rows <= X_ROWS ? 1 : ceil_div(rows, MANY_X_TILES * X_ROWS) * MANY_X_TILES;
}

/* Of x, whatever the storage of the matrix: those of q4tp are the most. */
static int64_t groups_of(const VulkanMatrix *matrix) { return vulkan_units_groups(DFLASH_STORAGE_Q4TP, matrix->cols); }

static int64_t steps_of(const VulkanUnitsTile *tile, const VulkanMatrix *matrix) {
  return matrix->pieces / tile->pieces;
}

/* Workgroups for the rows of a matrix, or of a part. */
static int64_t bands_of(const VulkanUnitsTile *tile, int64_t out_rows) {
  return ceil_div(out_rows, vulkan_units_group_rows(tile));
}

/* Whole rounds: the steps of a matrix are, too. */
static int64_t split_steps(const VulkanUnitsTile *tile, const VulkanMatrix *matrix, int64_t splits) {
  return ceil_div(steps_of(tile, matrix), splits * ROUND_STEPS) * ROUND_STEPS;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static uint64_t found_bytes(const VulkanMatrix *matrix, int64_t splits, int64_t rows) {
  return splits > 1 ? (uint64_t)(vulkan_units_tiles(matrix->rows) * splits * x_tiles_of(rows)) * FRAGMENT_BYTES : 0;
}

/* No more than a binding shows the sums of. */
uint32_t vulkan_units_splits(const DflashModel *model, const VulkanMatrix *matrix, int64_t most_rows) {
  const VulkanTraits *traits = &model->device.traits;
  const int64_t rows = smaller(most_rows, SPLIT_ROWS);
  const struct Cut *cut = cut_of(model, matrix);
  const VulkanUnitsTile tile = vulkan_units_tile(model, matrix, rows);
  const int64_t groups = bands_of(&tile, matrix->rows) * (x_tiles_of(rows) / tile.x_tiles);
  int64_t splits = smaller(cut->wanted / groups, matrix->cols / cut->cols);
  splits = smaller(splits, smaller(MOST_SPLITS, traits->max_groups[2]));
  while (splits > 1 && found_bytes(matrix, splits, most_rows) > traits->max_binding) splits--;
  return splits < 1 ? 1 : (uint32_t)ceil_div(steps_of(&tile, matrix), split_steps(&tile, matrix, splits));
}

VulkanUnitsBytes vulkan_units_product_bytes(const DflashModel *model, const VulkanMatrix *matrix, int64_t most_rows) {
  const VulkanUnitsTile tile = vulkan_units_tile(model, matrix, most_rows);
  const uint64_t x_tiles = (uint64_t)x_tiles_of(most_rows), groups = (uint64_t)groups_of(matrix);
  const uint32_t splits = vulkan_units_splits(model, matrix, most_rows);
  const uint64_t bands = (uint64_t)bands_of(&tile, matrix->rows) + matrix->part_count; /* each part begins one */
  return (VulkanUnitsBytes){.words = x_tiles * groups * tile.parts * FRAGMENT_BYTES,
                            .factors = x_tiles * groups * X_ROWS * sizeof(float),
                            .found = found_bytes(matrix, splits, most_rows),
                            .arrivals = splits > 1 ? bands * x_tiles * sizeof(uint32_t) : 0};
}

/* ---- steps ---- */

/* A product under way. */
typedef struct Units {
  DflashModel *model;
  VulkanSteps *steps;
  const VulkanProduct *product;
  const VulkanUnitsTile *tile;
  int64_t x_tiles, splits, arrivals; /* workgroups of the parts before, of a split */
} Units;

static DflashStatus add_step(const Units *u, int kernel, const uint32_t *constants, uint32_t count,
                             VulkanDispatch dispatch, DflashError *error) {
  dispatch.stage = u->product->stage;
  dispatch.layer = u->product->layer;
  return vulkan_steps_kernel(u->model, u->steps, kernel, constants, count, &dispatch, error);
}

static DflashStatus prepare(const Units *u, DflashError *error) {
  const VulkanProduct *p = u->product;
  const VulkanMatrix *matrix = p->matrix;
  const PreparePush push = {.x_first = (uint32_t)p->x_first,
                            .x_stride = (uint32_t)p->x_stride,
                            .rows = (uint32_t)p->rows,
                            .cols = (uint32_t)matrix->cols,
                            .has_columns = matrix->storage == DFLASH_STORAGE_Q8_2F,
                            .groups = (uint32_t)groups_of(matrix)};
  const VulkanRange ranges[] = {p->x, matrix->columns, u->model->pairs, p->fragments, p->factors};
  const uint32_t constants[] = {u->tile->parts, vulkan_units_integers(u->model, matrix->storage)};
  return add_step(
      u, VULKAN_KERNEL_PREPARE, constants, 2,
      (VulkanDispatch){.ranges = ranges,
                       .push = &push,
                       .groups = {(uint32_t)ceil_div(push.groups, PREPARE_GROUPS), (uint32_t)(X_ROWS * u->x_tiles), 1}},
      error);
}

typedef struct Halves {
  uint32_t low, high;
} Halves;

static Halves address_of(const DflashModel *model, VulkanRange range) {
  const uint64_t address = vulkan_range_address(&model->device, range);
  return (Halves){(uint32_t)address, (uint32_t)(address >> 32)};
}

static void fill_addresses(const DflashModel *model, const VulkanPart *part, const VulkanProduct *p, UnitsPush *push) {
  const Halves weights = address_of(model, part->weights), codes = address_of(model, part->codes);
  const Halves x = address_of(model, p->fragments), factors = address_of(model, p->factors);
  push->weights_low = weights.low;
  push->weights_high = weights.high;
  push->codes_low = codes.low;
  push->codes_high = codes.high;
  push->x_low = x.low;
  push->x_high = x.high;
  push->factors_low = factors.low;
  push->factors_high = factors.high;
}

/* The first out_rows rows of a part. Where columns are not split, nothing is found, and no workgroup arrives. */
static DflashStatus multiply(const Units *u, const VulkanPart *part, int64_t out_rows, DflashError *error) {
  const VulkanProduct *p = u->product;
  const VulkanUnitsTile *tile = u->tile;
  const bool split = u->splits > 1, apart = split && p->apart;
  const VulkanRange y = apart ? p->found : p->y;
  UnitsPush push = {.rows = (uint32_t)p->rows,
                    .out_rows = (uint32_t)out_rows,
                    .out_first = (uint32_t)part->first,
                    .y_first = apart ? 0 : (uint32_t)p->y_first,
                    .y_stride = (uint32_t)(apart ? u->splits * p->out_rows : p->y_stride),
                    .tiles = (uint32_t)vulkan_units_tiles(out_rows),
                    .pieces = (uint32_t)p->matrix->pieces,
                    .steps = (uint32_t)steps_of(tile, p->matrix),
                    .groups = (uint32_t)groups_of(p->matrix),
                    .x_tiles = (uint32_t)u->x_tiles,
                    .splits = (uint32_t)u->splits,
                    .split_steps = (uint32_t)split_steps(tile, p->matrix, u->splits),
                    .found_first = (uint32_t)(part->first / TILE_ROWS),
                    .arrival_first = (uint32_t)u->arrivals,
                    .split_stride = apart ? (uint32_t)p->out_rows : 0};
  const VulkanRange ranges[] = {part->weights,
                                part->scales,
                                part->codes,
                                p->fragments,
                                p->factors,
                                y,
                                split && !apart ? p->found : y,
                                split && !apart ? p->arrivals : y,
                                u->model->masks};
  uint32_t constants[VULKAN_UNITS_CONSTANTS];
  vulkan_units_constants(tile, constants);
  fill_addresses(u->model, part, p, &push);
  return add_step(
      u, vulkan_units_kernel(u->model, p->matrix), constants, VULKAN_UNITS_CONSTANTS,
      (VulkanDispatch){.ranges = ranges,
                       .push = &push,
                       .groups = {(uint32_t)bands_of(tile, out_rows), push.x_tiles / tile->x_tiles, push.splits}},
      error);
}

DflashStatus vulkan_steps_units_cut(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                    const VulkanUnitsTile *tile, uint32_t splits, DflashError *error) {
  Units u = {model, steps, product, tile, x_tiles_of(product->rows), splits, 0};
  DflashStatus status = product->prepared ? DFLASH_OK : prepare(&u, error);
  for (uint32_t i = 0; i < product->matrix->part_count && !status; i++) {
    const VulkanPart *part = &product->matrix->parts[i];
    const int64_t left = product->out_rows - part->first;
    if (left <= 0) break;
    const int64_t out_rows = left < part->rows ? left : part->rows;
    status = multiply(&u, part, out_rows, error);
    u.arrivals += bands_of(tile, out_rows) * (u.x_tiles / tile->x_tiles);
  }
  return status;
}

DflashStatus vulkan_steps_units_product(DflashModel *model, VulkanSteps *steps, const VulkanProduct *product,
                                        DflashError *error) {
  const VulkanUnitsTile tile = vulkan_units_tile(model, product->matrix, product->rows);
  const uint32_t splits = vulkan_units_splits(model, product->matrix, product->most_rows);
  return vulkan_steps_units_cut(model, steps, product, &tile, splits, error);
}
