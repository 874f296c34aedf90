// Meetings of all blocks of threads, and activations on their way to the products.
#ifndef DFLASH_CUDA_FAST_ROWS_CUH
#define DFLASH_CUDA_FAST_ROWS_CUH

#include "multiply.cuh"
namespace fast {
// ---- grid ----
__device__ __forceinline__ void stamp(const Block &b, const Cta &c) {
  if (b.stamps && c.cta == 0 && threadIdx.x == 0) {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    b.stamps[c.syncs] = now;
  }
}
// All that was written before is seen behind the wait, by every block of threads.
__device__ __forceinline__ void meet_arrive(const Block &b, Cta &c) {
  sync_consumers();
  c.syncs++;
  if (threadIdx.x > 0) return;
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(b.barrier) : "memory");
}
__device__ __forceinline__ void meet_wait(const Block &b, const Cta &c) {
  if (threadIdx.x == 0) {
    unsigned seen = 0;
#ifdef WATCH
    long long t0 = clock64();
#endif
    do {
#ifdef WATCH
      if (clock64() - t0 > 400000000ll) {
        printf("stuck cta %d at sync %u, seen %u\n", blockIdx.x, c.syncs, seen);
        __trap();
      }
#endif
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(b.barrier) : "memory");
    } while (seen < c.syncs * CTAS);
  }
  sync_consumers();
  stamp(b, c);
}
__device__ __forceinline__ void meet(const Block &b, Cta &c) {
  meet_arrive(b, c);
  meet_wait(b, c);
}

// ---- activations ----
__device__ __forceinline__ float4 ld4(const float *p) { return __ldcg(reinterpret_cast<const float4 *>(p)); }
// A value of the kernel projection, of its row i and row n of x: the sum of its halves.
__device__ __forceinline__ float kernel_value(const Block &b, int i, int n) {
  return __ldcg(b.d + i * ROWS + n) + __ldcg(b.d + (KROWS + i) * ROWS + n);
}
// Those of q, k, v: likewise.
__device__ __forceinline__ float qkv_value(const float *y) {
  static_assert(QKV_HALVES == 2, "");
  return __ldcg(y) + __ldcg(y + ROWS * QKV);
}
__device__ __forceinline__ float2 qkv_pair(const float2 *y) {
  const float2 a = __ldcg(y), b = __ldcg(y + ROWS * QKV / 2);
  return make_float2(a.x + b.x, a.y + b.y);
}
__device__ __forceinline__ float4 lds4(uint32_t at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at));
  return v;
}
__device__ __forceinline__ float2 lds2(uint32_t at) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at));
  return v;
}
__device__ __forceinline__ void st2(float *p, float2 v) { *reinterpret_cast<float2 *>(p) = v; }
// 1 / rms of each row, from the CTAs' sums of squares, [rows][CTAS]. Warps of which none copies.
__device__ __forceinline__ void inverse_rms(const Block &b, const Cta &c) {
  Shared &s = shared_of();
  const int row = c.group * 2 + c.quarter;
  static_assert(ROWS == 2 * WARPGROUPS, "");
  if (c.quarter < 2) {
    const float *from = b.sums + row * CTAS + c.lane * 4;
    const float4 v = ld4(from), w = c.lane < CTAS / 4 - 32 ? ld4(from + 128) : make_float4(0, 0, 0, 0);
    float sum = ((v.x + v.y) + (v.z + v.w)) + ((w.x + w.y) + (w.z + w.w));
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (c.lane == 0) s.inverse[row] = __fdiv_rn(1.0f, __fsqrt_rn(sum / H + b.eps));
  }
  sync_consumers();
}

