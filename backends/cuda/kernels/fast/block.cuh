// The whole block as one persistent kernel: published geometry, exact.
#ifndef DFLASH_CUDA_FAST_BLOCK_CUH
#define DFLASH_CUDA_FAST_BLOCK_CUH

#include "core.cuh"
namespace fast {
constexpr int H = FAST_HIDDEN, I = FAST_INTERMEDIATE, HEADS = FAST_HEADS, KV = FAST_KV_HEADS, HD = FAST_HEAD_DIM,
              REP = HEADS / KV, GROUPS = FAST_GROUPS, KROWS = FAST_KERNEL_ROWS, ROWS = FAST_ROWS, RANK = FAST_RANK,
              MAXL = FAST_MOST_LAYERS;
constexpr int CTAS = FAST_BLOCKS;
constexpr int QROWS = FAST_QUERY_ROWS, KVROWS = FAST_KV_ROWS, QKV = FAST_QKV_ROWS, MIX = QROWS;
constexpr int QUARTERS = FAST_DOWN_QUARTERS, DOWN_CLUSTERS = FAST_DOWN_CLUSTERS;
constexpr int SPLITS = FAST_SPLITS, ALL_SPLITS = SPLITS + 1, SPLIT_STRIDE = FAST_SPLIT_FLOATS;
constexpr int GROUP_BYTES = FAST_GROUP_BYTES, Q8_BYTES = FAST_Q8_BYTES;
constexpr int SLICE = FAST_SLICE, VECTOR = FAST_VECTOR_BYTES;
constexpr int SLOT_BYTES = 2688, RING = 7;
enum Product {
  PA = FAST_ATTN_KERNEL,
  QKVP = FAST_QKV,
  OP = FAST_O,
  PM = FAST_MLP_KERNEL,
  GU = FAST_GATE_UP,
  DN = FAST_DOWN,
  HEADP = FAST_HEAD,
  SELP = FAST_SELECTOR
};
typedef FastLayer Layer;
typedef FastBlock Block;

constexpr int UNITS = 8; // of 16 keys, a pass of attention: one a warp
struct Attend {
  uint32_t query[2 * 8 * 3 * 128];      // fragments of the queries: tile of 16, 16 dimensions, part
  uint32_t chance[2 * UNITS * 3 * 128]; // of the softmax: tile of 16, unit of keys, part
  float most[UNITS][32], sum[UNITS][32];
  float own_k[ROWS][HD], own_v[ROWS][HD];
};
// The memory begins 1024 bytes behind a multiple of 2048.
struct Shared {
  u64 full[WARPS][RING], xbar[4], red_full[2], red_free[2], ladder[2];
  CudaVisible seen[MAXL]; // of the context, by layer
  float inverse[ROWS], unused[(1024 - sizeof(CudaVisible[MAXL])) / 4 - ROWS - 2 * (WARPS * RING + 10)];
  float rungs[2][BATCH][32 * 16]; // a tile's table at a multiple of 2048
  unsigned char slot[WARPS][RING][SLOT_BYTES];
  union {
    struct {
      float red[2][BATCH][WARPS][128];
      float xch[4][2][2][128];
    };
    Attend attend;
  };
  float cosine[ROWS][HD / 2], sine[ROWS][HD / 2];
};
// What a warp asks for next: segments are a product's vectors (two, may be empty) and its tiles.
struct Feed {
  const unsigned char *from;
  int segment, left, bytes;
};

struct Cta {
  uint32_t rank, cluster, cta, warp, lane, g, t, shared;
  int slot;
  uint32_t parity;
  unsigned batch, tables, syncs; // batches of sums; of tables of rungs; meetings of all CTAs
  Feed feed;
  u64 policy;
};

__device__ __forceinline__ Shared &shared_of() {
  extern __shared__ __align__(1024) unsigned char memory[];
  return *reinterpret_cast<Shared *>(memory);
}
#define AT(member) smem_of(&shared_of().member)

// ---- layout.h ----
__device__ __forceinline__ void tiles_for(int p, int head_rows, int cluster, int &from, int &to) {
  const FastRange tiles = fast_tiles(p, head_rows, cluster);
  from = tiles.from, to = tiles.to;
}
__device__ __forceinline__ bool is_q8(int p) { return fast_is_q8(p); }
__device__ __forceinline__ int item_bytes(int p, int warp) { return fast_item_bytes(p, warp); }
__device__ __forceinline__ int items_a_tile(int p) { return fast_items_a_tile(p); }
__device__ __forceinline__ int vectors_of(int p) { return fast_vectors(p); }
constexpr int LAYER_ROWS = FAST_LAYER_LADDERS;
__device__ __forceinline__ int ladder_first(int p) { return fast_first_ladder(p); }
__device__ __forceinline__ int product_of(int i, int layers, int &layer) { return fast_product(i, layers, &layer); }

// ---- ring ----
__device__ __forceinline__ void next_slot(int &slot, uint32_t &parity) {
  if (++slot == RING) slot = 0, parity ^= 1;
}

// Keys of the context that a split reads: those before the anchor, from the first that row 0's window shows. They are
// counted from the start of the context's memory.
__device__ __forceinline__ void context_range(int layer, int split, int &from, int &to) {
  const CudaVisible &seen = shared_of().seen[layer];
  const int begin = (int)seen.first, end = (int)seen.end, steps = (end - begin + SPLITS * 128 - 1) / (SPLITS * 128);
  from = min(begin + split * steps * 128, end);
  to = min(from + steps * 128, end);
}

__device__ __forceinline__ void next_segment(const Block &b, Cta &c) {
  Feed &f = c.feed;
  do {
    int layer;
    const int s = ++f.segment, p = product_of(s / 3, b.layers, layer), vectors = p < 0 ? 0 : vectors_of(p);
    if (p < 0) {
      f.left = -1;
      return;
    }
    if (s % 3 == 0)
      f.left = vectors > 0, f.bytes = 2 * VECTOR;
    else if (s % 3 == 1)
      f.left = vectors > 2, f.bytes = VECTOR;
    else {
      int tile, end;
      tiles_for(p, b.head_rows, c.cluster, tile, end);
      f.left = (end - tile) * items_a_tile(p), f.bytes = item_bytes(p, c.warp);
    }
  } while (f.left == 0);
}
// A slot that all lanes have read is filled again.
__device__ __forceinline__ void feed(const Block &b, Cta &c, int slot, u64 policy) {
  Feed &f = c.feed;
  if (f.left < 0) return;
  if (c.lane == 0) {
    const uint32_t bar = AT(full[0][0]) + (c.warp * RING + slot) * 8;
    mbar_expect(bar, f.bytes);
    bulk_load(AT(slot[0][0][0]) + (c.warp * RING + slot) * SLOT_BYTES, f.from, f.bytes, bar, policy);
  }
  f.from += f.bytes;
  if (--f.left == 0) next_segment(b, c);
}
__device__ __forceinline__ uint32_t item(const Cta &c) {
  mbar_wait(AT(full[0][0]) + (c.warp * RING + c.slot) * 8, c.parity);
  return AT(slot[0][0][0]) + (c.warp * RING + c.slot) * SLOT_BYTES;
}
__device__ __forceinline__ void release(const Block &b, Cta &c) {
  __syncwarp();
  feed(b, c, c.slot, c.policy);
  next_slot(c.slot, c.parity);
}

// ---- ladders ----
// The tables of a batch of tiles are made by two warps, a row a lane, a batch ahead; every product is rounded.
__device__ __forceinline__ bool builds(const Cta &c, unsigned table) { return c.warp / 2 == table % (WARPS / 2); }
template <int P>
__device__ __forceinline__ float2 fetch_ladder(const Block &b, const Cta &c, int l, int tile, int end) {
  const int mine = tile + c.warp % 2 * 2 + c.lane / 16;
  return mine < end ? __ldg(b.ladders + (size_t)l * LAYER_ROWS + ladder_first(P) + mine * 16 + c.lane % 16)
                    : make_float2(0, 0);
}
__device__ __forceinline__ void make_tables(const Cta &c, unsigned table, float2 ladder) {
  uint32_t to = AT(rungs[0][0][0]) + ((table & 1) * BATCH + c.warp % 2 * 2 + c.lane / 16) * 2048 + c.lane % 16 * 4;
  float rung = ladder.x;
#pragma unroll
  for (int r = 0; r < 32; r++) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to + r * 64), "f"(rung) : "memory");
    rung = __fmul_rn(rung, ladder.y);
  }
  __syncwarp();
  if (c.lane == 0) mbar_arrive(AT(ladder[table & 1]));
}
// The first batch's tables of a product: asked for with first_ladder, made with first_tables when nothing reads tables.
template <int P> __device__ __forceinline__ float2 first_ladder(const Block &b, const Cta &c, int l) {
  int tile, end;
  tiles_for(P, b.head_rows, c.cluster, tile, end);
  return fetch_ladder<P>(b, c, l, tile, end);
}
template <int P> __device__ __forceinline__ void first_tables(const Block &b, const Cta &c, float2 ladder) {
  int tile, end;
  tiles_for(P, b.head_rows, c.cluster, tile, end);
  if (tile < end && builds(c, c.tables)) make_tables(c, c.tables, ladder);
}

