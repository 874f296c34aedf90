// Queries and the block's own keys, for attention.
#ifndef DFLASH_CUDA_FAST_HEADS_CUH
#define DFLASH_CUDA_FAST_HEADS_CUH

#include "rows.cuh"
namespace fast {
constexpr int UNITS = 8;                                   // of 16 keys, a pass
constexpr int TILES = QUERIES / 32;                        // of 16 queries, that a warp has
constexpr int STEP_WORDS = ATTEND_PARTS * 128 + 16;        // of 16 dimensions of a tile; 16 for the banks
constexpr int OWN_HEADS = KV / (CTAS - KV * SPLITS);       // of a CTA that has the block's own keys
constexpr int AT_ONCE = 64 / QUERIES, OWN_TILES = 64 / 16; // heads and tiles of them at once
constexpr int MOST_STRIDE = QUERIES + 4;                   // units 2 apart lie 8 banks apart
struct Attend {
  uint32_t chance[UNITS][2 * TILES][ATTEND_PARTS * 128]; // fragments of the softmax, each unit's as if it were alone
  float most[UNITS][MOST_STRIDE], sum[UNITS][MOST_STRIDE];
  uint32_t query[OWN_TILES][8 * STEP_WORDS]; // fragments of the queries: tile, 16 dimensions, part
  float own_k[AT_ONCE][16 * K_STRIDE / 4], own_v[AT_ONCE][16 * V_STRIDE / 4];
};
static_assert(offsetof(Attend, query) + 2 * TILES * sizeof(Attend::query[0]) <= SPARE_AT, "");
static_assert(sizeof(Attend) <= X_BYTES, "");
static_assert(SPARE_AT + KEYS * (K_STRIDE + (EARLY_SPARES - 1) * V_STRIDE) <= X_BYTES, "");
static_assert(offsetof(Shared, x) + SPARE_AT + KEYS * (K_STRIDE + (SPARES - 1) * V_STRIDE) <= offsetof(Shared, cosine),
              "");
static_assert(SPARE_AT % 16 == 0, "");
__device__ __forceinline__ Attend &attend_of() { return *reinterpret_cast<Attend *>(shared_of().x); }
__device__ __forceinline__ float none() { return -__int_as_float(0x7f800000); }

// ---- heads: half a warp has one, a lane elements 4 m to 4 m + 3 and the same plus 64 ----
struct Head {
  float4 lo, hi;
};
// A load that stays where it is written: before others are waited for.
__device__ __forceinline__ float4 ld4_now(const float *p) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ Head load_weights(const Cta &c, const float *norm) {
  return {ld4_now(norm + c.lane % 16 * 4), ld4_now(norm + 64 + c.lane % 16 * 4)};
}
__device__ __forceinline__ float4 mul4(float4 a, float4 b) {
  return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}
__device__ __forceinline__ float4 scale4(float4 a, float f) { return make_float4(a.x * f, a.y * f, a.z * f, a.w * f); }
__device__ __forceinline__ void st4(float *p, float4 v) { *reinterpret_cast<float4 *>(p) = v; }
__device__ __forceinline__ float4 sub4(float4 a, float4 b) {
  return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
}
__device__ __forceinline__ float4 add4(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ __forceinline__ float4 read4(const float *p) { return *reinterpret_cast<const float4 *>(p); }
__device__ __forceinline__ Head load_head(const Block &b, const Cta &c, int l, int row, int column) {
  const float *from = b.qkv[l] + row * QKV + column + c.lane % 16 * 4;
  const float *half = from + ROWS * QKV;
  const Head x = {ld4_now(from), ld4_now(from + 64)}, y = {ld4_now(half), ld4_now(half + 64)};
  return {add4(x.lo, y.lo), add4(x.hi, y.hi)};
}
__device__ __forceinline__ void store_head(const Cta &c, float *to, const Head &x) {
  st4(to + c.lane % 16 * 4, x.lo), st4(to + 64 + c.lane % 16 * 4, x.hi);
}
// rms and rotation.
__device__ __forceinline__ void head_norm(const Block &b, const Cta &c, Head &x, const Head &norm, int row, bool rope) {
  const Shared &s = shared_of();
  const int at = c.lane % 16 * 4;
  const float4 p = mul4(x.lo, x.lo), q = mul4(x.hi, x.hi);
  float sum = ((p.x + p.y) + (p.z + p.w)) + ((q.x + q.y) + (q.z + q.w));
#pragma unroll
  for (int o = 8; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  const float inv = __fdiv_rn(1.0f, __fsqrt_rn(sum / HD + b.eps));
  x.lo = mul4(x.lo, scale4(norm.lo, inv)), x.hi = mul4(x.hi, scale4(norm.hi, inv));
  if (!rope) return;
  const float4 cs = read4(&s.cosine[row][at]), sn = read4(&s.sine[row][at]), l = x.lo, h = x.hi;
  x.lo = sub4(mul4(l, cs), mul4(h, sn));
  x.hi = add4(mul4(h, cs), mul4(l, sn));
}
// Two numbers as the words of a fragment: their parts in pairs, or one word each.
__device__ __forceinline__ void words_of(float x, float y, uint32_t p[ATTEND_PARTS]) {
  if constexpr (ATTEND_PARTS == 3)
    split_bf16(x, y, p);
  else
    p[0] = round_tf32(x), p[1] = round_tf32(y);
}
// Four elements from 4 m on of a query: of a fragment's words those of its row, 0 and 2 or 1 and 3, lie side by side.
__device__ __forceinline__ void put_query(int q, int m, float4 v) {
  uint32_t a[ATTEND_PARTS], b[ATTEND_PARTS];
  words_of(v.x, v.y, a), words_of(v.z, v.w, b);
  uint32_t *to = &attend_of().query[q / 16][m / 4 * STEP_WORDS + (q % 8 * 4 + m % 4) * 4 + (q / 8 & 1) * 2];
#pragma unroll
  for (int i = 0; i < ATTEND_PARTS; i++) *reinterpret_cast<uint2 *>(to + i * 128) = make_uint2(a[i], b[i]);
}
// 32 COUNT queries, of `head` and the heads behind it.
template <int COUNT>
__device__ __forceinline__ void put_queries(const Block &b, const Cta &c, int l, int head, float *out) {
  const Head norm = load_weights(c, b.layer[l].q_norm);
  Head x[COUNT];
  int q[COUNT];
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    q[i] = i * 32 + (int)c.warp * 2 + (int)c.lane / 16;
    x[i] = load_head(b, c, l, q[i] % ROWS, (head * REP + q[i] / ROWS) * HD);
  }
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    const int row = q[i] % ROWS, m = c.lane % 16;
    head_norm(b, c, x[i], norm, row, b.layer[l].rope);
    put_query(q[i], m, x[i].lo), put_query(q[i], 16 + m, x[i].hi);
    if (out && row < b.rows) store_head(c, out + row * QROWS + (head * REP + q[i] / ROWS) * HD, x[i]);
  }
}
// The block's own keys and values of AT_ONCE heads: a row of either.
struct Own {
  int which, row; // of the heads
  bool keys;
  Head x, norm;
};
__device__ __forceinline__ Own load_own(const Block &b, const Cta &c, int l, int head) {
  const int n = (c.warp * 2 + c.lane / 16) % 16;
  Own o = {n / ROWS, n % ROWS, c.warp < 8, {}, load_weights(c, b.layer[l].k_norm)};
  o.x = load_head(b, c, l, o.row, QROWS + (o.keys ? 0 : KVROWS) + (head + o.which) * HD);
  return o;
}
// As they would lie in a slot.
__device__ __forceinline__ void put_own(const Block &b, const Cta &c, int l, int head, Own &o) {
  Attend &area = attend_of();
  if (!o.keys) {
    store_head(c, &area.own_v[o.which][o.row * (V_STRIDE / 4)], o.x);
    return;
  }
  head_norm(b, c, o.x, o.norm, o.row, b.layer[l].rope);
  store_head(c, &area.own_k[o.which][o.row * (K_STRIDE / 4)], o.x);
  if (b.k_out[l] && o.row < b.rows) store_head(c, b.k_out[l] + o.row * KVROWS + (head + o.which) * HD, o.x);
}
} // namespace fast

#endif
