// Attention.
#ifndef DFLASH_CUDA_FAST_ATTEND_CUH
#define DFLASH_CUDA_FAST_ATTEND_CUH

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

// ---- products ----
// Sums of 8 x 4 products a lane: the unit cuts off what a sum cannot hold, so the products of small parts have their
// own. Of tf32 both are alike.
struct Sums {
  float large[2][4], small[2][4];
};
__device__ __forceinline__ void clear(Sums &o) {
#pragma unroll
  for (int i = 0; i < 8; i++) o.large[i / 4][i % 4] = 0, o.small[i / 4][i % 4] = 0;
}
#define TWO(mma, o, i, j) mma(o[0], a[i], p[0][j][0], p[0][j][1]), mma(o[1], a[i], p[1][j][0], p[1][j][1])
// Products of two tiles in turn. Six of three parts: what is left out is below 2^-24.
__device__ __forceinline__ void multiply_words(Sums &o, const uint32_t a[3][4], const uint32_t p[2][3][2]) {
  TWO(mma_bf16, o.small, 2, 0), TWO(mma_bf16, o.large, 0, 0), TWO(mma_bf16, o.small, 0, 2);
  TWO(mma_bf16, o.small, 1, 1), TWO(mma_bf16, o.small, 1, 0), TWO(mma_bf16, o.small, 0, 1);
}
__device__ __forceinline__ void multiply_words(Sums &o, const uint32_t a[2][4], const uint32_t p[2][2][2]) {
  TWO(mma_tf32, o.large, 0, 0), TWO(mma_tf32, o.small, 1, 1);
}
#undef TWO
__device__ __forceinline__ void fragment(uint32_t at, uint32_t a[ATTEND_PARTS][4]) {
#pragma unroll
  for (int p = 0; p < ATTEND_PARTS; p++) lds128(at + p * 512, a[p][0], a[p][2], a[p][1], a[p][3]);
}
// Scores of this warp's queries, whose fragments begin at q_at, with 16 keys, those that count: below `valid`, and from
// low[0] or low[1] on for queries g and g + 8 of a tile.
typedef float Scores[TILES][2][4];
__device__ __forceinline__ void scores(const Block &b, const Cta &c, uint32_t q_at, uint32_t k_at, int valid,
                                       const int low[2], Scores sc) {
  Sums sums[TILES];
#pragma unroll
  for (int n = 0; n < TILES; n++) clear(sums[n]);
#pragma unroll 2
  for (int s = 0; s < 8; s++) {
    uint32_t p[2][ATTEND_PARTS][2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const float4 k = lds4(k_at + (8 * j + c.g) * K_STRIDE + s * 64 + c.t * 16);
      uint32_t lo[ATTEND_PARTS], hi[ATTEND_PARTS];
      words_of(k.x, k.y, lo), words_of(k.z, k.w, hi);
#pragma unroll
      for (int i = 0; i < ATTEND_PARTS; i++) p[j][i][0] = lo[i], p[j][i][1] = hi[i];
    }
#pragma unroll
    for (int n = 0; n < TILES; n++) {
      uint32_t a[ATTEND_PARTS][4];
      fragment(q_at + (n * 8 + s) * (STEP_WORDS * 4) + c.lane * 16, a);
      multiply_words(sums[n], a, p);
    }
  }
#pragma unroll
  for (int n = 0; n < TILES; n++)
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const int j = i / 4, e = i % 4, key = 8 * j + 2 * c.t + (e & 1);
      const bool counts = key < valid && key >= low[e >> 1];
      sc[n][j][e] = counts ? (sums[n].large[j][e] + sums[n].small[j][e]) * b.scale : none();
    }
}
// The softmax of the scores of a unit as if there were no other: fragments, greatest score and sum.
__device__ __forceinline__ void chances(const Cta &c, int unit, Scores sc) {
  Attend &area = attend_of();
#pragma unroll
  for (int n = 0; n < TILES; n++) {
    const int tile = (c.warp & 1) * TILES + n;
    uint32_t p[4][ATTEND_PARTS];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float most = none(), sum = 0;
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (!(sc[n][i >> 1][2 * r + (i & 1)] <= most)) most = sc[n][i >> 1][2 * r + (i & 1)];
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float &v = sc[n][i >> 1][2 * r + (i & 1)];
        v = v == none() ? 0 : expf(v - most);
        sum += v;
      }
      words_of(sc[n][0][2 * r], sc[n][0][2 * r + 1], p[2 * r]);
      words_of(sc[n][1][2 * r], sc[n][1][2 * r + 1], p[2 * r + 1]);
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      const int q = tile * 16 + c.g + 8 * r;
      if (c.t == 0) area.most[unit][q] = most, area.sum[unit][q] = sum;
    }
