// Attention.
#ifndef DFLASH_CUDA_FAST_ATTEND_CUH
#define DFLASH_CUDA_FAST_ATTEND_CUH

#include "rows.cuh"
namespace fast {
constexpr int UNITS = 8; // of 16 keys, a pass
struct Attend {
  uint32_t query[2 * 8 * 3 * 128];      // fragments of the queries: tile of 16, 16 dimensions, part
  uint32_t chance[2 * UNITS * 3 * 128]; // of the softmax: tile of 16, unit of keys, part
  float most[UNITS][32], sum[UNITS][32];
  float own_k[16 * K_STRIDE / 4], own_v[16 * V_STRIDE / 4];
};
__device__ __forceinline__ Attend &attend_of() { return *reinterpret_cast<Attend *>(shared_of().x); }

// rms and rotation of a head; a lane has elements 2 l, 2 l + 1, and the same plus 64.
__device__ __forceinline__ void head_norm(const Block &b, const Cta &c, float2 &lo, float2 &hi, const float *norm,
                                          int row, bool rope) {
  const Shared &s = shared_of();
  float sum = (lo.x * lo.x + lo.y * lo.y) + (hi.x * hi.x + hi.y * hi.y);
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  const float inv = __fdiv_rn(1.0f, __fsqrt_rn(sum / HD + b.eps));
  const float2 nl = __ldg(reinterpret_cast<const float2 *>(norm) + c.lane),
               nh = __ldg(reinterpret_cast<const float2 *>(norm) + 32 + c.lane);
  lo.x *= inv * nl.x, lo.y *= inv * nl.y, hi.x *= inv * nh.x, hi.y *= inv * nh.y;
  if (!rope) return;
  const float2 cs = *reinterpret_cast<const float2 *>(&s.cosine[row][2 * c.lane]),
               sn = *reinterpret_cast<const float2 *>(&s.sine[row][2 * c.lane]);
  const float2 l = lo, h = hi;
  lo = make_float2(l.x * cs.x - h.x * sn.x, l.y * cs.y - h.y * sn.y);
  hi = make_float2(h.x * cs.x + l.x * sn.x, h.y * cs.y + l.y * sn.y);
}
__device__ __forceinline__ void put_query(int q, int word, float2 v) { // word: of 64, two elements each
  uint32_t p[3];
  split_bf16(v.x, v.y, p);
  const int step = word / 8, at = (q % 8 * 4 + word % 8 / 2) * 4 + (q / 8 & 1) + 2 * (word & 1);
#pragma unroll
  for (int i = 0; i < 3; i++) attend_of().query[((q / 16 * 8 + step) * 3 + i) * 128 + at] = p[i];
}
// Sums of 8 x 4 products a lane: the unit cuts off what a sum cannot hold, so the products of small parts have their
// own.
struct Sums {
  float large[2][4], small[2][4];
};
__device__ __forceinline__ void clear(Sums &o) {
#pragma unroll
  for (int i = 0; i < 8; i++) o.large[i / 4][i % 4] = 0, o.small[i / 4][i % 4] = 0;
}
// Six products of parts, of two tiles in turn: what is left out is below 2^-24.
__device__ __forceinline__ void mma6(Sums &o, const uint32_t a[3][4], const uint32_t p[2][3][2]) {
#define TWO(o, i, j) mma_bf16(o[0], a[i], p[0][j][0], p[0][j][1]), mma_bf16(o[1], a[i], p[1][j][0], p[1][j][1])
  TWO(o.small, 2, 0), TWO(o.large, 0, 0), TWO(o.small, 0, 2), TWO(o.small, 1, 1), TWO(o.small, 1, 0),
      TWO(o.small, 0, 1);
#undef TWO
}
__device__ __forceinline__ void fragment(uint32_t at, uint32_t a[3][4]) {
#pragma unroll
  for (int p = 0; p < 3; p++) lds128(at + p * 512, a[p][0], a[p][1], a[p][2], a[p][3]);
}
// Scores of this warp's 16 queries with 16 keys, those that count: from `low` to below `valid`.
__device__ __forceinline__ void scores(const Block &b, const Cta &c, uint32_t k_at, int valid, int low,
                                       float sc[2][4]) {
  const uint32_t q_at = smem_of(attend_of().query) + (c.warp & 1) * (8 * 3 * 512) + c.lane * 16;
  Sums sums;
  clear(sums);
#pragma unroll 2
  for (int s = 0; s < 8; s++) {
    uint32_t a[3][4], p[2][3][2];
    fragment(q_at + s * 3 * 512, a);
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const float4 k = lds4(k_at + (8 * j + c.g) * K_STRIDE + s * 64 + c.t * 16);
      uint32_t lo[3], hi[3];
      split_bf16(k.x, k.y, lo), split_bf16(k.z, k.w, hi);
#pragma unroll
      for (int i = 0; i < 3; i++) p[j][i][0] = lo[i], p[j][i][1] = hi[i];
    }
    mma6(sums, a, p);
  }
  const float none = -__int_as_float(0x7f800000);
#pragma unroll
  for (int j = 0; j < 2; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int key = 8 * j + 2 * c.t + (i & 1);
      sc[j][i] = key < valid && key >= low ? (sums.large[j][i] + sums.small[j][i]) * b.scale : none;
    }
}
struct Online { // of the tile c.warp & 1: queries g and g + 8; dimensions 16 (c.warp / 2) on
  float most[2], sum[2], o[2][4];
};
// A pass over up to 128 keys whose scores the warps hold, one unit of 16 each.
__device__ __forceinline__ void softmax(const Cta &c, float sc[2][4], int units, Online &y) {
  Attend &area = attend_of();
  const float none = -__int_as_float(0x7f800000);
  const int tile = c.warp & 1, unit = c.warp >> 1;
  float most[2] = {none, none};
#pragma unroll
  for (int j = 0; j < 2; j++)
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (!(sc[j][i] <= most[i >> 1])) most[i >> 1] = sc[j][i];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 1));
    most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 2));
    if (c.t == 0) area.most[unit][tile * 16 + c.g + 8 * r] = most[r];
  }
  sync_consumers();
  float now[2], sum[2] = {0, 0};
