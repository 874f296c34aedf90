/* Stored weights to the stream of the fast kernel. */
#ifndef DFLASH_CUDA_FAST_PACK_CUH
#define DFLASH_CUDA_FAST_PACK_CUH

#include "../device.cuh"
#include "arguments.h"

namespace fast_pack {

/* A row of a product: the matrix that it comes from, and its number there. */
struct Source {
  const CudaMatrix *matrix;
  int64_t row;
};
__device__ __forceinline__ Source source_of(const FastPackArgs &a, int row) {
  if (a.product == FAST_GATE_UP) return {&a.matrices[row / FAST_TILE % 2], row / 32 * FAST_TILE + row % FAST_TILE};
  if (a.product != FAST_QKV || row < FAST_QUERY_ROWS) return {&a.matrices[0], row};
  row -= FAST_QUERY_ROWS;
  return {&a.matrices[1 + row / FAST_KV_ROWS], row % FAST_KV_ROWS};
}

/* ---- q8_2f: a lane has of each 16 columns four, of rows g and g + 8 ---- */

/* Four int8 of a row, plus 128. Rows past the last are zero. */
__device__ __forceinline__ uint32_t four_bytes(const FastPackArgs &a, int row, int col) {
  const Source s = source_of(a, row);
  const uint32_t bytes =
      s.row < s.matrix->rows ? *at<const uint32_t>(s.matrix->weights + (uint64_t)(s.row * s.matrix->cols + col)) : 0;
  return bytes ^ 0x80808080u;
}
/* Bytes of two rows in turn. */
__device__ __forceinline__ uint32_t in_turn(uint32_t low, uint32_t high) {
  return (low & 0xff) | (high & 0xff) << 8 | (low & 0xff00) << 8 | (high & 0xff00) << 16;
}
__device__ __forceinline__ float row_scale(const FastPackArgs &a, int row) {
  const Source s = source_of(a, row);
  return s.row < s.matrix->rows ? decode_f16(at<const uint16_t>(s.matrix->scales)[s.row]) : 0.0f;
}
/* Half a warp's columns of a tile: item 0 or 1. */
__device__ __forceinline__ void pack_q8(const FastPackArgs &a, int tile, int first, int half, int lane,
                                        unsigned char *item) {
  const int row = tile * FAST_TILE + lane / 4;
  for (int k = 0; k < 10; k++) {
    const int col = first + (half * 10 + k) * 16 + lane % 4 * 4;
    const uint32_t low = four_bytes(a, row, col), high = four_bytes(a, row + 8, col);
    uint32_t *to = reinterpret_cast<uint32_t *>(item + k / 2 * 512 + lane * 16 + k % 2 * 8);
    to[0] = in_turn(low, high), to[1] = in_turn(low >> 16, high >> 16);
  }
  if (lane < FAST_TILE) reinterpret_cast<float *>(item + FAST_Q8_BYTES)[lane] = row_scale(a, tile * FAST_TILE + lane);
}

/* ---- q4tp: the same four columns, as nibbles ---- */

/* Nibbles 0, 1, 2, 3 at bits 0, 16, 8, 24. */
__device__ __forceinline__ uint32_t spread(uint32_t n) {
  return (n & 0xf) | (n & 0xf0) << 12 | (n & 0xf00) | (n & 0xf000) << 12;
}
__device__ __forceinline__ uint32_t four_nibbles(const FastPackArgs &a, int row, int col) {
  const Source s = source_of(a, row);
  return at<const uint16_t>(s.matrix->weights)[(s.row * s.matrix->cols + col) / 4];
}
__device__ __forceinline__ uint32_t code_of(const FastPackArgs &a, int row, int group) {
  const Source s = source_of(a, row);
  const int64_t row_bytes = (s.matrix->cols / CUDA_GROUP * 5 + 7) / 8;
  const uint8_t *codes = at<const uint8_t>(s.matrix->codes) + s.row * row_bytes + group * 5 / 8;
  const int shift = group * 5 % 8;
  return (codes[0] | (shift > 3 ? (uint32_t)codes[1] << 8 : 0u)) >> shift & 31;
}
/* A code lies five bits from the next, five of them a word, where they are 64 times themselves when shifted down; the
 * fifth is shifted up. */
__device__ __forceinline__ void pack_codes(const FastPackArgs &a, int row, int first, int groups, uint32_t *to) {
  for (int word = 0; word < 2; word++) {
    uint32_t codes = 0;
    for (int i = 0; i < 5 && 5 * word + i < groups; i++)
      codes |= code_of(a, row, first + 5 * word + i) << (i == 4 ? 1 : 6 + 5 * i);
    to[2 * word] = codes;
  }
}
__device__ __forceinline__ void pack_q4(const FastPackArgs &a, int tile, int first, int groups, int lane,
                                        unsigned char *item) {
  const int row = tile * FAST_TILE + lane / 4;
  for (int group = 0; group < groups; group++) {
    const bool paired = group / 2 * 2 + 1 < groups;
    uint32_t *to =
        reinterpret_cast<uint32_t *>(item + group / 2 * 512 + (paired ? lane * 16 + group % 2 * 8 : lane * 8));
    for (int k = 0; k < 2; k++) {
      const int col = first + group * CUDA_GROUP + k * 16 + lane % 4 * 4;
      to[k] = spread(four_nibbles(a, row, col)) | spread(four_nibbles(a, row + 8, col)) << 4;
    }
  }
  if (lane < FAST_TILE)
    pack_codes(a, tile * FAST_TILE + lane, first / CUDA_GROUP, groups,
               reinterpret_cast<uint32_t *>(item + groups * FAST_GROUP_BYTES + lane % 8 * 16 + lane / 8 * 4));
}

/* ---- a warp's part of a product ---- */

__device__ __forceinline__ float vector_element(const FastPackArgs &a, int vector, int col) {
  if (vector == 1 && fast_is_q8(a.product)) return decode_f16(at<const uint16_t>(a.vectors[1])[col]);
  return at<const float>(a.vectors[vector])[col];
}

/* One lane's part of a tile. */
__device__ __forceinline__ void pack_tile(const FastPackArgs &a, int block, int warp, int tile, int lane,
                                          unsigned char *to) {
  const int base = fast_first_column(a.product, block), bytes = fast_item_bytes(a.product, warp);
  if (fast_is_q8(a.product)) {
    for (int half = 0; half < 2; half++) pack_q8(a, tile, base + warp * FAST_SLICE, half, lane, to + half * bytes);
    return;
  }
  pack_q4(a, tile, base + fast_first_group(a.product, warp) * CUDA_GROUP, fast_groups(a.product, warp), lane, to);
  if (warp > 0 || block % 2 > 0 || lane >= FAST_TILE) return;
  const Source s = source_of(a, tile * FAST_TILE + lane);
  at<float2>(a.ladders)[fast_first_ladder(a.product) + tile * FAST_TILE + lane] =
      at<const float2>(s.matrix->scales)[s.row];
}

__device__ __forceinline__ void pack(const FastPackArgs &a, int block, int warp, int thread) {
  const FastRange tiles = fast_tiles(a.product, a.head_rows, block / 2);
  const int vectors = fast_vectors(a.product), first = fast_first_column(a.product, block) + warp * FAST_SLICE;
  unsigned char *to = at<unsigned char>(a.stream + at<const uint64_t>(a.first)[block * FAST_WARPS + warp]);
  for (int i = thread; i < vectors * FAST_SLICE; i += CUDA_THREADS)
    reinterpret_cast<float *>(to)[i] = vector_element(a, i / FAST_SLICE, first + i % FAST_SLICE);
  to += vectors * FAST_VECTOR_BYTES;
  const int64_t bytes = fast_item_bytes(a.product, warp) * fast_items_a_tile(a.product);
  for (int tile = tiles.from + thread / 32; tile < tiles.to; tile += CUDA_WARPS)
    pack_tile(a, block, warp, tile, thread % 32, to + (tile - tiles.from) * bytes);
}

} // namespace fast_pack

KERNEL(fast_pack, FastPackArgs) { fast_pack::pack(a, (int)blockIdx.x, (int)blockIdx.y, (int)threadIdx.x); }

#endif
