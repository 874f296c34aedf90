/* Cosine and sine of any finite f32 angle. */
#ifndef DFLASH_CUDA_NUMBERS_CUH
#define DFLASH_CUDA_NUMBERS_CUH

#include "device.cuh"

/* 32 zeros, then the first 224 bits of 1 / (2 pi) behind the point. */
__device__ __forceinline__ uint32_t turn_word(int index) {
  switch (index) {
  case 1:
    return 0x28be60dbu;
  case 2:
    return 0x9391054au;
  case 3:
    return 0x7f09d5f4u;
  case 4:
    return 0x7d4d3770u;
  case 5:
    return 0x36d8a566u;
  case 6:
    return 0x4f10e410u;
  case 7:
    return 0x7f9458eau;
  default:
    return 0;
  }
}

/* 32 bits of them from bit `first` on */
__device__ __forceinline__ uint64_t turn_bits(int first) {
  const int word = first >> 5, shift = first & 31;
  const uint64_t both = (uint64_t)turn_word(word) << 32 | turn_word(word + 1);
  return both << shift >> 32;
}

/* The part of |angle| / (2 pi) behind the point, in units of 2^-64; pi / 4 <= |angle| < infinity. The angle is
 * mantissa * 2^exponent: the bits of 1 / (2 pi) that the power of two moves before the point count whole turns and are
 * left out. 96 bits of it are multiplied; what is cut off changes the last bit at most. */
__device__ __forceinline__ uint64_t turns_of(float angle) {
  const uint32_t bits = __float_as_uint(angle) & 0x7fffffffu;
  const uint64_t mantissa = (bits & 0x007fffffu) | 0x00800000u;
  const int first = 32 + (int)(bits >> 23) - 150;
  return (mantissa * turn_bits(first) << 32) + mantissa * turn_bits(first + 32) +
         (mantissa * turn_bits(first + 64) >> 32);
}

/* sin and cos of |r| <= pi / 4 in f64: Taylor's series, errors below 1e-12. */
__device__ __forceinline__ double sine_near_zero(double r) {
  const double s = r * r;
  return r + r * s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880 + s * (-1.0 / 39916800)))));
}

__device__ __forceinline__ double cosine_near_zero(double r) {
  const double s = r * r;
  return 1 + s * (-0.5 + s * (1.0 / 24 + s * (-1.0 / 720 + s * (1.0 / 40320 + s * (-1.0 / 3628800 + s / 479001600)))));
}

/* At most 0.51 ulp each at any finite angle; NaN of infinity and NaN. */
__device__ __forceinline__ void cosine_sine(float angle, float *cosine, float *sine) {
  const uint32_t size = __float_as_uint(angle) & 0x7fffffffu;
  if (size >= 0x7f800000u) {
    *cosine = *sine = __uint_as_float(0x7fc00000u);
    return;
  }
  unsigned quarter = 0;
  double r = (double)angle;
  if (size > 0x3f490fdau) { /* pi / 4 */
    const uint64_t turns = turns_of(angle);
    quarter = (unsigned)((turns + (1ull << 61)) >> 62);
    r = (double)(int64_t)(turns - ((uint64_t)quarter << 62)) * 3.4061215800865545e-19; /* 2 pi / 2^64 */
    if (angle < 0) r = -r, quarter = 0u - quarter;
  }
  const float c = (float)cosine_near_zero(r), s = (float)sine_near_zero(r);
  const float turned_c = quarter & 1 ? -s : c, turned_s = quarter & 1 ? c : s;
  *cosine = quarter & 2 ? -turned_c : turned_c;
  *sine = quarter & 2 ? -turned_s : turned_s;
}

#endif
