// Attention.
#ifndef DFLASH_CUDA_FAST_ATTEND_CUH
#define DFLASH_CUDA_FAST_ATTEND_CUH

#include "block.cuh"
namespace fast {
__device__ __forceinline__ Attend &attend_of() { return shared_of().attend; }

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
// Six products of parts, of two tiles of rows and two of columns in turn: what is left out is below 2^-24.
__device__ __forceinline__ void mma6(float o[2][2][4], const uint32_t a[2][3][4], const uint32_t p[2][3][2]) {
  const int first[6] = {2, 0, 1, 1, 0, 0}, second[6] = {0, 2, 1, 0, 1, 0};
#pragma unroll
  for (int i = 0; i < 6; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      mma_bf16(o[j / 2][j % 2], a[j / 2][first[i]], p[j % 2][second[i]][0], p[j % 2][second[i]][1]);
}
__device__ __forceinline__ void fragments(uint32_t at, uint32_t tile_bytes, uint32_t a[2][3][4]) {
#pragma unroll
  for (int t = 0; t < 2; t++)
#pragma unroll
    for (int p = 0; p < 3; p++) lds128(at + t * tile_bytes + p * 512, a[t][p][0], a[t][p][1], a[t][p][2], a[t][p][3]);
}
__device__ __forceinline__ void split_pairs(float a, float b, float c, float d, uint32_t p[3][2]) {
  uint32_t lo[3], hi[3];
  split_bf16(a, b, lo), split_bf16(c, d, hi);
#pragma unroll
  for (int i = 0; i < 3; i++) p[i][0] = lo[i], p[i][1] = hi[i];
}
// What a warp needs of a pass over 128 keys: 16 keys of its own, and its own 16 dimensions of all the values.
struct Keys {
  float4 k[2][8];       // key 8 j + g, dimensions 16 s + 4 t on
  float v[UNITS][2][4]; // keys 2 t, 2 t + 1, and the same plus 8; dimension 8 j + g
};
// Keys past the last are the last again: nothing of them counts.
__device__ __forceinline__ void load_keys(const Cta &c, int l, int head, int key, int to, Keys &keys) {
  const CudaVisible &seen = shared_of().seen[l];
  const float *k = at<const float>(seen.k) + head * HD + 4 * c.t,
              *v = at<const float>(seen.v) + head * HD + 16 * c.warp + c.g;
#pragma unroll
  for (int j = 0; j < 2; j++) {
    const float *row = k + (size_t)min(key + (int)c.warp * 16 + 8 * j + (int)c.g, to - 1) * (KV * HD);
#pragma unroll
    for (int s = 0; s < 8; s++) keys.k[j][s] = __ldcs(reinterpret_cast<const float4 *>(row + 16 * s));
  }
#pragma unroll
  for (int u = 0; u < UNITS; u++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float *row = v + (size_t)min(key + u * 16 + 2 * (int)c.t + (i & 1) + 8 * (i >> 1), to - 1) * (KV * HD);
#pragma unroll
      for (int j = 0; j < 2; j++) keys.v[u][j][i] = __ldcs(row + 8 * j);
    }
}
struct Online { // of queries 16 tile + g and + 8; dimensions 16 warp + 8 j + 2 t and the next
  float most[2][2], sum[2][2], o[2][2][4];
};
// Scores of the 32 queries with this warp's keys, those that count: from `low` to below `valid`.
__device__ __forceinline__ void scores(const Block &b, const Cta &c, const Keys &keys, int valid, int low,
                                       float sc[2][2][4]) {
  const uint32_t q_at = smem_of(attend_of().query) + c.lane * 16;
  const float none = -__int_as_float(0x7f800000);
#pragma unroll
  for (int i = 0; i < 16; i++) sc[i / 8][i / 4 % 2][i % 4] = valid > 0 ? 0 : none;
  if (valid <= 0) return;
#pragma unroll
  for (int s = 0; s < 8; s++) {
    uint32_t a[2][3][4], p[2][3][2];
    fragments(q_at + s * 3 * 512, 8 * 3 * 512, a);
#pragma unroll
    for (int j = 0; j < 2; j++) split_pairs(keys.k[j][s].x, keys.k[j][s].y, keys.k[j][s].z, keys.k[j][s].w, p[j]);
    mma6(sc, a, p);
  }
#pragma unroll
  for (int i = 0; i < 16; i++) {
    const int key = 8 * (i / 4 % 2) + 2 * c.t + (i & 1);
    float &score = sc[i / 8][i / 4 % 2][i % 4];
    score = key < valid && key >= low ? score * b.scale : none;
  }
}
__device__ __forceinline__ void softmax(const Cta &c, float sc[2][2][4], Online &y) {
  Attend &area = attend_of();
  const float none = -__int_as_float(0x7f800000);
#pragma unroll
  for (int t = 0; t < 2; t++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float most = none;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float score = sc[t][i / 2][2 * r + i % 2];
        if (!(score <= most)) most = score;
      }
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
      if (c.t == 0) area.most[c.warp][16 * t + 8 * r + c.g] = most;
    }
  sync_cta();
#pragma unroll
  for (int t = 0; t < 2; t++) {
    uint32_t p[4][3];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int q = 16 * t + 8 * r + c.g;
      float now = y.most[t][r], sum = 0;
#pragma unroll
      for (int u = 0; u < UNITS; u++) now = fmaxf(now, area.most[u][q]);
      const float alpha = y.most[t][r] == none ? 0 : expf(y.most[t][r] - now);
      y.most[t][r] = now, y.sum[t][r] *= alpha;
#pragma unroll
      for (int j = 0; j < 2; j++) y.o[t][j][2 * r] *= alpha, y.o[t][j][2 * r + 1] *= alpha;
      float e[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float score = sc[t][i / 2][2 * r + i % 2];
        e[i] = score == none ? 0 : expf(score - now);
        sum += e[i];
      }
      split_bf16(e[0], e[1], p[r]), split_bf16(e[2], e[3], p[2 + r]);
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      if (c.t == 0) area.sum[c.warp][q] = sum;
    }
#pragma unroll
    for (int k = 0; k < 3; k++)
      *reinterpret_cast<uint4 *>(&area.chance[((t * UNITS + c.warp) * 3 + k) * 128 + c.lane * 4]) =
          make_uint4(p[0][k], p[1][k], p[2][k], p[3][k]);
  }
  sync_cta();
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int u = 0; u < UNITS; u++) y.sum[i / 2][i % 2] += area.sum[u][16 * (i / 2) + 8 * (i % 2) + c.g];
}
__device__ __forceinline__ void values(const Cta &c, const Keys &keys, int units, Online &y) {
  const uint32_t p_at = smem_of(attend_of().chance) + c.lane * 16;
#pragma unroll
  for (int u = 0; u < UNITS; u++) {
    if (u >= units) break;
    uint32_t a[2][3][4], p[2][3][2];
    fragments(p_at + u * 3 * 512, UNITS * 3 * 512, a);
#pragma unroll
    for (int j = 0; j < 2; j++) split_pairs(keys.v[u][j][0], keys.v[u][j][1], keys.v[u][j][2], keys.v[u][j][3], p[j]);
    mma6(y.o, a, p);
  }
}
// Keys of the context from `from` to below `to`, or the block's own.
__device__ __forceinline__ void attend_head(const Block &b, Cta &c, int l, int head, int split, int from, int to,
                                            bool own, Keys &keys) {
  const Layer &layer = b.layer[l];
  Attend &area = attend_of();
  const float none = -__int_as_float(0x7f800000);
  {
    constexpr int EACH = 32 / WARPS;
    float2 lo[EACH], hi[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const int q = c.warp * EACH + i;
      const float2 *from =
          reinterpret_cast<const float2 *>(b.qkv[l] + q % 8 * QKV + (head * REP + q / 8) * HD) + c.lane;
      lo[i] = __ldcg(from), hi[i] = __ldcg(from + 32);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const int q = c.warp * EACH + i, row = q % 8;
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
    const float2 *from = reinterpret_cast<const float2 *>(b.qkv[l] + row * QKV + QROWS + head * HD) + c.lane,
                 *v = from + KVROWS / 2;
    float2 lo = __ldcg(from), hi = __ldcg(from + 32);
    const float2 vl = __ldcg(v), vh = __ldcg(v + 32), zero = make_float2(0, 0);
    head_norm(b, c, lo, hi, layer.k_norm, row, layer.rope);
    if (b.k_out[l] && row < b.rows) {
      float2 *out = reinterpret_cast<float2 *>(b.k_out[l] + row * KVROWS + head * HD);
      out[c.lane] = lo, out[32 + c.lane] = hi;
    }
    float2 *k = reinterpret_cast<float2 *>(area.own_k[row]) + c.lane,
           *w = reinterpret_cast<float2 *>(area.own_v[row]) + c.lane;
    k[0] = lo, k[32] = hi, w[0] = vl, w[32] = vh;
  }
  sync_cta();
  if (own) {
    from = 0, to = b.rows;
#pragma unroll
    for (int i = 0; i < 16; i++)
      keys.k[i / 8][i % 8] = *reinterpret_cast<const float4 *>(&area.own_k[c.g][16 * (i % 8) + 4 * c.t]);
#pragma unroll
    for (int i = 0; i < 8; i++)
      keys.v[0][i / 4][i % 4] = i % 4 < 2 ? area.own_v[2 * c.t + i % 2][16 * c.warp + 8 * (i / 4) + c.g] : 0;
  }
  Online y;
#pragma unroll
  for (int i = 0; i < 4; i++) y.most[i / 2][i % 2] = none, y.sum[i / 2][i % 2] = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) y.o[i / 8][i / 4 % 2][i % 4] = 0;
  // The first key that row g sees.
  const long long sight = own ? 0 : shared_of().seen[l].from + c.g;
#pragma unroll 1
  for (int key = from; key < to; key += 128) {
    float sc[2][2][4];
    const int start = key + c.warp * 16;
    scores(b, c, keys, to - start, sight > start ? (int)(sight - start > 99 ? 99 : sight - start) : 0, sc);
    softmax(c, sc, y);
    values(c, keys, (to - key + 15) / 16, y);
    if (key + 128 < to) load_keys(c, l, head, key + 128, to, keys);
  }
  float *part = b.part + (size_t)(head * ALL_SPLITS + split) * SPLIT_STRIDE;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int t = i / 2, r = i % 2, q = 16 * t + 8 * r + c.g;
    if (c.warp == 0 && c.t == 0) part[32 * HD + q] = y.most[t][r], part[32 * HD + 32 + q] = y.sum[t][r];
#pragma unroll
    for (int j = 0; j < 2; j++)
      *reinterpret_cast<float2 *>(part + q * HD + 16 * c.warp + 8 * j + 2 * c.t) =
          make_float2(y.o[t][j][2 * r], y.o[t][j][2 * r + 1]);
  }
}
// The context's keys of a head are shared by SPLITS CTAs; the CTAs that are left take the block's own, of two heads.
struct Part {
  int head, split, from, to;
  bool own;
};
__device__ __forceinline__ Part part_of(const Block &b, const Cta &c, int l) {
  constexpr int HEADS_EACH = KV / (CTAS - KV * SPLITS);
  Part p = {(int)c.cta / SPLITS, (int)c.cta % SPLITS, 0, 0, c.cta >= KV * SPLITS};
  if (p.own)
    p.head = (c.cta - KV * SPLITS) * HEADS_EACH, p.split = SPLITS;
  else
    context_range(l, p.split, p.from, p.to);
  return p;
}
__device__ __forceinline__ void attend(const Block &b, Cta &c, int l, const Part &p, Keys &keys) {
#pragma unroll 1
  for (int i = 0; i < (p.own ? KV / (CTAS - KV * SPLITS) : 1); i++)
    attend_head(b, c, l, p.head + i, p.split, p.from, p.to, p.own, keys);
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
