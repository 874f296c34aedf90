// Meetings of all blocks of threads, and activations on their way to the products.
#ifndef DFLASH_CUDA_FAST_ROWS_CUH
#define DFLASH_CUDA_FAST_ROWS_CUH

#include "multiply.cuh"
namespace fast {
// ---- grid ----
__device__ __forceinline__ void stamp(const Block &b, const Cta &c) {
  if (b.stamps && c.cta == 0 && threadIdx.x == 0) {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    b.stamps[c.syncs] = now;
  }
}
__device__ __forceinline__ void meet(const Block &b, Cta &c) {
  sync_consumers();
  c.syncs++;
  if (threadIdx.x == 0) {
    unsigned seen = 0;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(b.barrier) : "memory");
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

// ---- activations ----
__device__ __forceinline__ float4 ld4(const float *p) { return __ldcg(reinterpret_cast<const float4 *>(p)); }
// A value of the kernel projection: the sum of its halves.
__device__ __forceinline__ float kernel_value(const float *d) { return __ldcg(d) + __ldcg(d + ROWS * KROWS); }
__device__ __forceinline__ float4 lds4(uint32_t at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at));
  return v;
}
// 1 / rms of each row, from the CTAs' sums of squares, [rows][CTAS].
__device__ __forceinline__ float inverse_rms(const Block &b, const Cta &c) {
  Shared &s = shared_of();
  if (c.warp < ROWS) {
    const float *from = b.sums + c.warp * CTAS + c.lane * 4;
    const float4 v = ld4(from), w = c.lane < CTAS / 4 - 32 ? ld4(from + 128) : make_float4(0, 0, 0, 0);
    float sum = ((v.x + v.y) + (v.z + v.w)) + ((w.x + w.y) + (w.z + w.w));
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (c.lane == 0) s.inverse[c.warp] = __fdiv_rn(1.0f, __fsqrt_rn(sum / H + b.eps));
  }
  sync_consumers();
  return s.inverse[c.g];
}
__device__ __forceinline__ float4 mul4(float4 a, float4 b) {
  return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}
__device__ __forceinline__ float4 scale4(float4 a, float f) { return make_float4(a.x * f, a.y * f, a.z * f, a.w * f); }
__device__ __forceinline__ float4 up4(float4 v) { // of the row before
  return make_float4(__shfl_up_sync(~0u, v.x, 4), __shfl_up_sync(~0u, v.y, 4), __shfl_up_sync(~0u, v.z, 4),
                     __shfl_up_sync(~0u, v.w, 4));
}
__device__ __forceinline__ void st4(float *p, float4 v) { *reinterpret_cast<float4 *>(p) = v; }

// A warp's columns of x, K steps of 16 from `step` of the warpgroup on, to shared memory as parts: a lane has columns 4
// t to 4 t + 3 of row g. Scaled by a power of two so that the largest of a row and warpgroup is at most 2^15.
template <int K> __device__ __forceinline__ void put_parts(Cta &c, const float4 v[K], int step, int steps = K) {
  Shared &s = shared_of();
  float most = 0;
#pragma unroll
  for (int k = 0; k < K; k++)
    most = fmaxf(fmaxf(most, fmaxf(fabsf(v[k].x), fabsf(v[k].y))), fmaxf(fabsf(v[k].z), fabsf(v[k].w)));
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
  if (c.t == 0) s.most[c.group][c.quarter][c.g] = most;
  sync_warpgroup(c.group); // and all have read what stood there
#pragma unroll
  for (int i = 0; i < 4; i++) most = fmaxf(most, s.most[c.group][i][c.g]);
  const int exponent = (int)(__float_as_uint(most) >> 23) - 127; // most < 2^(exponent + 1)
  const int k0 = exponent > 127 || exponent < -126 ? 0 : min(14 - exponent, 126);
  const float scale = __uint_as_float((uint32_t)(127 + k0) << 23), factor = __uint_as_float((uint32_t)(127 - k0) << 23);
  const uint32_t to = AT(x) + c.group * GROUP_X_BYTES + step * STEP_BYTES + (c.t >> 1) * 128 + c.g * 16 + (c.t & 1) * 8;
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k >= steps) break;
    uint32_t lo[PARTS], hi[PARTS];
    split_f16(v[k].x * scale, v[k].y * scale, lo);
    split_f16(v[k].z * scale, v[k].w * scale, hi);
