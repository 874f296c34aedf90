/* Products of stored matrices. A team of warps takes CUDA_TILE weight rows, its warps share the columns in whole spans,
 * and each weight meets all rows of x that the block takes while it is in registers. The order of a sum depends on the
 * matrix alone, not on the number of rows of x. */
#ifndef DFLASH_CUDA_PRODUCT_CUH
#define DFLASH_CUDA_PRODUCT_CUH

#include "device.cuh"

/* The weight rows of a warp, and its part of the columns. */
struct Tile {
  int64_t row;        /* the first of CUDA_TILE */
  int64_t begin, end; /* columns */
  int64_t x_row;
  int x_rows; /* of the block, 0 .. R */
};

template <int R> __device__ __forceinline__ Tile tile_of(const ProductArgs &a) {
  const int team = a.matrix.team;
  const int64_t spans = (a.matrix.cols + CUDA_SPAN - 1) / CUDA_SPAN, part = warp_of() % team;
  Tile t;
  t.row = ((int64_t)blockIdx.x * (CUDA_WARPS / team) + warp_of() / team) * CUDA_TILE;
  t.begin = part * spans / team * CUDA_SPAN;
  t.end = min((part + 1) * spans / team * CUDA_SPAN, a.matrix.cols);
  t.x_row = (int64_t)blockIdx.y * R;
  t.x_rows = (int)min((int64_t)R, a.rows - t.x_row);
  return t;
}

/* A row of the matrix for the i-th of the tile: rows past the last one repeat it, and are not written. */
__device__ __forceinline__ int64_t tile_row(const ProductArgs &a, const Tile &t, int i) {
  return min(t.row + i, a.out_rows - 1);
}

__device__ __forceinline__ void load_f32(const float *from, float (&to)[CUDA_LANE_COLUMNS]) {
  const float4 low = *(const float4 *)from, high = *(const float4 *)(from + 4);
  to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
  to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
}

template <float (*DECODE)(uint32_t)>
__device__ __forceinline__ void load_halves(const uint16_t *from, float (&to)[CUDA_LANE_COLUMNS]) {
  const uint4 words = __ldg((const uint4 *)from);
  const uint32_t w[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; i++) to[2 * i] = DECODE(w[i] & 0xffffu), to[2 * i + 1] = DECODE(w[i] >> 16);
}

/* ---- one struct a storage ----
 * open: once a warp. load: eight columns of each row of the tile from column `col` on, and the factor of each row's
 * partial sum. column: what x is multiplied by first, in eight columns. finish: the factor of a whole sum. */

struct Plain {
  __device__ __forceinline__ void open(const ProductArgs &, const Tile &) {}
  __device__ __forceinline__ void column(const ProductArgs &, int64_t, float (&)[CUDA_LANE_COLUMNS]) {}
  __device__ __forceinline__ float factor(int) const { return 1; }
  __device__ __forceinline__ float finish(const ProductArgs &, int64_t) const { return 1; }
  static constexpr bool has_columns = false, has_factors = false;
};

struct F32 : Plain {
  __device__ __forceinline__ void load(const ProductArgs &a, const Tile &t, int64_t col, float (&w)[CUDA_TILE][8]) {
#pragma unroll
    for (int i = 0; i < CUDA_TILE; i++)
      load_f32(at<const float>(a.matrix.weights) + tile_row(a, t, i) * a.matrix.cols + col, w[i]);
  }
};

template <float (*DECODE)(uint32_t)> struct Halves : Plain {
  __device__ __forceinline__ void load(const ProductArgs &a, const Tile &t, int64_t col, float (&w)[CUDA_TILE][8]) {
#pragma unroll
    for (int i = 0; i < CUDA_TILE; i++)
      load_halves<DECODE>(at<const uint16_t>(a.matrix.weights) + tile_row(a, t, i) * a.matrix.cols + col, w[i]);
  }
};

struct Q8 : Plain {
  static constexpr bool has_columns = true;
  __device__ __forceinline__ void column(const ProductArgs &a, int64_t col, float (&c)[CUDA_LANE_COLUMNS]) {
    load_halves<decode_f16>(at<const uint16_t>(a.matrix.columns) + col, c);
  }
  __device__ __forceinline__ void load(const ProductArgs &a, const Tile &t, int64_t col, float (&w)[CUDA_TILE][8]) {
#pragma unroll
    for (int i = 0; i < CUDA_TILE; i++) {
      const uint2 q =
          __ldg((const uint2 *)(at<const int8_t>(a.matrix.weights) + tile_row(a, t, i) * a.matrix.cols + col));
#pragma unroll
      for (int b = 0; b < 4; b++) w[i][b] = (float)(int8_t)(q.x >> 8 * b), w[i][4 + b] = (float)(int8_t)(q.y >> 8 * b);
    }
  }
  __device__ __forceinline__ float finish(const ProductArgs &a, int64_t row) const {
    return decode_f16(at<const uint16_t>(a.matrix.scales)[row]);
  }
};

