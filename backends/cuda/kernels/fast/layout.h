/* Geometry of the fast kernel, and where the weights lie that it reads. The same to the host and to the device.
 *
 * What a warp of a block of threads reads of all weights is one stream of items, in the order in which it needs them:
 * of each product its vectors, then for each tile of 16 rows the warp's columns (q8_2f: in two halves). Two blocks of
 * threads are a cluster; a cluster has the same tiles, each of its blocks half of the columns. */
#ifndef DFLASH_CUDA_FAST_LAYOUT_H
#define DFLASH_CUDA_FAST_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define FAST_FUNCTION static __host__ __device__ __forceinline__
#else
#define FAST_FUNCTION static inline
#endif

enum {
  FAST_HIDDEN = 5120,
  FAST_INTERMEDIATE = 17408,
  FAST_HEADS = 32,
  FAST_KV_HEADS = 8,
  FAST_HEAD_DIM = 128,
  FAST_CONV_GROUP = 16,
  FAST_CONV_KERNEL = 2,
  FAST_RANK = 256,
  FAST_ROWS = 8, /* of a block; those past the call's are zero */
  FAST_MOST_LAYERS = 8,

  FAST_QUERY_ROWS = FAST_HEADS * FAST_HEAD_DIM,
  FAST_KV_ROWS = FAST_KV_HEADS * FAST_HEAD_DIM,
  FAST_QKV_ROWS = FAST_QUERY_ROWS + 2 * FAST_KV_ROWS,
  FAST_GROUPS = FAST_HIDDEN / FAST_CONV_GROUP,
  FAST_KERNEL_ROWS = 2 * FAST_CONV_KERNEL * FAST_GROUPS
};

enum {
  FAST_BLOCKS = 132, /* of threads: one a processor, all at once */
  FAST_CLUSTERS = FAST_BLOCKS / 2,
  FAST_WARPS = 8,
  FAST_THREADS = FAST_WARPS * 32,
  FAST_SHARED_BYTES = 227 << 10, /* of a block of threads, all that there is */

  FAST_TILE = 16,                            /* rows */
  FAST_GROUP_BYTES = 256,                    /* of 16 x 32 weights of q4tp */
  FAST_CODE_BYTES = 128,                     /* codes of a tile's rows for up to 10 groups */
  FAST_Q8_BYTES = 10 * 256,                  /* of 16 x 160 weights of q8_2f */
  FAST_SCALE_BYTES = 64,                     /* scales of a tile's rows */
  FAST_SLICE = FAST_HIDDEN / 2 / FAST_WARPS, /* columns of a warp, out of the hidden size */
  FAST_VECTOR_BYTES = FAST_SLICE * 4,        /* a vector's elements at them */
  FAST_DOWN_QUARTERS = 4,                    /* parts of the columns of down, of 16 clusters each */
  FAST_DOWN_CLUSTERS = 64,
  FAST_DOWN_TILES = FAST_HIDDEN / FAST_TILE / (FAST_DOWN_CLUSTERS / FAST_DOWN_QUARTERS),

  FAST_SPLITS = 16,                           /* parts of the context in attention; one more is the block */
  FAST_SPLIT_FLOATS = 32 * FAST_HEAD_DIM + 64 /* of the values of a part and kv head */
};

/* The products of a layer in their order; then selector and head. */
enum {
  FAST_ATTN_KERNEL,
  FAST_QKV, /* rows of q, k, v */
  FAST_O,
  FAST_MLP_KERNEL,
  FAST_GATE_UP, /* a tile of gate and one of up take turns */
  FAST_DOWN,
  FAST_LAYER_PRODUCTS,
  FAST_HEAD = FAST_LAYER_PRODUCTS,
  FAST_SELECTOR
};

/* The ladders of a layer, a pair of f32 a row: rows of qkv, o, gate and up, down. */
enum {
  FAST_O_LADDERS = FAST_QKV_ROWS,
  FAST_GATE_UP_LADDERS = FAST_O_LADDERS + FAST_HIDDEN,
  FAST_DOWN_LADDERS = FAST_GATE_UP_LADDERS + 2 * FAST_INTERMEDIATE,
  FAST_LAYER_LADDERS = FAST_DOWN_LADDERS + FAST_HIDDEN
};

typedef struct FastRange {
  int from, to;
} FastRange;

FAST_FUNCTION bool fast_is_q8(int product) {
  return product == FAST_ATTN_KERNEL || product == FAST_MLP_KERNEL || product == FAST_HEAD || product == FAST_SELECTOR;
}

