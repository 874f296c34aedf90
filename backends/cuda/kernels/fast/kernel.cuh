// The kernel: FAST_PARTS 3 for exact, 1 for f16; FAST_KERNEL is its name.
#ifndef DFLASH_CUDA_FAST_KERNEL_CUH
#define DFLASH_CUDA_FAST_KERNEL_CUH

#include "attend.cuh"
using namespace fast;
static_assert(sizeof(Shared) <= FAST_SHARED_BYTES && offsetof(Shared, rungs) == 7168, "");

// Columns of the residual stream that a block of threads has, of row n a warp.
constexpr int OWN = 40;
static_assert(OWN * CTAS >= H && OWN <= 64 && WARPS >= ROWS, "");
// Sums of squares of the block's embeddings.
__device__ __forceinline__ void first_sums(const Block &b, const Cta &c) {
  float sum = 0;
  if (c.warp >= ROWS) return;
  for (int k = c.lane; k < OWN; k += 32) {
    const int i = c.cta * OWN + k;
    const float x = i < H ? __ldcg(b.h[0] + c.warp * H + i) : 0;
    sum += x * x;
  }
  write_sum(b, c, sum, c.warp);
}
// The second convolution of mlp and the sum with the residual stream, of column i of row n; returns the new value.
__device__ __forceinline__ float mlp_value(const Block &b, int l, int n, int i) {
  const float *base = b.layer[l].base_m + 2 * H + i;
  float now[QUARTERS], before[QUARTERS];
#pragma unroll
  for (int q = 0; q < QUARTERS; q++) {
    now[q] = __ldcg(b.down + (q * ROWS + n) * H + i);
    before[q] = n > 0 ? __ldcg(b.down + (q * ROWS + n - 1) * H + i) : 0;
  }
  const float d0 = kernel_value(b, 2 * GROUPS + i / 16, n), d1 = kernel_value(b, 3 * GROUPS + i / 16, n);
  const float w0 = __ldg(base), w1 = __ldg(base + H), h = __ldcg(b.h[2 * l + 1] + n * H + i);
  const float o = (now[0] + now[1]) + (now[2] + now[3]), p = (before[0] + before[1]) + (before[2] + before[3]);
  float y = (w0 + d0) * o;
  if (n > 0) y += (w1 + d1) * p;
  if (b.down_out[l] && n < b.rows) b.down_out[l][n * H + i] = o;
  return h + y;
}
__device__ __forceinline__ void mlp_out(const Block &b, const Cta &c, int l) {
  float h[2], sum = 0;
  if (c.warp >= ROWS) return;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const int at = c.lane + 32 * k, i = c.cta * OWN + at;
    h[k] = at < OWN && i < H ? mlp_value(b, l, c.warp, i) : 0;
  }
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const int at = c.lane + 32 * k, i = c.cta * OWN + at;
    if (at < OWN && i < H) b.h[2 * l + 2][c.warp * H + i] = h[k];
    sum += h[k] * h[k];
  }
  write_sum(b, c, sum, c.warp);
}
// Up to the meeting's arrival; load_conv waits.
__device__ __forceinline__ void kernel_product(const Block &b, Cta &c, int half) {
  const FastShare share = fast_share(PA, 0, c.cluster);
  if (share.count > 0) stage_first<PA>(c, b.h[half], H);
  inverse_rms(b, c);
  if (share.count > 0) {
    load_norm<PA>(b, c, b.h[half], b.norm_out[half]);
    multiply<PA>(b, c, [&](int first, unsigned number, int t) {
      b.d[(share.part * KROWS + first) * ROWS + t] = found(number, t % ROWS, t / ROWS);
    });
  }
  meet_arrive(b, c);
}
// What a kernel projection's values are the sums of, where they are asked for: a value a thread.
__device__ __forceinline__ void show_kernel(const Block &b, const Cta &c, int half) {
  const int i = c.cta * WARPS * 32 + (int)threadIdx.x;
  static_assert(CTAS * WARPS * 32 >= ROWS * KROWS, "");
  if (b.d_out[half] && i < b.rows * KROWS) b.d_out[half][i] = kernel_value(b, i % KROWS, i / KROWS);
}
__device__ __forceinline__ void put_qkv(const Block &b, int l, int n, int i, float y) {
  if (i < QROWS)
    b.q_proj_out[l][n * QROWS + i] = y;
  else if (i < QROWS + KVROWS)
    b.k_proj_out[l][n * KVROWS + i - QROWS] = y;
  else
    b.v_proj_out[l][n * KVROWS + i - QROWS - KVROWS] = y;
}
__device__ __forceinline__ void qkv_product(const Block &b, Cta &c, int l) {
  const FastShare share = fast_share(QKVP, 0, c.cluster);
  load_conv<QKVP>(b, c, 2 * l);
  show_kernel(b, c, 2 * l);
  multiply<QKVP>(b, c, [&](int first, unsigned number, int t) {
    const int n = t / 32, row = t % 32;
    b.qkv[l][(share.part * ROWS + n) * QKV + first + row] = found(number, n, row);
  });
}
// What q, k and v are the sums of, where they are asked for.
__device__ __forceinline__ void show_qkv(const Block &b, const Cta &c, int l) {
  if (!b.q_proj_out[l]) return;
  for (int i = c.cta * WARPS * 32 + (int)threadIdx.x; i < b.rows * QKV; i += CTAS * WARPS * 32)
    put_qkv(b, l, i / QKV, i % QKV, qkv_value(b.qkv[l] + i));
}
__device__ __forceinline__ void o_product(const Block &b, Cta &c, int l) {
  load_plain<OP>(c, b.mix[l], MIX);
  float square[EIGHTS] = {};
  const float *h = b.h[2 * l];
  multiply<OP>(b, c, [&](int first, unsigned number, int t) {
    const int n = t / 32, row = t % 32, i = first + row;
    const float *base = b.layer[l].base_a + 2 * H + i;
    const float o = found(number, n, row);
    float y = (__ldg(base) + kernel_value(b, 2 * GROUPS + i / 16, n)) * o;
    if (n > 0) y += (__ldg(base + H) + kernel_value(b, 3 * GROUPS + i / 16, n)) * found(number, n - 1, row);
    const float sum = __ldcg(h + n * H + i) + y;
    b.h[2 * l + 1][n * H + i] = sum;
    if (b.o_out[l] && n < b.rows) b.o_out[l][n * H + i] = o;
    square[t / 256] += sum * sum;
  });
  if (c.warp >> 3 == c.rank) return;
#pragma unroll
  for (int e = 0; e < EIGHTS; e++) write_sum(b, c, square[e], (c.warp & 7) + 8 * e);
}
__device__ __forceinline__ void gate_up_product(const Block &b, Cta &c, int l) {
  load_conv<GU>(b, c, 2 * l + 1);
  show_kernel(b, c, 2 * l + 1);
  multiply<GU>(b, c, [&](int first, unsigned number, int t) {
    if (t >= 16 * ROWS) return; // 16 rows of gate, 16 of up
    const int n = t / 16, row = t % 16, i = first / 2 + row;
    const float gate = found(number, n, row), up = found(number, n, row + 16);
    b.act[l][n * I + i] = silu(gate) * up;
    if (b.gate_out[l] && n < b.rows) b.gate_out[l][n * I + i] = gate, b.up_out[l][n * I + i] = up;
  });
}
__device__ __forceinline__ void down_product(const Block &b, Cta &c, int l) {
  const FastShare share = fast_share(DN, 0, c.cluster);
  if (share.count == 0) return;
  load_plain<DN>(c, b.act[l], I);
  multiply<DN>(b, c, [&](int first, unsigned number, int t) {
    const int n = t / 32, row = t % 32;
    b.down[(share.part * ROWS + n) * H + first + row] = found(number, n, row);
  });
}
__device__ __forceinline__ void attention(const Block &b, Cta &c, int l) {
  qkv_product(b, c, l);
  before_attend(b, c, l);
  meet(b, c);
  show_qkv(b, c, l);
  attend(b, c, l);
  meet(b, c);
  mix(b, c, l);
  meet(b, c);
  o_product(b, c, l);
  meet(b, c);
}
__device__ __forceinline__ void mlp(const Block &b, Cta &c, int l) {
  gate_up_product(b, c, l);
  meet(b, c);
  down_product(b, c, l);
  meet(b, c);
  mlp_out(b, c, l);
  meet(b, c);
}
// Half of a layer: even ones are attention.
__device__ __forceinline__ void half_layer(const Block &b, Cta &c, int half) {
  c.lane = anew(c.lane), c.g = anew(c.g), c.t = anew(c.t), c.cta = anew(c.cta), c.rank = anew(c.rank);
  kernel_product(b, c, half);
  if (half & 1)
    mlp(b, c, half / 2);
  else
    attention(b, c, half / 2);
}
// Selector and head have the same columns.
__device__ __forceinline__ void stage_last(const Block &b, const Cta &c) {
  stage_first<HEADP>(c, b.h[2 * b.layers], H);
}
__device__ __forceinline__ void head(const Block &b, Cta &c) {
  const bool selects = fast_share(SELP, 0, c.cluster).count > 0,
             heads = fast_share(HEADP, b.head_rows, c.cluster).count > 0;
  if (selects || heads) stage_last(b, c);
  inverse_rms(b, c);
  if (selects) {
    load_norm<SELP>(b, c, b.h[2 * b.layers], nullptr);
    multiply<SELP>(b, c, [&](int first, unsigned number, int t) {
      const int n = t / 32, row = t % 32;
      if (n >= 1 && n <= b.n_draft) b.hidden[(n - 1) * RANK + first + row] = found(number, n, row);
    });
    if (heads) stage_last(b, c);
  }
  if (!heads) return;
  load_norm<HEADP>(b, c, b.h[2 * b.layers], b.norm_out[2 * b.layers]);
  multiply<HEADP>(b, c, [&](int first, unsigned number, int t) {
    const int n = t / 32, row = t % 32;
    if (n >= 1 && n <= b.n_draft && first + row < b.head_rows)
      __stcg(&b.logits[(size_t)(n - 1) * b.head_rows + first + row], found(number, n, row));
  });
}
__device__ __forceinline__ void open_barriers() {
  Shared &s = shared_of();
  if (smem_of(s.rungs) % 8192) __trap();
  for (int w = 0; w < WARPGROUPS; w++)
    for (int i = 0; i < RING; i++) mbar_init(AT(full[w][i]), 1), mbar_init(AT(empty[w][i]), 4);
  for (int i = 0; i < 2; i++)
    mbar_init(AT(ladder_full[i]), 1), mbar_init(AT(ladder_ready[i]), 2), mbar_init(AT(ladder_empty[i]), WARPS);
  for (int i = 0; i < EXCHANGES; i++) mbar_init(AT(xbar[i]), 1);
  for (int i = 0; i < WARPGROUPS; i++) mbar_init(AT(rows_full[i]), 1), mbar_init(AT(taps_full[i]), 1);
  for (int i = 0; i < SPARES; i++) mbar_init(AT(spare_full[i]), 1), mbar_init(AT(spare_empty[i]), WARPS);
  mbar_init(AT(red_full), WARPS), mbar_init(AT(red_free), WARPS);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void rotations(const Block &b) {
  Shared &s = shared_of();
  for (int i = threadIdx.x; i < ROWS * HD / 2; i += WARPS * 32) {
    const float angle = __fmul_rn((float)(*b.position + i / (HD / 2)), b.inv_freq[i % (HD / 2)]);
    double sine, cosine;
    sincos((double)angle, &sine, &cosine);
    s.cosine[0][i] = (float)cosine, s.sine[0][i] = (float)sine;
  }
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(THREADS, 1)
    FAST_KERNEL(const __grid_constant__ Block b) {
  Cta c;
  c.cta = blockIdx.x, c.rank = cluster_rank(), c.cluster = c.cta / 2;
  c.warp = __shfl_sync(~0u, threadIdx.x / 32, 0), c.lane = threadIdx.x % 32, c.g = c.lane / 4, c.t = c.lane % 4;
  c.group = c.warp / 4, c.quarter = c.warp % 4;
  c.slot = 0, c.parity = 0, c.unit = 0, c.syncs = 0, c.staged = 0, c.tapped = 0, c.spared = 0;
  if (threadIdx.x < b.layers) shared_of().seen[threadIdx.x] = b.visible[threadIdx.x];
  if (threadIdx.x == 0) open_barriers();
  sync_block();
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  if (c.warp >= WARPS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    if (c.warp == WARPS) produce(b, c);
    if (c.warp == WARPS + 1 || c.warp == WARPS + 2) build_ladders(b, c, (c.warp - WARPS - 1) * 32 + c.lane);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
    stamp(b, c);
    rotations(b);
    first_sums(b, c);
    meet(b, c);
#pragma unroll 1
    for (int half = 0; half < 2 * b.layers; half++) half_layer(b, c, half);
    head(b, c);
    c.syncs++;
    sync_consumers();
    stamp(b, c);
  }
  sync_block();
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

#endif
