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
constexpr int QUARTERS = FAST_DOWN_QUARTERS, KERNEL_HALVES = FAST_KERNEL_HALVES;
constexpr int SPLITS = FAST_SPLITS, ALL_SPLITS = SPLITS + 1, SPLIT_STRIDE = FAST_SPLIT_FLOATS;
constexpr int GROUP_BYTES = FAST_GROUP_BYTES;
constexpr int UNIT = FAST_UNIT, RUNGS = CUDA_RUNGS;
constexpr int CHUNK_BYTES = 4 * (FAST_MOST_GROUPS * FAST_GROUP_BYTES + FAST_CODE_BYTES); // of a warpgroup, at most
constexpr int RING = 3;
constexpr int X_BYTES = 120 << 10; // of [parts][8] rows of half of the hidden columns; attention uses it, too
constexpr int GROUP_X_BYTES = X_BYTES / WARPGROUPS;
constexpr int K_STRIDE = 576, V_STRIDE = 528, KEYS = 32; // of the context, in a slot of all warpgroups
constexpr int EXCHANGES = 4;
// Three slots of the context in the memory of x: the last keys of a pass, the first values.
constexpr int SPARES = 3, SPARE_AT = X_BYTES - KEYS * (K_STRIDE + 2 * V_STRIDE);
__device__ __forceinline__ int spare_at(int i) {
  return SPARE_AT + (i > 0 ? KEYS * (K_STRIDE + (i - 1) * V_STRIDE) : 0);
}
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

// The memory begins 1024 bytes behind a multiple of 8192.
struct Shared {
  union {
    struct {
      u64 full[WARPGROUPS][RING], empty[WARPGROUPS][RING], ladder_full[2], ladder_ready[2], ladder_empty[2],
          xbar[EXCHANGES], red_full, red_free, rows_full[WARPGROUPS], spare_full[SPARES], spare_empty[SPARES];
      CudaVisible seen[MAXL]; // of the context, by layer
      float inverse[ROWS], most[WARPGROUPS][4][ROWS];
      alignas(16) float ladder[2][2 * UNIT]; // of a unit's rows; q8_2f: their scales
    };
    unsigned char front[7168];
  };
  float rungs[2][RUNGS][UNIT]; // a table at a multiple of 8192
  unsigned char x[X_BYTES];
  unsigned char slot[RING][WARPGROUPS * CHUNK_BYTES];
  float red[WARPGROUPS][8 * UNIT];
  float xch[EXCHANGES][2][4 * UNIT];
  float cosine[ROWS][HD / 2], sine[ROWS][HD / 2];
};

struct Cta {
  uint32_t rank, cluster, cta, warp, lane, g, t, group, quarter; // the warpgroup, and which of its warps
  int slot;
  uint32_t parity;
  unsigned unit, syncs;
  uint32_t staged, spared; // parities of rows_full, spare_full
  float factor[2];         // of this thread's two columns of the products: x is so many times as large as its parts
};

__device__ __forceinline__ Shared &shared_of() {
  extern __shared__ __align__(1024) unsigned char memory[];
  return *reinterpret_cast<Shared *>(memory);
}
#define AT(member) smem_of(&shared_of().member)

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

