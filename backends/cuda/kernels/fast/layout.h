/* Geometry of the fast kernel, and where the weights lie that it reads. The same to the host and to the device.
 *
 * What a block of threads reads of all weights is one stream, in the order in which it needs them: of each product
 * each unit of 64 rows at the block's columns. Two blocks of threads are a cluster; they have the same
 * units, each half of the columns. A warpgroup has a quarter of its block's columns, read in chunks. */
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
  FAST_ROWS = 8,       /* of a block; those past the call's are zero */
  FAST_TALL_ROWS = 16, /* the same of the kernel for longer blocks */
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
  FAST_WARPGROUPS = 4, /* that compute, of four warps each */
  FAST_WARPS = 4 * FAST_WARPGROUPS,
  FAST_THREADS = (FAST_WARPS + 4) * 32, /* one more warp copies, two make ladders */
  FAST_SHARED_BYTES = 227 << 10,        /* of a block of threads, all that there is */

  FAST_UNIT = 64,         /* rows */
  FAST_TILE = 16,         /* rows of a warp */
  FAST_GROUP_BYTES = 256, /* of 16 x 32 weights of q4tp */
  FAST_CODE_BYTES = 64,   /* codes of a warp's rows for up to 5 groups */
  FAST_MOST_GROUPS = 5,   /* of a chunk of q4tp */
  FAST_LADDER_BYTES = FAST_UNIT * 8,
  FAST_Q8_STEPS = 5, /* of 16 columns, of a chunk of q8_2f */
  FAST_Q8_CHUNK = 4 * FAST_Q8_STEPS * 256,
  FAST_SCALE_BYTES = FAST_UNIT * 4,
  FAST_KERNEL_HALVES = 2, /* parts of the columns of a kernel projection, of 20 clusters each */
  FAST_KERNEL_UNITS = FAST_KERNEL_ROWS / FAST_UNIT,
  FAST_QKV_HALVES = 2,    /* of q, k, v, of 33 clusters each */
  FAST_DOWN_QUARTERS = 4, /* of down, of 16 clusters each */

  FAST_ROUND_PRODUCTS = 8, /* of the kernel that measures them */

  FAST_SPLITS = 16 /* parts of the context in attention; one more is the block */
};

/* The products of a layer in their order; then selector and head. */
enum {
  FAST_ATTN_KERNEL,
  FAST_QKV, /* rows of q, k, v */
  FAST_O,
  FAST_MLP_KERNEL,
  FAST_GATE_UP, /* 16 rows of gate and the same of up in turn */
  FAST_DOWN,
  FAST_LAYER_PRODUCTS,
  FAST_HEAD = FAST_LAYER_PRODUCTS,
  FAST_SELECTOR
};

/* Values of a part of the context and kv head, for all queries of a block of so many rows: the largest scores and sums
 * lie behind them. */
FAST_FUNCTION int fast_split_floats(int rows) { return rows * (FAST_HEADS / FAST_KV_HEADS) * (FAST_HEAD_DIM + 2); }

/* Units of 64 rows that a cluster has of a product: first, first + step, ..; part: of the columns. */
typedef struct FastShare {
  int first, step, count, part;
} FastShare;

FAST_FUNCTION bool fast_is_kernel(int product) { return product == FAST_ATTN_KERNEL || product == FAST_MLP_KERNEL; }
FAST_FUNCTION bool fast_is_q8(int product) {
  return fast_is_kernel(product) || product == FAST_HEAD || product == FAST_SELECTOR;
}

/* Parts of a product's columns: each is some clusters', and the readers of the values add them up. */
FAST_FUNCTION int fast_parts(int product) {
  return fast_is_kernel(product) ? (int)FAST_KERNEL_HALVES
         : product == FAST_QKV   ? (int)FAST_QKV_HALVES
         : product == FAST_DOWN  ? (int)FAST_DOWN_QUARTERS
                                 : 1;
}
FAST_FUNCTION int fast_part_clusters(int product) {
  return fast_is_kernel(product) ? (int)FAST_KERNEL_UNITS : FAST_CLUSTERS / fast_parts(product);
}

/* The i-th product of a block and its layer; -1 past the last. */
FAST_FUNCTION int fast_product(int i, int layers, int *layer) {
  *layer = i / FAST_LAYER_PRODUCTS;
  if (*layer < layers) return i % FAST_LAYER_PRODUCTS;
  i -= FAST_LAYER_PRODUCTS * layers;
  return i == 0 ? (int)FAST_SELECTOR : i == 1 ? (int)FAST_HEAD : -1;
}

FAST_FUNCTION int fast_unit_count(int product, int head_rows) {
  switch (product) {
  case FAST_ATTN_KERNEL:
  case FAST_MLP_KERNEL:
    return FAST_KERNEL_UNITS;
  case FAST_QKV:
    return FAST_QKV_ROWS / FAST_UNIT;
  case FAST_GATE_UP:
    return 2 * FAST_INTERMEDIATE / FAST_UNIT;
  case FAST_SELECTOR:
    return FAST_RANK / FAST_UNIT;
  case FAST_HEAD:
    return (head_rows + FAST_UNIT - 1) / FAST_UNIT;
  default:
    return FAST_HIDDEN / FAST_UNIT;
  }
}