#pragma unroll
    for (int k = 0; k < ATTEND_PARTS; k++)
      *reinterpret_cast<uint4 *>(&area.chance[unit][tile][k * 128 + c.lane * 4]) =
          make_uint4(p[0][k], p[1][k], p[2][k], p[3][k]);
  }
}
// A unit that has no keys.
__device__ __forceinline__ void no_chances(const Cta &c, int unit) {
  Attend &area = attend_of();
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    const int q = (c.warp & 1) * TILES * 16 + c.g + 8 * i;
    if (c.t == 0) area.most[unit][q] = none(), area.sum[unit][q] = 0;
  }
}
struct Online { // of this warp's tiles: queries g and g + 8; dimensions 16 (c.warp / 2) + 4 t + 2 e + d: o[d][2 r + e]
  float most[TILES][2], sum[TILES][2], o[TILES][2][4];
};
// The units of a pass beside what was before; factor: of units 2 t and 2 t + 1.
typedef float Factors[TILES][2][2];
__device__ __forceinline__ void weigh(const Cta &c, Online &y, Factors factor) {
  const Attend &area = attend_of();
#pragma unroll
  for (int n = 0; n < TILES; n++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int q = ((c.warp & 1) * TILES + n) * 16 + c.g + 8 * r;
      float most[2], sum = 0, top = y.most[n][r];
#pragma unroll
      for (int i = 0; i < 2; i++) most[i] = area.most[2 * c.t + i][q], top = fmaxf(top, most[i]);
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
#pragma unroll
      for (int i = 0; i < 2; i++) {
        factor[n][r][i] = most[i] == none() ? 0 : expf(most[i] - top);
        sum += factor[n][r][i] * area.sum[2 * c.t + i][q];
      }
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      const float alpha = y.most[n][r] == none() ? 0 : expf(y.most[n][r] - top);
      y.most[n][r] = top, y.sum[n][r] = y.sum[n][r] * alpha + sum;
#pragma unroll
      for (int d = 0; d < 2; d++) y.o[n][d][2 * r] *= alpha, y.o[n][d][2 * r + 1] *= alpha;
    }
}
// 16 keys' values, this warp's 16 dimensions: even ones, then odd ones.
__device__ __forceinline__ void values(const Cta &c, uint32_t v_at, int unit, int valid, Sums o[TILES]) {
  const uint32_t at = v_at + 2 * c.t * V_STRIDE + (16 * (c.warp >> 1) + 2 * c.g) * 4;
  uint32_t p[2][ATTEND_PARTS][2];
  float v[2][4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const float2 pair = lds2(at + ((i >> 1) * 8 + (i & 1)) * V_STRIDE);
    const bool counts = valid >= 16 || 2 * (int)c.t + (i >> 1) * 8 + (i & 1) < valid;
    v[0][i] = counts ? pair.x : 0, v[1][i] = counts ? pair.y : 0;
  }
#pragma unroll
  for (int j = 0; j < 2; j++) {
    uint32_t lo[ATTEND_PARTS], hi[ATTEND_PARTS];
    words_of(v[j][0], v[j][1], lo), words_of(v[j][2], v[j][3], hi);
#pragma unroll
    for (int i = 0; i < ATTEND_PARTS; i++) p[j][i][0] = lo[i], p[j][i][1] = hi[i];
  }
#pragma unroll
  for (int n = 0; n < TILES; n++) {
    uint32_t a[ATTEND_PARTS][4];
    fragment(smem_of(attend_of().chance[unit][(c.warp & 1) * TILES + n]) + c.lane * 16, a);
    clear(o[n]);
    multiply_words(o[n], a, p);
  }
}
__device__ __forceinline__ void write_part(const Block &b, const Cta &c, int head, int split, const Online &y) {
  float *part = b.part + (size_t)(head * ALL_SPLITS + split) * SPLIT_STRIDE;
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    const int n = i / 2, r = i % 2, q = ((c.warp & 1) * TILES + n) * 16 + c.g + 8 * r;
    if (c.warp < 2 && c.t == 0) part[QUERIES * HD + q] = y.most[n][r], part[QUERIES * HD + QUERIES + q] = y.sum[n][r];
    st4(part + q * HD + 16 * (c.warp >> 1) + 4 * c.t,
        make_float4(y.o[n][0][2 * r], y.o[n][1][2 * r], y.o[n][0][2 * r + 1], y.o[n][1][2 * r + 1]));
  }
}