/* The ladders of a warp's rows. */
struct Ladders {
  float rungs[CUDA_WARPS][CUDA_TILE][CUDA_RUNGS];
};

/* Rung c is rung c - 1 times the factor, every product rounded: lane c keeps it. */
__device__ __forceinline__ void fill_ladders(const ProductArgs &a, const Tile &t, Ladders &ladders) {
  for (int i = 0; i < CUDA_TILE; i++) {
    const float2 ladder = __ldg(at<const float2>(a.matrix.scales) + tile_row(a, t, i));
    float rung = ladder.x;
    for (int c = 0; c < lane_of(); c++) rung = __fmul_rn(rung, ladder.y);
    ladders.rungs[warp_of()][i][lane_of()] = rung;
  }
  __syncwarp();
}

/* The scale of a row's group; the next byte of the codes is read only where the code reaches into it. */
__device__ __forceinline__ float group_scale(const ProductArgs &a, const Ladders &ladders, int i, int64_t row,
                                             int64_t group) {
  const int64_t row_bytes = (a.matrix.cols / CUDA_GROUP * 5 + 7) / 8, bit = group * 5;
  const uint8_t *codes = at<const uint8_t>(a.matrix.codes) + row * row_bytes + (bit >> 3);
  const int shift = (int)(bit & 7);
  uint32_t code = __ldg(codes);
  if (shift > 3) code |= (uint32_t)__ldg(codes + 1) << 8;
  return ladders.rungs[warp_of()][i][code >> shift & 31];
}

/* nibble - 8, from the bits of 2^23 + nibble */
__device__ __forceinline__ float nibble_value(uint32_t word, int shift) {
  return __uint_as_float(0x4b000000u | (word >> shift & 15u)) - 8388616.0f;
}

struct Q4 : Plain {
  static constexpr bool has_factors = true;
  Ladders *ladders;
  float scale[CUDA_TILE];
  __device__ __forceinline__ void open(const ProductArgs &a, const Tile &t) {
    __shared__ Ladders shared;
    ladders = &shared;
    fill_ladders(a, t, shared);
  }
  __device__ __forceinline__ void load(const ProductArgs &a, const Tile &t, int64_t col, float (&w)[CUDA_TILE][8]) {
#pragma unroll
    for (int i = 0; i < CUDA_TILE; i++) {
      const int64_t row = tile_row(a, t, i);
      const uint32_t word = __ldg(at<const uint32_t>(a.matrix.weights) + (row * a.matrix.cols + col) / 8);
      scale[i] = group_scale(a, *ladders, i, row, col / CUDA_GROUP);
#pragma unroll
      for (int n = 0; n < 8; n++) w[i][n] = nibble_value(word, 4 * n);
    }
  }
  __device__ __forceinline__ float factor(int i) const { return scale[i]; }
};

/* ---- the sums of a team, and what they come to ---- */

/* Warps of a team hold sums of their columns: the team's first warp adds them in order and writes y. */
template <int R, class Finish>
__device__ __forceinline__ void write_sums(const ProductArgs &a, const Tile &t, float (&sums)[CUDA_TILE * R],
                                           Finish finish) {
  __shared__ float parts[CUDA_WARPS][CUDA_TILE * R];
  const int team = a.matrix.team;
  warp_sum(sums);
#pragma unroll
  for (int n = 0; n < CUDA_TILE * R; n++)
    if (lane_of() == n % 32) parts[warp_of()][n] = sums[n];
  sync_block();
  if (warp_of() % team != 0) return;
  for (int n = lane_of(); n < CUDA_TILE * R; n += 32) {
    const int64_t row = t.row + n / R;
    const int r = n % R;
    if (row >= a.out_rows || r >= t.x_rows) continue;
    float sum = parts[warp_of()][n];
    for (int w = 1; w < team; w++) sum += parts[warp_of() + w][n];
    sum *= finish(row);
    if (a.exponents != 0) sum = ldexpf(sum, -at<const int32_t>(a.exponents)[t.x_row + r]);
    at<float>(a.y)[(t.x_row + r) * a.out_rows + row] = sum;
  }
}

