#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "measure.h"
#include "sequence.h"

enum { REPEATS = 5, CACHE_DEFAULT = 64 << 20, READ_LEAST = 256 << 20, PIECE = 1 << 20 };

static uint64_t last_level_cache(void) {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return (uint64_t)bytes;
#endif
  return CACHE_DEFAULT;
}

/* ---- streaming reads ---- */

typedef struct Reading {
  const DflashKernel *kernel;
  const unsigned char *data;
  uint64_t sums[1024]; /* of each worker: results, so that no read can be left out */
} Reading;

static void read_pieces(void *context, int64_t begin, int64_t end, int worker) {
  Reading *reading = context;
  reading->sums[worker] ^= reading->kernel->read(reading->data + begin * PIECE, (end - begin) * PIECE);
}

/* Four times the last-level cache, filled with the numbers 0 .. n - 1, whose exclusive or is 0 (n is a multiple of 4).
 */
static DflashStatus open_buffer(DflashModel *model, DflashError *error) {
  uint64_t bytes = 4 * last_level_cache();
  if (model->buffer.data) return DFLASH_OK;
  if (bytes < READ_LEAST) bytes = READ_LEAST;
  bytes = (bytes + PIECE - 1) / PIECE * PIECE;
  if (!dflash_pages_open(&model->buffer, bytes))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for a buffer of four caches");
  uint64_t *words = model->buffer.data;
  for (uint64_t i = 0; i < bytes / sizeof *words; i++) words[i] = i;
  return DFLASH_OK;
}

/* Time in nanoseconds; what was read is checked. */
static DflashStatus read_buffer(DflashModel *model, uint64_t *ns, DflashError *error) {
  DflashStatus status = open_buffer(model, error);
  if (status) return status;
  Reading reading = {.kernel = model->options.kernel, .data = model->buffer.data};
  const uint64_t begin = dflash_now_ns();
  dflash_pool_run(model->pool, (int64_t)(model->buffer.bytes / PIECE), 1, read_pieces, &reading);
  const uint64_t end = dflash_now_ns();
  uint64_t sum = 0;
  for (int i = 0; i < model->options.threads; i++) sum ^= reading.sums[i];
  if (sum) return dflash_error_set(error, DFLASH_INTERNAL, "blas: a streaming read gave wrong values");
  *ns = end > begin ? end - begin : 1;
  return DFLASH_OK;
}

DflashStatus dflash_measure_read(DflashModel *model, double *bytes_per_second, DflashError *error) {
  uint64_t best = UINT64_MAX, ns = 0;
  for (int i = 0; i < 2 * REPEATS; i++) {
    DflashStatus status = read_buffer(model, &ns, error);
    if (status) return status;
    if (ns < best) best = ns;
  }
  *bytes_per_second = (double)model->buffer.bytes * 1e9 / (double)best;
  return DFLASH_OK;
}

DflashStatus dflash_evict_caches(DflashModel *model, DflashError *error) {
  uint64_t ns;
  return read_buffer(model, &ns, error);
}

/* ---- the library ---- */

/* Runs with as many threads as a block uses, then gives the cores back to the pool. */
static uint64_t time_sgemm(const DflashModel *model, int64_t rows, int64_t outputs, int64_t columns, const float *x,
                           const float *weights, float *out) {
  uint64_t best = UINT64_MAX;
  openblas_set_num_threads(model->options.threads);
  for (int i = 0; i < REPEATS; i++) {
    const uint64_t begin = dflash_now_ns();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)outputs, (blasint)columns, 1, x,
                (blasint)columns, weights, (blasint)columns, 0, out, (blasint)outputs);
    const uint64_t ns = dflash_now_ns() - begin;
    if (ns < best) best = ns;
  }
  openblas_set_num_threads(1);
  return best;
}

static void fill_numbers(float *data, int64_t count) {
  for (int64_t i = 0; i < count; i++) data[i] = (float)(i * 37 % 101 - 50) * 0.02f;
}

DflashStatus dflash_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error) {
  enum { SIZE = 2048 };
  DflashPages pages;
  if (!dflash_pages_open(&pages, (uint64_t)3 * SIZE * SIZE * sizeof(float)))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for a matrix product");
  float *data = pages.data;
  fill_numbers(data, (int64_t)2 * SIZE * SIZE);
  const uint64_t ns = time_sgemm(model, SIZE, SIZE, SIZE, data, data + SIZE * SIZE, data + 2 * SIZE * SIZE);
  *operations_per_second = 2.0 * SIZE * SIZE * SIZE * 1e9 / (double)(ns > 0 ? ns : 1);
  dflash_pages_close(&pages);
  return DFLASH_OK;
}

/* The matrix is decoded and timed in slabs of rows, each one plain call: an f32 copy of a whole head need not fit
 * beside the model, and a slab is far above every cache. */
static int64_t slab_rows(const DflashMatrix *matrix) {
  const int64_t rows = ((int64_t)512 << 20) / (matrix->cols * (int64_t)sizeof(float)) / PANEL * PANEL;
  if (rows < PANEL) return PANEL;
  return rows < matrix->rows ? rows : matrix->rows;
}

static uint64_t time_slabs(DflashModel *model, const DflashWorkspace *workspace, const DflashMatrix *matrix,
                           int64_t rows, float *data) {
  const DflashProduct product = {model->options.kernel, model->pool, workspace};
  const int64_t slab = slab_rows(matrix);
  float *x = data + slab * matrix->cols, *out = x + rows * matrix->cols;
  uint64_t total = 0;
  fill_numbers(x, rows * matrix->cols);
  for (int64_t begin = 0; begin < matrix->rows; begin += slab) {
    const int64_t count = begin + slab < matrix->rows ? slab : matrix->rows - begin;
    dflash_matrix_values(&product, matrix, begin, begin + count, data);
    total += time_sgemm(model, rows, count, matrix->cols, x, data, out);
  }
  return total;
}

DflashStatus dflash_library_time(DflashModel *model, int32_t stage, int64_t layer, int64_t rows, uint64_t *ns,
                                 DflashError *error) {
  const DflashMatrix *matrix = NULL;
  if (stage >= 0 && stage < DFLASH_STAGE_COUNT && layer >= 0 && layer < model->geometry.layers)
    matrix = dflash_model_matrix(model, stage, layer);
  if (!matrix || !matrix->pages.data)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "blas: stage %d is no matrix product", (int)stage);
  if (rows < 1 || rows > INT32_MAX / 2 || matrix->cols > INT32_MAX / 2 || matrix->rows > INT32_MAX / 2)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: library_time: %lld rows do not fit the library",
                            (long long)rows);
  const uint64_t floats = (uint64_t)(slab_rows(matrix) * matrix->cols) + (uint64_t)(rows * matrix->cols) +
                          (uint64_t)(rows * slab_rows(matrix));
  DflashWorkspace workspace = {0};
  DflashPages pages = {0};
  DflashStatus status = DFLASH_OK;
  if (dflash_workspace_open(&workspace, model->options.threads, model->geometry.head_dim) &&
      dflash_pages_open(&pages, floats * sizeof(float)))
    *ns = time_slabs(model, &workspace, matrix, rows, pages.data);
  else
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: library_time: no memory for the matrix as f32");
  dflash_pages_close(&pages);
  dflash_workspace_close(&workspace);
  return status;
}
