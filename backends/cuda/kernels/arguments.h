/* What the kernels take: one struct each, the same to the host and to the device. Addresses are device addresses.
 * `stamp`, where a struct begins with it, is 0 or the address of a 64-bit word that gets the time at which the kernel
 * began. A value is [rows][width] of f32 without gaps unless a stride is named. */
#ifndef DFLASH_CUDA_ARGUMENTS_H
#define DFLASH_CUDA_ARGUMENTS_H

#include <stdint.h>

typedef uint64_t CudaAddress;

/* Threads of a block, and what follows from them. */
enum {
  CUDA_THREADS = 256,
  CUDA_WARPS = CUDA_THREADS / 32,
  CUDA_TILE = 4,         /* weight rows that a warp multiplies at once */
  CUDA_FEW_ROWS = 8,     /* rows of x that the products for few rows take at once */
  CUDA_MANY_ROWS = 16,   /* those of the others */
  CUDA_LANE_COLUMNS = 8, /* columns that a lane takes at once */
  CUDA_SPAN = 256,       /* columns that a warp takes at once */
  CUDA_RUNGS = 32,       /* of a q4tp ladder */
  CUDA_GROUP = 32,       /* columns of a q4tp group */
  CUDA_LAYERS_AT_ONCE = 8,
  CUDA_QUERIES = 32, /* queries that a block of attention takes */
  CUDA_KEYS = 32,    /* keys that it takes at once */
  CUDA_MOST_HEAD_DIM = 256,
  CUDA_MOST_PARTS = 64,  /* parts of the keys that a query sees */
  CUDA_TOP_CHUNK = 4096, /* entries of which a block finds the largest */
  CUDA_MOST_TOP = 1024,
  CUDA_FEW_TOP = 32,   /* candidates a row that need no sorting */
  CUDA_FEW_LISTS = 128 /* chunks of a row that are merged at once */
};

/* y = x / sqrt(mean(x^2) + eps) * w; a block of the grid a row */
typedef struct NormArgs {
  CudaAddress stamp, x, w, y;
  int64_t width;
  float eps;
} NormArgs;

/* The cosine and sine of f32(position + row) * inv_freq[i]: table [rows][half][2] */
typedef struct RotationArgs {
  CudaAddress position; /* of an int64 */
  CudaAddress inv_freq, table;
  int32_t rows, half;
} RotationArgs;

/* y = rotate(rms(x, w)) of every head; x and y [rows][heads][head_dim]; a warp a head */
typedef struct HeadsArgs {
  CudaAddress stamp, x, w, table, y;
  int64_t rows;
  int32_t heads, head_dim, rotate;
  float eps;
} HeadsArgs;

/* The same of several layers; the grid's y is their number. */
typedef struct LayersHeadsArgs {
  HeadsArgs layers[CUDA_LAYERS_AT_ONCE];
} LayersHeadsArgs;

/* y[r] = residual[r] + sum of taps o of (base[o] + d[r][o]) * x[r - o]; residual may be 0; the grid's y is the rows */
typedef struct ConvArgs {
  CudaAddress stamp, x, d, base, residual, y;
  int64_t hidden;
  int32_t group, groups, taps, side;
} ConvArgs;

/* y = gate / (1 + exp(-gate)) * up */
typedef struct ActArgs {
  CudaAddress stamp, gate, up, y;
  int64_t count;
} ActArgs;

/* A stored matrix. Only what its storage has is there. */
typedef struct CudaMatrix {
  CudaAddress weights; /* [rows][cols] elements, or nibbles */
  CudaAddress scales;  /* q8_2f: f16 of every row; q4tp: [rows][2] f32, the lowest rung and the factor to the next */
  CudaAddress columns; /* q8_2f: f16 of every column */
  CudaAddress codes;   /* q4tp: 5 bits a group, each row from a byte on */
  int64_t rows, cols;
  int32_t storage; /* DFLASH_STORAGE_* */
  int32_t team;    /* warps that share the columns of a weight row: 1, 2, 4 or 8 */
} CudaMatrix;

/* y[r][o] = sum_i matrix[o][i] * x[r][i] * 2^-exponents[r] for the matrix's first out_rows rows */
typedef struct ProductArgs {
  CudaAddress stamp, x, y;
  CudaAddress words, steps; /* profile i8: int8 of x, see quantise; its step of each row and group */
  CudaAddress exponents;    /* profile f16: of each row of x, int32; 0: none */
  CudaMatrix matrix;
  int64_t rows, out_rows;
} ProductArgs;

/* words: int8 of x in groups of 32 columns, of every eight 0 2 4 6 1 3 5 7; steps [rows][cols / 32] */
typedef struct QuantiseArgs {
  CudaAddress stamp, x, words, steps;
  int64_t groups; /* of all rows */
} QuantiseArgs;

/* y = f16(x * 2^exponents[r]), the largest power that leaves a row's |x| at 2^14 or below; a block of the grid a row */
typedef struct HalveArgs {
  CudaAddress stamp, x, y, exponents;
  int64_t width;
} HalveArgs;

/* A layer's context as a block sees it. Rows are counted from the start of k and v, [..][kv_heads][head_dim]. */
typedef struct CudaVisible {
  CudaAddress k, v;
  int64_t first, end; /* rows that there are to see: first <= row < end */
  int64_t from;       /* block row r sees none before from + r */
} CudaVisible;

