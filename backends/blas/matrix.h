/* A weight matrix as this backend holds it, and its product with rows of activations. */
#ifndef DFLASH_BLAS_MATRIX_H
#define DFLASH_BLAS_MATRIX_H

#include "base/pool.h"
#include "dflash/backend.h"
#include "kernel.h"
#include "pages.h"
#include "workspace.h"

typedef struct DflashMatrix {
  int32_t form;         /* FORM_* */
  int64_t rows, cols;   /* as named by the model: out = matrix . x, rows outputs */
  int64_t panels;       /* rows / 16, rounded up; rows past the last are 0 */
  int64_t panel_stride; /* bytes */
  DflashPages pages;    /* panels, then the scales */
  const float *scales;  /* FORM_Q8: [panels][16] of rows; FORM_Q4: [panels][cols / 32][16] */
  const float *columns; /* FORM_Q8: [cols] */
} DflashMatrix;

/* The form in which a storage is held: its own, or f32. */
int32_t dflash_matrix_form(int32_t storage, bool stored);
const char *dflash_matrix_form_name(int32_t form);
int64_t dflash_matrix_panel_bytes(int32_t form, int64_t cols);
/* Bytes of the form; false on overflow. */
bool dflash_matrix_bytes(int32_t form, int64_t rows, int64_t cols, uint64_t *bytes);

/* Decodes a checked tensor straight into its form. */
DflashStatus dflash_matrix_open(DflashMatrix *matrix, const DflashTensor *tensor, int64_t rows, int64_t cols,
                                int32_t form, DflashPool *pool, DflashError *error);
void dflash_matrix_close(DflashMatrix *matrix);

/* out[row][o] = sum of matrix[o] x[row] for the matrix's first `outputs` rows. x [count, cols], out [count, outputs].
 * The workspace has room for the product. */
typedef struct DflashProduct {
  const DflashKernel *kernel;
  DflashPool *pool;
  const DflashWorkspace *workspace;
} DflashProduct;

void dflash_matrix_multiply(const DflashProduct *product, const DflashMatrix *matrix, const float *x, int64_t count,
                            int64_t outputs, float *out);

/* The values of rows begin .. end as an f32 matrix [end - begin, cols], as the product uses them. */
void dflash_matrix_values(const DflashProduct *product, const DflashMatrix *matrix, int64_t begin, int64_t end,
                          float *out);

#endif
