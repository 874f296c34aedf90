// Meetings of all blocks of threads, and what they leave for each other.
#ifndef DFLASH_CUDA_FAST_MEET_CUH
#define DFLASH_CUDA_FAST_MEET_CUH

#include "multiply.cuh"
namespace fast {
__device__ __forceinline__ void stamp(const Block &b, const Cta &c) {
  if (b.stamps && c.cta == 0 && threadIdx.x == 0) {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    b.stamps[c.syncs] = now;
  }
}
// All that was written before is seen behind the wait, by every block of threads.
__device__ __forceinline__ void meet_arrive(const Block &b, Cta &c) {
  sync_consumers();
  c.syncs++;
  if (threadIdx.x > 0) return;
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(b.barrier) : "memory");
}
__device__ __forceinline__ void meet_wait(const Block &b, const Cta &c) {
  if (threadIdx.x == 0) {
    unsigned seen = 0;
#ifdef WATCH
    long long t0 = clock64();
#endif
    do {
#ifdef WATCH
      if (clock64() - t0 > 400000000ll) {
        printf("stuck cta %d at sync %u, seen %u\n", blockIdx.x, c.syncs, seen);
        __trap();
      }
#endif
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(b.barrier) : "memory");
    } while (seen < c.syncs * CTAS);
  }
  sync_consumers();
  stamp(b, c);
}
__device__ __forceinline__ void meet(const Block &b, Cta &c) {
  meet_arrive(b, c);
  meet_wait(b, c);
}

// A value of the kernel projection, of its row i and row n of x: the sum of its halves.
__device__ __forceinline__ float kernel_value(const Block &b, int i, int n) {
  return __ldcg(b.d + i * ROWS + n) + __ldcg(b.d + (KROWS + i) * ROWS + n);
}
// Those of q, k, v: likewise.
__device__ __forceinline__ float qkv_value(const float *y) {
  static_assert(QKV_HALVES == 2, "");
  return __ldcg(y) + __ldcg(y + ROWS * QKV);
}
// 1 / rms of each row, from the CTAs' sums of squares, [rows][CTAS]. Warps of which none copies.
__device__ __forceinline__ void inverse_rms(const Block &b, const Cta &c) {
  Shared &s = shared_of();
  static_assert(ROWS == 8 * EIGHTS && WARPGROUPS == 4, "");
#pragma unroll
  for (int e = 0; e < EIGHTS; e++) {
    const int row = e * 8 + c.group * 2 + c.quarter;
    if (c.quarter >= 2) break;
    const float *from = b.sums + row * CTAS + c.lane * 4;
    const float4 v = ld4(from), w = c.lane < CTAS / 4 - 32 ? ld4(from + 128) : make_float4(0, 0, 0, 0);
    float sum = ((v.x + v.y) + (v.z + v.w)) + ((w.x + w.y) + (w.z + w.w));
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (c.lane == 0) s.inverse[row] = __fdiv_rn(1.0f, __fsqrt_rn(sum / H + b.eps));
  }
  sync_consumers();
}

// A warp's sum of squares of its columns of row n: [rows][CTAS].
__device__ __forceinline__ void write_sum(const Block &b, const Cta &c, float sum, int n) {
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (c.lane == 0) b.sums[n * CTAS + c.cta] = sum;
}
} // namespace fast

#endif
