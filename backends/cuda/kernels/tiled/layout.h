/* Products of stored matrices with many rows of x, in tiles: what they take, and who takes which part of the work. The
 * same to the host and to the device.
 *
 * The columns go in steps of two groups of 32. Activations are 16-bit parts (three bf16 whose sum is the f32, or one
 * f16): [tiles of rows][groups, an even number][parts][rows of the tile][32], the last tile's rows rounded up to
 * TILED_PAD; what is not there is zero. Columns lie in the order in which words of weights come apart: of every eight 0
 * 4 1 5 2 6 3 7 for nibbles, of every four 0 2 1 3 for bytes.
 *
 * A tile is TILED_WEIGHTS weight rows by all of up to `tile_rows` rows of x. Its steps are divided into `splits` even
 * ranges, each a block of threads of its own, all of which walk through the columns at the same pace; what is left of
 * the steps of all tiles is divided evenly among the blocks of threads that are left. The sums of a range lie in a
 * slot; tiled_sum adds the slots of a tile in the order of its steps. */
#ifndef DFLASH_CUDA_TILED_LAYOUT_H
#define DFLASH_CUDA_TILED_LAYOUT_H

#include "../arguments.h"

enum {
  TILED_LEAST = 32,    /* rows of x from which on products are tiled */
  TILED_WEIGHTS = 128, /* weight rows of a tile */
  TILED_ROWS = 256,    /* rows of x of a tile at most */
  TILED_SHARE = 64,    /* rows of x that two warps take at once, half each */
  TILED_PAD = 32,
  TILED_GROUPS = 2,                       /* of a step */
  TILED_SUM_ROWS = 8,                     /* of x, whose slots a block of threads adds */
  TILED_AT_ONCE = 2 * CUDA_LAYERS_AT_ONCE /* matrices of a launch: k and v of each */
};

typedef struct TiledMatrix {
  CudaAddress weights;
  CudaAddress scales; /* q4tp: f32 [groups, an even number][out_rows, rounded up to TILED_WEIGHTS]; q8_2f: f16 a row */
  CudaAddress y;      /* [rows][out_rows] */
} TiledMatrix;

typedef struct TiledSplit {
  int32_t tiles, steps;
  int32_t splits, covered; /* ranges of a tile, and steps that they take together */
  int32_t left;            /* blocks of threads for the other steps */
} TiledSplit;

/* Matrices of one shape and storage. */
typedef struct TiledArgs {
  CudaAddress parts, sums;
  CudaAddress exponents; /* 0, or of each row of x: y is what is summed up times 2^-exponent */
  int32_t rows, tile_rows, out_rows, groups, storage;
  TiledSplit split;
  TiledMatrix matrices[TILED_AT_ONCE];
} TiledArgs;

/* x [rows][cols], times the columns' f16 where columns is not 0. tiled_halves: exponents as HalveArgs has them. Grid:
 * the rows, rounded up to TILED_PAD; y: shares of a row, 1 for tiled_halves. */
typedef struct TiledPartsArgs {
  CudaAddress x, columns, parts, exponents;
  int32_t rows, cols, tile_rows;
} TiledPartsArgs;

/* The scales of a q4tp matrix as tiles read them; a warp a row, of out_rows rounded up to TILED_WEIGHTS. */
typedef struct TiledScalesArgs {
  CudaMatrix matrix;
  CudaAddress scales;
} TiledScalesArgs;

#ifdef __CUDACC__
#define TILED_INLINE constexpr __host__ __device__ __forceinline__
#elif defined(__cplusplus)
#define TILED_INLINE constexpr inline
#else
#define TILED_INLINE static inline
#endif

TILED_INLINE int32_t tiled_round_up(int32_t value, int32_t step) { return (value + step - 1) / step * step; }

/* Rows of x of a tile, with those that are zeros. */
TILED_INLINE int32_t tiled_rows_of(int32_t rows, int32_t tile_rows, int32_t tile) {
  const int32_t left = tiled_round_up(rows, TILED_PAD) - tile * tile_rows;
  return left < tile_rows ? left : tile_rows;
}

TILED_INLINE int32_t tiled_row_tiles(int32_t rows, int32_t tile_rows) { return (rows + tile_rows - 1) / tile_rows; }
TILED_INLINE int32_t tiled_weight_tiles(int32_t out_rows) { return (out_rows + TILED_WEIGHTS - 1) / TILED_WEIGHTS; }

TILED_INLINE int32_t tiled_steps(int32_t groups) { return (groups + TILED_GROUPS - 1) / TILED_GROUPS; }

/* Even shares of `tiles` times `steps` among `blocks` blocks of threads. */
TILED_INLINE TiledSplit tiled_split(int32_t tiles, int32_t steps, int32_t blocks) {
  TiledSplit s = {tiles, steps, blocks / tiles, steps, 0};
  if (s.splits > steps) s.splits = steps;
  s.left = blocks - s.splits * tiles;
  if (s.left == 0) return s;
  const int32_t share = (int32_t)(((int64_t)tiles * steps + blocks - 1) / blocks);
  s.covered = s.splits * share < steps ? s.splits * share : steps;
  const int64_t rest = (int64_t)tiles * (steps - s.covered);
  if (s.left > rest) s.left = (int32_t)rest; /* nobody comes away empty */
  return s;
}

/* Where range `split` of a tile begins; that of the number of splits: where the last one ends. */
TILED_INLINE int32_t tiled_range(const TiledSplit *s, int32_t split) {
  return s->splits > 0 ? (int32_t)((int64_t)split * s->covered / s->splits) : 0;
}

/* The other steps of all tiles, one after the other: how many, and where the share of a block of threads begins. */
TILED_INLINE int64_t tiled_rest(const TiledSplit *s) { return (int64_t)s->tiles * (s->steps - s->covered); }
TILED_INLINE int64_t tiled_share(const TiledSplit *s, int32_t block) {
  return s->left > 0 ? block * tiled_rest(s) / s->left : 0;
}
/* The block of threads whose share has this one of them. */
TILED_INLINE int32_t tiled_owner(const TiledSplit *s, int64_t one) {
  return (int32_t)(((one + 1) * s->left - 1) / tiled_rest(s));
}

/* Slots: of a tile's ranges, then one for each step from a tile to the next or from a block to the next. */
TILED_INLINE int32_t tiled_range_slot(const TiledSplit *s, int32_t tile, int32_t split) {
  return tile * s->splits + split;
}
TILED_INLINE int32_t tiled_share_slot(const TiledSplit *s, int32_t tile, int32_t block) {
  return s->splits * s->tiles + tile + block;
}
TILED_INLINE int64_t tiled_slots(const TiledSplit *s) { return (int64_t)s->splits * s->tiles + s->tiles + s->left; }

/* ---- shared memory: a ring of steps, of each the activations, the weights, the scales of q4tp ---- */

TILED_INLINE int32_t tiled_stages(int32_t parts) { return parts == 1 ? 3 : 2; }
TILED_INLINE int32_t tiled_row_bytes(int q4) { return q4 ? CUDA_GROUP / 2 : CUDA_GROUP; }
TILED_INLINE int32_t tiled_step_bytes(int32_t parts, int q4, int32_t tile_rows) {
  return TILED_GROUPS * (parts * tile_rows * CUDA_GROUP * 2 + TILED_WEIGHTS * (tiled_row_bytes(q4) + (q4 ? 4 : 0)));
}
TILED_INLINE int32_t tiled_shared_bytes(int32_t parts, int q4, int32_t tile_rows) {
  return tiled_stages(parts) * tiled_step_bytes(parts, q4, tile_rows);
}

#endif
