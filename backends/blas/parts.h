/* Every tensor of a model with its sizes and its place: what opening, checking and counting walk over. */
#ifndef DFLASH_BLAS_PARTS_H
#define DFLASH_BLAS_PARTS_H

#include "model.h"

typedef struct DflashPart {
  const char *name;
  int64_t layer;              /* 0 for what stands once */
  const DflashTensor *tensor; /* NULL when no weights are given, or the head is absent */
  int64_t rows, cols;
  /* where it goes: one of the three; all NULL without a model */
  DflashMatrix *matrix;
  const float **vector;
  DflashCodebook *codebook;
  int kind; /* PART_* */
} DflashPart;

enum { PART_MATRIX, PART_VECTOR, PART_CODEBOOK };

int64_t dflash_part_count(const DflashGeometry *geometry);
/* Part `index`. model and weights may be NULL. */
DflashPart dflash_part_at(const DflashGeometry *geometry, const DflashWeights *weights, DflashModel *model,
                          int64_t index);

#endif
