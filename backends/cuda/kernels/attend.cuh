/* Attention: parts of the keys apart, each with a softmax of its own, then what they come to together. */
#include "device.cuh"

enum { QUERIES_OF_WARP = CUDA_QUERIES / CUDA_WARPS, LANE_DIMS = CUDA_MOST_HEAD_DIM / 32 };

/* The keys of a part: rows begin <= row < end of k and v, [..][kv_heads][head_dim]. */
struct Keys {
  const float *k, *v;
  int64_t begin, end, from; /* block row r sees none before from + r */
};

/* What a warp knows of one of its queries. */
struct Query {
  int row; /* of the block; -1: there is no such query */
  float largest, total;
  float mix[LANE_DIMS]; /* dimensions lane, lane + 32, ... */
};

__device__ __forceinline__ Keys keys_of(const AttendArgs &a) {
  const int part = blockIdx.y, splits = a.parts - 1;
  if (part == splits) return {at<const float>(a.k), at<const float>(a.v), 0, a.rows, INT64_MIN / 2};
  const CudaVisible seen = *at<const CudaVisible>(a.visible);
  const int64_t begin = max(seen.first, seen.from), count = max(seen.end - begin, (int64_t)0);
  return {at<const float>(seen.k), at<const float>(seen.v), begin + count * part / splits,
          begin + count * (part + 1) / splits, seen.from};
}

/* The place of a query among all, row * heads + head. Queries of a kv head: all rows of its first head, and so on. */
__device__ __forceinline__ int place_of(const AttendArgs &a, int query, int *row) {
  const int rep = a.heads / a.kv_heads;
  *row = query / rep;
  return *row * a.heads + blockIdx.x * rep + query % rep;
}

__device__ __forceinline__ void load_queries(const AttendArgs &a, int first, float *queries) {
  const int count = a.rows * (a.heads / a.kv_heads);
  for (int i = threadIdx.x; i < CUDA_QUERIES * a.head_dim; i += CUDA_THREADS) {
    const int query = first + i / a.head_dim;
    int row;
    queries[i] =
        query < count ? at<const float>(a.q)[(int64_t)place_of(a, query, &row) * a.head_dim + i % a.head_dim] : 0;
  }
}

/* Rows of keys or values of the block's kv head, `stride` floats apart in shared memory. */
__device__ __forceinline__ void load_rows(const AttendArgs &a, const float *from, int64_t begin, int count, int stride,
                                          float *tile) {
  for (int i = threadIdx.x; i < count * a.head_dim; i += CUDA_THREADS) {
    const int row = i / a.head_dim, d = i % a.head_dim;
    tile[row * stride + d] = from[((begin + row) * a.kv_heads + blockIdx.x) * a.head_dim + d];
  }
}

/* A lane's key against a query: its weight relative to the largest score so far. A score that is NaN makes the weight
 * NaN, and so the total. */
__device__ __forceinline__ float weigh(const AttendArgs &a, const float *query, const float *key, bool seen,
                                       Query &state, float *kept) {
  float score = 0;
  for (int d = 0; d < a.head_dim; d++) score = fmaf(query[d], key[d], score);
  score *= a.scale;
  const float none = -__uint_as_float(0x7f800000u);
  const float largest = fmaxf(state.largest, warp_max(seen ? score : none));
  *kept = state.largest == largest ? 1 : expf(state.largest - largest);
  state.largest = largest;
  return seen ? expf(score - largest) : 0;
}

__device__ __forceinline__ void add_values(const AttendArgs &a, const float *weights, const float *values, int count,
                                           Query &state) {
#pragma unroll
  for (int i = 0; i < LANE_DIMS; i++) {
    const int d = lane_of() + 32 * i;
    if (d >= a.head_dim) continue;
    float sum = state.mix[i];
    for (int j = 0; j < count; j++) sum = fmaf(weights[j], values[j * a.head_dim + d], sum);
    state.mix[i] = sum;
  }
}