// What the warp that copies has: lanes 0 to 3 copy for a warpgroup each.
struct Producer {
  const unsigned char *from; // of the stream: what is copied next
  int slot;
  uint32_t parity;
  unsigned unit;
  uint32_t spared;
  int shared; // slots that the context had last: every warpgroup reads all of such a one
  u64 policy;
};
// KEYS rows of the context: a slot of all warpgroups, eight rows on the barrier of each.
__device__ __forceinline__ void produce_rows(const Cta &c, Producer &p, const float *rows, int count, int stride) {
  Shared &s = shared_of();
  if (c.lane < WARPGROUPS) {
    mbar_wait(AT(empty[c.lane][p.slot]), p.parity);
    mbar_expect(AT(full[c.lane][p.slot]), (uint32_t)(min(max(count - 8 * (int)c.lane, 0), 8) * HD * 4));
  }
  __syncwarp();
  if ((int)c.lane < count)
    bulk_load(AT(slot[p.slot]) + c.lane * stride, rows + (size_t)c.lane * KV * HD, HD * 4, AT(full[c.lane / 8][p.slot]),
              p.policy);
  next_slot(p.slot, p.parity);
}
// The same to a slot in the memory of x, as soon as attention has it.
__device__ __forceinline__ void produce_spare(const Cta &c, Producer &p, int i, const float *rows, int count,
                                              int stride) {
  Shared &s = shared_of();
  if (c.lane == 0) {
    mbar_wait(AT(spare_empty[i]), p.spared);
    mbar_expect(AT(spare_full[i]), (uint32_t)(count * HD * 4));
  }
  __syncwarp();
  if ((int)c.lane < count)
    bulk_load(AT(x) + spare_at(i) + c.lane * stride, rows + (size_t)c.lane * KV * HD, HD * 4, AT(spare_full[i]),
              p.policy);
}
// 128 keys a pass: chunks 0 to 3 of keys, 4 to 7 of values.
__device__ __forceinline__ void produce_context(const Cta &c, Producer &p, int layer) {
  const CudaVisible &seen = shared_of().seen[layer];
  int key, end;
  context_range(layer, c.cta % SPLITS, key, end);
  for (; key < end; key += 4 * KEYS) {
    for (int i = 0; i < 8; i++) {
      const int k = key + i % 4 * KEYS, stride = i < 4 ? K_STRIDE : V_STRIDE, count = min(KEYS, end - k);
      const float *rows = at<const float>(i < 4 ? seen.k : seen.v) + ((size_t)k * KV + c.cta / SPLITS) * HD;
      if (i >= 3 && i <= 5)
        produce_spare(c, p, i - 3, rows, max(count, 0), stride); // without rows, too: the next pass is another one
      else if (count > 0)
        produce_rows(c, p, rows, count, stride);
    }
    p.spared ^= 1;
    p.shared = RING;
  }
}
// A chunk of each warpgroup.
__device__ __forceinline__ void produce_chunks(const Cta &c, Producer &p, const unsigned char *from, int bytes,
                                               u64 policy) {
  Shared &s = shared_of();
  if (p.shared > 0) { // all of them, before the first is filled
    if (c.lane < WARPGROUPS) mbar_wait(AT(empty[c.lane][p.slot]), p.parity);
    __syncwarp();
    p.shared--;
  }
  if (c.lane < WARPGROUPS) {
    mbar_wait(AT(empty[c.lane][p.slot]), p.parity);
    mbar_expect(AT(full[c.lane][p.slot]), bytes);
    bulk_load(AT(slot[p.slot]) + c.lane * CHUNK_BYTES, from + c.lane * bytes, bytes, AT(full[c.lane][p.slot]), policy);
  }
  __syncwarp();
  next_slot(p.slot, p.parity);
}
__device__ __forceinline__ void produce_ladder(const Cta &c, Producer &p, int bytes) {
  Shared &s = shared_of();
  const int which = p.unit & 1;
  if (c.lane == 0) {
    mbar_wait(AT(ladder_empty[which]), (p.unit >> 1 & 1) ^ 1);
    mbar_expect(AT(ladder_full[which]), bytes);
    bulk_load(AT(ladder[which]), p.from, bytes, AT(ladder_full[which]), p.policy);
  }
  __syncwarp();
  p.from += bytes;
  p.unit++;
}
__device__ void produce(const Block &b, const Cta &c) {
  Producer p = {b.stream + b.stream_first[c.cta], 0, 1, 0, 0, 0, stream_policy()};
  int layer, product;
  for (int i = 0; (product = fast_product(i, b.layers, &layer)) >= 0; i++) {
    if (product == OP && c.cta < KV * SPLITS) produce_context(c, p, layer);
    const int units = fast_share(product, b.head_rows, c.cluster).count;
    if (units == 0) continue;
    const unsigned char *vectors = b.vectors + fast_vectors_at(i, product, c.cta);
    for (int n = 0; n < fast_vector_chunks(product); n++) {
      const int bytes = fast_vector_bytes(product, n);
      produce_chunks(c, p, vectors, bytes, shared_policy());
      vectors += WARPGROUPS * bytes;
    }
    for (int unit = 0; unit < units; unit++) {
      produce_ladder(c, p, fast_ladder_bytes(product));
      for (int n = 0; n < fast_chunks(product); n++) {
        const int bytes = fast_chunk_bytes(product, n);
        produce_chunks(c, p, p.from, bytes, p.policy);
        p.from += WARPGROUPS * bytes;
      }
    }
  }
}