#pragma unroll
  for (int r = 0; r < 2; r++) {
    now[r] = y.most[r];
#pragma unroll
    for (int u = 0; u < UNITS; u++) now[r] = fmaxf(now[r], area.most[u][tile * 16 + c.g + 8 * r]);
    const float alpha = y.most[r] == none ? 0 : expf(y.most[r] - now[r]);
    y.most[r] = now[r];
    y.sum[r] *= alpha;
#pragma unroll
    for (int d = 0; d < 2; d++) y.o[d][2 * r] *= alpha, y.o[d][2 * r + 1] *= alpha;
  }
#pragma unroll
  for (int j = 0; j < 2; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      sc[j][i] = sc[j][i] == none ? 0 : expf(sc[j][i] - now[i >> 1]);
      sum[i >> 1] += sc[j][i];
    }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t p[3];
    split_bf16(sc[i >> 1][2 * (i & 1)], sc[i >> 1][2 * (i & 1) + 1], p);
#pragma unroll
    for (int k = 0; k < 3; k++) area.chance[((tile * UNITS + unit) * 3 + k) * 128 + c.lane * 4 + i] = p[k];
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
    sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
    if (c.t == 0) area.sum[unit][tile * 16 + c.g + 8 * r] = sum[r];
  }
  sync_consumers();
