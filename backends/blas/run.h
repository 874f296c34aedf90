/* One stage on given inputs: the only way in which a block, a push or a stage alone computes anything. */
#ifndef DFLASH_BLAS_RUN_H
#define DFLASH_BLAS_RUN_H

#include "model.h"
#include "select.h"
#include "store.h"
#include "workspace.h"

typedef struct DflashRun {
  const DflashModel *model;
  const DflashWorkspace *workspace;
  int64_t rows, position; /* of the block, or of the piece of a push */
  int64_t n_draft, head_width, anchor_token;
  /* attn.mix: the layer's context, and room for the block's own k and v */
  const DflashStore *store;
  int64_t first, len;
  DflashStore *own;
  /* select */
  DflashSelection *selection;
  DflashTokens *tokens;
} DflashRun;

/* in: as listed in the stage table. DFLASH_NONFINITE from select only. */
DflashStatus dflash_run_stage(const DflashRun *run, int32_t stage, int64_t layer, const float *const *in, float *out,
                              DflashError *error);

/* The pieces, each for a stage or two. */
void dflash_run_norm(const DflashRun *run, const float *x, const float *weight, float *out);
/* Norm of every head, then rotation where the layer rotates. */
void dflash_run_heads(const DflashRun *run, int64_t layer, const float *x, int64_t heads, const float *weight,
                      float *out);
/* out = conv(x) of that side, plus residual when it is not NULL. */
void dflash_run_conv(const DflashRun *run, const float *x, const float *kernel, const float *base, int side,
                     const float *residual, float *out);
void dflash_run_attention(const DflashRun *run, int64_t layer, const float *q, const float *k, const float *v,
                          float *out);

/* Keys that one group of queries may have to hold scores of: context rows that a layer's row sees, and the block's. */
int64_t dflash_attention_lanes(const DflashGeometry *geometry, int64_t layer, int64_t len, int64_t rows);

/* Pieces of `count` units of `work` multiplications each that are worth a thread's while. */
int64_t dflash_grain(int64_t work);

#endif
