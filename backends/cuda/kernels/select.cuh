/* The tokens: each row's best candidates by logit, the sums of all pairs of candidates that may follow each other, and
 * the walk from the anchor on. */
#include "device.cuh"

enum : uint64_t { ENTRY_NAN = ~0ull };

/* Greater logits first, then lower tokens; 0 and -0 are equal. */
__device__ __forceinline__ uint64_t entry_of(float logit, uint32_t token) {
  if (logit != logit) return ENTRY_NAN;
  const uint32_t bits = logit == 0 ? 0 : __float_as_uint(logit);
  const uint32_t order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (uint64_t)order << 32 | (0xffffffffu - token);
}

__device__ __forceinline__ uint32_t token_of(uint64_t entry) { return 0xffffffffu - (uint32_t)entry; }

/* Bitonic: every step is a set of exchanges apart from each other. Largest first; size is a power of two. */
__device__ __forceinline__ void sort_entries(uint64_t *entries, int size) {
  for (int run = 2; run <= size; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      for (int n = threadIdx.x; n < size / 2; n += CUDA_THREADS) {
        const int i = 2 * n - (n & (step - 1)), j = i + step;
        const uint64_t x = entries[i], y = entries[j];
        if ((x < y) == ((i & run) == 0)) entries[i] = y, entries[j] = x;
      }
      __syncthreads();
    }
}

KERNEL(top, TopArgs) {
  __shared__ uint64_t entries[CUDA_TOP_CHUNK];
  stamp_begin(a.stamp);
  const int64_t first = (int64_t)blockIdx.x * CUDA_TOP_CHUNK, row = (int64_t)blockIdx.y * a.count;
  const int count = (int)min(a.count - first, (int64_t)CUDA_TOP_CHUNK);
  int size = 1;
  while (size < count || size < a.top) size *= 2;
  for (int i = threadIdx.x; i < size; i += CUDA_THREADS)
    entries[i] = i >= count       ? 0
                 : a.entries != 0 ? at<const uint64_t>(a.entries)[row + first + i]
                                  : entry_of(at<const float>(a.logits)[row + first + i], (uint32_t)(first + i));
  __syncthreads();
  sort_entries(entries, size);
  uint64_t *found = at<uint64_t>(a.found) + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * a.top;
  for (int i = threadIdx.x; i < a.top; i += CUDA_THREADS) found[i] = entries[i];
}

__device__ __forceinline__ float codebook_at(CudaAddress codebook, int storage, int64_t i) {
  if (storage == STORED_F32) return at<const float>(codebook)[i];
  const uint32_t bits = at<const uint16_t>(codebook)[i];
  return storage == STORED_F16 ? decode_f16(bits) : decode_bf16(bits);
}

/* A row without candidates, because a logit is NaN, has tokens that are none: their rows of the codebook are not read.
 */
KERNEL(pairs, PairsArgs) {
  const int before = blockIdx.x, row = blockIdx.y;
  if (row == 0 && before > 0) return;
  const uint64_t *best = at<const uint64_t>(a.best) + (int64_t)row * a.top;
  const uint64_t entry = row == 0 ? 0 : best[before - a.top];
  const int64_t token = row == 0 ? at<const CudaInputs>(a.inputs)->anchor_token : (int64_t)token_of(entry);
  const float *hidden = at<const float>(a.hidden) + (int64_t)row * a.rank;
  float *sums = at<float>(a.pairs) + ((int64_t)row * a.top + before) * a.top;
  if (entry == ENTRY_NAN) return;
  for (int c = warp_of(); c < a.top; c += CUDA_WARPS) {
    float sum[1] = {0};
    if (best[c] == ENTRY_NAN) continue;
    for (int i = lane_of(); i < a.rank; i += 32) {
      const float gate = __fmul_rn(codebook_at(a.predecessor, a.before_storage, token * a.rank + i), hidden[i]);
      sum[0] = fmaf(gate, codebook_at(a.successor, a.after_storage, (int64_t)token_of(best[c]) * a.rank + i), sum[0]);
    }
    warp_sum(sum);
    if (lane_of() == 0) sums[c] = sum[0];
  }
}

/* The scores of row `row` after candidate `before` of the row before; the first of the best, or -1 where one is NaN. */
__device__ __forceinline__ int score_row(const WalkArgs &a, int row, int before, float *scores) {
  const uint64_t *best = at<const uint64_t>(a.best) + (int64_t)row * a.top;
  const float *sums = at<const float>(a.pairs) + ((int64_t)row * a.top + before) * a.top;
  int winner = 0;
  for (int c = lane_of(); c < a.top; c += 32)
    if (best[c] != ENTRY_NAN) scores[c] = at<const float>(a.logits)[row * a.width + token_of(best[c])] + sums[c];
  __syncwarp();
  if (best[0] == ENTRY_NAN) return -1;
  for (int c = 0; c < a.top; c++) {
    if (scores[c] != scores[c]) return -1;
    if (scores[c] > scores[winner]) winner = c;
  }
  return winner;
}

/* The first warp walks; a row that is not decided ends it. */
KERNEL(walk, WalkArgs) {
  if (warp_of() > 0) return;
  int32_t *chosen = at<int32_t>(a.result), *plain = chosen + a.rows, *candidates = plain + a.rows;
  float *scores = (float *)(candidates + (int64_t)a.rows * a.top);
  int32_t *failed = (int32_t *)(scores + (int64_t)a.rows * a.top);
  int before = 0;
  for (int row = 0; row < a.rows && before >= 0; row++) {
    const uint64_t *best = at<const uint64_t>(a.best) + (int64_t)row * a.top;
    before = score_row(a, row, before, scores + (int64_t)row * a.top);
    for (int c = lane_of(); c < a.top; c += 32) candidates[(int64_t)row * a.top + c] = (int32_t)token_of(best[c]);
    if (lane_of() == 0) plain[row] = (int32_t)token_of(best[0]), chosen[row] = (int32_t)token_of(best[max(before, 0)]);
  }
  if (lane_of() > 0) return;
  *failed = before < 0;
  if (a.end_stamp != 0) *at<uint64_t>(a.end_stamp) = clock_now();
}