// The warpgroup's columns of x, [8] rows of WIDTH floats, lie at first where their parts will: copied by its last warp.
// Behind them, where there is a convolution, the kernel's values: [half][tap][WIDTH / 16][row].
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
// The kernel's values; then their first half becomes the sum of both.
template <int WIDTH> __device__ __forceinline__ void stage_taps(Cta &c, const float *d) {
  typedef Staged<WIDTH> S;
  Shared &s = shared_of();
  const uint32_t taps = S(c).taps;
  static_assert(KERNEL_HALVES == 2, "");
  if (c.quarter == 3) {
    asm volatile("fence.proxy.async;" ::: "memory");
    if (c.lane == 0) mbar_expect(AT(taps_full[c.group]), 4 * S::TAP);
    __syncwarp();
    if (c.lane < 4)
      bulk_load(taps + c.lane * S::TAP, d + (c.lane / 2 * KROWS + c.lane % 2 * GROUPS) * ROWS, S::TAP,
                AT(taps_full[c.group]), shared_policy());
  }
  mbar_wait(AT(taps_full[c.group]), c.tapped);
  c.tapped ^= 1;
#pragma unroll
  for (int i = (c.quarter * 32 + c.lane) * 4; i < 2 * S::TAP; i += 512)
    sts32(taps + i, __float_as_uint(lds(taps + i) + lds(taps + 2 * S::TAP + i)));
  sync_warpgroup(c.group);
}

// How the four warps of a warpgroup share its columns: a task is 64 columns and EACH rows, a lane has two columns.
// Lanes are at different rows at a time, so that none writes its parts to the bank of another.
template <int WIDTH> struct Tasks {
  static constexpr int BLOCKS = WIDTH / 64, COUNT = BLOCKS % 4 ? 5 : BLOCKS / 2, EACH = BLOCKS * ROWS / (4 * COUNT);
  static constexpr int PIECES = ROWS / EACH, VALUES = COUNT * EACH, TAIL = WIDTH % 64 ? ROWS / 8 : 0;
  static_assert(4 * COUNT * EACH == BLOCKS * ROWS && PIECES * EACH == ROWS && (TAIL == 0 || WIDTH % 64 == 32), "");
  int block, row; // its columns, and the lane's first row
  __device__ __forceinline__ Tasks(const Cta &c, int k)
      : block((c.quarter * COUNT + k) / PIECES), row((c.quarter * COUNT + k) % PIECES * EACH + c.lane / 4) {}
  __device__ __forceinline__ int col(const Cta &c) const { return block * 64 + 2 * c.lane; }
  __device__ __forceinline__ int at(int i) const { return (row + i) & (ROWS - 1); }
};
// Of 32 columns behind them a thread has two of TAIL rows, ROWS / TAIL apart.
__device__ __forceinline__ int tail_col(const Cta &c) { return (c.lane & 15) * 2; }
__device__ __forceinline__ int tail_row(const Cta &c, int i) { return ((c.lane >> 2) + c.quarter) % 8 + 8 * i; }

