// The kernel: FAST_PARTS 3 for exact, 1 for f16; FAST_KERNEL is its name.
#ifndef DFLASH_CUDA_FAST_KERNEL_CUH
#define DFLASH_CUDA_FAST_KERNEL_CUH

#include "attend.cuh"
using namespace fast;
static_assert(sizeof(Shared) <= FAST_SHARED_BYTES && offsetof(Shared, rungs) == 7168 && sizeof(Attend) <= SPARE_AT, "");

// Sums of squares of the block's embeddings, of 40 columns a CTA.
__device__ void first_sums(const Block &b, const Cta &c) {
  const int tid = threadIdx.x, n = col_of(tid & 15), i = c.cta * 40 + row_small(tid);
  float x = 0;
  const bool has = row_small(tid) < 40 && i < H;
  if (has) x = __ldcg(b.h[0] + n * H + i);
  write_sums(b, c, x * x, n, has);
}
__device__ void mlp_out(const Block &b, const Cta &c, int l) {
  const int tid = threadIdx.x, n = col_of(tid & 15), i = c.cta * 40 + row_small(tid);
  const bool has = row_small(tid) < 40 && i < H;
  float h = 0;
  if (has) {
    const float *d = b.d + n * KROWS + 2 * GROUPS + i / 16, *base = b.layer[l].base_m + 2 * H + i;
    float now[QUARTERS], before[QUARTERS];
#pragma unroll
    for (int q = 0; q < QUARTERS; q++) {
      now[q] = __ldcg(b.down + (q * ROWS + n) * H + i);
      before[q] = n > 0 ? __ldcg(b.down + (q * ROWS + n - 1) * H + i) : 0;
    }
    const float d0 = kernel_value(d), d1 = kernel_value(d + GROUPS), w0 = __ldg(base), w1 = __ldg(base + H);
    h = __ldcg(b.h[2 * l + 1] + n * H + i);
    const float o = (now[0] + now[1]) + (now[2] + now[3]), p = (before[0] + before[1]) + (before[2] + before[3]);
    float y = (w0 + d0) * o;
    if (n > 0) y += (w1 + d1) * p;
    h += y;
    b.h[2 * l + 2][n * H + i] = h;
    if (b.down_out[l] && n < b.rows) b.down_out[l][n * H + i] = o;
  }
  write_sums(b, c, h * h, n, has);
}
__device__ void kernel_product(const Block &b, Cta &c, int half) {
  const FastShare share = fast_share(PA, 0, c.cluster);
  if (share.count > 0) {
    load_norm<PA>(b, c, b.h[half], b.norm_out[half]);
    multiply<PA>(b, c, [&](int unit, unsigned number, int f) {
      b.d[(share.part * ROWS + col_of(f)) * KROWS + unit * UNIT + row_of(c, f)] = found(number, f);
    });
  }
  meet(b, c);
  const int i = c.cta * WARPS * 32 + (int)threadIdx.x;
  if (b.d_out[half] && i < b.rows * KROWS) b.d_out[half][i] = kernel_value(b.d + i);
}
__device__ __forceinline__ void put_qkv(const Block &b, int l, int n, int i, float y) {
  if (i < QROWS)
    b.q_proj_out[l][n * QROWS + i] = y;
  else if (i < QROWS + KVROWS)
    b.k_proj_out[l][n * KVROWS + i - QROWS] = y;
  else
    b.v_proj_out[l][n * KVROWS + i - QROWS - KVROWS] = y;
}
__device__ void qkv_product(const Block &b, Cta &c, int l) {
  multiply<QKVP>(b, c, [&](int unit, unsigned number, int f) {
    const int i = unit * UNIT + row_of(c, f), n = col_of(f);
    const float y = found(number, f);
    b.qkv[l][n * QKV + i] = y;
    if (b.q_proj_out[l] && n < b.rows) put_qkv(b, l, n, i, y);
  });
}
__device__ void o_product(const Block &b, Cta &c, int l) {
  load_plain<8, 512>(c, b.mix[l] + c.rank * (MIX / 2), MIX);
  float square = 0;
  const float *d = b.d + 2 * GROUPS, *h = b.h[2 * l];
  multiply<OP>(b, c, [&](int unit, unsigned number, int f) {
    const int i = unit * UNIT + row_of(c, f), n = col_of(f);
    const float *dn = d + n * KROWS + i / 16, *base = b.layer[l].base_a + 2 * H + i;
    const float o = found(number, f);
    float y = (__ldg(base) + kernel_value(dn)) * o;
    // Row n - 1: one number before (n odd) or the last of the thread before.
    if (n > 0) y += (__ldg(base + H) + kernel_value(dn + GROUPS)) * found(number, n & 1 ? f - 1 : f - 3);
    const float sum = __ldcg(h + n * H + i) + y;
    b.h[2 * l + 1][n * H + i] = sum;
    if (b.o_out[l] && n < b.rows) b.o_out[l][n * H + i] = o;
    square += sum * sum;
  });
  write_sums(b, c, square, 0, c.warp >> 3 != c.rank);
}
__device__ void gate_up_product(const Block &b, Cta &c, int l) {
  multiply<GU>(b, c, [&](int unit, unsigned number, int f) {
    if (f >= 128) return; // 32 rows of gate, 32 of up
    const int i = unit * 32 + row_of(c, f), n = col_of(f);
    const float gate = found(number, f), up = found(number, f + 128);
    b.act[l][n * I + i] = silu(gate) * up;
    if (b.gate_out[l] && n < b.rows) b.gate_out[l][n * I + i] = gate, b.up_out[l][n * I + i] = up;
  });
}
__device__ void down_product(const Block &b, Cta &c, int l) {
  const FastShare share = fast_share(DN, 0, c.cluster);
  if (share.count == 0) return;
  load_plain<9, 544>(c, b.act[l] + fast_first_column(DN, c.cta), I);
  multiply<DN>(b, c, [&](int unit, unsigned number, int f) {
    b.down[(share.part * ROWS + col_of(f)) * H + unit * UNIT + row_of(c, f)] = found(number, f);
  });
}
__device__ void attention(const Block &b, Cta &c, int l) {
  qkv_product(b, c, l);
  meet(b, c);
  attend(b, c, l);
  meet(b, c);
  mix(b, c, l);
  meet(b, c);
  o_product(b, c, l);
  meet(b, c);
}
__device__ void mlp(const Block &b, Cta &c, int l) {
  gate_up_product(b, c, l);
  meet(b, c);
  down_product(b, c, l);
  meet(b, c);
  mlp_out(b, c, l);
  meet(b, c);
}
// Half of a layer: even ones are attention.
__device__ void half_layer(const Block &b, Cta &c, int half) {
  c.lane = anew(c.lane), c.g = anew(c.g), c.t = anew(c.t), c.cta = anew(c.cta), c.rank = anew(c.rank);
  kernel_product(b, c, half);
  load_conv(b, c, b.h[half], b.conv_out[half]);
  if (half & 1)
    mlp(b, c, half / 2);
  else
    attention(b, c, half / 2);
}
__device__ void head(const Block &b, Cta &c) {
  if (fast_share(SELP, 0, c.cluster).count > 0) {
    load_norm<SELP>(b, c, b.h[2 * b.layers], nullptr);
    multiply<SELP>(b, c, [&](int unit, unsigned number, int f) {
      const int i = unit * UNIT + row_of(c, f), n = col_of(f);
      if (n >= 1 && n <= b.n_draft) b.hidden[(n - 1) * RANK + i] = found(number, f);
    });
  }
  if (fast_share(HEADP, b.head_rows, c.cluster).count == 0) return;
  load_norm<HEADP>(b, c, b.h[2 * b.layers], b.norm_out[2 * b.layers]);
  multiply<HEADP>(b, c, [&](int unit, unsigned number, int f) {
    const int i = unit * UNIT + row_of(c, f), n = col_of(f);
    if (n >= 1 && n <= b.n_draft && i < b.head_rows)
      __stcg(&b.logits[(size_t)(n - 1) * b.head_rows + i], found(number, f));
  });
}
__device__ void open_barriers() {
  Shared &s = shared_of();
  if (smem_of(s.rungs) % 8192) __trap();
  for (int w = 0; w < WARPGROUPS; w++)
    for (int i = 0; i < RING; i++) mbar_init(AT(full[w][i]), 1), mbar_init(AT(empty[w][i]), 4);
  for (int i = 0; i < 2; i++)
    mbar_init(AT(ladder_full[i]), 1), mbar_init(AT(ladder_ready[i]), 2), mbar_init(AT(ladder_empty[i]), WARPS);
  for (int i = 0; i < EXCHANGES; i++) mbar_init(AT(xbar[i]), 1);
  for (int i = 0; i < WARPGROUPS; i++) mbar_init(AT(rows_full[i]), 1);
  for (int i = 0; i < SPARES; i++) mbar_init(AT(spare_full[i]), 1), mbar_init(AT(spare_empty[i]), WARPS);
  mbar_init(AT(red_full), WARPS), mbar_init(AT(red_free), WARPS);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void rotations(const Block &b) {
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
  c.slot = 0, c.parity = 0, c.unit = 0, c.syncs = 0, c.staged = 0, c.spared = 0;
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
