/* What tiled products make of activations, and of the scales of q4tp. */
#ifndef DFLASH_CUDA_TILED_PARTS_CUH
#define DFLASH_CUDA_TILED_PARTS_CUH

#include "../prepare.cuh"
#include "../product.cuh"
#include "core.cuh"
#include "layout.h"

__device__ __forceinline__ void exchange(float &a, float &b) {
  const float was = a;
  a = b, b = was;
}

/* Eight columns of a row, times those of the matrix, so that (i, i + 4) come apart together: bytes are in another order
 * than nibbles. Zeros for what is not there. */
__device__ __forceinline__ void load_columns(const TiledPartsArgs &a, int row, int unit, float (&v)[8]) {
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = 0;
  if (row >= a.rows || 8 * unit >= a.cols) return;
  load_f32(at<const float>(a.x) + (int64_t)row * a.cols + 8 * unit, v);
  if (a.columns == 0) return;
  float c[8];
  load_halves<decode_f16>(at<const uint16_t>(a.columns) + 8 * unit, c);
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] *= c[i];
  exchange(v[2], v[4]), exchange(v[3], v[5]);
}

/* Where eight columns of a row's part lie; the next part is a tile's rows further. */
__device__ __forceinline__ uint4 *place_of(const TiledPartsArgs &a, int parts, int row, int unit) {
  const int tile = row / a.tile_rows, in_tile = tiled_rows_of(a.rows, a.tile_rows, tile);
  const int64_t groups = tiled_steps(a.cols / CUDA_GROUP) * TILED_GROUPS,
                before = (int64_t)tile * a.tile_rows * groups * parts;
  const int64_t line = before + (int64_t)(unit / 4) * parts * in_tile + row % a.tile_rows;
  return at<uint4>(a.parts) + line * 4 + unit % 4;
}

/* Units of eight columns of a row, with those that are zeros. */
__device__ __forceinline__ int units_of(const TiledPartsArgs &a) {
  return tiled_steps(a.cols / CUDA_GROUP) * TILED_GROUPS * CUDA_GROUP / 8;
}

/* x is the sum of three bf16, each of which has the next eight bits: all of f32's 24 from 2^-110 on. What is not finite
 * stays so. */
__device__ __forceinline__ void split_number(float x, uint32_t (&parts)[3]) {
  const uint32_t bits = __float_as_uint(x), size = bits & 0x7fffffffu;
  const float rest = size < 0x7f800000u ? x - __uint_as_float(bits & 0xffff0000u) : 0;
  const uint32_t middle = __float_as_uint(rest) & 0xffff0000u;
  parts[0] = size > 0x7f800000u ? 0x7fc00000u : bits & 0xffff0000u;
  parts[1] = middle;
  parts[2] = __float_as_uint(rest - __uint_as_float(middle));
}

KERNEL(tiled_parts, TiledPartsArgs) {
  const int row = blockIdx.x, units = units_of(a);
  const int64_t next = (int64_t)tiled_rows_of(a.rows, a.tile_rows, row / a.tile_rows) * 4;
  delay();
  for (int unit = blockIdx.y * CUDA_THREADS + threadIdx.x; unit < units; unit += gridDim.y * CUDA_THREADS) {
    float v[8];
    uint32_t split[8][3];
    load_columns(a, row, unit, v);
#pragma unroll
    for (int i = 0; i < 8; i++) split_number(v[i], split[i]);
    uint4 *to = place_of(a, 3, row, unit);
#pragma unroll
    for (int p = 0; p < 3; p++)
      to[p * next] = {choose_bytes(split[0][p], split[4][p], 0x7632), choose_bytes(split[1][p], split[5][p], 0x7632),
                      choose_bytes(split[2][p], split[6][p], 0x7632), choose_bytes(split[3][p], split[7][p], 0x7632)};
  }
}

KERNEL(tiled_halves, TiledPartsArgs) {
  __shared__ float scratch[CUDA_WARPS];
  const int row = blockIdx.x, units = units_of(a);
  float v[8], largest = 0;
  delay();
  for (int unit = threadIdx.x; unit < units; unit += CUDA_THREADS) {
    load_columns(a, row, unit, v);
#pragma unroll
    for (int i = 0; i < 8; i++) largest = fmaxf(largest, fabsf(v[i]));
  }
  const int exponent = exponent_for(block_max(largest, scratch));
  for (int unit = threadIdx.x; unit < units; unit += CUDA_THREADS) {
    load_columns(a, row, unit, v);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = ldexpf(v[i], exponent);
    *place_of(a, 1, row, unit) = {encode_f16_pair(v[0], v[4]), encode_f16_pair(v[1], v[5]), encode_f16_pair(v[2], v[6]),
                                  encode_f16_pair(v[3], v[7])};
  }
  if (threadIdx.x == 0 && row < a.rows) at<int32_t>(a.exponents)[row] = exponent;
}

/* The code of a row's group; the next byte is read only where the code reaches into it. */
__device__ __forceinline__ int code_of(const CudaMatrix &m, int64_t row, int group) {
  const int64_t row_bytes = (m.cols / CUDA_GROUP * 5 + 7) / 8;
  const uint8_t *codes = at<const uint8_t>(m.codes) + row * row_bytes + (group * 5 >> 3);
  const int shift = group * 5 & 7;
  uint32_t code = codes[0];
  if (shift > 3) code |= (uint32_t)codes[1] << 8;
  return code >> shift & 31;
}

/* Lane c has rung c of the row's ladder: rung c - 1 times the factor, every product rounded. */
KERNEL(tiled_scales, TiledScalesArgs) {
  __shared__ float rungs[CUDA_WARPS][CUDA_RUNGS];
  const int64_t row = (int64_t)blockIdx.x * CUDA_WARPS + warp_of(), rows = gridDim.x * CUDA_WARPS;
  const int groups = (int)(a.matrix.cols / CUDA_GROUP), all = tiled_steps(groups) * TILED_GROUPS;
  const bool there = row < a.matrix.rows;
  if (there) {
    const float2 ladder = __ldg(at<const float2>(a.matrix.scales) + row);
    float rung = ladder.x;
    for (int c = 0; c < lane_of(); c++) rung = __fmul_rn(rung, ladder.y);
    rungs[warp_of()][lane_of()] = rung;
  }
  delay();
  __syncwarp();
  for (int group = lane_of(); group < all; group += 32)
    at<float>(a.scales)[group * rows + row] =
        there && group < groups ? rungs[warp_of()][code_of(a.matrix, row, group)] : 0;
}

#endif
