/* From the caller's storage to panels, one matrix row at a time; a panel of 16 rows stays in the second cache. */
#include "matrix.h"

#include <string.h>

#include "base/error.h"
#include "source.h"

typedef struct Packing {
  const DflashMatrix *matrix;
  const DflashTensor *tensor;
  float *scales;
} Packing;

static void pack_f32(const Packing *packing, int64_t row, unsigned char *panel, int lane) {
  enum { PIECE = 256 };
  const DflashMatrix *m = packing->matrix;
  float *out = (float *)panel, values[PIECE], rungs[Q4_RUNGS];
  if (packing->tensor->storage == DFLASH_STORAGE_Q4TP) {
    const DflashSourceQ4 source = dflash_source_q4(packing->tensor, m->rows, m->cols);
    dflash_source_q4_rungs(&source, row, rungs);
  }
  for (int64_t begin = 0; begin < m->cols; begin += PIECE) {
    const int64_t count = m->cols - begin < PIECE ? m->cols - begin : PIECE;
    dflash_source_values(packing->tensor, m->rows, m->cols, row, begin, count, rungs, values);
    for (int64_t k = 0; k < count; k++) out[(begin + k) * PANEL + lane] = values[k];
  }
}

static void pack_halves(const Packing *packing, int64_t row, unsigned char *panel, int lane) {
  const int64_t cols = packing->matrix->cols;
  const unsigned char *in = (const unsigned char *)packing->tensor->data + 2 * row * cols;
  for (int64_t k = 0; k < cols; k++) memcpy(panel + 2 * (k * PANEL + lane), in + 2 * k, 2);
}

static void pack_q8(const Packing *packing, int64_t row, unsigned char *panel, int lane) {
  const DflashMatrix *m = packing->matrix;
  const DflashSourceQ8 source = dflash_source_q8(packing->tensor, m->rows, m->cols);
  const int8_t *in = source.values + row * m->cols;
  for (int64_t k = 0, cols = m->cols; k < cols; k++) panel[k * PANEL + lane] = (unsigned char)in[k];
  packing->scales[row] = dflash_source_f16_at(source.row_scales, row);
}

/* Eight nibbles in storage order are one little-endian word. */
static void pack_q4(const Packing *packing, int64_t row, unsigned char *panel, int lane) {
  const DflashMatrix *m = packing->matrix;
  const DflashSourceQ4 source = dflash_source_q4(packing->tensor, m->rows, m->cols);
  const unsigned char *in = source.nibbles + row * source.groups * 16;
  for (int64_t word = 0; word < m->cols / 8; word++) memcpy(panel + (word * PANEL + lane) * 4, in + word * 4, 4);
  float rungs[Q4_RUNGS], *out = packing->scales + row / PANEL * source.groups * PANEL;
  dflash_source_q4_rungs(&source, row, rungs);
  for (int64_t g = 0; g < source.groups; g++) out[g * PANEL + lane] = rungs[dflash_source_q4_code(&source, row, g)];
}

static void pack_panels(void *context, int64_t begin, int64_t end, int worker) {
  const Packing *packing = context;
  const DflashMatrix *m = packing->matrix;
  (void)worker;
  for (int64_t row = begin * PANEL; row < end * PANEL && row < m->rows; row++) {
    unsigned char *panel = (unsigned char *)m->pages.data + row / PANEL * m->panel_stride;
    const int lane = (int)(row % PANEL);
    switch (m->form) {
    case FORM_F32:
      pack_f32(packing, row, panel, lane);
      break;
    case FORM_Q8:
      pack_q8(packing, row, panel, lane);
      break;
    case FORM_Q4:
      pack_q4(packing, row, panel, lane);
      break;
    default:
      pack_halves(packing, row, panel, lane);
    }
  }
}

static void fill_columns(const DflashTensor *tensor, int64_t rows, int64_t cols, float *columns) {
  const DflashSourceQ8 source = dflash_source_q8(tensor, rows, cols);
  for (int64_t k = 0; k < cols; k++) columns[k] = dflash_source_f16_at(source.columns, k);
}

DflashStatus dflash_matrix_open(DflashMatrix *matrix, const DflashTensor *tensor, int64_t rows, int64_t cols,
                                int32_t form, DflashPool *pool, DflashError *error) {
  uint64_t bytes;
  *matrix = (DflashMatrix){.form = form, .rows = rows, .cols = cols, .panels = (rows + PANEL - 1) / PANEL};
  if (!dflash_matrix_bytes(form, rows, cols, &bytes) || !dflash_pages_open(&matrix->pages, bytes))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "blas: no memory for a matrix of %lld x %lld", (long long)rows,
                            (long long)cols);
  matrix->panel_stride = dflash_matrix_panel_bytes(form, cols);
  float *scales = (float *)((unsigned char *)matrix->pages.data + matrix->panels * matrix->panel_stride);
  if (form == FORM_Q8) {
    float *columns = scales + matrix->panels * PANEL;
    fill_columns(tensor, rows, cols, columns);
    matrix->columns = columns;
  }
  if (form == FORM_Q8 || form == FORM_Q4) matrix->scales = scales;
  Packing packing = {.matrix = matrix, .tensor = tensor, .scales = scales};
  dflash_pool_run(pool, matrix->panels, 1, pack_panels, &packing);
  return DFLASH_OK;
}

void dflash_matrix_close(DflashMatrix *matrix) {
  dflash_pages_close(&matrix->pages);
  *matrix = (DflashMatrix){0};
}