/* The i-th product of a block and its layer; -1 past the last. */
FAST_FUNCTION int fast_product(int i, int layers, int *layer) {
  *layer = i / FAST_LAYER_PRODUCTS;
  if (*layer < layers) return i % FAST_LAYER_PRODUCTS;
  i -= FAST_LAYER_PRODUCTS * layers;
  return i == 0 ? (int)FAST_SELECTOR : i == 1 ? (int)FAST_HEAD : -1;
}

FAST_FUNCTION int fast_tile_count(int product, int head_rows) {
  switch (product) {
  case FAST_ATTN_KERNEL:
  case FAST_MLP_KERNEL:
    return FAST_KERNEL_ROWS / FAST_TILE;
  case FAST_QKV:
    return FAST_QKV_ROWS / FAST_TILE;
  case FAST_GATE_UP:
    return 2 * FAST_INTERMEDIATE / FAST_TILE;
  case FAST_SELECTOR:
    return FAST_RANK / FAST_TILE;
  case FAST_HEAD:
    return (head_rows + FAST_TILE - 1) / FAST_TILE;
  default:
    return FAST_HIDDEN / FAST_TILE;
  }
}

/* The tiles that a cluster has of a product. */
FAST_FUNCTION FastRange fast_tiles(int product, int head_rows, int cluster) {
  FastRange r = {0, 0};
  if (product == FAST_DOWN) {
    if (cluster < FAST_DOWN_CLUSTERS) r.from = cluster % 16 * FAST_DOWN_TILES, r.to = r.from + FAST_DOWN_TILES;
    return r;
  }
  const int unit = product == FAST_GATE_UP ? 2 : 1, units = fast_tile_count(product, head_rows) / unit;
  r.from = (int)((long long)cluster * units / FAST_CLUSTERS) * unit;
  r.to = (int)((long long)(cluster + 1) * units / FAST_CLUSTERS) * unit;
  return r;
}

/* Groups of 32 columns of a warp, and the first of them among those of its block of threads. */
FAST_FUNCTION int fast_groups(int product, int warp) {
  return product == FAST_O ? 8 : product == FAST_DOWN ? (warp < 4 ? 9 : 8) : 10;
}
FAST_FUNCTION int fast_first_group(int product, int warp) {
  return product == FAST_DOWN ? warp * 8 + (warp < 4 ? warp : 4) : warp * fast_groups(product, warp);
}

FAST_FUNCTION int fast_item_bytes(int product, int warp) {
  return fast_is_q8(product) ? (int)(FAST_Q8_BYTES + FAST_SCALE_BYTES)
                             : fast_groups(product, warp) * FAST_GROUP_BYTES + FAST_CODE_BYTES;
}
FAST_FUNCTION int fast_items_a_tile(int product) { return fast_is_q8(product) ? 2 : 1; }

/* Vectors before a product's tiles: norm and column field; norm, base of the row, base of the row before. */
FAST_FUNCTION int fast_vectors(int product) {
  return product == FAST_O || product == FAST_DOWN ? 0 : product == FAST_QKV || product == FAST_GATE_UP ? 3 : 2;
}

/* The first column of a block of threads. */
FAST_FUNCTION int fast_first_column(int product, int block) {
  if (product == FAST_DOWN) return (block / 2 / 16 * 2 + block % 2) * (FAST_INTERMEDIATE / 8);
  return block % 2 * ((product == FAST_O ? (int)FAST_QUERY_ROWS : (int)FAST_HIDDEN) / 2);
}

FAST_FUNCTION int fast_first_ladder(int product) {
  switch (product) {
  case FAST_O:
    return FAST_O_LADDERS;
  case FAST_GATE_UP:
    return FAST_GATE_UP_LADDERS;
  case FAST_DOWN:
    return FAST_DOWN_LADDERS;
  default:
    return 0;
  }
}

/* Bytes of a product in a warp's stream. */
FAST_FUNCTION uint64_t fast_warp_bytes(int product, int head_rows, int block, int warp) {
  const FastRange tiles = fast_tiles(product, head_rows, block / 2);
  return (uint64_t)fast_vectors(product) * FAST_VECTOR_BYTES +
         (uint64_t)(tiles.to - tiles.from) * (uint64_t)(fast_item_bytes(product, warp) * fast_items_a_tile(product));
}

#endif
