// Products and softmax of attention.
#ifndef DFLASH_CUDA_FAST_SOFTMAX_CUH
#define DFLASH_CUDA_FAST_SOFTMAX_CUH

#include "heads.cuh"
namespace fast {
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
} // namespace fast

#endif