// ---- products ----
// Where a warp's words of a chunk lie, and its rows' rungs.
struct Place {
  uint32_t pairs, single, codes, rungs; // 16 bytes a lane, 8 bytes a lane, 16 bytes of four lanes
};
// Sums of a tile of q4tp. Four words are multiplied in turn, so that no product waits for the one before, while the
// next four are decoded.
template <int NG> __device__ __forceinline__ void q4_tile(const Place &at, const Parts &x, float sum[4]) {
  constexpr int W = 2 * NG, QUADS = (W + 3) / 4;
  uint32_t w[4 * QUADS], code[2][2], a[2][4][4];
  float c[2][4][4], s[2][2][2];
  lds128(at.pairs, w[0], w[1], w[2], w[3]);
  lds128(at.codes, code[0][0], code[0][1], code[1][0], code[1][1]);
#pragma unroll
  for (int i = 1; i < NG / 2; i++) lds128(at.pairs + 512 * i, w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
  if (NG & 1) lds64(at.single, w[2 * NG - 2], w[2 * NG - 1]);
#pragma unroll
  for (int q = -1; q <= QUADS; q++) {
    // Scales of this quad's groups.
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int g = 2 * q + h, i = g % 5;
      if (q < 0 || g >= NG) continue;
      const uint32_t c0 = code[g / 5][0], c1 = code[g / 5][1];
      s[q & 1][h][0] = lds(and_or(i == 4 ? c0 << 5 : c0 >> (5 * i), 0x7c0, at.rungs));
      s[q & 1][h][1] = lds(and_or(i == 4 ? c1 << 5 : c1 >> (5 * i), 0x7c0, at.rungs) + 32);
    }
#pragma unroll
    for (int p = 0; p < 3; p++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (q >= 0 && 4 * q + i < W) mma_f16(c[q & 1][i], a[q & 1][i], x.b[4 * q + i < W ? 4 * q + i : 0][p], p == 0);
        // A word of the next quad is decoded meanwhile.
        if (p == i % 3 && q + 1 < QUADS && 4 * (q + 1) + i < W) decode_q4(w[4 * (q + 1) + i], a[(q + 1) & 1][i]);
        // The last quad's sums, when this one's first products are under way.
        if (p == 1 && q > 0) {
          const int g = 2 * (q - 1) + i / 2;
          if (g < NG) {
            const float *v = c[(q - 1) & 1][i], s0 = s[(q - 1) & 1][i / 2][0], s1 = s[(q - 1) & 1][i / 2][1];
            sum[0] += s0 * v[0], sum[1] += s0 * v[1], sum[2] += s1 * v[2], sum[3] += s1 * v[3];
          }
        }
      }
  }
}
// Half a warp's columns, ten fragments; a sum for each part, and a new one after 80 columns.
__device__ __forceinline__ void q8_half(const Place &at, const Parts &x, const int half, float sum[4]) {
  uint32_t w[20];
#pragma unroll
  for (int i = 0; i < 5; i++) lds128(at.pairs + 512 * i, w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float c[3][4];
#pragma unroll
    for (int k = 0; k < 5; k++) {
      uint32_t a[4];
      decode_q8(w[10 * h + 2 * k], a);
      decode_q8(w[10 * h + 2 * k + 1], a + 2);
#pragma unroll
      for (int p = 0; p < 3; p++) {
        const uint32_t *f = half == 0 ? x.b[5 * h + k][p] : x.b[10 + 5 * h + k][p];
        mma_f16(c[p], a, f, k == 0);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += c[0][i] + (c[1][i] + c[2][i]);
  }
}

__device__ __forceinline__ float found(const Cta &c, unsigned batch, int j, int v) {
  Shared &s = shared_of();
  return s.xch[batch % 4][0][j][v] + s.xch[batch % 4][1][j][v];
}
__device__ __forceinline__ int row_of(int v) { return (v >> 4) + 8 * (v >> 1 & 1); }
// Which of 32 a thread is among those with its col_of.
__device__ __forceinline__ int row_small(int tid) { return tid >> 4 << 1 | (tid >> 1 & 1); }
__device__ __forceinline__ int col_of(int v) { return (v >> 2 & 3) * 2 + (v & 1); }

// The sums of a batch, over the warps of this CTA; tiles 0 and 1 belong to CTA 0 of the cluster, 2 and 3 to CTA 1.
__device__ __forceinline__ void reduce(const Cta &c, unsigned batch, int count) {
  Shared &s = shared_of();
  const int owner = threadIdx.x >> 7, v = threadIdx.x & 127;
  mbar_wait(AT(red_full[batch & 1]), batch / 2 & 1);
  if (threadIdx.x == 0) mbar_expect(AT(xbar[batch % 4]), 2 * 256 * 4);
  const uint32_t bar = map_rank(AT(xbar[batch % 4]), owner), to = map_rank(AT(xch[batch % 4][c.rank][0][v]), owner);
#pragma unroll
  for (int j = 0; j < 2; j++) {
    float part[2] = {0, 0};
    if (owner * 2 + j < count) {
#pragma unroll
      for (int w = 0; w < WARPS; w++) part[w % 2] += s.red[batch & 1][owner * 2 + j][w][v];
    }
    st_async(to + j * 512, part[0] + part[1], bar);
  }
  __syncwarp();
  if (c.lane == 0) mbar_arrive(AT(red_free[batch & 1]));
}
// By the half of the warps whose sums went to the other CTA: whoever sees those of the other CTA knows that its own
// have been used.
__device__ __forceinline__ bool finishes(const Cta &c) { return c.warp / (WARPS / 2) != c.rank; }
template <class Finish>
__device__ __forceinline__ void finish_batch(const Cta &c, unsigned batch, int tile, int count, Finish &&finish) {
  if (!finishes(c)) return;
  mbar_wait_cluster(AT(xbar[batch % 4]), batch / 4 & 1);
#pragma unroll
  for (int j = 0; j < 2; j++)
    if ((int)c.rank * 2 + j < count) finish(tile + c.rank * 2 + j, batch, j, (int)(threadIdx.x & 127));
}

// A cluster's tiles of a product: finish(tile, batch, j, v) for every value that this CTA has the sum of. Warps add up
// a batch after the first tile of the next, and finish it a batch later: none waits for the slowest.
template <int P, int NG, class Finish>
__device__ __forceinline__ void multiply(const Block &b, Cta &c, int l, const Parts &x, Finish &&finish) {
  Shared &s = shared_of();
  int tile, end;
  tiles_for(P, b.head_rows, c.cluster, tile, end);
  const uint32_t lane16 = keep(c.lane * 16),
                 codes_in = keep((is_q8(P) ? Q8_BYTES + c.g * 4 : NG * GROUP_BYTES + c.g * 16)),
                 rungs_in = keep(AT(rungs[0][0][0]) + c.g * 4),
                 red_in = keep(smem_of(&s.red[0][0][c.warp][c.lane * 4]));
  int done = 0; // batches of this product that are behind
  const int first = tile;
  for (; tile < end; tile += BATCH, done++) {
    const int count = min(BATCH, end - tile);
    const bool build = !is_q8(P) && tile + BATCH < end && builds(c, c.tables + 1);
    float2 ladder;
    if (!is_q8(P)) {
      if (build) ladder = fetch_ladder<P>(b, c, l, tile + BATCH, end);
      mbar_wait(AT(ladder[0]) + (c.tables & 1) * 8, c.tables / 2 & 1);
    }
#pragma unroll 1
    for (int j = 0; j < count; j++) {
      float sum[4] = {0, 0, 0, 0};
#pragma unroll
      for (int half = 0; half < (is_q8(P) ? 2 : 1); half++) {
        const uint32_t at = item(c);
        const Place place = {at + lane16, NG & 1 ? at + NG / 2 * 512 + lane16 / 2 : 0, at + codes_in,
                             rungs_in + ((c.tables & 1) * BATCH + j) * 2048};
        if (!is_q8(P)) {
          q4_tile<NG>(place, x, sum);
        } else {
          q8_half(place, x, half, sum);
          if (half) {
            const float s0 = lds(place.codes), s1 = lds(place.codes + 32);
            sum[0] *= s0, sum[1] *= s0, sum[2] *= s1, sum[3] *= s1;
          }
        }
        release(b, c);
      }
      if (j == 0) mbar_wait(AT(red_free[0]) + (c.batch & 1) * 8, (c.batch / 2 & 1) ^ 1);
      sts128(red_in + (c.batch & 1) * (BATCH * WARPS * 512) + j * (WARPS * 512), sum[0] * x.factor[0],
             sum[1] * x.factor[1], sum[2] * x.factor[0], sum[3] * x.factor[1]);
      if (j == count - 1) {
        __syncwarp();
        if (c.lane == 0) mbar_arrive(AT(red_full[0]) + (c.batch & 1) * 8);
      }
      if (j == 0) {
        if (done) {
          reduce(c, c.batch - 1, BATCH);
          if (done > 1) finish_batch(c, c.batch - 2, tile - 2 * BATCH, BATCH, finish);
        }
        if (build) make_tables(c, c.tables + 1, ladder);
      }
    }
    c.batch++;
    if (!is_q8(P)) c.tables++;
  }
  if (!done) return;
  const int last = first + (done - 1) * BATCH;
  reduce(c, c.batch - 1, end - last);
  if (done > 1) finish_batch(c, c.batch - 2, last - BATCH, BATCH, finish);
  finish_batch(c, c.batch - 1, last, end - last, finish);
}

// ---- grid ----
__device__ __forceinline__ void stamp(const Block &b, const Cta &c) {
  if (b.stamps && c.cta == 0 && threadIdx.x == 0) {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    b.stamps[c.syncs] = now;
  }
}
__device__ __forceinline__ void meet(const Block &b, Cta &c) {
  sync_cta();
  c.syncs++;
  if (threadIdx.x == 0) {
    unsigned seen = 0;
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(b.barrier) : "memory");
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
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  }
  sync_cta();
  stamp(b, c);
}

// ---- activations ----
__device__ __forceinline__ float4 ld4(const float *p) { return __ldcg(reinterpret_cast<const float4 *>(p)); }
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
  sync_cta();
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

// Parts of a warp's columns: scaled by a power of two so that the largest of a row is at most 2^15.
template <int K> __device__ __forceinline__ void split_parts(const float4 v[K], Parts &x) {
  float most = 0;
#pragma unroll
  for (int k = 0; k < K; k++)
    most = fmaxf(fmaxf(most, fmaxf(fabsf(v[k].x), fabsf(v[k].y))), fmaxf(fabsf(v[k].z), fabsf(v[k].w)));
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
  const int exponent = (int)(__float_as_uint(most) >> 23) - 127; // most < 2^(exponent + 1)
  const int k0 = exponent > 127 || exponent < -126 ? 0 : min(14 - exponent, 126);
  const float scale = __uint_as_float((uint32_t)(127 + k0) << 23), factor = __uint_as_float((uint32_t)(127 - k0) << 23);
#pragma unroll
  for (int k = 0; k < K; k++) {
    uint32_t lo[3], hi[3];
    split_f16(v[k].x * scale, v[k].y * scale, lo);
    split_f16(v[k].z * scale, v[k].w * scale, hi);
#pragma unroll
    for (int i = 0; i < 3; i++) x.b[k][i][0] = lo[i], x.b[k][i][1] = hi[i];
  }
  const int from = threadIdx.x % 4 * 8; // rows 2 t and 2 t + 1 are lanes 8 t and 8 t + 4
  x.factor[0] = __shfl_sync(~0u, factor, from), x.factor[1] = __shfl_sync(~0u, factor, from + 4);
}
__device__ __forceinline__ float4 lds4(uint32_t at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at));
  return v;
}
// rms(h, norm), times the column field: for products of q8_2f. The next chunk has both vectors.
__device__ __forceinline__ void load_norm(const Block &b, Cta &c, const float *h_all, float *out, Parts &x) {
  const int first = c.rank * (H / 2) + c.warp * SLICE + 4 * c.t;
  const float *h = h_all + c.g * H + first;
  float4 v[20];
#pragma unroll
  for (int k = 0; k < 20; k++) v[k] = ld4(h + 16 * k);
  const float inv = inverse_rms(b, c);
  const uint32_t at = item(c) + c.t * 16;
  const bool write = out && c.cluster == 0 && (int)c.g < b.rows;
#pragma unroll
  for (int k = 0; k < 20; k++) {
    v[k] = mul4(scale4(v[k], inv), lds4(at + 64 * k));
    if (write) st4(out + c.g * H + first + 16 * k, v[k]);
    v[k] = mul4(v[k], lds4(at + VECTOR + 64 * k));
  }
  split_parts<20>(v, x);
  release(b, c);
}
// The convolution before a sub-layer. The next chunk has the norm and the row's own base, the one after it the base of
// the row before.
__device__ __forceinline__ void load_conv(const Block &b, Cta &c, const float *h_all, const float *d_all, float *out,
                                          Parts &x) {
  const int first = c.rank * (H / 2) + c.warp * SLICE + 4 * c.t;
  const float *h = h_all + c.g * H + first, *d = d_all + c.g * KROWS + first / 16;
  float4 v[20];
  float own[5], other[5]; // of every fourth group
#pragma unroll
  for (int k = 0; k < 20; k++) v[k] = ld4(h + 16 * k);
#pragma unroll
  for (int i = 0; i < 5; i++) {
    const int k = 4 * i + c.t;
    own[i] = __ldcg(d + k), other[i] = __ldcg(d + GROUPS + k);
  }
  const float inv = inverse_rms(b, c);
  const uint32_t at = item(c) + c.t * 16;
  Cta next = c;
  next_slot(next.slot, next.parity);
  const uint32_t at1 = item(next) + c.t * 16;
  const bool write = out && c.cluster == 0 && (int)c.g < b.rows;
#pragma unroll
  for (int k = 0; k < 20; k++) {
    const float4 n = mul4(scale4(v[k], inv), lds4(at + 64 * k)), before = up4(n), w0 = lds4(at + VECTOR + 64 * k),
                 w1 = lds4(at1 + 64 * k);
    const float d0 = __shfl_sync(~0u, own[k / 4], k % 4, 4), d1 = __shfl_sync(~0u, other[k / 4], k % 4, 4);
    float4 y = make_float4((w0.x + d0) * n.x, (w0.y + d0) * n.y, (w0.z + d0) * n.z, (w0.w + d0) * n.w);
    if (c.g > 0) {
      y.x += (w1.x + d1) * before.x, y.y += (w1.y + d1) * before.y;
      y.z += (w1.z + d1) * before.z, y.w += (w1.w + d1) * before.w;
    }
    if (write) st4(out + c.g * H + first + 16 * k, y);
    v[k] = y;
  }
  split_parts<20>(v, x);
  release(b, c);
  release(b, c);
}
// A plain matrix of activations.
template <int K> __device__ __forceinline__ void load_plain(const float *x_row, int first, Parts &x) {
  float4 v[K];
#pragma unroll
  for (int k = 0; k < K; k++) v[k] = ld4(x_row + first + 16 * k);
  split_parts<K>(v, x);
}
// Sums of squares of what each thread has, of row col_of(its number): [rows][CTAS].
__device__ __forceinline__ void write_sums(const Block &b, const Cta &c, float square) {
  float *area = &shared_of().red[0][0][0][0];
  sync_cta();
  area[threadIdx.x] = square;
  sync_cta();
  const int n = c.warp, k = c.lane;
  float sum = area[(k >> 1) << 4 | (n >> 1) << 2 | (k & 1) << 1 | (n & 1)];
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (c.lane == 0) b.sums[n * CTAS + c.cta] = sum;
}
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
} // namespace fast

#endif
