/* The part of CUDA C++ that the kernels use, on a host: a block's threads are fibers that run one at a time, and change
 * only where the block, or a warp, waits for all of its threads. */
#ifndef DFLASH_CUDA_EMULATED_H
#define DFLASH_CUDA_EMULATED_H

#include <cmath>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(threads)
#define __shared__ static /* blocks run one after the other */

/* Kernels in libraries of their own find these in the driver. */
#pragma GCC visibility push(default)
struct EmulatedDim {
  unsigned x, y, z;
};
extern EmulatedDim threadIdx, blockIdx, gridDim;

unsigned char *emulated_shared(); /* the block's dynamic shared memory */
uint64_t emulated_clock();
void emulated_warp_sum(float *values, int count); /* by halves, as shuffles add */
float emulated_warp_max(float value);
uint64_t emulated_warp_largest(uint64_t value);
float emulated_decode_f16(uint32_t bits);
float emulated_round_f16(float x);
uint32_t emulated_encode_f16(float x);
/* As kernels/tiled/core.cuh has them. */
void emulated_multiply_tile(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, bool bf16);
uint32_t emulated_pair_fma(uint32_t a, uint32_t b, uint32_t c, bool bf16);
uint32_t emulated_choose_bytes(uint32_t a, uint32_t b, uint32_t selector);

void __syncthreads();
void __syncwarp();
#pragma GCC visibility pop
inline void __threadfence() {}

/* Fibers change at waits alone. */
template <class T> T atomicAdd(T *at, T value) {
  const T before = *at;
  *at += value;
  return before;
}

struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }

template <class T> T __ldg(const T *from) { return *from; }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }

inline uint32_t __float_as_uint(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __uint_as_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline int __float2int_rn(float x) { return (int)rintf(x); }
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; i++) sum += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
  return sum;
}

#endif
