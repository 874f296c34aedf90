/* A tile's sums over a range of its steps. Four times two warps: each has 32 weight rows, decoded once, and half of
 * every 64 rows of x. Sums of 32 columns (q4tp) or 64 (q8_2f) are made by tensor cores, the small parts of activations
 * first, and go to the f32 sums with the group's scale: what the unit cuts off of its sums is no more than that. */
#ifndef DFLASH_CUDA_TILED_PRODUCT_CUH
#define DFLASH_CUDA_TILED_PRODUCT_CUH

#include "copies.cuh"
#include "weights.cuh"

enum {
  WARP_ROWS = TILED_SHARE / 2,
  WARP_EIGHTS = WARP_ROWS / 8, /* of rows of x */
  WARP_SHARES = TILED_ROWS / TILED_SHARE
};

/* ---- a step ---- */

struct TiledSums {
  float of[WARP_SHARES][WARP_EIGHTS][WARP_TILES][4];
};
typedef float TiledProducts[WARP_EIGHTS][WARP_TILES][4];

/* Of a group and a part. */
template <bool BF16>
__device__ __forceinline__ void multiply_part(const unsigned char *x, const uint32_t (&w)[WARP_TILES][2][4],
                                              TiledProducts &products) {
  uint4 columns[WARP_EIGHTS];
#pragma unroll
  for (int n = 0; n < WARP_EIGHTS; n++) columns[n] = *(const uint4 *)(x + 8 * n * LINE);
#pragma unroll
  for (int n = 0; n < WARP_EIGHTS; n++)
#pragma unroll
    for (int m = 0; m < WARP_TILES; m++) multiply_tile<BF16>(products[n][m], w[m][0], columns[n].x, columns[n].y);
#pragma unroll
  for (int n = 0; n < WARP_EIGHTS; n++)
#pragma unroll
    for (int m = 0; m < WARP_TILES; m++) multiply_tile<BF16>(products[n][m], w[m][1], columns[n].z, columns[n].w);
}

template <bool Q4>
__device__ __forceinline__ void add_products(const TiledProducts &products, const float *scales,
                                             float (&sums)[WARP_EIGHTS][WARP_TILES][4]) {
#pragma unroll
  for (int m = 0; m < WARP_TILES; m++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float scale = Q4 ? scales[16 * m + 8 * (i / 2)] : 1;
#pragma unroll
      for (int n = 0; n < WARP_EIGHTS; n++)
        sums[n][m][i] = Q4 ? fmaf(products[n][m][i], scale, sums[n][m][i]) : sums[n][m][i] + products[n][m][i];
    }
}

/* GROUPS groups whose products make one sum: all rows of x that are the warp's. */
template <class W, bool BF16, int PARTS, int GROUPS>
__device__ __forceinline__ void multiply_groups(const unsigned char *x, int rows, const unsigned char *weights,
                                                const float *scales, TiledSums &sums) {
  const int g = lane_of() >> 2, t = lane_of() & 3, part_bytes = rows * LINE;
  uint32_t w[GROUPS][WARP_TILES][2][4];
#pragma unroll
  for (int group = 0; group < GROUPS; group++)
    decode_group<W>(weights + group * TILED_WEIGHTS * tiled_row_bytes(W::q4), w[group]);
#pragma unroll
  for (int share = 0; share < WARP_SHARES; share++) {
    const int row = share * TILED_SHARE + warp_of() % 2 * WARP_ROWS;
    if (row >= rows) continue;
    const unsigned char *from = x + (row + g) * LINE + t * 16;
    TiledProducts products = {};
#pragma unroll
    for (int part = PARTS - 1; part >= 0; part--)
#pragma unroll
      for (int group = 0; group < GROUPS; group++)
        multiply_part<BF16>(from + (group * PARTS + part) * part_bytes, w[group], products);
    add_products<W::q4>(products, scales, sums.of[share]);
  }
}

/* q4tp has a scale a group. */
template <class W, bool BF16, int PARTS>
__device__ __forceinline__ void multiply_step(const unsigned char *step, int rows, TiledSums &sums) {
  constexpr int groups = W::q4 ? 1 : TILED_GROUPS, row_bytes = tiled_row_bytes(W::q4);
  const int group_bytes = PARTS * rows * LINE, first = warp_of() / 2 * WARP_WEIGHTS;
  const unsigned char *weights = step + TILED_GROUPS * group_bytes;
  const float *scales = (const float *)(weights + TILED_GROUPS * TILED_WEIGHTS * row_bytes) + first + (lane_of() >> 2);
#pragma unroll
  for (int group = 0; group < TILED_GROUPS; group += groups)
    multiply_groups<W, BF16, PARTS, groups>(step + group * group_bytes, rows,
                                            weights + (group * TILED_WEIGHTS + first) * row_bytes,
                                            scales + group * TILED_WEIGHTS, sums);
}