// ---- the context ----
// Chunk i of a pass (see produce_context) in the ring, `skip` slots ahead: waits for it and says where it lies.
__device__ __forceinline__ uint32_t open_chunk(const Cta &c, int i, int skip) {
  if (is_spare(i)) {
    mbar_wait(AT(spare_full[i - FIRST_SPARE]), c.spared);
    return AT(x) + spare_at(i - FIRST_SPARE);
  }
  int slot = c.slot;
  uint32_t parity = c.parity;
  for (int k = 0; k < skip; k++) next_slot(slot, parity);
  mbar_wait(AT(full[0][slot]), parity);
  return AT(slot[slot]);
}
// The ring's next slot, which all warps release, those too that read nothing of it.
__device__ __forceinline__ void close_chunk(Cta &c, int i) {
  if (is_spare(i)) return;
  mbar_wait(AT(full[0][c.slot]), c.parity);
  release(c);
}
// The spare slots from `first` on may be filled: nobody uses their memory any more.
__device__ __forceinline__ void spare(const Cta &c, int first, int end) {
  fence_products();
  __syncwarp();
  if ((int)c.lane >= first && (int)c.lane < end) mbar_arrive(AT(spare_empty[c.lane]));
}
__device__ __forceinline__ void unit_scores(const Block &b, const Cta &c, int l, int key, int to) {
  // The first keys that this warp's rows see.
  const int unit = c.warp >> 1, start = key + unit * 16;
  int low[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const long long sight = shared_of().seen[l].from + c.g + (ROWS == 16 ? 8 * r : 0) - start;
    low[r] = sight > 99 ? 99 : sight < 0 ? 0 : (int)sight;
  }
  if (start >= to) {
    no_chances(c, unit);
    return;
  }
  Scores sc;
  const uint32_t q_at = smem_of(attend_of().query[(c.warp & 1) * TILES]);
  const uint32_t k_at = open_chunk(c, unit / 2, unit / 2) + unit % 2 * 16 * K_STRIDE;
  scores(b, c, q_at, k_at, to - start, low, sc);
  chances(c, unit, sc);
}
// The values of a chunk of 32 keys, of which `valid` are there.
__device__ __forceinline__ void chunk_values(const Cta &c, uint32_t at, int chunk, int valid, const Factors factor,
                                             Online &y) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    if (h > 0 && valid <= 16) return;
    Sums o[TILES];
    values(c, at + h * 16 * V_STRIDE, 2 * chunk + h, valid - 16 * h, o);
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
      const int n = i / 2, r = i % 2;
      const float f = __shfl_sync(~0u, factor[n][r][h], c.lane & ~3 | chunk);
