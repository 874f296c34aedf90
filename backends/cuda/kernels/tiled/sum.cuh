/* What the slots of a tile come to. */
#ifndef DFLASH_CUDA_TILED_SUM_CUH
#define DFLASH_CUDA_TILED_SUM_CUH

#include "core.cuh"
#include "layout.h"

__device__ __forceinline__ void add_slot(const TiledArgs &a, int slot, int row, float4 &sum) {
  const int64_t line = (int64_t)slot * a.tile_rows + row;
  const float4 part = *(at<const float4>(a.sums) + line * (TILED_WEIGHTS / 4) + lane_of());
  sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
}

/* In the order of the columns. */
__device__ __forceinline__ float4 add_slots(const TiledArgs &a, int tile, int row) {
  const TiledSplit &s = a.split;
  const int64_t rest = s.steps - s.covered;
  float4 sum = {0, 0, 0, 0};
  for (int split = 0; split < s.splits; split++) add_slot(a, tiled_range_slot(&s, tile, split), row, sum);
  if (rest == 0) return sum;
  const int last = tiled_owner(&s, (tile + 1) * rest - 1);
  for (int block = tiled_owner(&s, tile * rest); block <= last; block++)
    add_slot(a, tiled_share_slot(&s, tile, block), row, sum);
  return sum;
}

/* Four weight rows of a row of x; out_rows that are a multiple of four have them at an address that is one of 16. */
__device__ __forceinline__ void write_sum(const TiledArgs &a, const TiledMatrix &m, int row, int first, float4 sum) {
  const int exponent = a.exponents != 0 ? at<const int32_t>(a.exponents)[row] : 0;
  float *y = at<float>(m.y) + (int64_t)row * a.out_rows + first;
  float sums[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int n = 0; n < 4; n++)
    if (a.storage == STORED_Q8_2F && first + n < a.out_rows)
      sums[n] *= decode_f16(at<const uint16_t>(m.scales)[first + n]);
  if (exponent != 0)
#pragma unroll
    for (int n = 0; n < 4; n++) sums[n] = ldexpf(sums[n], -exponent);
  if (a.out_rows % 4 == 0) {
    if (first < a.out_rows) *(float4 *)y = {sums[0], sums[1], sums[2], sums[3]};
    return;
  }
#pragma unroll
  for (int n = 0; n < 4; n++)
    if (first + n < a.out_rows) y[n] = sums[n];
}

/* Grid: tiles, rows of each by TILED_SUM_ROWS; a warp a row. */
KERNEL(tiled_sum, TiledArgs) {
  const int row_tiles = tiled_row_tiles(a.rows, a.tile_rows), weight_tiles = tiled_weight_tiles(a.out_rows);
  const int tile = blockIdx.x, row_tile = tile % row_tiles, rest = tile / row_tiles;
  const int in_tile = blockIdx.y * TILED_SUM_ROWS + warp_of(), row = row_tile * a.tile_rows + in_tile;
  delay();
  if (in_tile >= a.tile_rows || row >= a.rows) return;
  const int first = rest % weight_tiles * TILED_WEIGHTS + 4 * lane_of();
  write_sum(a, a.matrices[rest / weight_tiles], row, first, add_slots(a, tile, in_tile));
}

#endif