/* Eight columns of the tile against every row of x. */
template <class W, int R>
__device__ __forceinline__ void multiply_columns(const ProductArgs &a, const Tile &t, W &weights, int64_t col,
                                                 float (&sums)[CUDA_TILE * R]) {
  float w[CUDA_TILE][CUDA_LANE_COLUMNS], c[CUDA_LANE_COLUMNS];
  weights.load(a, t, col, w);
  if (W::has_columns) weights.column(a, col, c);
  const float *x = at<const float>(a.x) + t.x_row * a.matrix.cols + col;
#pragma unroll
  for (int r = 0; r < R; r++) {
    if (r >= t.x_rows) break;
    float v[CUDA_LANE_COLUMNS];
    load_f32(x + r * a.matrix.cols, v);
    if (W::has_columns)
#pragma unroll
      for (int n = 0; n < CUDA_LANE_COLUMNS; n++) v[n] *= c[n];
#pragma unroll
    for (int i = 0; i < CUDA_TILE; i++) {
      float sum = 0;
#pragma unroll
      for (int n = 0; n < CUDA_LANE_COLUMNS; n++) sum = fmaf(w[i][n], v[n], sum);
      sums[i * R + r] = W::has_factors ? fmaf(sum, weights.factor(i), sums[i * R + r]) : sums[i * R + r] + sum;
    }
  }
}

template <class W, int R> __device__ __forceinline__ void product(const ProductArgs &a) {
  const Tile t = tile_of<R>(a);
  float sums[CUDA_TILE * R] = {0};
  W weights;
  weights.open(a, t);
  for (int64_t col = t.begin + lane_of() * CUDA_LANE_COLUMNS; col < t.end; col += CUDA_SPAN)
    multiply_columns<W, R>(a, t, weights, col, sums);
  write_sums<R>(a, t, sums, [&](int64_t row) { return weights.finish(a, row); });
}

#define PRODUCT(storage, Weights)                                                                            \
  KERNEL(product_##storage##_few, ProductArgs) { stamp_begin(a.stamp), product<Weights, CUDA_FEW_ROWS>(a); } \
  KERNEL(product_##storage##_many, ProductArgs) { stamp_begin(a.stamp), product<Weights, CUDA_MANY_ROWS>(a); }
PRODUCT(f32, F32)
PRODUCT(f16, Halves<decode_f16>)
PRODUCT(bf16, Halves<decode_bf16>)
PRODUCT(q8, Q8)
PRODUCT(q4, Q4)

/* ---- any number of columns: a weight at a time ---- */

__device__ __forceinline__ float weight_at(const CudaMatrix &m, int64_t row, int64_t col) {
  const int64_t i = row * m.cols + col;
  switch (m.storage) {
  case STORED_F32:
    return at<const float>(m.weights)[i];
  case STORED_F16:
    return decode_f16(at<const uint16_t>(m.weights)[i]);
  case STORED_BF16:
    return decode_bf16(at<const uint16_t>(m.weights)[i]);
  default:
    return (float)at<const int8_t>(m.weights)[i] * decode_f16(at<const uint16_t>(m.scales)[row]) *
           decode_f16(at<const uint16_t>(m.columns)[col]);
  }
}

KERNEL(product_any, ProductArgs) {
  stamp_begin(a.stamp);
  const Tile t = tile_of<CUDA_FEW_ROWS>(a);
  const float *x = at<const float>(a.x) + t.x_row * a.matrix.cols;
  float sums[CUDA_TILE * CUDA_FEW_ROWS] = {0};
  for (int64_t col = t.begin + lane_of(); col < t.end; col += 32)
#pragma unroll
    for (int i = 0; i < CUDA_TILE; i++) {
      const float w = weight_at(a.matrix, tile_row(a, t, i), col);
#pragma unroll
      for (int r = 0; r < CUDA_FEW_ROWS; r++)
        if (r < t.x_rows)
          sums[i * CUDA_FEW_ROWS + r] = fmaf(w, x[r * a.matrix.cols + col], sums[i * CUDA_FEW_ROWS + r]);
    }
  write_sums<CUDA_FEW_ROWS>(a, t, sums, [](int64_t) { return 1.0f; });
}

#endif
