/* The tensors of a model, one after the other: what the weights give, and where the model holds it. */
#ifndef DFLASH_CUDA_TENSORS_H
#define DFLASH_CUDA_TENSORS_H

#include "model.h"

enum { CUDA_VECTOR, CUDA_MATRIX, CUDA_CODEBOOK };

typedef struct CudaTensor {
  const char *name;
  int64_t layer; /* -1: of the whole model */
  int kind;
  int64_t rows, cols;
  const DflashTensor *tensor; /* NULL: a head that is absent */
  CudaAddress *vector;        /* of the model: of CUDA_VECTOR */
  CudaMatrix *matrix;         /* of the others */
} CudaTensor;

int64_t cuda_tensor_count(const DflashGeometry *geometry);
/* model may be NULL. */
CudaTensor cuda_tensor_at(const DflashGeometry *geometry, const DflashWeights *weights, DflashModel *model,
                          int64_t index);

/* Data, shape, storage and bytes are those that the geometry asks for; DFLASH_INVALID_ARGUMENT names the tensor. */
DflashStatus cuda_tensor_check(const CudaTensor *tensor, DflashError *error);

#endif
