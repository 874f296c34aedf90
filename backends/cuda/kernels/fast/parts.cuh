// Activations to shared memory, as parts.
#ifndef DFLASH_CUDA_FAST_PARTS_CUH
#define DFLASH_CUDA_FAST_PARTS_CUH

#include "stage.cuh"
namespace fast {
// How the four warps of a warpgroup share its columns: a task is 64 columns and EACH rows, a lane has two columns.
// Lanes are at different rows at a time, so that none writes its parts to the bank of another.
template <int WIDTH> struct Tasks {
  static constexpr int BLOCKS = WIDTH / 64, COUNT = BLOCKS % 4 ? 5 : BLOCKS / 2, EACH = BLOCKS * ROWS / (4 * COUNT);
  static constexpr int PIECES = ROWS / EACH, VALUES = COUNT * EACH, TAIL = WIDTH % 64 ? ROWS / 8 : 0;
  static constexpr int PAIRS = VALUES + TAIL; // of columns, that a thread has
  static_assert(4 * COUNT * EACH == BLOCKS * ROWS && PIECES * EACH == ROWS && (TAIL == 0 || WIDTH % 64 == 32), "");
  uint32_t lane;
  int block, row; // its columns, and the lane's first row
  // What follows from the lane is computed anew for each task: kept for all of them it takes too many registers.
  __device__ __forceinline__ Tasks(const Cta &c, int k)
      : lane(anew(c.lane)), block((c.quarter * COUNT + k) / PIECES),
        row((c.quarter * COUNT + k) % PIECES * EACH + lane / 4) {}
  __device__ __forceinline__ int col() const { return block * 64 + 2 * lane; }
  __device__ __forceinline__ int at(int i) const { return (row + i) & (ROWS - 1); }
};
// Of 32 columns behind them a thread has two of TAIL rows, ROWS / TAIL apart.
__device__ __forceinline__ int tail_col(const Cta &c) { return (c.lane & 15) * 2; }
__device__ __forceinline__ int tail_row(const Cta &c, int i) { return ((c.lane >> 2) + c.quarter) % 8 + 8 * i; }

// f16 ends at 2^-24: x is multiplied by a power of two that brings the largest of a warpgroup's piece just below 2^15.
template <int PAIRS> __device__ __forceinline__ float scale_of(const Cta &c, const float2 (&v)[PAIRS], int piece) {
  float *all = shared_of().most[piece][c.group], most = 0;
#pragma unroll
  for (int k = 0; k < PAIRS; k++) most = fmaxf(most, fmaxf(fabsf(v[k].x), fabsf(v[k].y)));
  most = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(most)));
  if (c.lane == 0) all[c.quarter] = most;
  sync_warpgroup(c.group); // and all have read what was staged
  const float4 m = *reinterpret_cast<const float4 *>(all);
  most = fmaxf(fmaxf(m.x, m.y), fmaxf(m.z, m.w));
  const int exponent = (int)(__float_as_uint(most) >> 23) - 127; // most < 2^(exponent + 1)
  const int k0 = exponent > 127 ? 0 : min(14 - exponent, 126);
  return __uint_as_float((uint32_t)(127 + k0) << 23);
}
// 1 / scale, a power of two.
__device__ __forceinline__ float inverse_of(float scale) {
  return __uint_as_float(((uint32_t)254 << 23) - __float_as_uint(scale));
}
// Where the columns 64 block + 2 lane and the next lie of row 0.
__device__ __forceinline__ uint32_t place_of(const Cta &c, int block, int lane) {
  return AT(x) + c.group * GROUP_X_BYTES + (block * 4 + (lane >> 3)) * STEP_BYTES + (lane >> 2 & 1) * (16 * ROWS) +
         (lane & 3) * 4;
}
// put(at, k) for each pair of columns that a thread has of a piece that begins with a block of 64 columns: those of the
// tasks in their order, then the tail; `at` is where they will lie.
template <int WIDTH, class Put> __device__ __forceinline__ void each_pair(const Cta &c, int block, Put &&put) {
  typedef Tasks<WIDTH> T;
#pragma unroll
  for (int k = 0; k < T::COUNT; k++) {
    const T task(c, k);
    const uint32_t to = place_of(c, block + task.block, task.lane);
#pragma unroll
    for (int i = 0; i < T::EACH; i++) put(to + task.at(i) * 16, k * T::EACH + i);
  }
#pragma unroll
  for (int i = 0; i < T::TAIL; i++)
    put(place_of(c, block + T::BLOCKS, c.lane & 15) + tail_row(c, i) * 16, T::VALUES + i);
}
// Two columns of a row to shared memory, as parts.
__device__ __forceinline__ void put_pair(uint32_t at, float2 v, float scale) {
  uint32_t p[3];
  if constexpr (PARTS == 3)
    split_bf16(v.x, v.y, p);
  else
    p[0] = pack_f16(v.x * scale, v.y * scale);
#pragma unroll
  for (int i = 0; i < PARTS; i++) sts32(at + i * 32 * ROWS, p[i]);
}
// The warpgroup's columns as one piece, which value(piece, v) brings.
template <int ALL, class Value> __device__ __forceinline__ void put_whole(Cta &c, Value &&value) {
  float2 v[Tasks<ALL>::PAIRS];
  float scale = 1;
  value(Piece<ALL, 0, ALL>(), v);
  if constexpr (PARTS == 3)
    sync_warpgroup(c.group); // all have read what stood there
  else
    scale = scale_of(c, v, 0);
  each_pair<ALL>(c, 0, [&](uint32_t at, int k) { put_pair(at, v[k], scale); });
  c.factor = inverse_of(scale);
}
// As two: the first is kept in registers, in f16 already.
template <int ALL, class Value> __device__ __forceinline__ void put_halves(Cta &c, Value &&value) {
  constexpr int FIRST = Pieces<ALL>::FIRST, SECOND = ALL - FIRST;
  uint32_t kept[Tasks<FIRST>::PAIRS];
  float scale;
  {
    float2 v[Tasks<FIRST>::PAIRS];
    value(Piece<ALL, 0, FIRST>(), v);
    scale = scale_of(c, v, 0);
#pragma unroll
    for (int k = 0; k < Tasks<FIRST>::PAIRS; k++) kept[k] = pack_f16(v[k].x * scale, v[k].y * scale);
  }
  float2 v[Tasks<SECOND>::PAIRS];
  value(Piece<ALL, FIRST, SECOND>(), v);
  const float both = fminf(scale, scale_of(c, v, 1)), less = both * inverse_of(scale);
  each_pair<FIRST>(c, 0, [&](uint32_t at, int k) {
    const float2 pair = unpack_f16(kept[k]);
    sts32(at, pack_f16(pair.x * less, pair.y * less));
  });
  each_pair<SECOND>(c, FIRST / 64, [&](uint32_t at, int k) { put_pair(at, v[k], both); });
  c.factor = inverse_of(both);
}
template <int ALL, class Value> __device__ __forceinline__ void put_parts(Cta &c, Value &&value) {
  if constexpr (Pieces<ALL>::FIRST < ALL)
    put_halves<ALL>(c, value);
  else
    put_whole<ALL>(c, value);
  fence_products();
  sync_warpgroup(c.group);
}
// A stage's values, where they are asked for.
template <int WIDTH, int VALUES>
__device__ __forceinline__ void show(const Block &b, const Cta &c, const float2 (&v)[VALUES], float *out) {
  typedef Tasks<WIDTH> T;
#pragma unroll
  for (int k = 0; k < T::COUNT; k++) {
    const T task(c, k);
#pragma unroll
    for (int i = 0; i < T::EACH; i++)
      if (task.at(i) < b.rows) st2(out + task.at(i) * H + task.col(), v[k * T::EACH + i]);
  }
}
} // namespace fast

#endif
