/* A tile's sums over a range of its steps. Four times two warps: each has 32 weight rows, decoded once, and half of
 * every 64 rows of x. Sums of 32 columns (q4tp) or 64 (q8_2f) are made by tensor cores, the small parts of activations
 * first, and go to the f32 sums with the group's scale: what the unit cuts off of its sums is no more than that. */
#ifndef DFLASH_CUDA_TILED_PRODUCT_CUH
#define DFLASH_CUDA_TILED_PRODUCT_CUH

#include "core.cuh"
#include "layout.h"

enum {
  WARP_WEIGHTS = 32,
  WARP_TILES = WARP_WEIGHTS / 16,
  WARP_ROWS = TILED_SHARE / 2,
  WARP_EIGHTS = WARP_ROWS / 8, /* of rows of x */
  WARP_SHARES = TILED_ROWS / TILED_SHARE,
  LINE = CUDA_GROUP * 2 /* bytes of a row's group of activations */
};

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

/* ---- weights: a lane's eight columns of a row, as pairs ---- */

/* A bitwise (a & mask) | bits or (a & mask) ^ bits in one instruction, whose constants the compiler would not join. */
__device__ __forceinline__ uint32_t mask_or(uint32_t a, uint32_t mask, uint32_t bits) {
#ifdef __CUDACC__
  uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(mask), "r"(bits));
  return d;
#else
  return (a & mask) | bits;
#endif
}
__device__ __forceinline__ uint32_t mask_xor(uint32_t a, uint32_t mask, uint32_t bits) {
#ifdef __CUDACC__
  uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(d) : "r"(a), "r"(mask), "r"(bits));
  return d;
#else
  return (a & mask) ^ bits;
#endif
}

template <bool BF16> struct TiledQ4 {
  static constexpr bool q4 = true;
  /* nibble - 8, from the bits of 128 + nibble in bf16, of 1024 + nibble in f16 */
  static __device__ __forceinline__ void decode(const unsigned char *row, int t, uint32_t (&pairs)[4]) {
    const uint32_t word = ((const uint32_t *)row)[t];
    const uint32_t bits = BF16 ? 0x43004300u : 0x64006400u, one = BF16 ? 0x3f803f80u : 0x3c003c00u;
#pragma unroll
    for (int i = 0; i < 4; i++)
      pairs[i] = pair_fma<BF16>(mask_or(word >> 4 * i, 0x000f000fu, bits), one, BF16 ? 0xc308c308u : 0xe408e408u);
  }
};

template <bool BF16> struct TiledQ8 {
  static constexpr bool q4 = false;
  /* bf16 has eight bits: the lower seven of the byte above 128, less 128 or, for a negative one, 256. f16: the byte
   * with its top bit turned above 1024, less 1152. */
  static __device__ __forceinline__ uint32_t decode_pair(uint32_t bytes) {
    if (BF16)
      return pair_fma<true>(mask_or(bytes, 0x00800080u, 0x43004300u), 0xbf80bf80u,
                            mask_or(bytes, 0x007f007fu, 0x43004300u));
    return pair_fma<false>(mask_xor(bytes, 0x00ff00ffu, 0x64806480u), 0x3c003c00u, 0xe480e480u);
  }
  static __device__ __forceinline__ void decode(const unsigned char *row, int t, uint32_t (&pairs)[4]) {
    const uint2 words = ((const uint2 *)row)[t];
    pairs[0] = decode_pair(words.x), pairs[1] = decode_pair(words.x >> 8);
    pairs[2] = decode_pair(words.y), pairs[3] = decode_pair(words.y >> 8);
  }
};

template <class W>
__device__ __forceinline__ void decode_group(const unsigned char *weights, uint32_t (&w)[WARP_TILES][2][4]) {
  const int g = lane_of() >> 2, t = lane_of() & 3, bytes = tiled_row_bytes(W::q4);
#pragma unroll
  for (int m = 0; m < WARP_TILES; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint32_t pairs[4];
      W::decode(weights + (16 * m + 8 * half + g) * bytes, t, pairs);
      w[m][0][half] = pairs[0], w[m][0][2 + half] = pairs[1];
      w[m][1][half] = pairs[2], w[m][1][2 + half] = pairs[3];
    }
}

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

/* ---- copies ---- */

/* What a thread copies of each step: addresses of the next one. */
struct TiledCopies {
  const unsigned char *parts, *weights, *scales;
  int bytes; /* of activations */
  int next, groups;
  int64_t scales_step;
};

/* Thread i has piece i % (row's pieces) of a weight row's step. */
template <class W> __device__ __forceinline__ int pieces_of_row() { return TILED_GROUPS * tiled_row_bytes(W::q4) / 16; }

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
