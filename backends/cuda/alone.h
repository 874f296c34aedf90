/* A stage alone on given inputs. */
#ifndef DFLASH_CUDA_ALONE_H
#define DFLASH_CUDA_ALONE_H

#include "sequence.h"

typedef struct CudaAlone {
  DflashSequence *s;
  const DflashStageCall *call;
  int64_t rows; /* of the block */
  CudaBuffer k, v;
  DflashError *error;
} CudaAlone;

DflashStatus cuda_alone_check(const DflashModel *model, const DflashStageCall *call, DflashError *error);
/* Copies and waits: `from` may be gone after it. */
DflashStatus cuda_alone_copy(const CudaAlone *a, CudaAddress to, const void *from, uint64_t bytes);
/* A stage of context.* */
DflashStatus cuda_alone_context(const CudaAlone *a);

#endif
