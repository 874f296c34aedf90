// Core of the persistent kernel: ring, products, reductions, barriers.
#ifndef DFLASH_CUDA_FAST_CORE_CUH
#define DFLASH_CUDA_FAST_CORE_CUH

#include "../device.cuh"
#include "arguments.h"
#ifdef WATCH // to be defined by hand: a wait without end says where it is, and ends the kernel
#include <cstdio>
#endif

namespace fast {
constexpr int WARPS = FAST_WARPS, THREADS = FAST_THREADS, WARPGROUPS = FAST_WARPGROUPS;
constexpr int PARTS = FAST_PARTS;                // of an activation: three bf16 numbers hold it whole, one is f16
constexpr int ROWS = FAST_X_ROWS;                // of activations
constexpr int ATTEND_PARTS = PARTS == 3 ? 3 : 2; // words of two numbers of attention: bf16 parts, or tf32
static_assert(ROWS == 8 || (ROWS == 16 && PARTS == 1), "");

typedef unsigned long long u64;

__device__ __forceinline__ uint32_t smem_of(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void mbar_init(uint32_t bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count));
}
#ifdef WATCH
__device__ __forceinline__ void mbar_wait(uint32_t bar, uint32_t parity) {
  uint32_t ok = 0;
  long long t0 = clock64();
  while (!ok) {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(ok)
                 : "r"(bar), "r"(parity)
                 : "memory");
    if (clock64() - t0 > 200000000ll) {
      printf("stuck cta %d thread %d bar %u parity %u\n", blockIdx.x, threadIdx.x, bar, parity);
      __trap();
    }
  }
}
__device__ __forceinline__ void mbar_wait_cluster(uint32_t bar, uint32_t parity) { mbar_wait(bar, parity); }
#else
__device__ __forceinline__ void mbar_wait(uint32_t bar, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra "
               "AGAIN;\nDONE:\n}" ::"r"(bar),
               "r"(parity)
               : "memory");
}
__device__ __forceinline__ void mbar_wait_cluster(uint32_t bar, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@p "
               "bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(bar),
               "r"(parity)
               : "memory");
}
#endif
__device__ __forceinline__ void mbar_arrive(uint32_t bar) {
  delay_thread();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void mbar_expect(uint32_t bar, uint32_t bytes) {
  delay_thread();
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ u64 stream_policy() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ u64 shared_policy() { // of what other blocks of threads read, too
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t bar, u64 policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(bar), "l"(policy)
      : "memory");
}
// A value that the compiler computes anew from: what follows from it is not kept in registers for long.
__device__ __forceinline__ uint32_t anew(uint32_t v) {
  asm volatile("" : "+r"(v));
  return v;
}
__device__ __forceinline__ uint32_t map_rank(uint32_t address, uint32_t rank) {
  uint32_t out;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(address), "r"(rank));
  return out;
}
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ __forceinline__ void sync_consumers() {
  delay();
  asm volatile("bar.sync 1, 512;" ::: "memory");
  delay();
}

__device__ __forceinline__ void sync_warpgroup(uint32_t group) {
  delay();
  asm volatile("bar.sync %0, 128;" ::"r"(group + 2) : "memory");
  delay();
}

// ---- products of a warpgroup: 64 rows of weights in registers, [parts][8 or 16] rows of activations in shared memory
// Of 16 columns there lie [part][half of the columns][row][8 columns].
constexpr int STEP_BYTES = 32 * ROWS * PARTS;           // of 16 columns
constexpr int STEP = STEP_BYTES / 16;                   // the same as an addend of a description
constexpr int VALUES = ROWS / 2, SUMS = VALUES * PARTS; // of a thread: two rows of weights, ROWS / 4 rows of x
__device__ __forceinline__ u64 describe(uint32_t address) {
  const u64 columns = ROWS, rows = ROWS == 8 ? 256 >> 4 : 128 >> 4; // from half to half, from eight rows to eight
  return (address >> 4 & 0x3fff) | columns << 16 | rows << 32;
}
__device__ __forceinline__ void product_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void product_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void product_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
// d = (add ? d : 0) + a x. Until it is waited for, neither d nor a may be touched.
__device__ __forceinline__ void product(float (&d)[12], const uint32_t a[4], u64 x, int add) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %17, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n24k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11}, "
               "{%12,%13,%14,%15}, %16, p, 1, 1, 0;\n}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(add));
}
__device__ __forceinline__ void product(float (&d)[4], const uint32_t a[4], u64 x, int add) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %9, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p, 1, 1, 0;\n}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(add));
}
__device__ __forceinline__ void product(float (&d)[8], const uint32_t a[4], u64 x, int add) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %13, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, p, "
               "1, 1, 0;\n}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(add));
}
// The sum of the parts' sums.
__device__ __forceinline__ float sum_of_parts(const float (&d)[12], int i) { return d[i] + (d[4 + i] + d[8 + i]); }
template <int N> __device__ __forceinline__ float sum_of_parts(const float (&d)[N], int i) { return d[i]; }