#pragma unroll
  for (int r = 0; r < 2; r++)
    for (int u = 0; u < UNITS; u++) y.sum[r] += area.sum[u][tile * 16 + c.g + 8 * r];
}
// 16 keys' values, this warp's 16 dimensions.
__device__ __forceinline__ void values(const Cta &c, uint32_t v_at, int unit, int valid, Sums &o) {
  uint32_t a[3][4], p[2][3][2];
  fragment(smem_of(attend_of().chance) + ((c.warp & 1) * UNITS + unit) * 3 * 512 + c.lane * 16, a);
  const uint32_t at = v_at + 2 * c.t * V_STRIDE + (16 * (c.warp >> 1) + c.g) * 4;
  const int k0 = 2 * c.t;
#pragma unroll
  for (int j = 0; j < 2; j++) {
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      v[i] = lds(at + ((i >> 1) * 8 + (i & 1)) * V_STRIDE + j * 32);
      if (k0 + (i >> 1) * 8 + (i & 1) >= valid) v[i] = 0;
    }
    uint32_t lo[3], hi[3];
    split_bf16(v[0], v[1], lo), split_bf16(v[2], v[3], hi);
#pragma unroll
    for (int i = 0; i < 3; i++) p[j][i][0] = lo[i], p[j][i][1] = hi[i];
  }
  mma6(o, a, p);
}
__device__ __forceinline__ void add(Online &y, const Sums &o) {
#pragma unroll
  for (int i = 0; i < 8; i++) y.o[i / 4][i % 4] += o.large[i / 4][i % 4] + o.small[i / 4][i % 4];
}
// Chunk i of a pass (see produce_context): waits for it and says where it lies.
__device__ __forceinline__ uint32_t open_chunk(const Cta &c, int i) {
  if (i >= 3 && i <= 5) {
    mbar_wait(AT(spare_full[i - 3]), c.spared);
    return AT(x) + spare_at(i - 3);
  }
#pragma unroll
  for (int w = 0; w < WARPGROUPS; w++) mbar_wait(AT(full[w][c.slot]), c.parity);
  return AT(slot[c.slot]);
}
__device__ __forceinline__ void close_chunk(Cta &c, int i) {
  if (i < 3 || i > 5) release(c);
}
// The spare slots may be filled.
__device__ __forceinline__ void spare(const Cta &c) {
  fence_products();
  __syncwarp();
  if ((int)c.lane < SPARES) mbar_arrive(AT(spare_empty[c.lane]));
}
// Keys of the context from `from` to below `to`, or the block's own.
__device__ __forceinline__ void attend_head(const Block &b, Cta &c, int l, int head, int split, int from, int to,
                                            bool own) {
  const Layer &layer = b.layer[l];
  Attend &area = attend_of();
  const float none = -__int_as_float(0x7f800000);
  if (from < to) spare(c);
  {
    float2 lo[2], hi[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int q = c.warp * 2 + i;
      const float2 *from =
          reinterpret_cast<const float2 *>(b.qkv[l] + q % 8 * QKV + (head * REP + q / 8) * HD) + c.lane;
      lo[i] = qkv_pair(from), hi[i] = qkv_pair(from + 32);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int q = c.warp * 2 + i, row = q % 8;
      head_norm(b, c, lo[i], hi[i], layer.q_norm, row, layer.rope);
      put_query(q, c.lane, lo[i]);
      put_query(q, 32 + c.lane, hi[i]);
      if (b.q_out[l] && split == 0 && row < b.rows) {
        float2 *out = reinterpret_cast<float2 *>(b.q_out[l] + row * QROWS + (head * REP + q / 8) * HD);
        out[c.lane] = lo[i], out[32 + c.lane] = hi[i];
      }
    }
  }
  if (own) {
    const int row = c.warp;
    float2 lo = make_float2(0, 0), hi = lo, vl = lo, vh = lo;
    if (row < 8) {
      const float2 *k = reinterpret_cast<const float2 *>(b.qkv[l] + row * QKV + QROWS + head * HD) + c.lane,
                   *v = k + KVROWS / 2;
      lo = qkv_pair(k), hi = qkv_pair(k + 32), vl = qkv_pair(v), vh = qkv_pair(v + 32);
      head_norm(b, c, lo, hi, layer.k_norm, row, layer.rope);
      if (b.k_out[l] && row < b.rows) {
        float2 *out = reinterpret_cast<float2 *>(b.k_out[l] + row * KVROWS + head * HD);
        out[c.lane] = lo, out[32 + c.lane] = hi;
      }
    }
    float2 *k = reinterpret_cast<float2 *>(area.own_k + row * (K_STRIDE / 4)),
           *w = reinterpret_cast<float2 *>(area.own_v + row * (V_STRIDE / 4));
    k[c.lane] = lo, k[32 + c.lane] = hi, w[c.lane] = vl, w[32 + c.lane] = vh;
  }
  sync_consumers();
  Online y;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    y.most[i] = none, y.sum[i] = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) y.o[i][k] = 0;
  }
  // The first key that row g sees.
  const long long sight = shared_of().seen[l].from + c.g;
  const int unit = c.warp >> 1;
  float sc[2][4];
  if (own) {
    if (unit == 0)
      scores(b, c, smem_of(area.own_k), b.rows, 0, sc);
    else
      for (int i = 0; i < 8; i++) sc[i / 4][i % 4] = none;
    softmax(c, sc, 1, y);
    Sums o;
    clear(o);
    values(c, smem_of(area.own_v), 0, b.rows, o);
    add(y, o);
  }
  for (int key = from; key < to; key += 128) {
    const int chunks = min(4, (to - key + KEYS - 1) / KEYS);
    for (int i = 0; i < 8; i++) sc[i / 4][i % 4] = none;
    for (int i = 0; i < chunks; i++) {
      const uint32_t at = open_chunk(c, i);
      if (unit / 2 == i) {
        const int start = key + unit * 16;
        const int low = sight > start ? (int)(sight - start > 99 ? 99 : sight - start) : 0;
        if (to > start) scores(b, c, at + unit % 2 * 16 * K_STRIDE, to - start, low, sc);
      }
      close_chunk(c, i);
    }
    softmax(c, sc, UNITS, y);
    Sums o;
    clear(o);
    for (int i = 0; i < chunks; i++) {
      const uint32_t at = open_chunk(c, 4 + i);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int start = key + (2 * i + h) * 16;
        if (to > start) values(c, at + h * 16 * V_STRIDE, 2 * i + h, to - start, o);
      }
      close_chunk(c, 4 + i);
    }
    // Those that hold no rows of this pass count as filled as well.
