/* The tokens: the scores of all pairs of candidates that may follow each other, and the walk from the anchor on. */
#include "choose.cuh"

/* ---- the candidates of two neighbouring rows ---- */

constexpr int MERGE_WARPS = CUDA_WARPS / 2, MERGE_THREADS = 32 * MERGE_WARPS;
static_assert(CUDA_FEW_LISTS <= MERGE_THREADS, "a list a thread");

/* A row's candidates out of the sorted ones of its chunks, by half of the threads; all threads call it. */
__device__ __forceinline__ void merge(Team<MERGE_WARPS> &team, const uint64_t *lists, int count, int top,
                                      uint64_t *found) {
  const int thread = threadIdx.x % MERGE_THREADS;
  const uint64_t *list = lists + (int64_t)thread * top;
  if (ask(team, thread, thread < count ? list[0] : 0, top))
    for (int i = 0; i < top && list[i] != 0 && list[i] >= team.least; i++) offer(team, list[i]);
  place(team, thread, top, found);
}

/* ---- scores ---- */

template <int STORAGE> __device__ __forceinline__ float codebook_at(CudaAddress codebook, int64_t i) {
  if (STORAGE == STORED_F32) return at<const float>(codebook)[i];
  const uint32_t bits = at<const uint16_t>(codebook)[i];
  return STORAGE == STORED_F16 ? decode_f16(bits) : decode_bf16(bits);
}

/* Candidates that a warp takes at once: their loads wait for each other's memory, not one after the other. */
constexpr int AT_ONCE = 2;

template <int BEFORE, int AFTER>
__device__ __forceinline__ void sum_pairs(const ScoresArgs &a, int64_t before, const int64_t (&after)[AT_ONCE],
                                          const float *hidden, float (&sums)[AT_ONCE]) {
#pragma unroll 8
  for (int i = lane_of(); i < a.rank; i += 32) {
    const float gate = __fmul_rn(codebook_at<BEFORE>(a.predecessor, before * a.rank + i), hidden[i]);
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++)
      sums[n] = fmaf(gate, codebook_at<AFTER>(a.successor, after[n] * a.rank + i), sums[n]);
  }
  warp_sum(sums);
}

template <int BEFORE>
__device__ __forceinline__ void sum_after(const ScoresArgs &a, int64_t before, const int64_t (&after)[AT_ONCE],
                                          const float *hidden, float (&sums)[AT_ONCE]) {
  if (a.after_storage == STORED_F32)
    sum_pairs<BEFORE, STORED_F32>(a, before, after, hidden, sums);
  else if (a.after_storage == STORED_F16)
    sum_pairs<BEFORE, STORED_F16>(a, before, after, hidden, sums);
  else
    sum_pairs<BEFORE, STORED_BF16>(a, before, after, hidden, sums);
}

__device__ __forceinline__ void sum_stored(const ScoresArgs &a, int64_t before, const int64_t (&after)[AT_ONCE],
                                           const float *hidden, float (&sums)[AT_ONCE]) {
  if (a.before_storage == STORED_F32)
    sum_after<STORED_F32>(a, before, after, hidden, sums);
  else if (a.before_storage == STORED_F16)
    sum_after<STORED_F16>(a, before, after, hidden, sums);
  else
    sum_after<STORED_BF16>(a, before, after, hidden, sums);
}

/* Of a row's candidates `best` behind one token. The entry that is not a number has token 0: what is read for it is
 * there, and its score is NaN. */
__device__ __forceinline__ void score_candidates(const ScoresArgs &a, int row, int64_t before, const uint64_t *best,
                                                 float *scores) {
  const float *hidden = at<const float>(a.hidden) + (int64_t)row * a.rank;
  const float *logits = at<const float>(a.logits) + row * a.width;
  for (int c = warp_of(); c < a.top; c += AT_ONCE * CUDA_WARPS) {
    float logit[AT_ONCE], sums[AT_ONCE] = {};
    int64_t after[AT_ONCE];
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++) {
      const uint64_t entry = best[min(c + n * CUDA_WARPS, a.top - 1)];
      after[n] = token_of(entry);
      logit[n] = entry == ENTRY_NAN ? NAN : logits[after[n]];
    }
    sum_stored(a, before, after, hidden, sums);
#pragma unroll
    for (int n = 0; n < AT_ONCE; n++)
      if (lane_of() == 0 && c + n * CUDA_WARPS < a.top) scores[c + n * CUDA_WARPS] = logit[n] + sums[n];
  }
}

/* ---- the walk ---- */

/* Where the walk reads: what lies in memory, or a copy of it nearby. */
constexpr int KEPT = 4096;
struct Walk {
  const float *pairs;    /* [rows][top][top] */
  const int32_t *tokens; /* [rows][top] */
};