__device__ __forceinline__ uint32_t add_f16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
__device__ __forceinline__ uint32_t fma_f16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
__device__ __forceinline__ uint32_t add_bf16x2(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
// (a & m) | o, one instruction.
__device__ __forceinline__ uint32_t and_or(uint32_t a, uint32_t m, uint32_t o) {
  uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(m), "r"(o));
  return d;
}
// (a & m) ^ o, one instruction.
__device__ __forceinline__ uint32_t and_xor(uint32_t a, uint32_t m, uint32_t o) {
  uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(d) : "r"(a), "r"(m), "r"(o));
  return d;
}
__device__ __forceinline__ void lds128(uint32_t at, uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d) {
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
}
__device__ __forceinline__ void sts32(uint32_t at, uint32_t a) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(a) : "memory");
}
// What was written to shared memory before is seen by products.
__device__ __forceinline__ void fence_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void lds64(uint32_t at, uint32_t &a, uint32_t &b) {
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(at));
}
__device__ __forceinline__ float lds(uint32_t at) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at));
  return v;
}
__device__ __forceinline__ float4 lds4(uint32_t at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at));
  return v;
}
__device__ __forceinline__ float2 lds2(uint32_t at) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at));
  return v;
}
__device__ __forceinline__ void st2(float *p, float2 v) { *reinterpret_cast<float2 *>(p) = v; }
__device__ __forceinline__ float4 ld4(const float *p) { return __ldcg(reinterpret_cast<const float4 *>(p)); }
__device__ __forceinline__ float2 mul2(float2 a, float2 b) { return make_float2(a.x * b.x, a.y * b.y); }
__device__ __forceinline__ float2 scale2(float2 a, float f) { return make_float2(a.x * f, a.y * f); }
// Eight nibbles plus 8: bits 4 i and 16 + 4 i are the pair of register i. Of bf16 they stand in the fraction of 128; of
// f16 in that of 1024, as they are or 16 times as large.
__device__ __forceinline__ void decode_q4(uint32_t w, uint32_t a[4]) {
  const uint32_t low = 0x000f000f;
  if constexpr (PARTS == 3) {
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = add_bf16x2(and_or(w >> (4 * i), low, 0x43004300), 0xc308c308); // 128, -136
    return;
  }
  const uint32_t high = 0x00f000f0, magic = 0x64006400, u = w >> 8;
  const uint32_t minus_1032 = 0xe408e408, minus_72 = 0xd480d480, sixteenth = 0x2c002c00;
  a[0] = add_f16x2(and_or(w, low, magic), minus_1032);
  a[1] = fma_f16x2(and_or(w, high, magic), sixteenth, minus_72);
  a[2] = add_f16x2(and_or(u, low, magic), minus_1032);
  a[3] = fma_f16x2(and_or(u, high, magic), sixteenth, minus_72);
}
// Four int8 plus 128: bytes 0 and 2 are a pair, 1 and 3 the next. Of bf16 seven bits stand in the fraction of 128; the
// eighth turns what is taken from them, 256, into 128.
__device__ __forceinline__ void decode_q8(uint32_t w, uint32_t a[2]) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const uint32_t u = w >> (8 * i);
    if constexpr (PARTS == 3)
      a[i] = add_bf16x2(and_or(u, 0x007f007f, 0x43004300), and_xor(u, 0x00800080, 0xc380c380));
    else
      a[i] = add_f16x2(and_or(u, 0x00ff00ff, 0x64006400), 0xe480e480); // 1024, -1152
  }
}
__device__ __forceinline__ uint32_t pack_f16(float lo, float hi) {
  uint32_t d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
  return d;
}
__device__ __forceinline__ float2 unpack_f16(uint32_t p) {
  float2 v;
  asm("{\n.reg .b16 lo, hi;\nmov.b32 {lo, hi}, %2;\ncvt.f32.f16 %0, lo;\ncvt.f32.f16 %1, hi;\n}"
      : "=f"(v.x), "=f"(v.y)
      : "r"(p));
  return v;
}
__device__ __forceinline__ uint32_t pack_bf16(float lo, float hi) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
  return d;
}
__device__ __forceinline__ void split_bf16(float x, float y, uint32_t p[3]) {
#pragma unroll
  for (int i = 0; i < 3; i++) {
    p[i] = pack_bf16(x, y);
    x -= __uint_as_float(p[i] << 16);
    y -= __uint_as_float(p[i] & 0xffff0000u);
  }
}
__device__ __forceinline__ void mma_bf16(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// 11 bits of a number, as many as f16 has.
__device__ __forceinline__ uint32_t round_tf32(float x) {
  uint32_t d;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(d) : "f"(x));
  return d;
}
__device__ __forceinline__ void mma_tf32(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void st_async(uint32_t address, float v, uint32_t bar) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(address), "f"(v),
               "r"(bar)
               : "memory");
}
} // namespace fast

#endif