// f16 ends at 2^-24: x is multiplied by a power of two that brings the warpgroup's largest just below 2^15, which
// c.factor takes back.
template <int VALUES> __device__ __forceinline__ float scale_of(Cta &c, const float2 (&v)[VALUES]) {
  Shared &s = shared_of();
  float most = 0;
#pragma unroll
  for (int k = 0; k < VALUES; k++) most = fmaxf(most, fmaxf(fabsf(v[k].x), fabsf(v[k].y)));
  most = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(most)));
  if (c.lane == 0) s.most[c.group][c.quarter] = most;
  sync_warpgroup(c.group);
  const float4 all = *reinterpret_cast<const float4 *>(s.most[c.group]);
  most = fmaxf(fmaxf(all.x, all.y), fmaxf(all.z, all.w));
  const int exponent = (int)(__float_as_uint(most) >> 23) - 127; // most < 2^(exponent + 1)
  const int k0 = exponent > 127 || exponent < -126 ? 0 : min(14 - exponent, 126);
  c.factor = __uint_as_float((uint32_t)(127 - k0) << 23);
  return __uint_as_float((uint32_t)(127 + k0) << 23);
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
// Where the columns 64 block + 2 lane and the next lie of row 0.
__device__ __forceinline__ uint32_t place_of(const Cta &c, int block, int lane) {
  return AT(x) + c.group * GROUP_X_BYTES + (block * 4 + (lane >> 3)) * STEP_BYTES + (lane >> 2 & 1) * (16 * ROWS) +
         (lane & 3) * 4;
}
// The warpgroup's columns, those of the tasks in their order, then the tail.
template <int WIDTH, int VALUES> __device__ __forceinline__ void put_parts(Cta &c, const float2 (&v)[VALUES]) {
  typedef Tasks<WIDTH> T;
  static_assert(VALUES == T::VALUES + T::TAIL, "");
  float scale = 1;
  if constexpr (PARTS == 3)
    c.factor = 1, sync_warpgroup(c.group); // all have read what stood there
  else
    scale = scale_of(c, v);
#pragma unroll
  for (int k = 0; k < T::COUNT; k++) {
    const T task(c, k);
    const uint32_t to = place_of(c, task.block, c.lane);
#pragma unroll
    for (int i = 0; i < T::EACH; i++) put_pair(to + task.at(i) * 16, v[k * T::EACH + i], scale);
  }
#pragma unroll
  for (int i = 0; i < T::TAIL; i++)
    put_pair(place_of(c, T::BLOCKS, c.lane & 15) + tail_row(c, i) * 16, v[T::VALUES + i], scale);
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
      if (task.at(i) < b.rows) st2(out + task.at(i) * H + task.col(c), v[k * T::EACH + i]);
  }
}
__device__ __forceinline__ float2 mul2(float2 a, float2 b) { return make_float2(a.x * b.x, a.y * b.y); }
__device__ __forceinline__ float2 scale2(float2 a, float f) { return make_float2(a.x * f, a.y * f); }

