// Attention.
#ifndef DFLASH_CUDA_FAST_ATTEND_CUH
#define DFLASH_CUDA_FAST_ATTEND_CUH

#include "softmax.cuh"
namespace fast {
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
// The ring's next slot, which all warps release, those too that read nothing of it. The other warpgroups' barriers
// count it as well.
__device__ __forceinline__ void close_chunk(Cta &c, int i) {
  if (is_spare(i)) return;
  mbar_wait(AT(full[0][c.slot]), c.parity);
  if (c.group > 0) mbar_wait(AT(full[c.group][c.slot]), c.parity);
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
