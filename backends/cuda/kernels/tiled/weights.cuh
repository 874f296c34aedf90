/* Weights of a group for tensor cores: a lane's eight columns of a row, as pairs of 16-bit numbers. */
#ifndef DFLASH_CUDA_TILED_WEIGHTS_CUH
#define DFLASH_CUDA_TILED_WEIGHTS_CUH

#include "core.cuh"
#include "layout.h"

enum { WARP_WEIGHTS = 32 /* rows of a warp */, WARP_TILES = WARP_WEIGHTS / 16 };

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

#endif