/* CUDA_KEYS keys at most, from key `first` of the part on. Shared memory: keys, then values in the same place. */
__device__ __forceinline__ void take_keys(const AttendArgs &a, const Keys &keys, int64_t first, const float *queries,
                                          float *tile, float *weights, Query (&states)[QUERIES_OF_WARP]) {
  const int count = (int)min((int64_t)CUDA_KEYS, keys.end - first), stride = a.head_dim + 1;
  load_rows(a, keys.k, first, count, stride, tile);
  sync_block();
#pragma unroll
  for (int i = 0; i < QUERIES_OF_WARP; i++) {
    if (states[i].row < 0) continue;
    const int query = warp_of() * QUERIES_OF_WARP + i, key = min(lane_of(), count - 1);
    const bool seen = lane_of() < count && first + lane_of() >= keys.from + states[i].row;
    float kept;
    float weight[1] = {weigh(a, queries + query * a.head_dim, tile + key * stride, seen, states[i], &kept)};
    weights[query * CUDA_KEYS + lane_of()] = weight[0];
    warp_sum(weight);
    states[i].total = fmaf(states[i].total, kept, weight[0]);
#pragma unroll
    for (int n = 0; n < LANE_DIMS; n++) states[i].mix[n] *= kept;
  }
  sync_block();
  load_rows(a, keys.v, first, count, a.head_dim, tile);
  sync_block();
#pragma unroll
  for (int i = 0; i < QUERIES_OF_WARP; i++)
    if (states[i].row >= 0)
      add_values(a, weights + (warp_of() * QUERIES_OF_WARP + i) * CUDA_KEYS, tile, count, states[i]);
  sync_block();
}

__device__ __forceinline__ void write_part(const AttendArgs &a, int query, const Query &state) {
  int row;
  const int64_t place = (int64_t)blockIdx.y * a.rows * a.heads + place_of(a, query, &row);
  float *mix = at<float>(a.mixes) + place * a.head_dim;
#pragma unroll
  for (int n = 0; n < LANE_DIMS; n++)
    if (lane_of() + 32 * n < a.head_dim) mix[lane_of() + 32 * n] = state.mix[n];
  if (lane_of() == 0) *(at<float2>(a.sums) + place) = make_float2(state.largest, state.total);
}

/* Shared memory, floats: queries, a tile of keys or values, weights. */
KERNEL(attend, AttendArgs) {
  SHARED_BYTES(shared);
  stamp_begin(a.stamp);
  float *queries = (float *)shared, *tile = queries + CUDA_QUERIES * a.head_dim;
  float *weights = tile + CUDA_KEYS * (a.head_dim + 1);
  const int first = blockIdx.z * CUDA_QUERIES, count = a.rows * (a.heads / a.kv_heads);
  const Keys keys = keys_of(a);
  Query states[QUERIES_OF_WARP];
#pragma unroll
  for (int i = 0; i < QUERIES_OF_WARP; i++) {
    const int query = first + warp_of() * QUERIES_OF_WARP + i;
    states[i] = {query < count ? query / (a.heads / a.kv_heads) : -1, -__uint_as_float(0x7f800000u), 0, {0}};
  }
  load_queries(a, first, queries);
  for (int64_t key = keys.begin; key < keys.end; key += CUDA_KEYS)
    take_keys(a, keys, key, queries, tile, weights, states);
#pragma unroll
  for (int i = 0; i < QUERIES_OF_WARP; i++)
    if (states[i].row >= 0) write_part(a, first + warp_of() * QUERIES_OF_WARP + i, states[i]);
}

/* A part that saw no key has a total of 0 and is left out. */
KERNEL(mix, MixArgs) {
  const int query = blockIdx.x * CUDA_WARPS + warp_of();
  if (query >= a.queries) return;
  const float2 *sums = at<const float2>(a.sums);
  float largest = -__uint_as_float(0x7f800000u), total = 0;
  for (int part = 0; part < a.parts; part++) largest = fmaxf(largest, sums[(int64_t)part * a.queries + query].x);
  for (int part = 0; part < a.parts; part++) {
    const float2 sum = sums[(int64_t)part * a.queries + query];
    if (sum.y != 0) total = fmaf(sum.y, expf(sum.x - largest), total);
  }
  for (int d = lane_of(); d < a.head_dim; d += 32) {
    float mix = 0;
    for (int part = 0; part < a.parts; part++) {
      const int64_t place = (int64_t)part * a.queries + query;
      if (sums[place].y != 0)
        mix = fmaf(at<const float>(a.mixes)[place * a.head_dim + d], expf(sums[place].x - largest), mix);
    }
    at<float>(a.y)[(int64_t)query * a.head_dim + d] = mix / total;
  }
}