/* ---- a range, a kernel ---- */

/* Slot: [tile_rows][TILED_WEIGHTS] */
__device__ __forceinline__ void write_slot(const TiledArgs &a, const TiledRange &r, const TiledSums &sums) {
  const int g = lane_of() >> 2, t = lane_of() & 3, first = warp_of() / 2 * WARP_WEIGHTS;
  float *slot = at<float>(a.sums) + (int64_t)r.slot * a.tile_rows * TILED_WEIGHTS + first + g;
#pragma unroll
  for (int share = 0; share < WARP_SHARES; share++) {
    const int row = share * TILED_SHARE + warp_of() % 2 * WARP_ROWS;
    if (row >= r.rows) continue;
#pragma unroll
    for (int n = 0; n < WARP_EIGHTS; n++)
#pragma unroll
      for (int m = 0; m < WARP_TILES; m++)
#pragma unroll
        for (int i = 0; i < 4; i++)
          slot[(row + 8 * n + 2 * t + i % 2) * TILED_WEIGHTS + 16 * m + 8 * (i / 2)] = sums.of[share][n][m][i];
  }
}

template <class W, bool BF16, int PARTS>
__device__ __forceinline__ void multiply_range(const TiledArgs &a, const TiledRange &r, unsigned char *ring) {
  constexpr int stages = tiled_stages(PARTS);
  const int size = tiled_step_bytes(PARTS, W::q4, a.tile_rows);
  TiledCopies copies = tiled_copies<W, PARTS>(a, r);
  TiledSums sums = {};
  int here = 0, ahead = 0; /* in the ring: the step that is multiplied, and the one that is copied */
#pragma unroll
  for (int i = 0; i < stages - 1; i++, ahead += size) copy_step<W>(a, r, copies, ring + ahead);
  for (int step = r.begin; step < r.end; step++) {
    wait_copies<stages - 2>();
    sync_block(); /* what others copied is there, and nobody reads the step before */
    copy_step<W>(a, r, copies, ring + ahead);
    multiply_step<W, BF16, PARTS>(ring + here, r.rows, sums);
    here = here == (stages - 1) * size ? 0 : here + size;
    ahead = ahead == (stages - 1) * size ? 0 : ahead + size;
  }
  write_slot(a, r, sums);
  sync_block(); /* the ring may be filled again */
}

/* The range of a block of threads, or the ranges that its share of the other steps falls into. */
template <class W, bool BF16, int PARTS> __device__ __forceinline__ void multiply_tiled(const TiledArgs &a) {
  SHARED_BYTES(ring);
  const TiledSplit &s = a.split;
  const int block = blockIdx.x, share = block - s.splits * s.tiles, rest = s.steps - s.covered;
  const bool whole = share < 0;
  int64_t one = whole ? 0 : tiled_share(&s, share);
  const int64_t end = whole ? 1 : tiled_share(&s, share + 1);
  while (one < end) {
    const int tile = whole ? block % s.tiles : (int)(one / rest), split = whole ? block / s.tiles : 0;
    const int begin = whole ? tiled_range(&s, split) : s.covered + (int)(one % rest);
    const int count = whole ? tiled_range(&s, split + 1) - begin : (int)min(end - one, (int64_t)(s.steps - begin));
    const int slot = whole ? tiled_range_slot(&s, tile, split) : tiled_share_slot(&s, tile, share);
    multiply_range<W, BF16, PARTS>(a, tiled_range_of(a, PARTS, tile, begin, begin + count, slot), ring);
    one += count;
  }
}

KERNEL(tiled_q4, TiledArgs) { multiply_tiled<TiledQ4<true>, true, 3>(a); }
KERNEL(tiled_q8, TiledArgs) { multiply_tiled<TiledQ8<true>, true, 3>(a); }
KERNEL(tiled_q4_f16, TiledArgs) { multiply_tiled<TiledQ4<false>, false, 1>(a); }
KERNEL(tiled_q8_f16, TiledArgs) { multiply_tiled<TiledQ8<false>, false, 1>(a); }

#endif