#pragma unroll
      for (int d = 0; d < 4; d++)
        y.o[n][d >> 1][2 * r + (d & 1)] +=
            f * (o[n].large[d >> 1][2 * r + (d & 1)] + o[n].small[d >> 1][2 * r + (d & 1)]);
    }
  }
}
// Keys of the context from `from` to below `to`.
__device__ __forceinline__ void attend_context(const Block &b, Cta &c, int l) {
  const int head = c.cta / SPLITS, split = c.cta % SPLITS;
  int from, to;
  context_range(l, split, from, to);
  if (EARLY_SPARES < SPARES && from < to) spare(c, EARLY_SPARES, SPARES);
  put_queries<QUERIES / 32>(b, c, l, head, split == 0 ? b.q_out[l] : nullptr);
  Online y;
#pragma unroll
  for (int i = 0; i < 2 * TILES; i++) {
    y.most[i / 2][i % 2] = none(), y.sum[i / 2][i % 2] = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) y.o[i / 2][i % 2][k] = 0;
  }
  for (int key = from; key < to; key += 4 * KEYS) {
    const int chunks = min(4, (to - key + KEYS - 1) / KEYS);
    sync_consumers(); // queries are there; all have read what the pass before left
    unit_scores(b, c, l, key, to);
#pragma unroll 1
    for (int i = 0; i < chunks; i++) close_chunk(c, i);
    sync_consumers();
    Factors factor;
    weigh(c, y, factor);
#pragma unroll 1
    for (int i = 0; i < chunks; i++) { // code that runs once waits for its instructions
      chunk_values(c, open_chunk(c, 4 + i, 0), i, to - key - i * KEYS, factor, y);
      close_chunk(c, 4 + i);
    }
    // Those that hold no rows of this pass count as filled as well.
#pragma unroll
    for (int i = 0; i < SPARES; i++) mbar_wait(AT(spare_full[i]), c.spared);
    c.spared ^= 1;
    if (to > key + 4 * KEYS) spare(c, 0, SPARES);
  }
  write_part(b, c, head, split, y);
}
// The block's own keys.
__device__ __forceinline__ void attend_own(const Block &b, Cta &c, int l) {
  const Attend &area = attend_of();
  const int first = (c.cta - KV * SPLITS) * OWN_HEADS, unit = c.warp >> 1, low[2] = {0, 0};
  for (int head = first; head < first + OWN_HEADS; head += AT_ONCE) {
    Own own = load_own(b, c, l, head);
    put_queries<2>(b, c, l, head, nullptr);
    put_own(b, c, l, head, own);
    sync_consumers();
    if (unit < AT_ONCE) {
      Scores sc;
      const uint32_t q_at = smem_of(area.query[unit * 2 * TILES + (c.warp & 1) * TILES]);
      scores(b, c, q_at, smem_of(area.own_k[unit]), b.rows, low, sc);
      chances(c, unit, sc);
    }
    sync_consumers();
#pragma unroll 1
    for (int h = 0; h < AT_ONCE; h++) {
      Online y;
      Sums o[TILES];
      values(c, smem_of(area.own_v[h]), h, b.rows, o);
#pragma unroll
      for (int i = 0; i < 2 * TILES; i++) {
        const int n = i / 2, r = i % 2, q = ((c.warp & 1) * TILES + n) * 16 + c.g + 8 * r;
        y.most[n][r] = area.most[h][q], y.sum[n][r] = area.sum[h][q];
#pragma unroll
        for (int k = 0; k < 4; k++) y.o[n][r][k] = o[n].large[r][k] + o[n].small[r][k];
      }
      write_part(b, c, head + h, SPLITS, y);
    }
    sync_consumers();
  }
}
// The slots in the memory of x may be filled, and the norms come near, while the others are waited for.
__device__ __forceinline__ void before_attend(const Block &b, const Cta &c, int l) {
  int from = 0, to = 0;
  if (c.cta < KV * SPLITS) context_range(l, c.cta % SPLITS, from, to);
  if (from < to) spare(c, 0, EARLY_SPARES);
  if (threadIdx.x < 8) {
    const float *norm = threadIdx.x < 4 ? b.layer[l].q_norm : b.layer[l].k_norm;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(norm + threadIdx.x % 4 * 32));
  }
}
// The context's keys of a head are shared by SPLITS CTAs; the CTAs that are left take the block's own.
__device__ __forceinline__ void attend(const Block &b, Cta &c, int l) {
  if (c.cta < KV * SPLITS)
    attend_context(b, c, l);
  else
    attend_own(b, c, l);
}
// The splits of a row and head, in one order: pairs (head of k, query) c.cta and every CTAS-th behind it.
__device__ __forceinline__ void mix(const Block &b, const Cta &c, int l) {
  const int tid = threadIdx.x, pair = c.cta + CTAS * (tid >> 7), d = tid & 127;
  if (pair >= KV * QUERIES) return;
  const int head = pair / QUERIES, q = pair % QUERIES;
  const float *part = b.part + (size_t)head * ALL_SPLITS * SPLIT_STRIDE;
  float most[ALL_SPLITS], sum[ALL_SPLITS], o[ALL_SPLITS], top = none();
#pragma unroll
  for (int i = 0; i < ALL_SPLITS; i++) {
    const float *p = part + i * SPLIT_STRIDE;
    most[i] = __ldcg(p + QUERIES * HD + q), sum[i] = __ldcg(p + QUERIES * HD + QUERIES + q),
    o[i] = __ldcg(p + q * HD + d);
  }
#pragma unroll
  for (int i = 0; i < ALL_SPLITS; i++) top = fmaxf(top, most[i]);
  float total = 0, value = 0;
#pragma unroll
  for (int i = 0; i < ALL_SPLITS; i++) {
    const float f = most[i] == none() ? 0 : expf(most[i] - top);
    total += sum[i] * f, value += o[i] * f;
  }
  b.mix[l][(q % ROWS) * MIX + (head * REP + q / ROWS) * HD + d] = __fdiv_rn(value, total);
}
} // namespace fast

#endif
