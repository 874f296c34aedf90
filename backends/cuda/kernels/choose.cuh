/* Each row's best candidates by logit, in chunks of the row. */
#ifndef DFLASH_CUDA_CHOOSE_CUH
#define DFLASH_CUDA_CHOOSE_CUH

#include "device.cuh"

constexpr uint64_t ENTRY_NAN = ~0ull;

/* Greater logits first, then lower tokens; 0 and -0 are equal. No entry of a number is 0. */
__device__ __forceinline__ uint64_t entry_of(float logit, uint32_t token) {
  if (logit != logit) return ENTRY_NAN;
  const uint32_t bits = logit == 0 ? 0 : __float_as_uint(logit);
  const uint32_t order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return (uint64_t)order << 32 | (0xffffffffu - token);
}

__device__ __forceinline__ uint32_t token_of(uint64_t entry) { return 0xffffffffu - (uint32_t)entry; }

/* ---- many candidates: all entries of a chunk are sorted ---- */

/* Bitonic: every step is a set of exchanges apart from each other. Largest first; size is a power of two. */
__device__ __forceinline__ void sort_entries(uint64_t *entries, int size) {
  for (int run = 2; run <= size; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      for (int n = threadIdx.x; n < size / 2; n += CUDA_THREADS) {
        const int i = 2 * n - (n & (step - 1)), j = i + step;
        const uint64_t x = entries[i], y = entries[j];
        if ((x < y) == ((i & run) == 0)) entries[i] = y, entries[j] = x;
      }
      sync_block();
    }
}

/* Nobody has arrived yet, to those who count themselves in a kernel behind this one. */
__device__ __forceinline__ void clear_arrived(CudaAddress arrived) {
  if ((blockIdx.x | blockIdx.y | threadIdx.x) == 0) *at<uint32_t>(arrived) = 0;
}

KERNEL(top, TopArgs) {
  __shared__ uint64_t entries[CUDA_TOP_CHUNK];
  stamp_begin(a.stamp);
  clear_arrived(a.arrived);
  const int64_t first = (int64_t)blockIdx.x * CUDA_TOP_CHUNK, row = (int64_t)blockIdx.y * a.count;
  const int count = (int)min(a.count - first, (int64_t)CUDA_TOP_CHUNK);
  int size = 1;
  while (size < count || size < a.top) size *= 2;
  for (int i = threadIdx.x; i < size; i += CUDA_THREADS)
    entries[i] = i >= count       ? 0
                 : a.entries != 0 ? at<const uint64_t>(a.entries)[row + first + i]
                                  : entry_of(at<const float>(a.logits)[row + first + i], (uint32_t)(first + i));
  sync_block();
  sort_entries(entries, size);
  uint64_t *found = at<uint64_t>(a.found) + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * a.top;
  for (int i = threadIdx.x; i < a.top; i += CUDA_THREADS) found[i] = entries[i];
}

/* ---- few candidates: all but a few threads give up after their largest entry ---- */

/* The warps of a team have entries dealt out among their threads, each of a number its own. Of the `top` largest none
 * is with a thread whose largest one is below the top-th of these, `least`; so the others, at most `top` threads, offer
 * what they have from `least` on, and each offer's place is the number of larger ones. */
template <int WARPS> struct Team {
  enum { THREADS = 32 * WARPS };
  uint64_t largest[THREADS];
  uint64_t offers[CUDA_FEW_TOP * CUDA_FEW_TOP];
  uint64_t least;
  int count; /* of offers */
};

/* Largest first. */
template <int N> __device__ __forceinline__ void insert_all(uint64_t (&entries)[N]) {
#pragma unroll
  for (int i = 1; i < N; i++)
#pragma unroll
    for (int j = i; j > 0; j--) {
      const uint64_t x = entries[j - 1], y = entries[j];
      entries[j - 1] = max(x, y), entries[j] = min(x, y);
    }
}

/* By one warp, whose lanes hold theirs sorted: the largest one of all goes, top - 1 times. Where there are fewer the
 * result is 0, and where one is not a number it is ENTRY_NAN. */
template <int WARPS> __device__ __forceinline__ uint64_t find_least(const uint64_t *largest, int top) {
  uint64_t mine[WARPS];
#pragma unroll
  for (int i = 0; i < WARPS; i++) mine[i] = largest[i * 32 + lane_of()];
  insert_all(mine);
  uint64_t found = warp_largest(mine[0]);
  for (int n = 1; n < top && found != ENTRY_NAN; n++) {
    if (mine[0] == found) {
#pragma unroll
      for (int i = 1; i < WARPS; i++) mine[i - 1] = mine[i];
      mine[WARPS - 1] = 0;
    }
    found = warp_largest(mine[0]);
  }
  return found;
}

