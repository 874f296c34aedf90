// The warps that do not compute: one copies weights and context into the ring, two make ladders.
#ifndef DFLASH_CUDA_FAST_PRODUCE_CUH
#define DFLASH_CUDA_FAST_PRODUCE_CUH

#include "shared.cuh"
namespace fast {
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
// KEYS rows of the context: a slot of all warpgroups, which the barrier of the first one stands for.
__device__ __forceinline__ void produce_rows(const Cta &c, Producer &p, const float *rows, int count, int stride) {
  Shared &s = shared_of();
  if (c.lane < WARPGROUPS) {
    mbar_wait(AT(empty[c.lane][p.slot]), p.parity);
    mbar_expect(AT(full[c.lane][p.slot]), (uint32_t)(c.lane == 0 ? count * HD * 4 : 0));
  }
  __syncwarp();
  if ((int)c.lane < count)
    bulk_load(AT(slot[p.slot]) + c.lane * stride, rows + (size_t)c.lane * KV * HD, HD * 4, AT(full[0][p.slot]),
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
      if (is_spare(i))
        produce_spare(c, p, i - FIRST_SPARE, rows, max(count, 0),
                      stride); // without rows, too: the next pass is another one
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
} // namespace fast

#endif