// The ladders of each unit of q4tp, as soon as its first rungs are there; a lane a row, two warps.
__device__ void build_ladders(const Block &b, const Cta &c, int row) {
  Shared &s = shared_of();
  unsigned unit = 0;
  int layer, product;
  for (int i = 0; (product = fast_product(i, b.layers, &layer)) >= 0; i++)
    for (int n = fast_share(product, b.head_rows, c.cluster).count; n > 0; n--, unit++) {
      const int which = unit & 1;
      mbar_wait(AT(ladder_full[which]), unit >> 1 & 1);
      if (!fast_is_q8(product)) {
        float rung = s.ladder[which][2 * row];
        const float step = s.ladder[which][2 * row + 1];
#pragma unroll
        for (int r = 0; r < RUNGS; r++) {
          s.rungs[which][r][row] = rung;
          rung = __fmul_rn(rung, step);
        }
      }
      __syncwarp();
      if (c.lane == 0) mbar_arrive(AT(ladder_ready[which]));
    }
}

// ---- products ----
__device__ __forceinline__ void release(Cta &c) {
  __syncwarp();
  if (c.lane == 0) mbar_arrive(AT(empty[c.group][c.slot]));
  next_slot(c.slot, c.parity);
}
// A chunk of G groups of q4tp: a group is multiplied while the next one is decoded and the one before is scaled.
template <int G> __device__ __forceinline__ void q4_chunk(Cta &c, uint32_t rungs, u64 x, float sum[4]) {
  const uint32_t part = AT(slot[c.slot]) + c.group * CHUNK_BYTES + c.quarter * (G * GROUP_BYTES + FAST_CODE_BYTES);
  uint32_t w[2 * G], c0, c1, a[2][8];
  float d[2][SUMS];
  mbar_wait(AT(full[c.group][c.slot]), c.parity);
#pragma unroll
  for (int i = 0; i < G / 2; i++)
    lds128(part + i * 512 + c.lane * 16, w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
  if (G & 1) lds64(part + G / 2 * 512 + c.lane * 8, w[2 * G - 2], w[2 * G - 1]);
  lds64(part + G * GROUP_BYTES + c.g * 8, c0, c1);
  release(c);
#pragma unroll
  for (int g = 0; g <= G; g++) {
    if (g < G) {
      uint32_t *now = a[g & 1];
      decode_q4(w[2 * g], now), decode_q4(w[2 * g + 1], now + 4);
      product_fence();
      product(d[g & 1], now, x + 2 * g * STEP, 0);
      product(d[g & 1], now + 4, x + (2 * g + 1) * STEP, 1);
      product_commit();
    }
    if (g == 0) continue;
    // Codes stand 5 bits apart from bit 8 on, the last one at bits 3 to 7.
    const int k = g - 1;
    const uint32_t o0 = and_or(k == 4 ? c0 << 5 : c0 >> (5 * k), 0x1f00, rungs),
                   o1 = and_or(k == 4 ? c1 << 5 : c1 >> (5 * k), 0x1f00, rungs);
    const float s0 = lds(o0), s1 = lds(o1 + 32);
    if (g < G)
      product_wait<1>();
    else
      product_wait<0>();
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += (i < 2 ? s0 : s1) * sum_of_parts(d[k & 1], i);
  }
}
// A chunk of q8_2f, five steps of 16 columns.
__device__ __forceinline__ void q8_chunk(Cta &c, u64 x, float sum[4]) {
  const uint32_t part = AT(slot[c.slot]) + c.group * CHUNK_BYTES + c.quarter * (FAST_Q8_STEPS * 256);
  uint32_t w[10], a[FAST_Q8_STEPS][4];
  float d[SUMS];
  mbar_wait(AT(full[c.group][c.slot]), c.parity);
  lds128(part + c.lane * 16, w[0], w[1], w[2], w[3]);
  lds128(part + 512 + c.lane * 16, w[4], w[5], w[6], w[7]);
  lds64(part + 1024 + c.lane * 8, w[8], w[9]);
  release(c);
#pragma unroll
  for (int k = 0; k < FAST_Q8_STEPS; k++) decode_q8(w[2 * k], a[k]), decode_q8(w[2 * k + 1], a[k] + 2);
  product_fence();
#pragma unroll
  for (int k = 0; k < FAST_Q8_STEPS; k++) product(d, a[k], x + k * STEP, k > 0);
  product_commit();
  product_wait<0>();
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] += sum_of_parts(d, i);
}

