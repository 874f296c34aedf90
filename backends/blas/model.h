/* A model resident on this host. */
#ifndef DFLASH_BLAS_MODEL_H
#define DFLASH_BLAS_MODEL_H

#include "dflash/backend.h"
#include "matrix.h"
#include "options.h"

typedef struct DflashLayer {
  DflashMatrix q, k, v, o, gate, up, down, attention_kernel, mlp_kernel;
  /* into the model's vectors */
  const float *input_norm, *post_norm, *q_norm, *k_norm, *attention_base, *mlp_base;
} DflashLayer;

/* Rows of f32, f16 or bf16, read a few at a time. */
typedef struct DflashCodebook {
  int32_t storage;
  int64_t width;
  DflashPages pages;
} DflashCodebook;

struct DflashModel {
  DflashGeometry geometry;
  DflashHostOptions options;
  bool stored; /* the form of the matrices */
  DflashPool *pool;
  DflashMatrix fc, selector_hidden, head;
  bool has_head;
  DflashCodebook predecessor, successor;
  DflashPages vectors;
  const float *hidden_norm, *norm, *inv_freq;
  DflashLayer *layers;
  uint64_t resident_bytes;
  DflashPages buffer; /* four caches of numbers, for reading and evicting; opened by the first use */
};

/* Checks profile, device, geometry, options and memory. Without weights the storages are not known: the f32 form is
 * assumed for form=f32, else the smallest. */
DflashStatus dflash_model_supports(const DflashModelDesc *desc, DflashError *error);
DflashStatus dflash_model_open(const DflashModelDesc *desc, DflashModel **model, DflashError *error);
void dflash_model_close(DflashModel *model);
DflashStatus dflash_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error);

/* The matrix of a matrix stage; NULL for any other. */
const DflashMatrix *dflash_model_matrix(const DflashModel *model, int32_t stage, int64_t layer);
DflashStatus dflash_model_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                                     DflashStageInfo *info, DflashError *error);

/* Row `row` of a codebook as f32. */
void dflash_codebook_row(const DflashCodebook *codebook, int64_t row, float *out);

#endif
