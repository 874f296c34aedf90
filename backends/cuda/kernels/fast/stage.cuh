// Activations on their way from memory.
#ifndef DFLASH_CUDA_FAST_STAGE_CUH
#define DFLASH_CUDA_FAST_STAGE_CUH

#include "meet.cuh"
namespace fast {
// The warpgroup's columns of x, [ROWS] rows of WIDTH floats, lie at first where their parts will: copied by its last
// warp. Behind them, where there is a convolution, the kernel's values: [half][tap][WIDTH / 16][row].
template <int WIDTH> struct Staged {
  static constexpr int ROW = WIDTH * 4, TAP = WIDTH / 16 * ROWS * 4;
  uint32_t rows, taps;
  __device__ __forceinline__ Staged(const Cta &c) : rows(AT(x) + c.group * GROUP_X_BYTES), taps(rows + ROWS * ROW) {}
};
template <int WIDTH> __device__ __forceinline__ void stage_rows(const Cta &c, const float *x, int stride) {
  typedef Staged<WIDTH> S;
  Shared &s = shared_of();
  static_assert(ROWS * S::ROW + 4 * S::TAP <= GROUP_X_BYTES, "");
  if (c.quarter != 3) return;
  asm volatile("fence.proxy.async;" ::: "memory"); // what others wrote, and what was read here before
  if (c.lane == 0) mbar_expect(AT(rows_full[c.group]), ROWS * S::ROW);
  __syncwarp();
  if (c.lane < ROWS)
    bulk_load(S(c).rows + c.lane * S::ROW, x + c.lane * stride, S::ROW, AT(rows_full[c.group]), shared_policy());
}
__device__ __forceinline__ void wait_staged(Cta &c) {
  mbar_wait(AT(rows_full[c.group]), c.staged);
  c.staged ^= 1;
}
// The kernel's values.
template <int WIDTH> __device__ __forceinline__ void stage_taps(const Cta &c, const float *d) {
  typedef Staged<WIDTH> S;
  Shared &s = shared_of();
  if (c.quarter != 3) return;
  asm volatile("fence.proxy.async;" ::: "memory");
  if (c.lane == 0) mbar_expect(AT(taps_full[c.group]), 4 * S::TAP);
  __syncwarp();
  if (c.lane < 4)
    bulk_load(S(c).taps + c.lane * S::TAP, d + (c.lane / 2 * KROWS + c.lane % 2 * GROUPS) * ROWS, S::TAP,
              AT(taps_full[c.group]), shared_policy());
}
// Their first half becomes the sum of both.
template <int WIDTH> __device__ __forceinline__ void wait_taps(Cta &c) {
  typedef Staged<WIDTH> S;
  const uint32_t taps = S(c).taps;
  static_assert(KERNEL_HALVES == 2, "");
  mbar_wait(AT(taps_full[c.group]), c.tapped);
  c.tapped ^= 1;
#pragma unroll
  for (int i = (c.quarter * 32 + c.lane) * 4; i < 2 * S::TAP; i += 512)
    sts32(taps + i, __float_as_uint(lds(taps + i) + lds(taps + 2 * S::TAP + i)));
  sync_warpgroup(c.group);
}
// A piece of a warpgroup's ALL columns. What is staged of 16 rows takes as much memory as 320 columns need: more are
// two pieces, whose rows lie in the same place one after the other.
template <int ALL_, int FROM_, int WIDTH_> struct Piece {
  static constexpr int ALL = ALL_, FROM = FROM_, WIDTH = WIDTH_;
};
template <int ALL> struct Pieces { static constexpr int FIRST = ROWS == 16 && ALL > 320 ? ALL / 128 * 64 : ALL; };
template <int P> struct Columns {
  static constexpr int ALL = P == PA || P == PM || P == QKVP ? 320 : P == OP ? 512 : P == DN ? 544 : 640;
};
// The warpgroup's first piece of the columns of a product that a block has of x.
template <int P> __device__ __forceinline__ void stage_first(const Cta &c, const float *x, int stride) {
  constexpr int ALL = Columns<P>::ALL;
  stage_rows<Pieces<ALL>::FIRST>(c, x + fast_first_column(P, c.cta) + c.group * ALL, stride);
}
} // namespace fast

#endif
