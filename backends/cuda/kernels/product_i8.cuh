/* Profile i8: q4tp matrices with int8 activations. A lane takes a group at a time. */
#include "product.cuh"

/* 16 times the dot product of a group: a nibble with its top bit turned, in the upper half of a byte, is 16 times what
 * it stands for. A sum is below 2^19. */
__device__ __forceinline__ int dot_group(const uint4 &nibbles, const uint4 *q) {
  const uint32_t words[4] = {nibbles.x, nibbles.y, nibbles.z, nibbles.w};
  const uint4 first = q[0], second = q[1];
  const uint32_t x[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    sum = __dp4a((int)((words[i] << 4 & 0xf0f0f0f0u) ^ 0x80808080u), (int)x[2 * i], sum);
    sum = __dp4a((int)((words[i] & 0xf0f0f0f0u) ^ 0x80808080u), (int)x[2 * i + 1], sum);
  }
  return sum;
}

template <int R>
__device__ __forceinline__ void multiply_group(const ProductArgs &a, const Tile &t, const Ladders &ladders,
                                               int64_t group, float (&sums)[CUDA_TILE * R]) {
  const int64_t groups = a.matrix.cols / CUDA_GROUP;
  uint4 nibbles[CUDA_TILE];
  float scale[CUDA_TILE];
#pragma unroll
  for (int i = 0; i < CUDA_TILE; i++) {
    const int64_t row = tile_row(a, t, i);
    nibbles[i] = __ldg(at<const uint4>(a.matrix.weights) + row * groups + group);
    scale[i] = group_scale(a, ladders, i, row, group);
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    if (r >= t.x_rows) break;
    const int64_t place = (t.x_row + r) * groups + group;
    const float step = at<const float>(a.steps)[place];
#pragma unroll
    for (int i = 0; i < CUDA_TILE; i++) {
      const int dot = dot_group(nibbles[i], at<const uint4>(a.words) + 2 * place);
      sums[i * R + r] = fmaf((float)dot * 0.0625f * scale[i], step, sums[i * R + r]);
    }
  }
}

/* Spans of columns divide into groups, so warps of a team share groups. */
template <int R> __device__ __forceinline__ void product_i8(const ProductArgs &a) {
  __shared__ Ladders ladders;
  const Tile t = tile_of<R>(a);
  float sums[CUDA_TILE * R] = {0};
  fill_ladders(a, t, ladders);
  for (int64_t group = t.begin / CUDA_GROUP + lane_of(); group < t.end / CUDA_GROUP; group += 32)
    multiply_group<R>(a, t, ladders, group, sums);
  write_sums<R>(a, t, sums, [](int64_t) { return 1.0f; });
}

KERNEL(product_i8_few, ProductArgs) { stamp_begin(a.stamp), product_i8<CUDA_FEW_ROWS>(a); }
KERNEL(product_i8_many, ProductArgs) { stamp_begin(a.stamp), product_i8<CUDA_MANY_ROWS>(a); }
