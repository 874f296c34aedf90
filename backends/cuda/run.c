/* Single kernels of a run. */
#include "sequence.h"

void cuda_run_span(CudaRun *run, int32_t stage, int64_t layer) {
  if (!run->stamped) return;
  run->spans[run->span_count++] = (CudaSpan){stage, (int32_t)layer, run->stamp_count};
  run->stamp = run->block->stamps + run->stamp_count++ * sizeof(uint64_t);
}

CudaAddress cuda_run_stamp(CudaRun *run) {
  const CudaAddress stamp = run->stamp;
  run->stamp = 0;
  return stamp;
}

void cuda_run_launch(CudaRun *run, int kernel, CudaGrid grid, const void *arguments) {
  if (!run->status) run->status = cuda_launch(&run->model->device, kernel, grid, arguments, run->error);
}

/* ---- products ---- */

static int product_kernel(const DflashModel *model, const CudaMatrix *m, int64_t rows) {
  const bool few = rows <= CUDA_FEW_ROWS;
  if (m->storage == DFLASH_STORAGE_Q4TP && model->profile == DFLASH_PROFILE_I8)
    return few ? CUDA_KERNEL_product_i8_few : CUDA_KERNEL_product_i8_many;
  if (m->cols % CUDA_LANE_COLUMNS != 0) return CUDA_KERNEL_product_any;
  switch (m->storage) {
  case DFLASH_STORAGE_F32:
    return few ? CUDA_KERNEL_product_f32_few : CUDA_KERNEL_product_f32_many;
  case DFLASH_STORAGE_F16:
    return few ? CUDA_KERNEL_product_f16_few : CUDA_KERNEL_product_f16_many;
  case DFLASH_STORAGE_BF16:
    return few ? CUDA_KERNEL_product_bf16_few : CUDA_KERNEL_product_bf16_many;
  case DFLASH_STORAGE_Q8_2F:
    return few ? CUDA_KERNEL_product_q8_few : CUDA_KERNEL_product_q8_many;
  default:
    return few ? CUDA_KERNEL_product_q4_few : CUDA_KERNEL_product_q4_many;
  }
}

static void quantise(CudaRun *run, CudaAddress x, int64_t rows, int64_t cols) {
  const QuantiseArgs a = {cuda_run_stamp(run), x, run->block->words, run->block->steps, rows * (cols / CUDA_GROUP)};
  cuda_run_launch(run, CUDA_KERNEL_quantise, (CudaGrid){cuda_groups(a.groups, CUDA_THREADS), 1, 1, 0}, &a);
}

static void halve(CudaRun *run, CudaAddress x, int64_t rows, int64_t cols) {
  const HalveArgs a = {cuda_run_stamp(run), x, run->block->halves, run->block->exponents, cols};
  cuda_run_launch(run, CUDA_KERNEL_halve, (CudaGrid){(uint32_t)rows, 1, 1, 0}, &a);
}

/* What the profile makes of an activation is made once for all products of it that follow each other. */
static void prepare(CudaRun *run, const CudaMatrix *m, CudaAddress x, int64_t rows) {
  const int32_t profile = run->model->profile;
  const bool words = profile == DFLASH_PROFILE_I8 && m->storage == DFLASH_STORAGE_Q4TP;
  if (run->prepared == x || (!words && profile != DFLASH_PROFILE_F16)) return;
  if (words)
    quantise(run, x, rows, m->cols);
  else
    halve(run, x, rows, m->cols);
  run->prepared = x;
}

void cuda_run_product(CudaRun *run, const CudaMatrix *matrix, CudaAddress x, CudaAddress y, int64_t rows,
                      int64_t out_rows) {
  const bool halves = run->model->profile == DFLASH_PROFILE_F16;
  const int kernel = product_kernel(run->model, matrix, rows);
  const int64_t at_once = kernel == CUDA_KERNEL_product_any || rows <= CUDA_FEW_ROWS ? CUDA_FEW_ROWS : CUDA_MANY_ROWS;
  prepare(run, matrix, x, rows);
  const ProductArgs a = {.stamp = cuda_run_stamp(run),
                         .x = halves ? run->block->halves : x,
                         .y = y,
                         .words = run->block->words,
                         .steps = run->block->steps,
                         .exponents = halves ? run->block->exponents : 0,
                         .matrix = *matrix,
                         .rows = rows,
                         .out_rows = out_rows};
  const int64_t tiles = CUDA_TILE * (CUDA_WARPS / matrix->team);
  cuda_run_launch(run, kernel, (CudaGrid){cuda_groups(out_rows, tiles), cuda_groups(rows, at_once), 1, 0}, &a);
}

/* ---- rows ---- */

void cuda_run_norm(CudaRun *run, CudaAddress x, CudaAddress weight, CudaAddress y, int64_t rows) {
  const DflashGeometry *g = &run->model->geometry;
  const NormArgs a = {cuda_run_stamp(run), x, weight, y, g->hidden, (float)g->eps};
  run->prepared = 0;
  cuda_run_launch(run, CUDA_KERNEL_norm, (CudaGrid){(uint32_t)rows, 1, 1, 0}, &a);
}

void cuda_run_rotation(CudaRun *run, CudaAddress position, int64_t rows, CudaAddress table) {
  const RotationArgs a = {position, run->model->inv_freq, table, (int32_t)rows,
                          (int32_t)(run->model->geometry.head_dim / 2)};
  cuda_run_launch(run, CUDA_KERNEL_rotation, (CudaGrid){cuda_groups(rows * a.half, CUDA_THREADS), 1, 1, 0}, &a);
}

static HeadsArgs complete_heads(const CudaRun *run, const HeadsArgs *heads) {
  HeadsArgs a = *heads;
  a.head_dim = (int32_t)run->model->geometry.head_dim;
  a.eps = (float)run->model->geometry.eps;
  return a;
}

void cuda_run_heads(CudaRun *run, const HeadsArgs *heads) {
  HeadsArgs a = complete_heads(run, heads);
  a.stamp = cuda_run_stamp(run);
  cuda_run_launch(run, CUDA_KERNEL_heads, (CudaGrid){cuda_groups(a.rows * a.heads, CUDA_WARPS), 1, 1, 0}, &a);
}

void cuda_run_layers_heads(CudaRun *run, const HeadsArgs *heads, int count) {
  LayersHeadsArgs a = {0};
  for (int i = 0; i < count; i++) a.layers[i] = complete_heads(run, &heads[i]);
  cuda_run_launch(run, CUDA_KERNEL_layers_heads,
                  (CudaGrid){cuda_groups(heads->rows * heads->heads, CUDA_WARPS), (uint32_t)count, 1, 0}, &a);
}
