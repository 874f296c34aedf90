/* The fast path: a block of up to FAST_ROWS rows, in profile f16 FAST_TALL_ROWS, as one kernel, where model and device
 * fit. */
#ifndef DFLASH_CUDA_FAST_H
#define DFLASH_CUDA_FAST_H

#include "buffers.h"
#include "kernels/fast/arguments.h"

struct CudaOptions;

typedef struct CudaFast {
  CUfunction kernel;                  /* NULL: the model takes the plain path */
  CUfunction tall;                    /* for blocks of more than FAST_ROWS rows; NULL: they take it */
  CUfunction multiply;                /* its products alone, to be measured; NULL: not here */
  CudaBuffer memory;                  /* the weights once more, as the kernel reads them */
  CudaAddress stream, first, vectors; /* parts of it, see FastBlock */
  int32_t head_rows;
  char why[96]; /* the plain path is taken */
} CudaFast;

/* fast.c: false where desc (its weights may be NULL) or the device do not fit; `why` says what. */
bool cuda_fast_fits(const DflashModelDesc *desc, const struct CudaOptions *options, const CudaTraits *traits, char *why,
                    size_t size);
/* Memory that it takes beside the stored weights. */
uint64_t cuda_fast_bytes(const DflashGeometry *geometry);
/* Bytes of the stream that hold one row of a product's matrix. */
uint64_t cuda_fast_row_bytes(int product);

/* fast_open.c: words of a table of where each part of each product begins */
int64_t cuda_fast_table_words(int layers);
/* Bytes of the vectors of all products. */
uint64_t cuda_fast_vector_bytes(int layers);
/* Packs the weights that lie on the device where everything fits. path=fast that does not is declined. */
DflashStatus cuda_fast_open(DflashModel *model, const DflashModelDesc *desc, DflashError *error);

/* fast_run.c */
struct CudaRun;
bool cuda_fast_takes(const DflashModel *model, int64_t rows); /* blocks of so many rows */
/* Rows of a kernel's values for a block of so many. */
int cuda_fast_kernel_rows(int64_t rows);
/* Rows of h that the device reads: the last ones may be zeros. */
int64_t cuda_fast_input_rows(const DflashModel *model, int64_t rows);
void cuda_fast_run(struct CudaRun *run);
/* The stage whose span holds this one. */
int32_t cuda_fast_span(int32_t stage);

#endif