#pragma unroll
    for (int i = 0; i < SPARES; i++) mbar_wait(AT(spare_full[i]), c.spared);
    c.spared ^= 1;
    if (to > key + 128) spare(c);
    add(y, o);
  }
  float *part = b.part + (size_t)(head * ALL_SPLITS + split) * SPLIT_STRIDE;
  const int tile = c.warp & 1;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int q = tile * 16 + c.g + 8 * r;
    if (unit == 0 && c.t == 0) part[32 * HD + q] = y.most[r], part[32 * HD + 32 + q] = y.sum[r];
#pragma unroll
    for (int d = 0; d < 2; d++)
      *reinterpret_cast<float2 *>(part + q * HD + 16 * unit + 8 * d + 2 * c.t) =
          make_float2(y.o[d][2 * r], y.o[d][2 * r + 1]);
  }
  sync_consumers();
}
// The context's keys of a head are shared by SPLITS CTAs; the CTAs that are left take the block's own.
__device__ __forceinline__ void attend(const Block &b, Cta &c, int l) {
  int head = c.cta / SPLITS, split = c.cta % SPLITS, from = 0, to = 0, heads = 1;
  const bool own = c.cta >= KV * SPLITS;
  if (own)
    heads = KV / (CTAS - KV * SPLITS), head = (c.cta - KV * SPLITS) * heads, split = SPLITS;
  else
    context_range(l, split, from, to);
  for (int i = 0; i < heads; i++) attend_head(b, c, l, head + i, split, from, to, own);
}
// The splits of a row and head, in one order: pairs (head of k, query) c.cta and the next.
__device__ __forceinline__ void mix(const Block &b, const Cta &c, int l) {
  const int tid = threadIdx.x, pair = c.cta + CTAS * (tid >> 7), d = tid & 127;
  if (tid >= 256 || pair >= KV * 32) return;
  const int head = pair / 32, q = pair % 32;
  const float *part = b.part + (size_t)head * ALL_SPLITS * SPLIT_STRIDE, none = -__int_as_float(0x7f800000);
  float most[ALL_SPLITS], sum[ALL_SPLITS], o[ALL_SPLITS], top = none;
#pragma unroll
  for (int i = 0; i < ALL_SPLITS; i++) {
    const float *p = part + i * SPLIT_STRIDE;
    most[i] = __ldcg(p + 32 * HD + q), sum[i] = __ldcg(p + 32 * HD + 32 + q), o[i] = __ldcg(p + q * HD + d);
  }
#pragma unroll
  for (int i = 0; i < ALL_SPLITS; i++) top = fmaxf(top, most[i]);
  float total = 0, value = 0;
#pragma unroll
  for (int i = 0; i < ALL_SPLITS; i++) {
    const float f = most[i] == none ? 0 : expf(most[i] - top);
    total += sum[i] * f, value += o[i] * f;
  }
  b.mix[l][(q % 8) * MIX + (head * REP + q / 8) * HD + d] = __fdiv_rn(value, total);
}
} // namespace fast

#endif