// The sums of a unit, of 64 rows and 8 rows of x: value lane * 4 + i of the warp `quarter` is row_of, col_of. A block
// of the cluster finishes those of row g = 0 to 3, the other one the rest: value f of 256.
__device__ __forceinline__ int col_of(int v) { return (v >> 2 & 3) * 2 + (v & 1); }
__device__ __forceinline__ int row_of(const Cta &c, int f) {
  const int v = (int)c.rank * 64 + (f & 63);
  return (f >> 6) * 16 + (v >> 4) + 8 * (v >> 1 & 1);
}
// Which of 64 a thread of 512 is among those with its col_of.
__device__ __forceinline__ int row_small(int tid) { return tid >> 4 << 1 | (tid >> 1 & 1); }
__device__ __forceinline__ float found(unsigned unit, int f) {
  const Shared &s = shared_of();
  return s.xch[unit % EXCHANGES][0][f] + s.xch[unit % EXCHANGES][1][f];
}
// Adds up over the warpgroups; each sum goes to the block that finishes it.
__device__ __forceinline__ void reduce(const Cta &c, unsigned unit) {
  Shared &s = shared_of();
  const int tid = threadIdx.x, f = (tid >> 7) * 64 + (tid & 63);
  const uint32_t owner = tid >> 6 & 1;
  mbar_wait(AT(red_full), unit & 1);
  const float total = (s.red[0][tid] + s.red[1][tid]) + (s.red[2][tid] + s.red[3][tid]);
  if (tid == 0) mbar_expect(AT(xbar[unit % EXCHANGES]), 2 * 256 * 4);
  st_async(map_rank(AT(xch[unit % EXCHANGES][c.rank][f]), owner), total, map_rank(AT(xbar[unit % EXCHANGES]), owner));
  __syncwarp();
  if (c.lane == 0) mbar_arrive(AT(red_free));
}
template <class Finish>
__device__ __forceinline__ void finish_unit(const Cta &c, unsigned count, int unit, Finish &&finish) {
  if (c.warp >> 3 == c.rank) return;
  mbar_wait_cluster(AT(xbar[count % EXCHANGES]), count / EXCHANGES & 1);
  finish(unit, count, (int)(threadIdx.x & 255));
}

// A chunk of any product.
template <int P, int CHUNK> __device__ __forceinline__ void any_chunk(Cta &c, uint32_t rungs, u64 x, float sum[4]) {
  if constexpr (P == PA || P == PM || P == HEADP || P == SELP)
    q8_chunk(c, x, sum);
  else
    q4_chunk<P == OP || (P == DN && CHUNK > 0) ? 4 : 5>(c, rungs, x, sum);
}
// A cluster's units of a product: finish(unit, number, f) for every value that this block finishes. Sums of a unit are
// added up behind the first chunk of the next and finished at its end: no warp waits for the slowest.
template <int P, class Finish> __device__ __forceinline__ void multiply(const Block &b, Cta &c, Finish &&finish) {
  Shared &s = shared_of();
  const FastShare share = fast_share(P, b.head_rows, c.cluster);
  const bool q8 = P == PA || P == PM || P == HEADP || P == SELP;
  const u64 x0 = describe(AT(x) + c.group * GROUP_X_BYTES);
  for (int i = 0; i < share.count; i++, c.unit++) {
    const int which = c.unit & 1, unit = share.first + i * share.step;
    const uint32_t rungs = AT(rungs[which][0][c.quarter * 16 + c.g]);
    float sum[4] = {0, 0, 0, 0};
    mbar_wait(AT(ladder_ready[which]), c.unit >> 1 & 1);
    any_chunk<P, 0>(c, rungs, x0, sum);
    if (i > 0) reduce(c, c.unit - 1);
    u64 x = x0 + (q8 ? (int)FAST_Q8_STEPS : 2 * fast_groups_before(P, 1)) * STEP;
#pragma unroll 1
    for (int n = 1; n < fast_chunks(P); n++) {
      any_chunk<P, 1>(c, rungs, x, sum);
      x += (q8 ? (int)FAST_Q8_STEPS : 2 * fast_groups(P, 1)) * STEP;
    }
    if (q8) {
      const float s0 = s.ladder[which][c.quarter * 16 + c.g], s1 = s.ladder[which][c.quarter * 16 + c.g + 8];
      sum[0] *= s0, sum[1] *= s0, sum[2] *= s1, sum[3] *= s1;
    }
    mbar_wait(AT(red_free), (c.unit & 1) ^ 1);
    *reinterpret_cast<float4 *>(&s.red[c.group][c.quarter * 128 + c.lane * 4]) =
        make_float4(sum[0] * c.factor[0], sum[1] * c.factor[1], sum[2] * c.factor[0], sum[3] * c.factor[1]);
    __syncwarp();
    if (c.lane == 0) mbar_arrive(AT(ladder_empty[which])), mbar_arrive(AT(red_full));
    if (i > 0) finish_unit(c, c.unit - 1, unit - share.step, finish);
  }
  if (share.count == 0) return;
  reduce(c, c.unit - 1);
  finish_unit(c, c.unit - 1, share.first + (share.count - 1) * share.step, finish);
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
