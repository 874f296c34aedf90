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
  static_assert(ROWS == 8 * EIGHTS && WARPGROUPS == 4, "");
#pragma unroll
  for (int e = 0; e < EIGHTS; e++) {
    const int row = e * 8 + c.group * 2 + c.quarter;
    if (c.quarter >= 2) break;
    const float *from = b.sums + row * CTAS + c.lane * 4;
    const float4 v = ld4(from), w = c.lane < CTAS / 4 - 32 ? ld4(from + 128) : make_float4(0, 0, 0, 0);
    float sum = ((v.x + v.y) + (v.z + v.w)) + ((w.x + w.y) + (w.z + w.w));
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (c.lane == 0) s.inverse[row] = __fdiv_rn(1.0f, __fsqrt_rn(sum / H + b.eps));
  }
  sync_consumers();
}

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
__device__ __forceinline__ float2 mul2(float2 a, float2 b) { return make_float2(a.x * b.x, a.y * b.y); }
__device__ __forceinline__ float2 scale2(float2 a, float f) { return make_float2(a.x * f, a.y * f); }

// rms(h, norm), times the column field: for products of q8_2f. The next chunk has both vectors. inverse_rms is done,
// and the first piece staged.
template <int P> __device__ __forceinline__ void load_norm(const Block &b, Cta &c, const float *h_all, float *out) {
  constexpr int ALL = Columns<P>::ALL;
  const int first = fast_first_column(P, c.cta) + c.group * ALL;
  const uint32_t vectors = AT(slot[c.slot]) + c.group * CHUNK_BYTES, inverse = AT(inverse[0]);
  mbar_wait(AT(full[c.group][c.slot]), c.parity);
  put_parts<ALL>(c, [&](auto piece, auto &v) {
    constexpr int WIDTH = decltype(piece)::WIDTH, FROM = decltype(piece)::FROM;
    typedef Tasks<WIDTH> T;
    typedef Staged<WIDTH> S;
    const uint32_t rows = S(c).rows;
    if (FROM > 0) stage_rows<WIDTH>(c, h_all + first + FROM, H);
    wait_staged(c);
#pragma unroll
    for (int k = 0; k < T::COUNT; k++) {
      const T task(c, k);
      const int col = task.col();
      const float2 norm = lds2(vectors + (FROM + col) * 4);
#pragma unroll
      for (int i = 0; i < T::EACH; i++) {
        const int row = task.at(i);
        v[k * T::EACH + i] = mul2(scale2(lds2(rows + row * S::ROW + col * 4), lds(inverse + row * 4)), norm);
      }
    }
    if (out && fast_share(P, H, c.cluster).first == 0) show<WIDTH>(b, c, v, out + first + FROM);
#pragma unroll
    for (int k = 0; k < T::COUNT; k++) {
      const float2 field = lds2(vectors + (ALL + FROM + T(c, k).col()) * 4);
#pragma unroll
      for (int i = 0; i < T::EACH; i++) v[k * T::EACH + i] = mul2(v[k * T::EACH + i], field);
    }
    if (FROM + WIDTH == ALL) release(c);
  });
}
// The convolution before a sub-layer, behind the meeting that ends the kernel projection: what does not need its values
// is done before the wait, as far as registers hold it. The next chunk has the norm and the row's own base, the one
// after it the base of the row before.
template <int P> __device__ __forceinline__ void load_conv(const Block &b, Cta &c, int half) {
  constexpr int ALL = Columns<P>::ALL;
  constexpr bool EARLY = ROWS == 8;
  const int first = fast_first_column(P, c.cta) + c.group * ALL, slot = c.slot;
  const uint32_t vectors = AT(slot[slot]) + c.group * CHUNK_BYTES, inverse = AT(inverse[0]);
  const float *h = b.h[half] + first, *d = b.d + first / 16 * ROWS;
  stage_first<P>(c, b.h[half], H);
  mbar_wait(AT(full[c.group][slot]), c.parity);
  next_slot(c.slot, c.parity);
  const uint32_t last = AT(slot[c.slot]) + c.group * CHUNK_BYTES;
  put_parts<ALL>(c, [&](auto piece, auto &v) {
    constexpr int WIDTH = decltype(piece)::WIDTH, FROM = decltype(piece)::FROM;
    typedef Tasks<WIDTH> T;
    typedef Staged<WIDTH> S;
    const uint32_t rows = S(c).rows, taps = S(c).taps + c.lane / 8 * (4 * ROWS);
    const auto normed = [&](int row, int col, float2 norm) {
      return mul2(scale2(lds2(rows + row * S::ROW + col * 4), lds(inverse + row * 4)), norm);
    };
    float2 before[T::COUNT];
    if (FROM > 0) stage_rows<WIDTH>(c, h + FROM, H), stage_taps<WIDTH>(c, d + FROM / 16 * ROWS);
    wait_staged(c);
    if (EARLY) {
#pragma unroll
      for (int k = 0; k < T::COUNT; k++) {
        const T task(c, k);
        const int col = task.col();
        const float2 norm = lds2(vectors + (FROM + col) * 4);
        before[k] = normed(task.at(ROWS - 1), col, norm);
#pragma unroll
        for (int i = 0; i < T::EACH; i++) v[k * T::EACH + i] = normed(task.at(i), col, norm);
      }
    }
    if (FROM == 0) meet_wait(b, c), stage_taps<WIDTH>(c, d);
    wait_taps<WIDTH>(c);
    if (FROM == 0) mbar_wait(AT(full[c.group][c.slot]), c.parity);
#pragma unroll
    for (int k = 0; k < T::COUNT; k++) {
      const T task(c, k);
      const int col = task.col();
      const float2 w0 = lds2(vectors + (ALL + FROM + col) * 4), w1 = lds2(last + (FROM + col) * 4);
      const float2 norm = EARLY ? make_float2(0, 0) : lds2(vectors + (FROM + col) * 4);
      float2 m = EARLY ? before[k] : normed(task.at(ROWS - 1), col, norm);
#pragma unroll
      for (int i = 0; i < T::EACH; i++) {
        const int row = task.at(i);
        const uint32_t tap = taps + task.block * (16 * ROWS) + row * 4;
        const float2 n = EARLY ? v[k * T::EACH + i] : normed(row, col, norm);
        const float d0 = lds(tap), d1 = lds(tap + S::TAP);
        float2 y = make_float2((w0.x + d0) * n.x, (w0.y + d0) * n.y);
        if (row > 0) y.x += (w1.x + d1) * m.x, y.y += (w1.y + d1) * m.y;
        v[k * T::EACH + i] = y, m = n;
      }
    }
    float *out = b.conv_out[half];
    if (out && fast_share(P, 0, c.cluster).first == 0) show<WIDTH>(b, c, v, out + first + FROM);
    if (FROM + WIDTH < ALL) return;
    __syncwarp();
    if (c.lane == 0) mbar_arrive(AT(empty[c.group][slot]));
    release(c);
  });
}
// A plain matrix of activations, from its first column on.
template <int P> __device__ __forceinline__ void load_plain(Cta &c, const float *x, int stride) {
  constexpr int ALL = Columns<P>::ALL;
  const float *from = x + fast_first_column(P, c.cta) + c.group * ALL;
  put_parts<ALL>(c, [&](auto piece, auto &v) {
    constexpr int WIDTH = decltype(piece)::WIDTH, FROM = decltype(piece)::FROM;
    typedef Tasks<WIDTH> T;
    typedef Staged<WIDTH> S;
    const uint32_t rows = S(c).rows;
    stage_rows<WIDTH>(c, from + FROM, stride);
    wait_staged(c);
#pragma unroll
    for (int k = 0; k < T::COUNT; k++) {
      const T task(c, k);
#pragma unroll
      for (int i = 0; i < T::EACH; i++) v[k * T::EACH + i] = lds2(rows + task.at(i) * S::ROW + task.col() * 4);
    }
#pragma unroll
    for (int i = 0; i < T::TAIL; i++)
      v[T::VALUES + i] = lds2(rows + tail_row(c, i) * S::ROW + (T::BLOCKS * 64 + tail_col(c)) * 4);
  });
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