/* By all threads: the candidates' tokens, which are answers, and copies of what the walk reads where there is room. */
__device__ __forceinline__ Walk begin_walk(const ScoresArgs &a, int32_t *candidates, float *kept) {
  const int64_t tokens = (int64_t)a.rows * a.top, pairs = tokens * a.top;
  const bool keep = pairs + tokens <= KEPT;
  int32_t *near_tokens = reinterpret_cast<int32_t *>(kept + pairs);
  /* Row 0 has scores behind the anchor alone. */
  for (int64_t i = threadIdx.x; keep && i < pairs; i += CUDA_THREADS)
    if (i < a.top || i >= (int64_t)a.top * a.top) kept[i] = at<const float>(a.pairs)[i];
  for (int64_t i = threadIdx.x; i < tokens; i += CUDA_THREADS) {
    candidates[i] = (int32_t)token_of(at<const uint64_t>(a.best)[i]);
    if (keep) near_tokens[i] = candidates[i];
  }
  sync_block();
  if (keep) return Walk{kept, near_tokens};
  return Walk{at<const float>(a.pairs), candidates};
}

/* The first of the best scores, or -1 where one is NaN; by one warp. */
__device__ __forceinline__ int best_score(const float *scores, int top, float *answer) {
  uint64_t best = 0;
  for (int c = lane_of(); c < top; c += 32) {
    answer[c] = scores[c];
    best = max(best, entry_of(scores[c], (uint32_t)c));
  }
  best = warp_largest(best);
  return best == ENTRY_NAN ? -1 : (int)token_of(best);
}

/* The first warp walks; a row that is not decided ends it. */
__device__ __forceinline__ void walk(const ScoresArgs &a, float *kept) {
  int32_t *chosen = at<int32_t>(a.result), *plain = chosen + a.rows, *candidates = plain + a.rows;
  float *scores = reinterpret_cast<float *>(candidates + (int64_t)a.rows * a.top);
  int32_t *failed = reinterpret_cast<int32_t *>(scores + (int64_t)a.rows * a.top);
  const Walk w = begin_walk(a, candidates, kept);
  if (warp_of() > 0) return;
  int before = 0;
  for (int row = 0; row < a.rows && before >= 0; row++) {
    const int64_t first = (int64_t)row * a.top;
    before = best_score(w.pairs + (first + before) * a.top, a.top, scores + first);
    if (lane_of() == 0) plain[row] = w.tokens[first], chosen[row] = w.tokens[first + max(before, 0)];
  }
  if (lane_of() > 0) return;
  *failed = before < 0;
  if (a.end_stamp != 0) *at<uint64_t>(a.end_stamp) = clock_now();
}

/* Whether all other blocks of the grid have written what they write. */
__device__ __forceinline__ bool arrive_last(CudaAddress arrived) {
  __shared__ bool last;
  delay();
  __threadfence();
  sync_block();
  if (threadIdx.x == 0) last = atomicAdd(at<uint32_t>(arrived), 1u) == gridDim.x - 1;
  sync_block();
  __threadfence();
  return last;
}

/* The first block: row 0 behind the anchor; then of each row one a candidate of the row before. */
KERNEL(scores, ScoresArgs) {
  __shared__ Team<MERGE_WARPS> teams[2];
  __shared__ uint64_t merged[2][CUDA_FEW_TOP];
  __shared__ float kept[KEPT];
  const int pair = (int)blockIdx.x - 1, row = pair < 0 ? 0 : 1 + pair / a.top, before = pair < 0 ? 0 : pair % a.top;
  delay();
  const int side = (int)threadIdx.x / MERGE_THREADS, there = max(row - side, 0);
  const uint64_t *lists = at<const uint64_t>(a.lists);
  const uint64_t *best = lists + (int64_t)row * a.top, *ahead = lists + (int64_t)max(row - 1, 0) * a.top;
  if (a.count > 1) {
    merge(teams[side], lists + (int64_t)there * a.count * a.top, a.count, a.top, merged[side]);
    best = merged[0], ahead = merged[1];
    sync_block();
    if (before == 0 && threadIdx.x < (unsigned)a.top)
      at<uint64_t>(a.best)[(int64_t)row * a.top + threadIdx.x] = best[threadIdx.x];
  }
  const int64_t token = row == 0 ? at<const CudaInputs>(a.inputs)->anchor_token : (int64_t)token_of(ahead[before]);
  score_candidates(a, row, token, best, at<float>(a.pairs) + ((int64_t)row * a.top + before) * a.top);
  if (arrive_last(a.arrived)) walk(a, kept);
}
