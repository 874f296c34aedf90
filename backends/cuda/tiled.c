/* Products of a push's rows in tiles: kernels/tiled. */
#include "tiled.h"

#include <stdio.h>

#include "block.h"

/* Profile i8 has int8 activations for q4tp, and kernels of its own. */
static bool storage_fits(const DflashModel *model, const CudaMatrix *m) {
  if (m->cols % CUDA_GROUP != 0 || m->cols > INT32_MAX || m->rows > INT32_MAX - TILED_WEIGHTS) return false;
  if (m->storage == DFLASH_STORAGE_Q4TP) return model->profile != DFLASH_PROFILE_I8;
  return m->storage == DFLASH_STORAGE_Q8_2F;
}

bool cuda_tiled_takes(const DflashModel *model, const CudaMatrix *m, int64_t rows) {
  return model->tiled.tile_rows > 0 && rows >= TILED_LEAST && storage_fits(model, m);
}

static int32_t parts_of(const DflashModel *model) { return model->profile == DFLASH_PROFILE_F16 ? 1 : 3; }

/* ---- what the device and the matrices need ---- */

/* The most rows of a tile for which the ring fits; 0: none. */
static int32_t choose_rows(const DflashModel *model) {
  for (int32_t rows = TILED_ROWS; rows >= TILED_SHARE; rows /= 2)
    if (tiled_shared_bytes(parts_of(model), 0, rows) <= (int64_t)model->device.traits.shared_bytes) return rows;
  return 0;
}

static DflashStatus allow_shared(DflashModel *model, DflashError *error) {
  const bool f16 = parts_of(model) == 1;
  const int kernels[2] = {f16 ? CUDA_KERNEL_tiled_q8_f16 : CUDA_KERNEL_tiled_q8,
                          f16 ? CUDA_KERNEL_tiled_q4_f16 : CUDA_KERNEL_tiled_q4};
  DflashStatus status = DFLASH_OK;
  for (int q4 = 0; !status && q4 < 2; q4++)
    status = CUDA_CALL(&model->device, "the shared memory of tiled products", error, function_set,
                       model->device.kernels[kernels[q4]], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       tiled_shared_bytes(parts_of(model), q4, model->tiled.tile_rows));
  return status;
}

/* Matrix i of a push: fc, and of each layer k and v; where the address of its scales stands. */
static const CudaMatrix *matrix_at(DflashModel *model, int64_t i, CudaAddress **scales) {
  *scales = &model->tiled.fc_scales;
  if (i == 0) return &model->fc;
  CudaLayer *layer = &model->layers[(i - 1) / 2];
  *scales = i % 2 == 1 ? &layer->k_scales : &layer->v_scales;
  return i % 2 == 1 ? &layer->k : &layer->v;
}

static int64_t matrix_count(const DflashModel *model) { return 1 + 2 * model->geometry.layers; }

static int64_t padded_rows(const CudaMatrix *m) {
  return (int64_t)tiled_weight_tiles((int32_t)m->rows) * TILED_WEIGHTS;
}

/* Places the scales of all matrices from `base` on; returns their bytes. */
static uint64_t place_scales(DflashModel *model, CudaAddress base) {
  CudaAddress *scales;
  uint64_t total = 0;
  for (int64_t i = 0; i < matrix_count(model); i++) {
    const CudaMatrix *m = matrix_at(model, i, &scales);
    if (m->storage == DFLASH_STORAGE_Q4TP && storage_fits(model, m))
      *scales =
          base +
          cuda_place(&total, (uint64_t)(padded_rows(m) * tiled_steps((int32_t)(m->cols / CUDA_GROUP)) * TILED_GROUPS) *
                                 sizeof(float));
  }
  return total;
}

static DflashStatus make_scales(DflashModel *model, DflashError *error) {
  CudaAddress *scales;
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; !status && i < matrix_count(model); i++) {
    const CudaMatrix *m = matrix_at(model, i, &scales);
    if (*scales == 0) continue;
    const TiledScalesArgs a = {*m, *scales};
    status = cuda_launch(&model->device, CUDA_KERNEL_tiled_scales,
                         (CudaGrid){cuda_groups(padded_rows(m), CUDA_WARPS), 1, 1, 0}, &a, error);
  }
  return status ? status : cuda_wait(&model->device, "the scales of tiled products", error);
}

DflashStatus cuda_tiled_open(DflashModel *model, DflashError *error) {
  CudaTiled *tiled = &model->tiled;
  if (model->options.path == CUDA_PATH_PLAIN) {
    snprintf(tiled->why, sizeof tiled->why, "path is plain");
    return DFLASH_OK;
  }
  tiled->tile_rows = choose_rows(model);
  if (tiled->tile_rows == 0) {
    snprintf(tiled->why, sizeof tiled->why, "a block has too little shared memory");
    return DFLASH_OK;
  }
  DflashStatus status = allow_shared(model, error);
  const uint64_t bytes = place_scales(model, 0);
  if (status || bytes == 0) return status;
  status = cuda_buffer_open(&model->device, bytes, "the scales of tiled products", &tiled->scales, error);
  if (status) return status;
  (void)place_scales(model, tiled->scales.at);
  return make_scales(model, error);
}

/* ---- a call ---- */

static int32_t tiles_of(const DflashModel *model, const CudaMatrix *m, int count, int64_t rows) {
  return count * tiled_weight_tiles((int32_t)m->rows) * tiled_row_tiles((int32_t)rows, model->tiled.tile_rows);
}

