/* Norms, rotation, convolution, activation. */
#include "numbers.cuh"

KERNEL(norm, NormArgs) {
  __shared__ float scratch[CUDA_WARPS];
  stamp_begin(a.stamp);
  const float *x = at<const float>(a.x) + blockIdx.x * a.width, *w = at<const float>(a.w);
  float *y = at<float>(a.y) + blockIdx.x * a.width;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < a.width; i += CUDA_THREADS) squares = fmaf(x[i], x[i], squares);
  const float root = sqrtf(block_sum(squares, scratch) / (float)a.width + a.eps);
  for (int64_t i = threadIdx.x; i < a.width; i += CUDA_THREADS) y[i] = x[i] / root * w[i];
}

/* The angle is a product of two f32, rounded to f32. */
KERNEL(rotation, RotationArgs) {
  const int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
  if (i >= (int64_t)a.rows * a.half) return;
  const float position = __ll2float_rn(*at<const int64_t>(a.position) + i / a.half);
  float *place = at<float>(a.table) + 2 * i;
  cosine_sine(__fmul_rn(position, at<const float>(a.inv_freq)[i % a.half]), &place[0], &place[1]);
}

/* Pairs (i, i + head_dim / 2) turn. */
__device__ __forceinline__ void rotate_head(const HeadsArgs &a, const float *x, float root, const float *table,
                                            float *y) {
  const float *w = at<const float>(a.w);
  const int half = a.head_dim / 2;
  for (int i = lane_of(); i < half; i += 32) {
    const float lo = x[i] / root * w[i], hi = x[i + half] / root * w[i + half];
    const float cosine = a.rotate ? table[2 * i] : 1, sine = a.rotate ? table[2 * i + 1] : 0;
    y[i] = a.rotate ? lo * cosine - hi * sine : lo;
    y[i + half] = a.rotate ? lo * sine + hi * cosine : hi;
  }
}

__device__ __forceinline__ void write_head(const HeadsArgs &a) {
  const int64_t head = (int64_t)blockIdx.x * CUDA_WARPS + warp_of();
  if (head >= a.rows * a.heads) return;
  const float *x = at<const float>(a.x) + head * a.head_dim;
  float squares[1] = {0};
  for (int i = lane_of(); i < a.head_dim; i += 32) squares[0] = fmaf(x[i], x[i], squares[0]);
  warp_sum(squares);
  const float root = sqrtf(squares[0] / (float)a.head_dim + a.eps);
  rotate_head(a, x, root, at<const float>(a.table) + head / a.heads * a.head_dim, at<float>(a.y) + head * a.head_dim);
}

KERNEL(heads, HeadsArgs) { stamp_begin(a.stamp), write_head(a); }
KERNEL(layers_heads, LayersHeadsArgs) { delay(), write_head(a.layers[blockIdx.y]); }

/* Tap o reads the row o rows back; rows before the block's first count as zero. */
KERNEL(conv, ConvArgs) {
  stamp_begin(a.stamp);
  const int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x, row = blockIdx.y;
  if (i >= a.hidden) return;
  const int64_t group = i / a.group, first_tap = (int64_t)a.side * a.taps;
  const float *base = at<const float>(a.base) + first_tap * a.hidden + i,
              *x = at<const float>(a.x) + row * a.hidden + i;
  const float *d = at<const float>(a.d) + (row * 2 * a.taps + first_tap) * a.groups + group;
  float sum = 0;
  for (int64_t o = 0; o < a.taps && o <= row; o++)
    sum = fmaf(base[o * a.hidden] + d[o * a.groups], x[-o * a.hidden], sum);
  if (a.residual != 0) sum = at<const float>(a.residual)[row * a.hidden + i] + sum;
  at<float>(a.y)[row * a.hidden + i] = sum;
}

/* In f64: exp(-gate) leaves f32 below -88, where the product is small and not zero. */
KERNEL(act, ActArgs) {
  stamp_begin(a.stamp);
  const int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
  if (i >= a.count) return;
  const double gate = at<const float>(a.gate)[i];
  at<float>(a.y)[i] = (float)(gate / (1 + exp(-gate)) * at<const float>(a.up)[i]);
}