/* Whether this thread, whose largest entry is `mine` (0: it has none), is to offer. `thread`: in its team. */
template <int WARPS> __device__ __forceinline__ bool ask(Team<WARPS> &team, int thread, uint64_t mine, int top) {
  team.largest[thread] = mine;
  if (thread == 0) team.count = 0;
  sync_block();
  if (thread < 32) {
    const uint64_t least = find_least<WARPS>(team.largest, top);
    if (thread == 0) team.least = least;
  }
  sync_block();
  return mine != 0 && mine >= team.least && team.least != ENTRY_NAN;
}

template <int WARPS> __device__ __forceinline__ void offer(Team<WARPS> &team, uint64_t entry) {
  if (entry >= team.least) team.offers[atomicAdd(&team.count, 1)] = entry;
}

/* found [top], largest first, with zeros where there are fewer. The order of the offers leaves no trace. */
template <int WARPS> __device__ __forceinline__ void place(Team<WARPS> &team, int thread, int top, uint64_t *found) {
  sync_block();
  const int count = team.count;
  if (thread < top && thread >= count) found[thread] = team.least == ENTRY_NAN ? ENTRY_NAN : 0;
  for (int i = thread; i < count; i += Team<WARPS>::THREADS) {
    const uint64_t entry = team.offers[i];
    int larger = 0;
#pragma unroll 4
    for (int j = 0; j < count; j++) larger += team.offers[j] > entry;
    if (larger < top) found[larger] = entry;
  }
}

constexpr int HELD = CUDA_TOP_CHUNK / CUDA_THREADS;
static_assert(HELD == 16 && HELD <= CUDA_FEW_TOP && CUDA_FEW_TOP <= 32, "offers of a thread, lanes");

/* Where a thread's i-th logit lies in a chunk: four that follow each other, then four of the next quarter. */
__device__ __forceinline__ int held_at(int i) { return i / 4 * (CUDA_TOP_CHUNK / 4) + (int)threadIdx.x * 4 + i % 4; }

/* Behind a row's end: the least number, which is never taken before another one. */
__device__ __forceinline__ void load_chunk(const float *logits, int count, float (&held)[HELD]) {
  if (count == CUDA_TOP_CHUNK && ((uintptr_t)logits & 15) == 0) {
#pragma unroll
    for (int i = 0; i < HELD; i += 4) {
      const float4 four = *reinterpret_cast<const float4 *>(logits + held_at(i));
      held[i] = four.x, held[i + 1] = four.y, held[i + 2] = four.z, held[i + 3] = four.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < HELD; i++) held[i] = held_at(i) < count ? logits[held_at(i)] : -INFINITY;
}

/* Its tokens ascend, so of equal logits the first one stays. */
__device__ __forceinline__ uint64_t largest_held(const float (&held)[HELD], int count, uint32_t first) {
  float largest = held[0];
  int where = held_at(0);
  bool nan = largest != largest;
#pragma unroll
  for (int i = 1; i < HELD; i++) {
    nan = nan || held[i] != held[i];
    if (held[i] > largest) largest = held[i], where = held_at(i);
  }
  if (nan) return ENTRY_NAN;
  return where < count ? entry_of(largest, first + (uint32_t)where) : 0;
}

KERNEL(top_few, TopArgs) {
  __shared__ Team<CUDA_WARPS> team;
  stamp_begin(a.stamp);
  clear_arrived(a.arrived);
  const int64_t first = (int64_t)blockIdx.x * CUDA_TOP_CHUNK;
  const int count = (int)min(a.count - first, (int64_t)CUDA_TOP_CHUNK), thread = threadIdx.x;
  float held[HELD];
  load_chunk(at<const float>(a.logits) + (int64_t)blockIdx.y * a.count + first, count, held);
  if (ask(team, thread, largest_held(held, count, (uint32_t)first), a.top)) {
#pragma unroll
    for (int i = 0; i < HELD; i++)
      if (held_at(i) < count) offer(team, entry_of(held[i], (uint32_t)first + (uint32_t)held_at(i)));
  }
  place(team, thread, a.top, at<uint64_t>(a.found) + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * a.top);
}

#endif
