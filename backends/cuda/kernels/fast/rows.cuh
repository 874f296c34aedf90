// What a product multiplies: norms, the convolution, plain rows.
#ifndef DFLASH_CUDA_FAST_ROWS_CUH
#define DFLASH_CUDA_FAST_ROWS_CUH

#include "parts.cuh"
namespace fast {
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
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
} // namespace fast

#endif
