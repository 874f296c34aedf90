/* Scratch of one sequence, allocated before a block runs. */
#ifndef DFLASH_BLAS_WORKSPACE_H
#define DFLASH_BLAS_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

/* Rows of one matrix product; more run in pieces of this many. */
enum { PRODUCT_ROWS = 256 };

/* One worker's, a multiple of 16 floats each. */
typedef struct DflashWorkerScratch {
  float *sums;    /* [TILE_PANELS_MAX][PRODUCT_ROWS][16] */
  float *opened;  /* [TILE_PANELS_MAX][BLOCK_COLUMNS][16] */
  double *turns;  /* [head_dim / 2][2], cos and sin */
  float *query;   /* [head_dim][GROUP_MAX] */
  float *mixed;   /* [head_dim's panels, even][GROUP_MAX][16] */
  float *scores;  /* [lanes / 16][GROUP_MAX][16] */
  float *weights; /* [lanes][GROUP_MAX] */
} DflashWorkerScratch;

typedef struct DflashWorkspace {
  int threads;
  int64_t head_dim;
  float *packed; /* activations of a product, [columns][rows of a group], group after group */
  size_t packed_capacity;
  float *fixed; /* sums, opened, query, mixed of every worker */
  size_t fixed_stride;
  float *attention; /* scores, weights of every worker */
  int64_t attention_lanes;
} DflashWorkspace;

bool dflash_workspace_open(DflashWorkspace *workspace, int threads, int64_t head_dim);
void dflash_workspace_close(DflashWorkspace *workspace);
/* Room for products of `rows` rows and `columns` columns; for attention over `lanes` keys. */
bool dflash_workspace_reserve_product(DflashWorkspace *workspace, int64_t rows, int64_t columns);
bool dflash_workspace_reserve_attention(DflashWorkspace *workspace, int64_t lanes);
DflashWorkerScratch dflash_workspace_worker(const DflashWorkspace *workspace, int worker);
void dflash_workspace_poison(DflashWorkspace *workspace, uint32_t pattern);

/* Fills count floats with the pattern. */
void dflash_fill_pattern(float *data, size_t count, uint32_t pattern);

#endif
