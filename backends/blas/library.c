/* Matrix products: the vendor library's, on the matrices held here, and the rate that this host reaches. */
#include <cblas.h>

#include "base/error.h"
#include "measure.h"
#include "sequence.h"

enum { REPEATS = 5 };

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

static uint64_t time_panels(DflashModel *model, const DflashWorkspace *workspace, const DflashMatrix *matrix,
                            const float *x, float *out) {
  const DflashProduct product = {model->options.kernel, model->pool, workspace};
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < REPEATS; i++) {
    const uint64_t begin = dflash_now_ns();
    dflash_matrix_multiply(&product, matrix, x, matrix->cols, matrix->rows, out);
    const uint64_t ns = dflash_now_ns() - begin;
    if (ns < best) best = ns;
  }
  return best;
}

/* The better of the library and of the kernel that a block runs: a rate that a stage cannot be above. */
static DflashStatus time_square(DflashModel *model, int64_t size, float *data, uint64_t *ns, DflashError *error) {
  float *x = data, *weights = data + size * size, *out = data + 2 * size * size;
  const DflashTensor tensor = {.storage = DFLASH_STORAGE_F32, .rank = 2, .shape = {size, size}, .data = weights};
  DflashMatrix matrix;
  DflashWorkspace workspace;
  fill_numbers(data, 2 * size * size);
  *ns = time_sgemm(model, size, size, size, x, weights, out);
  DflashStatus status = dflash_matrix_open(&matrix, &tensor, size, size, FORM_F32, model->pool, error);
  if (dflash_workspace_open(&workspace, model->options.threads, model->geometry.head_dim) &&
      dflash_workspace_reserve_product(&workspace, size, size)) {
    const uint64_t panels = status ? UINT64_MAX : time_panels(model, &workspace, &matrix, x, out);
    if (panels < *ns) *ns = panels;
  } else if (!status) {
    status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for a matrix product");
  }
  dflash_workspace_close(&workspace);
  dflash_matrix_close(&matrix);
  return status;
}

DflashStatus dflash_measure_matrix(DflashModel *model, double *operations_per_second, DflashError *error) {
  enum { SIZE = 2048 };
  DflashPages pages;
  uint64_t ns;
  if (!dflash_pages_open(&pages, (uint64_t)3 * SIZE * SIZE * sizeof(float)))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for a matrix product");
  DflashStatus status = time_square(model, SIZE, pages.data, &ns, error);
  if (!status) *operations_per_second = 2.0 * SIZE * SIZE * SIZE * 1e9 / (double)(ns > 0 ? ns : 1);
  dflash_pages_close(&pages);
  return status;
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