static TiledSplit split_of(const DflashModel *model, const CudaMatrix *m, int count, int64_t rows) {
  return tiled_split(tiles_of(model, m, count, rows), tiled_steps((int32_t)(m->cols / CUDA_GROUP)),
                     model->device.traits.processors);
}

static uint64_t slot_bytes(const DflashModel *model, const CudaMatrix *m, int count, int64_t rows) {
  const TiledSplit split = split_of(model, m, count, rows);
  return (uint64_t)(tiled_slots(&split) * model->tiled.tile_rows * TILED_WEIGHTS) * sizeof(float);
}

uint64_t cuda_tiled_part_bytes(const DflashModel *model, int64_t rows, int64_t cols) {
  return model->tiled.tile_rows > 0 ? 2 * (uint64_t)(parts_of(model) * (rows + TILED_PAD) * (cols + CUDA_GROUP)) : 0;
}

/* Of all that one launch may have. */
uint64_t cuda_tiled_sum_bytes(const DflashModel *model, int64_t rows) {
  if (model->tiled.tile_rows == 0) return 0;
  uint64_t most = slot_bytes(model, &model->fc, 1, rows);
  for (int count = 1; count <= TILED_AT_ONCE && count < matrix_count(model); count++) {
    const uint64_t bytes = slot_bytes(model, &model->layers[0].k, count, rows);
    if (bytes > most) most = bytes;
  }
  return most;
}

/* Three parts, or one and its power of two; once for products that follow each other. */
static void split(CudaRun *run, const CudaMatrix *m, CudaAddress x) {
  const bool f16 = parts_of(run->model) == 1;
  const TiledPartsArgs a = {x,
                            m->storage == DFLASH_STORAGE_Q8_2F ? m->columns : 0,
                            run->block->tiled_parts,
                            run->block->tiled_exponents,
                            (int32_t)run->rows,
                            (int32_t)m->cols,
                            run->model->tiled.tile_rows};
  if (run->split == x && run->split_columns == a.columns) return;
  const uint32_t shares = f16 ? 1 : cuda_groups(a.cols / CUDA_LANE_COLUMNS, (int64_t)4 * CUDA_THREADS);
  cuda_run_launch(run, f16 ? CUDA_KERNEL_tiled_halves : CUDA_KERNEL_tiled_parts,
                  (CudaGrid){(uint32_t)tiled_round_up(a.rows, TILED_PAD), shares, 1, 0}, &a);
  run->split = x;
  run->split_columns = a.columns;
}

static void multiply(CudaRun *run, const CudaProduct *products, int count) {
  const DflashModel *model = run->model;
  const CudaMatrix *m = products->matrix;
  const bool f16 = parts_of(model) == 1, q4 = m->storage == DFLASH_STORAGE_Q4TP;
  const int exact_kernel = q4 ? CUDA_KERNEL_tiled_q4 : CUDA_KERNEL_tiled_q8;
  const int f16_kernel = q4 ? CUDA_KERNEL_tiled_q4_f16 : CUDA_KERNEL_tiled_q8_f16;
  const int32_t rows = model->tiled.tile_rows;
  TiledArgs a = {.parts = run->block->tiled_parts,
                 .sums = run->block->tiled_sums,
                 .exponents = f16 ? run->block->tiled_exponents : 0,
                 .rows = (int32_t)run->rows,
                 .tile_rows = rows,
                 .out_rows = (int32_t)m->rows,
                 .groups = (int32_t)(m->cols / CUDA_GROUP),
                 .storage = m->storage,
                 .split = split_of(model, m, count, run->rows)};
  for (int i = 0; i < count; i++) {
    const CudaMatrix *one = products[i].matrix;
    a.matrices[i] = (TiledMatrix){one->weights, q4 ? products[i].scales : one->scales, products[i].y};
  }
  const uint32_t blocks = (uint32_t)(a.split.splits * a.split.tiles + a.split.left);
  cuda_run_launch(run, f16 ? f16_kernel : exact_kernel,
                  (CudaGrid){blocks, 1, 1, (uint32_t)tiled_shared_bytes(parts_of(model), q4, rows)}, &a);
  cuda_run_launch(run, CUDA_KERNEL_tiled_sum,
                  (CudaGrid){(uint32_t)a.split.tiles, cuda_groups(rows, TILED_SUM_ROWS), 1, 0}, &a);
}

/* How many of the products, from the first on, are one launch: q4tp of one shape; q8_2f has columns of its own. */
static int alike(const CudaProduct *products, int count) {
  const CudaMatrix *first = products->matrix;
  int n = 1;
  if (first->storage != DFLASH_STORAGE_Q4TP) return 1;
  while (n < count && n < TILED_AT_ONCE && products[n].matrix->storage == first->storage &&
         products[n].matrix->rows == first->rows && products[n].matrix->cols == first->cols)
    n++;
  return n;
}

void cuda_run_products(CudaRun *run, const CudaProduct *products, int count, CudaAddress x) {
  for (int done = 0, n; done < count; done += n) {
    const CudaProduct *p = &products[done];
    n = 1;
    if (!cuda_tiled_takes(run->model, p->matrix, run->rows)) {
      cuda_run_product(run, p->matrix, x, p->y, run->rows, p->matrix->rows);
      continue;
    }
    n = alike(p, count - done);
    split(run, p->matrix, x);
    multiply(run, p, n);
  }
}
