/* What a device can do, and the step of its clock. */
#include "device.cuh"

KERNEL(read_stream, ReadArgs) {
  const uint4 *data = at<const uint4>(a.data);
  const int64_t threads = (int64_t)gridDim.x * CUDA_THREADS, self = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
  uint32_t sum = 0;
  int64_t i = self;
  for (; i + 3 * threads < a.count; i += 4 * threads) {
    const uint4 w = __ldg(data + i), x = __ldg(data + i + threads), y = __ldg(data + i + 2 * threads),
                z = __ldg(data + i + 3 * threads);
    sum += w.x ^ w.y ^ w.z ^ w.w ^ x.x ^ x.y ^ x.z ^ x.w ^ y.x ^ y.y ^ y.z ^ y.w ^ z.x ^ z.y ^ z.z ^ z.w;
  }
  for (; i < a.count; i += threads) {
    const uint4 w = __ldg(data + i);
    sum += w.x ^ w.y ^ w.z ^ w.w;
  }
  at<uint32_t>(a.sums)[self] = sum;
}

KERNEL(multiply, MultiplyArgs) {
  float x[8];
  const int64_t self = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
#pragma unroll
  for (int i = 0; i < 8; i++) x[i] = (float)(self + i) * 1e-6f;
  for (int round = 0; round < a.rounds; round++)
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int i = 0; i < 8; i++) x[i] = fmaf(x[i], 0.999f, 0.001f);
  at<float>(a.sums)[self] = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
}

KERNEL(clock_step, ClockArgs) {
  if (threadIdx.x > 0) return;
  uint64_t smallest = ~0ull, before = clock_now();
  for (int seen = 0, turns = 0; seen < 64 && turns < 1000000; turns++) {
    const uint64_t now = clock_now();
    if (now == before) continue;
    if (now - before < smallest) smallest = now - before;
    before = now;
    seen++;
  }
  *at<uint64_t>(a.step) = smallest;
}
