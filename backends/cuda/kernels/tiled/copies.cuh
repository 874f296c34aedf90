/* A range of a tile's steps, and how its activations and weights come into shared memory. */
#ifndef DFLASH_CUDA_TILED_COPIES_CUH
#define DFLASH_CUDA_TILED_COPIES_CUH

#include "core.cuh"
#include "layout.h"

enum { LINE = CUDA_GROUP * 2 /* bytes of a row's group of activations */ };

struct TiledRange {
  int begin, end, slot; /* steps */
  int first;            /* weight row */
  int matrix;
  int rows;                   /* of x, rounded up */
  const unsigned char *parts; /* of the first step */
};

__device__ __forceinline__ TiledRange tiled_range_of(const TiledArgs &a, int parts, int tile, int begin, int end,
                                                     int slot) {
  const int row_tiles = tiled_row_tiles(a.rows, a.tile_rows), weight_tiles = tiled_weight_tiles(a.out_rows);
  const int row_tile = tile % row_tiles, rest = tile / row_tiles;
  TiledRange r = {begin, end, slot, rest % weight_tiles * TILED_WEIGHTS, rest / weight_tiles, 0, nullptr};
  r.rows = tiled_rows_of(a.rows, a.tile_rows, row_tile);
  r.parts =
      at<const unsigned char>(a.parts) + (int64_t)row_tile * a.tile_rows * a.split.steps * TILED_GROUPS * parts * LINE;
  return r;
}

/* What a thread copies of each step: addresses of the next one. */
struct TiledCopies {
  const unsigned char *parts, *weights, *scales;
  int bytes; /* of activations */
  int next, groups;
  int64_t scales_step;
};

template <class W, int PARTS>
__device__ __forceinline__ TiledCopies tiled_copies(const TiledArgs &a, const TiledRange &r) {
  const TiledMatrix &m = a.matrices[r.matrix];
  const int thread = threadIdx.x, padded = tiled_weight_tiles(a.out_rows) * TILED_WEIGHTS;
  TiledCopies c = {};
  c.next = r.begin * TILED_GROUPS, c.groups = a.groups;
  c.bytes = TILED_GROUPS * PARTS * r.rows * LINE;
  c.parts = r.parts + (int64_t)r.begin * c.bytes + thread * 16;
  c.weights = at<const unsigned char>(m.weights) + (int64_t)c.next * tiled_row_bytes(W::q4);
  c.scales = at<const unsigned char>(m.scales) + ((int64_t)c.next * padded + r.first) * 4;
  c.scales_step = (int64_t)padded * 4;
  return c;
}

/* Weight rows past the last one repeat it; so does the group past the last, whose activations are zeros. */
template <class W>
__device__ __forceinline__ void copy_weights(const TiledArgs &a, const TiledRange &r, const TiledCopies &c,
                                             unsigned char *to) {
  constexpr int row_bytes = tiled_row_bytes(W::q4), of_group = row_bytes / 16, pieces = TILED_GROUPS * of_group;
#pragma unroll
  for (int i = 0; i < TILED_WEIGHTS * pieces; i += CUDA_THREADS) {
    const int row = (i + threadIdx.x) / pieces, piece = (i + threadIdx.x) % pieces, group = piece / of_group;
    const int back = c.next + group < c.groups ? 0 : row_bytes;
    const int64_t from = (int64_t)min(r.first + row, a.out_rows - 1) * c.groups * row_bytes + piece * 16 - back;
    copy_async(to + (group * TILED_WEIGHTS + row) * row_bytes + piece % of_group * 16, c.weights + from);
  }
}

template <class W>
__device__ __forceinline__ void copy_step(const TiledArgs &a, const TiledRange &r, TiledCopies &c, unsigned char *to) {
  const int thread = threadIdx.x, line = thread * 16;
  if (c.next < r.end * TILED_GROUPS) {
#pragma unroll 8
    for (int i = 0; i < c.bytes - line; i += CUDA_THREADS * 16) copy_async(to + line + i, c.parts + i);
    copy_weights<W>(a, r, c, to + c.bytes);
    constexpr int scale_pieces = TILED_WEIGHTS / 4;
    if (W::q4 && thread < TILED_GROUPS * scale_pieces)
      copy_async(to + c.bytes + TILED_GROUPS * TILED_WEIGHTS * tiled_row_bytes(W::q4) + line,
                 c.scales + thread / scale_pieces * c.scales_step + thread % scale_pieces * 16);
    c.parts += c.bytes, c.weights += TILED_GROUPS * tiled_row_bytes(W::q4), c.scales += TILED_GROUPS * c.scales_step;
    c.next += TILED_GROUPS;
  }
  end_copies();
}

#endif
