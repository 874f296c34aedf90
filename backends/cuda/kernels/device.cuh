/* What all kernels build on. Compiled by nvcc for a device, or by a host's C++ compiler against the emulation of
 * tests/emulated, which has the same names: kernels use nothing of CUDA that does not stand here or there. */
#ifndef DFLASH_CUDA_DEVICE_CUH
#define DFLASH_CUDA_DEVICE_CUH

#include "arguments.h"

#ifdef __CUDACC__
#define SHARED_BYTES(name) extern __shared__ __align__(16) unsigned char name[]
#else
#include "emulated.h"
#define SHARED_BYTES(name) unsigned char *name = emulated_shared()
#endif

#include "delays.cuh"

/* A kernel of CUDA_THREADS threads a block and one struct of arguments, a. */
#define KERNEL(name, Arguments) \
  extern "C" __global__ void __launch_bounds__(CUDA_THREADS) dflash_##name(const __grid_constant__ Arguments a)

/* Storages, as dflash/tensor.h numbers them. */
enum { STORED_F32 = 0, STORED_F16 = 1, STORED_BF16 = 2, STORED_Q8_2F = 9, STORED_Q4TP = 15 };

template <class T> __device__ __forceinline__ T *at(CudaAddress address) { return reinterpret_cast<T *>(address); }

__device__ __forceinline__ int lane_of() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp_of() { return threadIdx.x >> 5; }

/* Nanoseconds of the device's clock. */
__device__ __forceinline__ uint64_t clock_now() {
#ifdef __CUDACC__
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return emulated_clock();
#endif
}

/* The time at which a kernel began, by its first thread; all call it. */
__device__ __forceinline__ void stamp_begin(CudaAddress stamp) {
  delay();
  if (stamp != 0 && (blockIdx.x | blockIdx.y | blockIdx.z | threadIdx.x) == 0) *at<uint64_t>(stamp) = clock_now();
}

/* ---- sums over a warp and over a block: the same order each time ---- */

/* Every lane gets the warp's sums. */
template <int N> __device__ __forceinline__ void warp_sum(float (&values)[N]) {
#ifdef __CUDACC__
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1)
#pragma unroll
    for (int i = 0; i < N; i++) values[i] += __shfl_xor_sync(0xffffffffu, values[i], offset);
#else
  emulated_warp_sum(values, N);
#endif
}

/* NaN is not kept: who must see it looks at the values themselves. */
__device__ __forceinline__ float warp_max(float value) {
#ifdef __CUDACC__
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
#else
  return emulated_warp_max(value);
#endif
}

/* Every lane gets the largest: first by the upper halves, then by the lower ones of those that have that upper one. */
__device__ __forceinline__ uint64_t warp_largest(uint64_t value) {
#ifdef __CUDACC__
  const uint32_t upper = __reduce_max_sync(0xffffffffu, (uint32_t)(value >> 32));
  const uint32_t lower = __reduce_max_sync(0xffffffffu, (uint32_t)(value >> 32) == upper ? (uint32_t)value : 0u);
  return (uint64_t)upper << 32 | lower;
#else
  return emulated_warp_largest(value);
#endif
}

/* Every thread gets the block's sum. `scratch` holds CUDA_WARPS floats and may be used again after the call. */
__device__ __forceinline__ float block_sum(float value, float *scratch) {
  float sum[1] = {value};
  warp_sum(sum);
  if (lane_of() == 0) scratch[warp_of()] = sum[0];
  sync_block();
  float total = 0;
  for (int warp = 0; warp < CUDA_WARPS; warp++) total += scratch[warp];
  sync_block();
  return total;
}

__device__ __forceinline__ float block_max(float value, float *scratch) {
  value = warp_max(value);
  if (lane_of() == 0) scratch[warp_of()] = value;
  sync_block();
  float largest = scratch[0];
  for (int warp = 1; warp < CUDA_WARPS; warp++) largest = fmaxf(largest, scratch[warp]);
  sync_block();
  return largest;
}

/* ---- numbers ---- */

__device__ __forceinline__ float decode_bf16(uint32_t bits) { return __uint_as_float(bits << 16); }

/* The low 16 bits. */
__device__ __forceinline__ float decode_f16(uint32_t bits) {
#ifdef __CUDACC__
  float value;
  asm("{.reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "r"(bits));
  return value;
#else
  return emulated_decode_f16(bits);
#endif
}

/* The nearest f16, ties to even, as f32. */
__device__ __forceinline__ float round_f16(float x) {
#ifdef __CUDACC__
  float value;
  asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "f"(x));
  return value;
#else
  return emulated_round_f16(x);
#endif
}

#endif