/* Every count-th unit from `first` on, of `step` clusters that share them. The first rows of the head are the first of
 * each cluster's: a shortlist is the start of every stream. */
FAST_FUNCTION FastShare fast_share(int product, int head_rows, int cluster) {
  const int units = fast_unit_count(product, head_rows);
  const int step = fast_part_clusters(product);
  FastShare s = {cluster % step, step, 0, cluster / step};
  if (product == FAST_SELECTOR) s.first = FAST_CLUSTERS - 1 - cluster;
  if (s.part < fast_parts(product) && s.first < units) s.count = (units - s.first + s.step - 1) / s.step;
  return s;
}

/* Columns of a warpgroup. */
FAST_FUNCTION int fast_group_columns(int product) {
  switch (product) {
  case FAST_ATTN_KERNEL:
  case FAST_MLP_KERNEL:
    return FAST_HIDDEN / (2 * FAST_KERNEL_HALVES * FAST_WARPGROUPS);
  case FAST_QKV:
    return FAST_HIDDEN / (2 * FAST_QKV_HALVES * FAST_WARPGROUPS);
  case FAST_O:
    return FAST_QUERY_ROWS / (2 * FAST_WARPGROUPS);
  case FAST_DOWN:
    return FAST_INTERMEDIATE / (2 * FAST_DOWN_QUARTERS * FAST_WARPGROUPS);
  default:
    return FAST_HIDDEN / (2 * FAST_WARPGROUPS);
  }
}
FAST_FUNCTION int fast_block_columns(int product) { return fast_group_columns(product) * FAST_WARPGROUPS; }

/* The first column of a block of threads. */
FAST_FUNCTION int fast_first_column(int product, int block) {
  return (fast_share(product, 1, block / 2).part * 2 + block % 2) * fast_block_columns(product);
}

/* Chunks of a unit and warpgroup. */
FAST_FUNCTION int fast_chunks(int product) {
  return fast_is_q8(product) ? fast_group_columns(product) / (16 * FAST_Q8_STEPS) : product == FAST_QKV ? 2 : 4;
}
/* Groups of 32 columns of a chunk of q4tp, and those before it. */
FAST_FUNCTION int fast_groups(int product, int chunk) {
  return product == FAST_O || (product == FAST_DOWN && chunk > 0) ? 4 : 5;
}
FAST_FUNCTION int fast_groups_before(int product, int chunk) {
  return product == FAST_O ? 4 * chunk : product == FAST_DOWN ? 4 * chunk + (chunk > 0) : 5 * chunk;
}
/* The parts of the four warps lie one after another. */
FAST_FUNCTION int fast_chunk_bytes(int product, int chunk) {
  return fast_is_q8(product) ? (int)FAST_Q8_CHUNK
                             : 4 * (fast_groups(product, chunk) * (int)FAST_GROUP_BYTES + (int)FAST_CODE_BYTES);
}

/* Before a unit's chunks: a pair of f32 a row, the ladder's first rung and the factor to the next; q8_2f: a row's
 * scale. */
FAST_FUNCTION int fast_ladder_bytes(int product) {
  return fast_is_q8(product) ? (int)FAST_SCALE_BYTES : (int)FAST_LADDER_BYTES;
}
/* Behind it the chunks, of each warpgroup in turn. */
FAST_FUNCTION int fast_unit_bytes(int product) {
  int bytes = 0;
  for (int chunk = 0; chunk < fast_chunks(product); chunk++) bytes += fast_chunk_bytes(product, chunk);
  return FAST_WARPGROUPS * bytes + fast_ladder_bytes(product);
}

/* Vectors of a product: norm and column field; norm, base of the row, base of the row before. They lie apart from the
 * stream, once for all clusters: of each product, block of columns and warpgroup in turn the first two (a chunk), then
 * the third (another). */
FAST_FUNCTION int fast_vectors(int product) {
  return product == FAST_O || product == FAST_DOWN ? 0 : product == FAST_QKV || product == FAST_GATE_UP ? 3 : 2;
}
FAST_FUNCTION int fast_vector_chunks(int product) { return (fast_vectors(product) + 1) / 2; }
FAST_FUNCTION int fast_vector_bytes(int product, int chunk) {
  return (chunk == 0 ? 2 : 1) * fast_group_columns(product) * 4;
}
/* Where those of a block of threads begin, i as for fast_product. */
enum { FAST_VECTORS_BYTES = 3 * FAST_HIDDEN * 4 }; /* of a product, at most */
FAST_FUNCTION int64_t fast_vectors_at(int i, int product, int block) {
  return (int64_t)i * FAST_VECTORS_BYTES + (int64_t)fast_first_column(product, block) * fast_vectors(product) * 4;
}

/* Bytes of a product in the stream of a block of threads. */
FAST_FUNCTION uint64_t fast_block_bytes(int product, int head_rows, int block) {
  return (uint64_t)fast_share(product, head_rows, block / 2).count * (uint64_t)fast_unit_bytes(product);
}

#endif
