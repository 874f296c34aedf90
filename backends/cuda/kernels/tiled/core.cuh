/* Instructions that tiled products need: copies that run by themselves, products of tensor cores, pairs of 16-bit
 * numbers. */
#ifndef DFLASH_CUDA_TILED_CORE_CUH
#define DFLASH_CUDA_TILED_CORE_CUH

#include "../device.cuh"

/* 16 bytes into shared memory. */
__device__ __forceinline__ void copy_async(unsigned char *to, const unsigned char *from) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from)
               : "memory");
#else
  memcpy(to, from, 16);
#endif
}

__device__ __forceinline__ void end_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

/* Until all but the last N groups of this thread's copies are there. */
template <int N> __device__ __forceinline__ void wait_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#endif
}

/* c[16 x 8] += a[16 x 16] * b[16 x 8] by a warp. Lane 4 g + t has rows g and g + 8 of a and c, column g of b, columns 2
 * t and 2 t + 1 of c. */
template <bool BF16>
__device__ __forceinline__ void multiply_tile(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#ifdef __CUDACC__
  if (BF16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  emulated_multiply_tile(c, a, b0, b1, BF16);
#endif
}

/* Two bf16 or f16: a * b + c of each half, which is exact wherever it is used here. */
template <bool BF16> __device__ __forceinline__ uint32_t pair_fma(uint32_t a, uint32_t b, uint32_t c) {
#ifdef __CUDACC__
  uint32_t d;
  if (BF16)
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  else
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
#else
  return emulated_pair_fma(a, b, c, BF16);
#endif
}

/* Bytes 0 .. 3 of a and 4 .. 7 of b, chosen by the selector's four low nibbles. */
__device__ __forceinline__ uint32_t choose_bytes(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef __CUDACC__
  return __byte_perm(a, b, selector);
#else
  return emulated_choose_bytes(a, b, selector);
#endif
}

/* The bits of the nearest f16 of both, the first in the low half. */
__device__ __forceinline__ uint32_t encode_f16_pair(float low, float high) {
#ifdef __CUDACC__
  uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return emulated_encode_f16(low) | emulated_encode_f16(high) << 16;
#endif
}

#endif
