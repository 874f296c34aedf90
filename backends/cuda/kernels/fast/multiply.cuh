// Products of the stream with the activations, and sums of their parts.
#ifndef DFLASH_CUDA_FAST_MULTIPLY_CUH
#define DFLASH_CUDA_FAST_MULTIPLY_CUH

#include "produce.cuh"
namespace fast {
__device__ __forceinline__ void release(Cta &c) {
  __syncwarp();
  if (c.lane == 0) mbar_arrive(AT(empty[c.group][c.slot]));
  next_slot(c.slot, c.parity);
}
// A chunk of G groups of q4tp: a group is multiplied while the next one is decoded and the one before is scaled.
template <int G> __device__ __forceinline__ void q4_chunk(Cta &c, uint32_t rungs, u64 x, float sum[VALUES]) {
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
    for (int i = 0; i < VALUES; i++) sum[i] += (i & 2 ? s1 : s0) * sum_of_parts(d[k & 1], i);
  }
}
// A chunk of q8_2f, five steps of 16 columns.
__device__ __forceinline__ void q8_chunk(Cta &c, u64 x, float sum[VALUES]) {
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
  for (int i = 0; i < VALUES; i++) sum[i] += sum_of_parts(d, i);
}

// The sums of a unit, of 64 rows and 8 rows of x: value lane * 4 + i of a warp is that of its row g, and 8 more with i
// / 2, and of row 2 t + i % 2 of x. A block of the cluster finishes the first 32 rows, the other one the rest. Behind
// them lie those of the next 8 rows of x.
constexpr int EIGHTS = ROWS / 8;
__device__ __forceinline__ float found(unsigned unit, int n, int row) {
  const Shared &s = shared_of();
  const int at = n * XCH_ROW + row;
  return s.xch[unit % EXCHANGES][0][at] + s.xch[unit % EXCHANGES][1][at];
}
// Adds up over the warpgroups; each sum goes to the block that finishes it.
__device__ __forceinline__ void reduce(const Cta &c, unsigned unit) {
  Shared &s = shared_of();
  const int tid = threadIdx.x, i = tid & 3, n = (tid >> 2 & 3) * 2 + (i & 1);
  const int row = (tid >> 7 & 1) * 16 + (tid >> 4 & 7) + 8 * (i >> 1);
  const uint32_t owner = tid >> 8;
  mbar_wait(AT(red_full), unit & 1);
  if (tid == 0) mbar_expect(AT(xbar[unit % EXCHANGES]), EIGHTS * 2 * 256 * 4);
  const uint32_t bar = map_rank(AT(xbar[unit % EXCHANGES]), owner);
#pragma unroll
  for (int e = 0; e < EIGHTS; e++) {
    const int at = e * 512 + tid;
    const float total = (s.red[0][at] + s.red[1][at]) + (s.red[2][at] + s.red[3][at]);
    st_async(map_rank(AT(xch[unit % EXCHANGES][c.rank][(n + 8 * e) * XCH_ROW + row]), owner), total, bar);
  }
  __syncwarp();
  if (c.lane == 0) mbar_arrive(AT(red_free));
}
template <class Finish>
__device__ __forceinline__ void finish_unit(const Cta &c, unsigned count, int unit, Finish &&finish) {
  if (c.warp >> 3 == c.rank) return;
  mbar_wait_cluster(AT(xbar[count % EXCHANGES]), count / EXCHANGES & 1);
#pragma unroll
  for (int e = 0; e < EIGHTS; e++)
    finish(unit * UNIT + (int)c.rank * (UNIT / 2), count, e * 256 + (int)(threadIdx.x & 255));
}

// A chunk of any product.
template <int P, int CHUNK>
__device__ __forceinline__ void any_chunk(Cta &c, uint32_t rungs, u64 x, float sum[VALUES]) {
  if constexpr (P == PA || P == PM || P == HEADP || P == SELP)
    q8_chunk(c, x, sum);
  else
    q4_chunk<P == OP || (P == DN && CHUNK > 0) ? 4 : 5>(c, rungs, x, sum);
}
// A cluster's units of a product: finish(first row, number, t) by the threads t = 0 to 255 (and as 256 to 511) that
// finish a unit's 32 rows. Sums of a unit are added up behind the first chunk of the next and finished at its end: no
// warp waits for the slowest.
template <int P, class Finish> __device__ __forceinline__ void multiply(const Block &b, Cta &c, Finish &&finish) {
  Shared &s = shared_of();
  const FastShare share = fast_share(P, b.head_rows, c.cluster);
  const bool q8 = P == PA || P == PM || P == HEADP || P == SELP;
  const u64 x0 = describe(AT(x) + c.group * GROUP_X_BYTES);
  for (int i = 0; i < share.count; i++, c.unit++) {
    const int which = c.unit & 1, unit = share.first + i * share.step;
    const uint32_t rungs = AT(rungs[which][0][c.quarter * 16 + c.g]);
    float sum[VALUES] = {};
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
#pragma unroll
      for (int k = 0; k < VALUES; k++) sum[k] *= k & 2 ? s1 : s0;
    }
    mbar_wait(AT(red_free), (c.unit & 1) ^ 1);
#pragma unroll
    for (int e = 0; e < EIGHTS; e++)
      *reinterpret_cast<float4 *>(&s.red[c.group][e * 512 + c.quarter * 128 + c.lane * 4]) = make_float4(
          sum[4 * e] * c.factor, sum[4 * e + 1] * c.factor, sum[4 * e + 2] * c.factor, sum[4 * e + 3] * c.factor);
    __syncwarp();
    if (c.lane == 0) mbar_arrive(AT(ladder_empty[which])), mbar_arrive(AT(red_full));
    if (i > 0) finish_unit(c, c.unit - 1, unit - share.step, finish);
  }
  if (share.count == 0) return;
  reduce(c, c.unit - 1);
  finish_unit(c, c.unit - 1, share.first + (share.count - 1) * share.step, finish);
}
} // namespace fast

#endif