// rms(h, norm), times the column field: for products of q8_2f. The next chunk has both vectors. inverse_rms is done.
template <int P> __device__ __forceinline__ void load_norm(const Block &b, Cta &c, float *out) {
  constexpr int WIDTH = P == PA || P == PM ? 320 : 640;
  typedef Tasks<WIDTH> T;
  typedef Staged<WIDTH> S;
  const int first = fast_first_column(P, c.cta) + c.group * WIDTH;
  const uint32_t vectors = AT(slot[c.slot]) + c.group * CHUNK_BYTES, rows = S(c).rows, inverse = AT(inverse[0]);
  float2 v[T::VALUES];
  mbar_wait(AT(full[c.group][c.slot]), c.parity);
  wait_staged(c);
#pragma unroll
  for (int k = 0; k < T::COUNT; k++) {
    const T task(c, k);
    const int col = task.col(c);
    const float2 norm = lds2(vectors + col * 4);
#pragma unroll
    for (int i = 0; i < T::EACH; i++) {
      const int row = task.at(i);
      v[k * T::EACH + i] = mul2(scale2(lds2(rows + row * S::ROW + col * 4), lds(inverse + row * 4)), norm);
    }
  }
  if (out && fast_share(P, H, c.cluster).first == 0) show<WIDTH>(b, c, v, out + first);
#pragma unroll
  for (int k = 0; k < T::COUNT; k++) {
    const float2 field = lds2(vectors + (WIDTH + T(c, k).col(c)) * 4);
#pragma unroll
    for (int i = 0; i < T::EACH; i++) v[k * T::EACH + i] = mul2(v[k * T::EACH + i], field);
  }
  release(c);
  put_parts<WIDTH>(c, v);
}
// The convolution before a sub-layer, behind the meeting that ends the kernel projection: what does not need its values
// is done before the wait. The next chunk has the norm and the row's own base, the one after it the base of the row
// before.
template <int P> __device__ __forceinline__ void load_conv(const Block &b, Cta &c, int half) {
  constexpr int WIDTH = P == QKVP ? 320 : 640;
  typedef Tasks<WIDTH> T;
  typedef Staged<WIDTH> S;
  const int first = fast_first_column(P, c.cta) + c.group * WIDTH, slot = c.slot;
  const uint32_t vectors = AT(slot[slot]) + c.group * CHUNK_BYTES, rows = S(c).rows, inverse = AT(inverse[0]);
  float2 v[T::VALUES], before[T::COUNT];
  stage_rows<WIDTH>(c, b.h[half] + first, H);
  mbar_wait(AT(full[c.group][slot]), c.parity);
  next_slot(c.slot, c.parity);
  wait_staged(c);
#pragma unroll
  for (int k = 0; k < T::COUNT; k++) {
    const T task(c, k);
    const int col = task.col(c);
    const float2 norm = lds2(vectors + col * 4);
    const auto normed = [&](int row) {
      return mul2(scale2(lds2(rows + row * S::ROW + col * 4), lds(inverse + row * 4)), norm);
    };
    before[k] = normed(task.at(ROWS - 1));
#pragma unroll
    for (int i = 0; i < T::EACH; i++) v[k * T::EACH + i] = normed(task.at(i));
  }
  meet_wait(b, c);
  stage_taps<WIDTH>(c, b.d + first / 16 * ROWS);
  const uint32_t last = AT(slot[c.slot]) + c.group * CHUNK_BYTES, taps = S(c).taps + c.lane / 8 * (4 * ROWS);
  mbar_wait(AT(full[c.group][c.slot]), c.parity);
#pragma unroll
  for (int k = 0; k < T::COUNT; k++) {
    const T task(c, k);
    const int col = task.col(c);
    const float2 w0 = lds2(vectors + (WIDTH + col) * 4), w1 = lds2(last + col * 4);
    float2 m = before[k];
#pragma unroll
    for (int i = 0; i < T::EACH; i++) {
      const int row = task.at(i);
      const uint32_t tap = taps + task.block * (16 * ROWS) + row * 4;
      const float2 n = v[k * T::EACH + i];
      const float d0 = lds(tap), d1 = lds(tap + S::TAP);
      float2 y = make_float2((w0.x + d0) * n.x, (w0.y + d0) * n.y);
      if (row > 0) y.x += (w1.x + d1) * m.x, y.y += (w1.y + d1) * m.y;
      v[k * T::EACH + i] = y, m = n;
    }
  }
  if (b.conv_out[half] && fast_share(P, 0, c.cluster).first == 0) show<WIDTH>(b, c, v, b.conv_out[half] + first);
  __syncwarp();
  if (c.lane == 0) mbar_arrive(AT(empty[c.group][slot]));
  release(c);
  put_parts<WIDTH>(c, v);
}
// A plain matrix of activations; x is the block's first column.
template <int P> __device__ __forceinline__ void load_plain(Cta &c, const float *x, int stride) {
  constexpr int WIDTH = P == OP ? 512 : 544;
  typedef Tasks<WIDTH> T;
  typedef Staged<WIDTH> S;
  float2 v[T::VALUES + T::TAIL];
  stage_rows<WIDTH>(c, x + c.group * WIDTH, stride);
  wait_staged(c);
  const uint32_t rows = S(c).rows;
#pragma unroll
  for (int k = 0; k < T::COUNT; k++) {
    const T task(c, k);
#pragma unroll
    for (int i = 0; i < T::EACH; i++) v[k * T::EACH + i] = lds2(rows + task.at(i) * S::ROW + task.col(c) * 4);
  }
#pragma unroll
  for (int i = 0; i < T::TAIL; i++)
    v[T::VALUES + i] = lds2(rows + tail_row(c, i) * S::ROW + (T::BLOCKS * 64 + tail_col(c)) * 4);
  put_parts<WIDTH>(c, v);
}
// A warp's sum of squares of its columns of row n: [rows][CTAS].
__device__ __forceinline__ void write_sum(const Block &b, const Cta &c, float sum, int n) {
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (c.lane == 0) b.sums[n * CTAS + c.cta] = sum;
}
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
} // namespace fast

#endif
