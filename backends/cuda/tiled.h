/* The tiled path: products with many rows of x, those of a push, on tensor cores. */
#ifndef DFLASH_CUDA_TILED_H
#define DFLASH_CUDA_TILED_H

#include "buffers.h"
#include "kernels/tiled/layout.h"

struct DflashModel;

typedef struct CudaTiled {
  int32_t tile_rows; /* rows of x of a tile; 0: the path is not taken */
  CudaBuffer scales; /* of the q4tp matrices of a push, as tiles read them */
  CudaAddress fc_scales;
  char why[64]; /* it is not */
} CudaTiled;

/* Makes the scales. */
DflashStatus cuda_tiled_open(struct DflashModel *model, DflashError *error);
bool cuda_tiled_takes(const struct DflashModel *model, const CudaMatrix *matrix, int64_t rows);
/* Bytes of an activation's parts and of the slots of products of a push's rows. */
uint64_t cuda_tiled_part_bytes(const struct DflashModel *model, int64_t rows, int64_t cols);
uint64_t cuda_tiled_sum_bytes(const struct DflashModel *model, int64_t rows);

#endif