#pragma unroll
    for (int i = 0; i < PARTS; i++) sts64(to + k * STEP_BYTES + i * 256, lo[i], hi[i]);
  }
  const int from = c.t * 8; // rows 2 t and 2 t + 1 are lanes 8 t and 8 t + 4
  c.factor[0] = __shfl_sync(~0u, factor, from), c.factor[1] = __shfl_sync(~0u, factor, from + 4);
  fence_products();
  sync_warpgroup(c.group);
}
// The warpgroup's columns of x, [8] rows of WIDTH floats, lie at first where their parts will: copied by its first
// warp. Behind them, where there is a convolution, the kernel's values: [half][tap][row] 40 of them.
template <int WIDTH> struct Staged {
  static constexpr int ROW = WIDTH * 4 + (WIDTH % 32 == 0 ? 64 : 0); // rows in turn in the lower and upper banks
  static constexpr int TAPS = KERNEL_HALVES * 2 * ROWS, TAP = 176;   // the kernel's values
  uint32_t rows, taps;
  __device__ __forceinline__ Staged(const Cta &c) : rows(AT(x) + c.group * GROUP_X_BYTES), taps(rows + ROWS * ROW) {}
};
template <int WIDTH>
__device__ __forceinline__ void stage_rows(const Cta &c, const float *x, int stride, const float *d) {
  typedef Staged<WIDTH> S;
  Shared &s = shared_of();
  if (c.quarter) return;
  const S to(c);
  asm volatile("fence.proxy.async;" ::: "memory"); // what others wrote, and what was read here before
  if (c.lane == 0) mbar_expect(AT(rows_full[c.group]), ROWS * WIDTH * 4 + (d ? S::TAPS * 160 : 0));
  __syncwarp();
  if (c.lane < ROWS)
    bulk_load(to.rows + c.lane * S::ROW, x + c.lane * stride, WIDTH * 4, AT(rows_full[c.group]), shared_policy());
  if (d) {
    const int half = c.lane / 16, tap = c.lane / 8 % 2, row = c.lane % 8;
    bulk_load(to.taps + c.lane * S::TAP, d + (half * ROWS + row) * KROWS + tap * GROUPS, 160, AT(rows_full[c.group]),
              shared_policy());
  }
}
__device__ __forceinline__ void wait_staged(Cta &c) {
  mbar_wait(AT(rows_full[c.group]), c.staged);
  c.staged ^= 1;
}
// rms(h, norm), times the column field: for products of q8_2f. The next chunk has both vectors.
template <int P> __device__ __forceinline__ void load_norm(const Block &b, Cta &c, const float *h_all, float *out) {
  constexpr int STEPS = P == PA || P == PM ? 5 : 10, WIDTH = STEPS * 64; // of a warp, of a warpgroup
  const int in = c.quarter * STEPS * 16 + 4 * c.t, first = fast_first_column(P, c.cta) + c.group * WIDTH;
  float4 v[STEPS];
  stage_rows<WIDTH>(c, h_all + first, H, nullptr);
  const float inv = inverse_rms(b, c);
  const uint32_t at = AT(slot[c.slot]) + c.group * CHUNK_BYTES + in * 4;
  const uint32_t rows = Staged<WIDTH>(c).rows + c.g * Staged<WIDTH>::ROW + in * 4;
  mbar_wait(AT(full[c.group][c.slot]), c.parity);
  wait_staged(c);
  const bool write = out && fast_share(P, H, c.cluster).first == 0 && (int)c.g < b.rows;
#pragma unroll
  for (int k = 0; k < STEPS; k++) {
    v[k] = mul4(scale4(lds4(rows + 64 * k), inv), lds4(at + 64 * k));
    if (write) st4(out + c.g * H + first + in + 16 * k, v[k]);
    v[k] = mul4(v[k], lds4(at + WIDTH * 4 + 64 * k));
  }
  release(c);
  put_parts<STEPS>(c, v, c.quarter * STEPS);
}
// The convolution before a sub-layer. The next chunk has the norm and the row's own base, the one after it the base of
// the row before.
__device__ __forceinline__ void load_conv(const Block &b, Cta &c, const float *h_all, float *out) {
  typedef Staged<640> S;
  const int in = c.quarter * 160 + 4 * c.t, first = c.rank * (H / 2) + c.group * 640;
  float4 v[10];
  stage_rows<640>(c, h_all + first, H, b.d + first / 16);
  const float inv = inverse_rms(b, c);
  const int slot = c.slot;
  const uint32_t at = AT(slot[slot]) + c.group * CHUNK_BYTES + in * 4;
  mbar_wait(AT(full[c.group][slot]), c.parity);
  next_slot(c.slot, c.parity);
  const uint32_t at1 = AT(slot[c.slot]) + c.group * CHUNK_BYTES + in * 4;
  mbar_wait(AT(full[c.group][c.slot]), c.parity);
  wait_staged(c);
  const uint32_t rows = S(c).rows + c.g * S::ROW + in * 4, taps = S(c).taps + c.g * S::TAP + c.quarter * 40;
  const bool write = out && c.cluster == 0 && (int)c.g < b.rows;
#pragma unroll
  for (int k = 0; k < 10; k++) {
    const float4 n = mul4(scale4(lds4(rows + 64 * k), inv), lds4(at + 64 * k)), before = up4(n),
                 w0 = lds4(at + 640 * 4 + 64 * k), w1 = lds4(at1 + 64 * k);
    const float d0 = lds(taps + 4 * k) + lds(taps + 16 * S::TAP + 4 * k),
                d1 = lds(taps + 8 * S::TAP + 4 * k) + lds(taps + 24 * S::TAP + 4 * k);
    float4 y = make_float4((w0.x + d0) * n.x, (w0.y + d0) * n.y, (w0.z + d0) * n.z, (w0.w + d0) * n.w);
    if (c.g > 0) {
      y.x += (w1.x + d1) * before.x, y.y += (w1.y + d1) * before.y;
      y.z += (w1.z + d1) * before.z, y.w += (w1.w + d1) * before.w;
    }
    if (write) st4(out + c.g * H + first + in + 16 * k, y);
    v[k] = y;
  }
  __syncwarp();
  if (c.lane == 0) mbar_arrive(AT(empty[c.group][slot]));
  release(c);
  put_parts<10>(c, v, c.quarter * 10);
}
// A plain matrix of activations, of WIDTH columns a warpgroup; the block's first column is x. A warp has up to K steps.
template <int K, int WIDTH> __device__ __forceinline__ void load_plain(Cta &c, const float *x, int stride) {
  constexpr int STEPS = WIDTH / 16; // of the warpgroup: the first warps have one more
  const int q = c.quarter, step = q * (STEPS / 4) + min(q, STEPS % 4), steps = STEPS / 4 + (q < STEPS % 4);
  float4 v[K];
  stage_rows<WIDTH>(c, x + c.group * WIDTH, stride, nullptr);
  wait_staged(c);
  const uint32_t rows = Staged<WIDTH>(c).rows + c.g * Staged<WIDTH>::ROW + (step * 16 + 4 * c.t) * 4;
#pragma unroll
  for (int k = 0; k < K; k++) v[k] = k < steps ? lds4(rows + 64 * k) : make_float4(0, 0, 0, 0);
  put_parts<K>(c, v, step, steps);
}
// Sums of squares of what each thread has, of row n: [rows][CTAS].
__device__ void write_sums(const Block &b, const Cta &c, float square, int n, bool has) {
  Shared &s = shared_of();
  const int tid = threadIdx.x;
  // Lanes of one n within a warp lie 16 apart and 2 apart (col_of); every n is in every warp.
  float *area = &s.red[0][0];
  sync_consumers();
  area[tid] = has ? square : 0;
  sync_consumers();
  if (c.warp < 8) { // row c.warp
    float sum = 0;
    const int n0 = c.warp;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int k = c.lane + 32 * i; // 64 values of this n: v has bits 0, 2, 3 set by n
      const int v = (k >> 1 << 4) | (n0 >> 1) << 2 | (k & 1) << 1 | (n0 & 1);
      sum += area[v];
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (c.lane == 0) b.sums[c.warp * CTAS + c.cta] = sum;
  }
}
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
} // namespace fast

#endif
