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

/* What a warp of a warpgroup reads of a chunk. */
struct Part {
  int row, col; /* the first */
  int lane;
  unsigned char *to;
};

/* Where a lane has the two words of a step of 16 columns: those of two steps together, that of a last one behind. */
__device__ __forceinline__ uint32_t *words_of(const Part &p, int step, int steps) {
  const bool paired = step / 2 * 2 + 1 < steps;
  return reinterpret_cast<uint32_t *>(p.to + step / 2 * 512 + (paired ? p.lane * 16 + step % 2 * 8 : p.lane * 8));
}

/* ---- q8_2f: a lane has of 16 columns 2 t, 2 t + 1 and the same plus 8, of rows g and g + 8 ---- */

/* Two int8 of a row, plus 128, in bytes 0 and 2. Rows past the last are zero. */
__device__ __forceinline__ uint32_t two_bytes(const FastPackArgs &a, int row, int col) {
  const Source s = source_of(a, row);
  uint32_t bytes = 0;
  if (s.row < s.matrix->rows) bytes = at<const uint16_t>(s.matrix->weights)[(s.row * s.matrix->cols + col) / 2];
  bytes ^= 0x8080u;
  return (bytes & 0xff) | (bytes & 0xff00) << 8;
}
__device__ __forceinline__ void pack_q8(const FastPackArgs &a, const Part &p) {
  const int row = p.row + p.lane / 4;
  for (int step = 0; step < FAST_Q8_STEPS; step++) {
    uint32_t *to = words_of(p, step, FAST_Q8_STEPS);
    for (int i = 0; i < 2; i++) {
      const int col = p.col + step * 16 + p.lane % 4 * 2 + 8 * i;
      to[i] = two_bytes(a, row, col) | two_bytes(a, row + 8, col) << 8;
    }
  }
}

/* ---- q4tp: the same columns and rows, as nibbles; two steps of 16 columns are a group ---- */

/* Two nibbles of a row at bits 0 and 16. */
__device__ __forceinline__ uint32_t two_nibbles(const FastPackArgs &a, int row, int col) {
  const Source s = source_of(a, row);
  const uint32_t n = at<const uint8_t>(s.matrix->weights)[(s.row * s.matrix->cols + col) / 2];
  return (n & 0xf) | (n & 0xf0) << 12;
}
__device__ __forceinline__ uint32_t eight_nibbles(const FastPackArgs &a, int row, int col) {
  return two_nibbles(a, row, col) | two_nibbles(a, row + 8, col) << 4 | two_nibbles(a, row, col + 8) << 8 |
         two_nibbles(a, row + 8, col + 8) << 12;
}
__device__ __forceinline__ uint32_t code_of(const FastPackArgs &a, int row, int group) {
  const Source s = source_of(a, row);
  const int64_t row_bytes = (s.matrix->cols / CUDA_GROUP * 5 + 7) / 8;
  const uint8_t *codes = at<const uint8_t>(s.matrix->codes) + s.row * row_bytes + group * 5 / 8;
  const int shift = group * 5 % 8;
  return (codes[0] | (shift > 3 ? (uint32_t)codes[1] << 8 : 0u)) >> shift & 31;
}
/* A code lies five bits from the next, where it is 256 times itself when shifted down; the fifth is shifted up. */
__device__ __forceinline__ uint32_t pack_codes(const FastPackArgs &a, int row, int first, int groups) {
  uint32_t codes = 0;
  for (int i = 0; i < groups; i++) codes |= code_of(a, row, first + i) << (i == 4 ? 3 : 8 + 5 * i);
  return codes;
}
__device__ __forceinline__ void pack_q4(const FastPackArgs &a, const Part &p, int groups) {
  const int row = p.row + p.lane / 4;
  for (int group = 0; group < groups; group++) {
    uint32_t *to = words_of(p, group, groups);
    const int col = p.col + group * CUDA_GROUP + p.lane % 4 * 2;
    to[0] = eight_nibbles(a, row, col), to[1] = eight_nibbles(a, row, col + 16);
  }
  if (p.lane >= FAST_TILE) return;
  uint32_t *to = reinterpret_cast<uint32_t *>(p.to + groups * FAST_GROUP_BYTES + p.lane % 8 * 8 + p.lane / 8 * 4);
  *to = pack_codes(a, p.row + p.lane, p.col / CUDA_GROUP, groups);
}

