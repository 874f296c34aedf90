// How many operations the products of the fast kernel take, with nothing else to do.
#ifndef DFLASH_CUDA_FAST_MEASURE_CUH
#define DFLASH_CUDA_FAST_MEASURE_CUH

#include "core.cuh"

// A round is FAST_ROUND_PRODUCTS products of 64 x 16 weights with 8 rows of activations a warpgroup, all of them zeros.
extern "C" __global__ void __launch_bounds__(CUDA_THREADS) FAST_MULTIPLY(const __grid_constant__ MultiplyArgs a) {
  __shared__ __align__(128) unsigned char zeros[fast::STEP_BYTES];
  const uint32_t weights[4] = {0, 0, 0, 0};
  float sums[2][fast::SUMS] = {};
  for (int i = threadIdx.x; i < fast::STEP_BYTES; i += CUDA_THREADS) zeros[i] = 0;
  fast::fence_products();
  __syncthreads();
  const fast::u64 x = fast::describe(fast::smem_of(zeros));
  for (int round = 0; round < a.rounds; round++) {
    fast::product_fence();
#pragma unroll
    for (int i = 0; i < FAST_ROUND_PRODUCTS; i++) fast::product(sums[i & 1], weights, x, 1);
    fast::product_commit();
    fast::product_wait<0>();
  }
  at<float>(a.sums)[blockIdx.x * CUDA_THREADS + threadIdx.x] = sums[0][0] + sums[1][0];
}

#endif