/* What changes from block to block, in device memory: written by one copy before the first kernel. Behind it lie
 * CudaVisible of every layer and then the block's embeddings h. */
typedef struct CudaInputs {
  int64_t position; /* of the anchor */
  int32_t anchor_token;
  uint32_t met; /* 0; the fast kernel counts meetings of its blocks of threads here */
} CudaInputs;

/* Softmax of a query and its weighted values over one part of the keys: parts 0 .. parts - 2 divide the context, the
 * last one is the block itself. sums [parts][rows * heads][2]: the largest score, the sum of exp(score - largest);
 * mixes [parts][rows * heads][head_dim]. Grid: kv_heads, parts, tiles of CUDA_QUERIES queries. */
typedef struct AttendArgs {
  CudaAddress stamp, q, k, v; /* the block's own */
  CudaAddress visible;        /* of a CudaVisible */
  CudaAddress sums, mixes;
  int32_t rows, heads, kv_heads, head_dim, parts;
  float scale;
} AttendArgs;

/* y = what the parts of a query come to; a warp a query */
typedef struct MixArgs {
  CudaAddress sums, mixes, y;
  int32_t queries, head_dim, parts;
} MixArgs;

/* The `top` largest of every chunk, largest first. An entry is a 64-bit number that orders as logits do and equal ones
 * by lower token: the greater first. One of all ones says that a logit of the row is NaN. From logits [rows][count]
 * when `entries` is 0, else from entries [rows][count]. Grid: chunks, rows; found [rows][chunks][top], with zeros where
 * a chunk has fewer. top_few: from logits, top up to CUDA_FEW_TOP. */
typedef struct TopArgs {
  CudaAddress stamp, logits, entries, found;
  CudaAddress arrived; /* a word that becomes 0 */
  int64_t count;
  int32_t top;
} TopArgs;

/* pairs[j][p][c] = logit(c) + sum((P[p] * hp[j]) * C[c]) for the candidates p of the row before (for row 0 the anchor's
 * token alone) and c of row j; then the walk, by the block that comes last. Grid: 1 + (rows - 1) * top.
 * lists [rows][count][top]: of each chunk, as above; best [rows][top]: of each row, the lists themselves if count is 1,
 * else made of up to CUDA_FEW_LISTS for top up to CUDA_FEW_TOP. arrived: a word that is 0.
 * result, words of 32 bits: chosen [rows], plain [rows], candidates [rows][top], scores [rows][top] f32, and 1 when a
 * logit or a score that counts is NaN, else 0. */
typedef struct ScoresArgs {
  CudaAddress inputs; /* CudaInputs */
  CudaAddress predecessor, successor, hidden, logits, lists;
  CudaAddress best, pairs, arrived, result;
  CudaAddress end_stamp; /* 0, or where the time goes at which all was done */
  int64_t width;
  int32_t before_storage, after_storage, rank, top, rows, count;
} ScoresArgs;

/* sums [grid * CUDA_THREADS] of `count` 16-byte words at data, each read once */
typedef struct ReadArgs {
  CudaAddress data, sums;
  int64_t count;
} ReadArgs;

/* sums [grid * CUDA_THREADS]: 64 multiply-adds of a thread a round */
typedef struct MultiplyArgs {
  CudaAddress sums;
  int32_t rounds;
} MultiplyArgs;

/* The smallest step seen of the clock of stamps, in ns */
typedef struct ClockArgs {
  CudaAddress step;
} ClockArgs;

/* X(name, arguments): every kernel of kernels/plain.cu; structs of tiled_* stand in tiled/layout.h. matrix_STORAGE_FEW
 * and _MANY differ in the rows of x taken at once. */
#define CUDA_KERNELS(X)             \
  X(norm, NormArgs)                 \
  X(rotation, RotationArgs)         \
  X(heads, HeadsArgs)               \
  X(layers_heads, LayersHeadsArgs)  \
  X(conv, ConvArgs)                 \
  X(act, ActArgs)                   \
  X(product_f32_few, ProductArgs)   \
  X(product_f16_few, ProductArgs)   \
  X(product_bf16_few, ProductArgs)  \
  X(product_q8_few, ProductArgs)    \
  X(product_q4_few, ProductArgs)    \
  X(product_i8_few, ProductArgs)    \
  X(product_f32_many, ProductArgs)  \
  X(product_f16_many, ProductArgs)  \
  X(product_bf16_many, ProductArgs) \
  X(product_q8_many, ProductArgs)   \
  X(product_q4_many, ProductArgs)   \
  X(product_i8_many, ProductArgs)   \
  X(product_any, ProductArgs)       \
  X(quantise, QuantiseArgs)         \
  X(halve, HalveArgs)               \
  X(tiled_parts, TiledPartsArgs)    \
  X(tiled_halves, TiledPartsArgs)   \
  X(tiled_scales, TiledScalesArgs)  \
  X(tiled_q4, TiledArgs)            \
  X(tiled_q8, TiledArgs)            \
  X(tiled_q4_f16, TiledArgs)        \
  X(tiled_q8_f16, TiledArgs)        \
  X(tiled_sum, TiledArgs)           \
  X(attend, AttendArgs)             \
  X(mix, MixArgs)                   \
  X(top, TopArgs)                   \
  X(top_few, TopArgs)               \
  X(scores, ScoresArgs)             \
  X(read_stream, ReadArgs)          \
  X(multiply, MultiplyArgs)         \
  X(clock_step, ClockArgs)

#endif