/* ---- what a block of threads reads of a product ---- */

__device__ __forceinline__ float vector_element(const FastPackArgs &a, int vector, int col) {
  if (vector == 1 && fast_is_q8(a.product)) return decode_f16(at<const uint16_t>(a.vectors[1])[col]);
  return at<const float>(a.vectors[vector])[col];
}
__device__ __forceinline__ void pack_vectors(const FastPackArgs &a, int first, int thread, float *to) {
  const int width = fast_group_columns(a.product), pairs = 2 * width * FAST_WARPGROUPS;
  const int count = fast_vectors(a.product) * fast_block_columns(a.product);
  for (int i = thread; i < count; i += CUDA_THREADS) {
    const int vector = i < pairs ? i / width % 2 : 2;
    const int col = i < pairs ? i / (2 * width) * width + i % width : i - pairs;
    to[i] = vector_element(a, vector, first + col);
  }
}

/* Before a unit's chunks: what each row has. */
__device__ __forceinline__ void pack_ladder(const FastPackArgs &a, int unit, int thread, unsigned char *to) {
  if (thread >= FAST_UNIT) return;
  const Source s = source_of(a, unit * FAST_UNIT + thread);
  if (!fast_is_q8(a.product))
    reinterpret_cast<float2 *>(to)[thread] = at<const float2>(s.matrix->scales)[s.row];
  else
    reinterpret_cast<float *>(to)[thread] =
        s.row < s.matrix->rows ? decode_f16(at<const uint16_t>(s.matrix->scales)[s.row]) : 0.0f;
}

__device__ __forceinline__ void pack_chunk(const FastPackArgs &a, int unit, int chunk, int first, int thread,
                                           unsigned char *to) {
  const int bytes = fast_chunk_bytes(a.product, chunk), width = fast_group_columns(a.product);
  for (int warp = thread / 32; warp < FAST_WARPS; warp += CUDA_WARPS) {
    Part p = {unit * FAST_UNIT + warp % 4 * FAST_TILE, first + warp / 4 * width, thread % 32,
              to + warp / 4 * bytes + warp % 4 * (bytes / 4)};
    p.col += fast_is_q8(a.product) ? chunk * FAST_Q8_STEPS * 16 : fast_groups_before(a.product, chunk) * CUDA_GROUP;
    if (fast_is_q8(a.product))
      pack_q8(a, p);
    else
      pack_q4(a, p, fast_groups(a.product, chunk));
  }
}

/* Every FAST_PACK_SHARES-th unit from `share` on; the vectors by share 0. */
__device__ __forceinline__ void pack(const FastPackArgs &a, int block, int share, int thread) {
  const FastShare units = fast_share(a.product, a.head_rows, block / 2);
  const int first = fast_first_column(a.product, block);
  unsigned char *to = at<unsigned char>(a.stream + at<const uint64_t>(a.first)[block]);
  if (units.count == 0) return;
  if (share == 0 && units.first == 0)
    pack_vectors(a, first, thread, at<float>(a.vectors_to + fast_vectors_at(0, a.product, block)));
  for (int i = share; i < units.count; i += FAST_PACK_SHARES) {
    unsigned char *chunk_to = to + (int64_t)i * fast_unit_bytes(a.product);
    const int unit = units.first + i * units.step;
    pack_ladder(a, unit, thread, chunk_to);
    chunk_to += fast_ladder_bytes(a.product);
    for (int chunk = 0; chunk < fast_chunks(a.product); chunk++) {
      pack_chunk(a, unit, chunk, first, thread, chunk_to);
      chunk_to += FAST_WARPGROUPS * fast_chunk_bytes(a.product, chunk);
    }
  }
}

} // namespace fast_pack

KERNEL(fast_pack, FastPackArgs) { fast_pack::pack(a, (int)blockIdx.x, (int)blockIdx.y, (int)threadIdx.x); }

#endif
