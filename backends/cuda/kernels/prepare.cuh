/* What profiles i8 and f16 make of activations before a product. */
#ifndef DFLASH_CUDA_PREPARE_CUH
#define DFLASH_CUDA_PREPARE_CUH

#include "device.cuh"

/* Where column i of eight lies: low nibbles of a q4tp word hold the even ones, high nibbles the odd ones. */
__device__ __forceinline__ int place_in_group(int i) { return (i & ~7) | (i & 1) << 2 | (i & 6) >> 1; }

/* Each of step, inverse and product is rounded to f32. A group below 2^-100 is zero; one that is not finite has NaN for
 * its step. A thread a group. */
KERNEL(quantise, QuantiseArgs) {
  stamp_begin(a.stamp);
  const int64_t group = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
  if (group >= a.groups) return;
  const float *x = at<const float>(a.x) + group * CUDA_GROUP;
  int8_t *words = at<int8_t>(a.words) + group * CUDA_GROUP;
  float largest = 0;
  bool finite = true;
  for (int i = 0; i < CUDA_GROUP; i++) {
    largest = fmaxf(largest, fabsf(x[i]));
    finite = finite && fabsf(x[i]) < __uint_as_float(0x7f800000u);
  }
  const bool zero = !finite || largest < 7.8886090522101181e-31f; /* 2^-100 */
  const float inverse = zero ? 0 : __fdiv_rn(127.0f, largest);
  for (int i = 0; i < CUDA_GROUP; i++)
    words[place_in_group(i)] = zero ? 0 : (int8_t)__float2int_rn(__fmul_rn(x[i], inverse));
  at<float>(a.steps)[group] = !finite ? __uint_as_float(0x7fc00000u) : zero ? 0 : __fdiv_rn(largest, 127.0f);
}

/* k of the largest 2^k with largest * 2^k <= 2^14; 0 where there is nothing to scale. */
__device__ __forceinline__ int exponent_for(float largest) {
  if (!(largest > 0) || largest >= __uint_as_float(0x7f800000u)) return 0;
  int exponent; /* largest = fraction * 2^exponent, fraction in [0.5, 1) */
  const float fraction = frexpf(largest, &exponent);
  return (fraction == 0.5f ? 15 : 14) - exponent;
}

KERNEL(halve, HalveArgs) {
  __shared__ float scratch[CUDA_WARPS];
  stamp_begin(a.stamp);
  const float *x = at<const float>(a.x) + blockIdx.x * a.width;
  float *y = at<float>(a.y) + blockIdx.x * a.width, largest = 0;
  for (int64_t i = threadIdx.x; i < a.width; i += CUDA_THREADS) largest = fmaxf(largest, fabsf(x[i]));
  const int exponent = exponent_for(block_max(largest, scratch));
  for (int64_t i = threadIdx.x; i < a.width; i += CUDA_THREADS) y[i] = round_f16(ldexpf(x[i], exponent));
  if (threadIdx.x == 0) at<int32_t>(a.exponents)[blockIdx.x] = exponent;
}

#endif
