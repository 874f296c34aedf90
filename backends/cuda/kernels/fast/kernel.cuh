// The kernel.
#ifndef DFLASH_CUDA_FAST_KERNEL_CUH
#define DFLASH_CUDA_FAST_KERNEL_CUH

#include "attend.cuh"
using namespace fast;
static_assert(sizeof(Shared) <= FAST_SHARED_BYTES, "");
static_assert(THREADS == FAST_THREADS && offsetof(Shared, rungs) == 1024, "");

constexpr int SHARE = 40; // columns of a CTA, where rows are shared out; the last CTAs have none
// Sums of squares of the block's embeddings.
__device__ __forceinline__ void first_sums(const Block &b, const Cta &c) {
  const int n = col_of(threadIdx.x & 15);
  float square = 0;
#pragma unroll
  for (int k = row_small(threadIdx.x); k < SHARE; k += 32) {
    const int i = c.cta * SHARE + k;
    const float x = i < H ? __ldcg(b.h[0] + n * H + i) : 0;
    square += x * x;
  }
  write_sums(b, c, square);
}
__device__ __forceinline__ void mlp_out(const Block &b, const Cta &c, int l) {
  const int n = col_of(threadIdx.x & 15);
  float square = 0;
#pragma unroll
  for (int k = row_small(threadIdx.x); k < SHARE; k += 32) {
    const int i = c.cta * SHARE + k;
    if (i >= H) continue;
    const float *d = b.d[2 * l + 1] + n * KROWS + 2 * GROUPS + i / 16, *base = b.layer[l].base_m + 2 * H + i;
    float now[QUARTERS], before[QUARTERS];
#pragma unroll
    for (int q = 0; q < QUARTERS; q++) {
      now[q] = __ldcg(b.down + (q * ROWS + n) * H + i);
      before[q] = n > 0 ? __ldcg(b.down + (q * ROWS + n - 1) * H + i) : 0;
    }
    const float d0 = __ldcg(d), d1 = __ldcg(d + GROUPS), w0 = __ldg(base), w1 = __ldg(base + H);
    float h = __ldcg(b.h[2 * l + 1] + n * H + i);
    const float o = (now[0] + now[1]) + (now[2] + now[3]), p = (before[0] + before[1]) + (before[2] + before[3]);
    float y = (w0 + d0) * o;
    if (n > 0) y += (w1 + d1) * p;
    h += y;
    b.h[2 * l + 2][n * H + i] = h;
    if (b.down_out[l] && n < b.rows) b.down_out[l][n * H + i] = o;
    square += h * h;
  }
  write_sums(b, c, square);
}
__device__ __forceinline__ void kernel_product(const Block &b, Cta &c, int l, int which, Parts &x) {
  load_norm(b, c, b.h[2 * l + which], b.norm_out[2 * l + which], x);
  float *d = b.d[2 * l + which];
  multiply<PA, 10>(b, c, l, x, [&](int tile, unsigned batch, int j, int v) {
    d[col_of(v) * KROWS + tile * 16 + row_of(v)] = found(c, batch, j, v);
  });
}
__device__ __forceinline__ void put_qkv(const Block &b, int l, int n, int i, float y) {
  if (i < QROWS)
    b.q_proj_out[l][n * QROWS + i] = y;
  else if (i < QROWS + KVROWS)
    b.k_proj_out[l][n * KVROWS + i - QROWS] = y;
  else
    b.v_proj_out[l][n * KVROWS + i - QROWS - KVROWS] = y;
}
__device__ __forceinline__ void layer(const Block &b, Cta &c, int l, Parts &x) {
  const Layer &w = b.layer[l];
  float2 ladder = first_ladder<QKVP>(b, c, l);
  kernel_product(b, c, l, 0, x);
  first_tables<QKVP>(b, c, ladder);
  meet(b, c);
  load_conv(b, c, b.h[2 * l], b.d[2 * l], b.conv_out[2 * l], x);
  multiply<QKVP, 10>(b, c, l, x, [&](int tile, unsigned batch, int j, int v) {
    const int i = tile * 16 + row_of(v), n = col_of(v);
    const float y = found(c, batch, j, v);
    b.qkv[l][n * QKV + i] = y;
    if (b.q_proj_out[l] && n < b.rows) put_qkv(b, l, n, i, y);
  });
  {
    const Part part = part_of(b, c, l);
    Keys keys;
    if (part.from < part.to) load_keys(c, l, part.head, part.from, part.to, keys);
    meet(b, c);
    attend(b, c, l, part, keys);
  }
  ladder = first_ladder<OP>(b, c, l);
  meet(b, c);
  mix(b, c, l);
  first_tables<OP>(b, c, ladder);
  meet(b, c);
  load_plain<16>(b.mix[l] + c.g * MIX, c.rank * (MIX / 2) + c.warp * 256 + 4 * c.t, x);
  {
    float square = 0;
    const float *d = b.d[2 * l] + 2 * GROUPS, *h = b.h[2 * l];
    multiply<OP, 8>(b, c, l, x, [&](int tile, unsigned batch, int j, int v) {
      const int i = tile * 16 + row_of(v), n = col_of(v);
      const float *dn = d + n * KROWS + i / 16, *base = w.base_a + 2 * H + i;
      const float o = found(c, batch, j, v);
      float y = (__ldg(base) + __ldcg(dn)) * o;
      // Row n - 1: one number before (n odd) or the last of the thread before.
      if (n > 0) y += (__ldg(base + H) + __ldcg(dn + GROUPS)) * found(c, batch, j, n & 1 ? v - 1 : v - 3);
      const float sum = __ldcg(h + n * H + i) + y;
      b.h[2 * l + 1][n * H + i] = sum;
      if (b.o_out[l] && n < b.rows) b.o_out[l][n * H + i] = o;
      square += sum * sum;
    });
    write_sums(b, c, square);
  }
  meet(b, c);
  ladder = first_ladder<GU>(b, c, l);
  kernel_product(b, c, l, 1, x);
  first_tables<GU>(b, c, ladder);
  meet(b, c);
  load_conv(b, c, b.h[2 * l + 1], b.d[2 * l + 1], b.conv_out[2 * l + 1], x);
  ladder = first_ladder<DN>(b, c, l);
  multiply<GU, 10>(b, c, l, x, [&](int tile, unsigned batch, int j, int v) {
    if (j) return; // tiles of gate and up take turns
    const int i = tile / 2 * 16 + row_of(v), n = col_of(v);
    const float gate = found(c, batch, 0, v), up = found(c, batch, 1, v);
    b.act[l][n * I + i] = silu(gate) * up;
    if (b.gate_out[l] && n < b.rows) b.gate_out[l][n * I + i] = gate, b.up_out[l][n * I + i] = up;
  });
  first_tables<DN>(b, c, ladder);
  meet(b, c);
  if (c.cluster < DOWN_CLUSTERS) {
    const int quarter = c.cluster / 16,
              first = (quarter * 2 + c.rank) * (I / 8) + (c.warp * 8 + min(c.warp, 4u)) * 32 + 4 * c.t;
    auto finish = [&](int tile, unsigned batch, int j, int v) {
      b.down[(quarter * ROWS + col_of(v)) * H + tile * 16 + row_of(v)] = found(c, batch, j, v);
    };
    if (c.warp < 4) {
      load_plain<18>(b.act[l] + c.g * I, first, x);
      multiply<DN, 9>(b, c, l, x, finish);
    } else {
      load_plain<16>(b.act[l] + c.g * I, first, x);
      multiply<DN, 8>(b, c, l, x, finish);
    }
  }
  meet(b, c);
  mlp_out(b, c, l);
  meet(b, c);
}
__device__ __forceinline__ void head(const Block &b, Cta &c, Parts &x) {
  load_norm(b, c, b.h[2 * b.layers], b.norm_out[2 * b.layers], x);
  multiply<SELP, 10>(b, c, 0, x, [&](int tile, unsigned batch, int j, int v) {
    const int i = tile * 16 + row_of(v), n = col_of(v);
    if (n >= 1 && n <= b.n_draft) b.hidden[(n - 1) * RANK + i] = found(c, batch, j, v);
  });
  load_norm(b, c, b.h[2 * b.layers], nullptr, x);
  multiply<HEADP, 10>(b, c, 0, x, [&](int tile, unsigned batch, int j, int v) {
    const int i = tile * 16 + row_of(v), n = col_of(v);
    if (n >= 1 && n <= b.n_draft && i < b.head_rows)
      __stcg(&b.logits[(size_t)(n - 1) * b.head_rows + i], found(c, batch, j, v));
  });
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(THREADS, 1)
    dflash_block(const __grid_constant__ Block b) {
  Shared &s = shared_of();
  Cta c;
  c.cta = blockIdx.x, c.rank = cluster_rank(), c.cluster = c.cta / 2;
  c.warp = threadIdx.x / 32, c.lane = threadIdx.x % 32, c.g = c.lane / 4, c.t = c.lane % 4;
  c.slot = 0, c.parity = 0, c.batch = 0, c.tables = 0, c.syncs = 0;
  if (threadIdx.x == 0) {
    if (smem_of(s.rungs) % 2048) __trap();
    for (int i = 0; i < WARPS * RING; i++) mbar_init(AT(full[0][i]), 1);
    for (int i = 0; i < 4; i++) mbar_init(AT(xbar[i]), 1);
    for (int i = 0; i < 2; i++)
      mbar_init(AT(red_full[i]), WARPS), mbar_init(AT(red_free[i]), WARPS), mbar_init(AT(ladder[i]), 2);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  c.policy = stream_policy();
  c.feed.from = b.stream + b.stream_first[c.cta * WARPS + c.warp], c.feed.segment = -1;
  next_segment(b, c);
  for (int i = 0; i < RING; i++) feed(b, c, i, c.policy);
  stamp(b, c);
  for (int i = threadIdx.x; i < ROWS * HD / 2; i += THREADS) {
    const float angle = __fmul_rn((float)(*b.position + i / (HD / 2)), b.inv_freq[i % (HD / 2)]);
    double sine, cosine;
    sincos((double)angle, &sine, &cosine);
    s.cosine[0][i] = (float)cosine, s.sine[0][i] = (float)sine;
  }
  if (threadIdx.x < b.layers) s.seen[threadIdx.x] = b.visible[threadIdx.x];
  first_sums(b, c);
  meet(b, c);
  Parts x;
#pragma unroll 1
  for (int l = 0; l < b.layers; l++) layer(b, c, l, x);
  head(b, c, x);
  c.syncs++;
  sync_cta();
  stamp(b, c);
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

#endif
