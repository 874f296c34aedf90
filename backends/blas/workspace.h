/* Scratch of one sequence, allocated before a block runs. */
#ifndef DFLASH_BLAS_WORKSPACE_H
#define DFLASH_BLAS_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

/* Rows of one matrix product; more run in pieces of this many. Tiles that take turns at a block of columns, so that
 * many rows of activations stay in the second cache. */
enum { PRODUCT_ROWS = 128, BATCH_TILES = 8 };

/* Groups of query rows that take turns at a block of keys. */
enum { BATCH_GROUPS = 4 };

/* One worker's, a multiple of 16 floats each. */
typedef struct DflashWorkerScratch {
  float *sums;   /* [BATCH_TILES][TILE_PANELS_MAX][PRODUCT_ROWS][16] */
  float *opened; /* [TILE_PANELS_MAX][BLOCK_COLUMNS][16] */
  double *turns; /* [head_dim / 2][2], cos and sin */
  float *query;  /* [BATCH_GROUPS][head_dim][GROUP_MAX] */
  float *mixed;  /* [BATCH_GROUPS][mixed_stride]: the head's panels, [GROUP_MAX][16] each */
  float *scores; /* [BATCH_GROUPS][lanes / 16][GROUP_MAX][16], then weights */
  size_t mixed_stride;
} DflashWorkerScratch;

typedef struct DflashWorkspace {
  int threads;
  int64_t head_dim;
  float *packed; /* activations of a product, [columns][rows of a group], group after group */
  size_t packed_capacity;
  float *fixed; /* sums, opened, query, mixed of every worker */
  size_t fixed_stride;
  float *attention; /* scores of every worker */
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
