/* Attention of a tile of queries to one part of the keys, with the softmax taken as keys come: a step scores some keys,
 * then the largest score so far is subtracted and what was summed before is scaled to it. A workgroup is one kv head,
 * one part, one tile. Values of keys that a query does not see are never multiplied by 0: they may be NaN. What a query
 * gets follows from the step's keys alone, not from the tile: a block cut to fewer rows gives the same bits. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_ATTEND
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint HEAD_DIM = 128;
layout(constant_id = 1) const uint QUERIES = 32; /* even */
layout(constant_id = 2) const uint KEYS = 16;    /* even */

/* Rows are read in pieces of four numbers where they are aligned so, else of two. */
layout(set = 0, binding = 0, std430) readonly buffer Query { vec2 q[]; };
layout(set = 0, binding = 1, std430) readonly buffer ContextKeys2 { vec2 context_k2[]; };
layout(set = 0, binding = 1, std430) readonly buffer ContextKeys4 { vec4 context_k4[]; };
layout(set = 0, binding = 2, std430) readonly buffer ContextValues2 { vec2 context_v2[]; };
layout(set = 0, binding = 2, std430) readonly buffer ContextValues4 { vec4 context_v4[]; };
layout(set = 0, binding = 3, std430) readonly buffer OwnKeys { vec2 own_k[]; };
layout(set = 0, binding = 4, std430) readonly buffer OwnValues { vec2 own_v[]; };
layout(set = 0, binding = 5, std430) readonly buffer Visible { uint visible[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Sums { vec2 sums[]; };
layout(set = 0, binding = 7, std430) writeonly buffer Mixes { vec2 mixes[]; };

const uint THREADS = 128;
const uint PIECES = (HEAD_DIM + 3) / 4;                /* of four numbers, in a head */
const uint PITCH = PIECES | 1;                         /* odd: neighbouring rows start in other banks */
const uint HALF_KEYS = KEYS / 2;                       /* keys j and j + HALF_KEYS go together */
const uint SCORE_PITCH = HALF_KEYS | 1;
const uint LOADS = (KEYS * PIECES + THREADS - 1) / THREADS;
const uint LANES = THREADS / PIECES;                   /* queries that are mixed side by side */
const uint TURNS = (QUERIES + LANES - 1) / LANES;
const uint LOWEST = 0xff800000u;                       /* bits of minus infinity */
const uint NEVER = 0xffffffffu;

shared vec4 queries[QUERIES * PITCH];
shared vec4 tile[KEYS * PITCH];            /* of K, then of V */
shared vec2 scores[QUERIES * SCORE_PITCH]; /* then weights */
shared uint begins[QUERIES];               /* the first key that a query sees */
shared float shifts[QUERIES];              /* what is subtracted from its scores */
shared float kept[QUERIES];                /* what its sums so far are multiplied by */

/* Keys first .. limit of the context, counted from its first row, or of the block itself. */
struct Part {
  bool own;
  uint first, limit;
};

/* What is left to copy of a step, in registers; the sums of the queries that this thread mixes. */
vec4 next_k[LOADS], next_v[LOADS], mixed[TURNS];
/* Of query `thread`: its largest score and its sum of exp. */
float largest = uintBitsToFloat(LOWEST), total = 0.0;

uint queries_in_all() { return push.rows * (push.heads / push.kv_heads); }

/* The row and head of a query, as rows * heads count them. */
uint query_place(uint query) {
  const uint rep = push.heads / push.kv_heads;
  return query / rep * push.heads + gl_WorkGroupID.x * rep + query % rep;
}

Part make_part() {
  const uint part = gl_WorkGroupID.y, last = push.row_first + push.row_count;
  const uint begin = clamp(visible[1], push.row_first, last), end = clamp(visible[0], begin, last);
  if (part == push.splits) return Part(true, 0u, push.rows);
  const uint split = ((end - begin + push.splits - 1) / push.splits + KEYS - 1) / KEYS * KEYS;
  const uint first = min(begin + part * split, end);
  return Part(false, first, min(first + split, end));
}

/* Piece `piece` of a row of q, zeros behind its end. */
vec4 query_piece(uint query, uint piece) {
  if (query >= queries_in_all()) return vec4(0.0);
  const uint at = query_place(query) * (HEAD_DIM / 2) + 2 * piece;
  return vec4(q[at], 4 * piece + 2 < HEAD_DIM ? q[at + 1] : vec2(0.0));
}

/* Piece `piece` of row `key` of K and V; zeros past the part and behind a row's end. */
void load_piece(Part part, uint key, uint piece, out vec4 k, out vec4 v) {
  k = v = vec4(0.0);
  if (key >= part.limit) return;
  const uint row = part.own ? key : key - push.row_first;
  const uint at = (row * push.kv_heads + gl_WorkGroupID.x) * (HEAD_DIM / 2) + 2 * piece;
  const bool both = 4 * piece + 2 < HEAD_DIM;
  if (part.own) {
    k = vec4(own_k[at], both ? own_k[at + 1] : vec2(0.0));
    v = vec4(own_v[at], both ? own_v[at + 1] : vec2(0.0));
  } else if (HEAD_DIM % 4 == 0) {
    k = context_k4[at / 2];
    v = context_v4[at / 2];
  } else {
    k = vec4(context_k2[at], both ? context_k2[at + 1] : vec2(0.0));
    v = vec4(context_v2[at], both ? context_v2[at + 1] : vec2(0.0));
  }
}

/* Starts to read the step whose first key is `key`. */
void load_step(Part part, uint key) {
  [[unroll]] for (uint i = 0; i < LOADS; i++) {
    const uint at = i * THREADS + gl_LocalInvocationID.x;
    if (at < KEYS * PIECES) load_piece(part, key + at / PIECES, at % PIECES, next_k[i], next_v[i]);
  }
}

void store_tile(vec4 pieces[LOADS]) {
  [[unroll]] for (uint i = 0; i < LOADS; i++) {
    const uint at = i * THREADS + gl_LocalInvocationID.x;
    if (at < KEYS * PIECES) tile[at / PIECES * PITCH + at % PIECES] = pieces[i];
  }
}

void store_queries(Part part) {
  const uint first = gl_WorkGroupID.z * QUERIES;
  for (uint at = gl_LocalInvocationID.x; at < QUERIES * PIECES; at += THREADS)
    queries[at / PIECES * PITCH + at % PIECES] = query_piece(first + at / PIECES, at % PIECES);
  for (uint i = gl_LocalInvocationID.x; i < QUERIES; i += THREADS) {
    const uint row = (first + i) / (push.heads / push.kv_heads);
    begins[i] = row >= push.rows ? NEVER : part.own ? 0u : visible[1 + row];
  }
}

/* The smallest and the largest begin of the tile's queries. */
uvec2 begin_range() {
  uvec2 range = uvec2(NEVER, 0u);
  for (uint i = 0; i < QUERIES; i++)
    if (begins[i] != NEVER) range = uvec2(min(range.x, begins[i]), max(range.y, begins[i]));
  return range;
}

float score(vec4 sum) {
  precise const float dot_product = (sum.x + sum.z) + (sum.y + sum.w);
  return dot_product * push.scale;
}

/* Scores of all queries and the tile's keys: two queries and two keys a thread. */
void score_keys() {
  for (uint block = gl_LocalInvocationID.x; block < QUERIES / 2 * HALF_KEYS; block += THREADS) {
    const uint query = block / HALF_KEYS, key = block % HALF_KEYS;
    const uint low = query * PITCH, high = (query + QUERIES / 2) * PITCH;
    const uint left = key * PITCH, right = (key + HALF_KEYS) * PITCH;
    precise vec4 s0 = vec4(0.0), s1 = vec4(0.0), s2 = vec4(0.0), s3 = vec4(0.0);
    for (uint i = 0; i < PIECES; i++) {
      s0 = fma(queries[low + i], tile[left + i], s0);
      s1 = fma(queries[low + i], tile[right + i], s1);
      s2 = fma(queries[high + i], tile[left + i], s2);
      s3 = fma(queries[high + i], tile[right + i], s3);
    }
    scores[query * SCORE_PITCH + key] = vec2(score(s0), score(s1));
    scores[(query + QUERIES / 2) * SCORE_PITCH + key] = vec2(score(s2), score(s3));
  }
}

bool sees(Part part, uint query, uint key) { return key >= begins[query] && key < part.limit; }

/* The larger one; NaN is passed over, and comes back as a weight. */
float larger(float a, float b) { return !is_nan(b) && b > a ? b : a; }

/* The largest score of each query so far; without one that is above minus infinity nothing is subtracted. */
void shift_scores(Part part, uint first) {
  const uint query = gl_LocalInvocationID.x;
  if (query >= QUERIES) return;
  float now = largest;
  for (uint i = 0; i < HALF_KEYS; i++) {
    const vec2 pair = scores[query * SCORE_PITCH + i];
    if (sees(part, query, first + i)) now = larger(now, pair.x);
    if (sees(part, query, first + i + HALF_KEYS)) now = larger(now, pair.y);
  }
  const bool none = floatBitsToUint(now) == LOWEST;
  shifts[query] = none ? 0.0 : now;
  kept[query] = none ? 1.0 : exp_f32(largest - now);
  largest = now;
}

/* Scores become weights, 0 where nothing is seen. */
void weigh_keys(Part part, uint first) {
  for (uint at = gl_LocalInvocationID.x; at < QUERIES * HALF_KEYS; at += THREADS) {
    const uint query = at / HALF_KEYS, key = at % HALF_KEYS;
    vec2 pair = scores[query * SCORE_PITCH + key] - shifts[query];
    pair.x = sees(part, query, first + key) ? exp_f32(pair.x) : 0.0;
    pair.y = sees(part, query, first + key + HALF_KEYS) ? exp_f32(pair.y) : 0.0;
    scores[query * SCORE_PITCH + key] = pair;
  }
}

void sum_weights() {
  const uint query = gl_LocalInvocationID.x;
  if (query >= QUERIES) return;
  precise vec2 sum = vec2(0.0);
  for (uint i = 0; i < HALF_KEYS; i++) sum += scores[query * SCORE_PITCH + i];
  precise const float step = sum.x + sum.y, now = fma(total, kept[query], step);
  total = now;
}

/* `precise`: fused in tiles of every size or in none, so that they agree to the bit. */
vec4 multiply_add(float weight, vec4 value, vec4 sum) {
  precise const vec4 result = fma(vec4(weight), value, sum);
  return result;
}

/* Adds the tile's values, weighted. `all`: every query sees every key, or values that are 0. */
void mix_values(Part part, uint first, bool all) {
  const uint piece = gl_LocalInvocationID.x % PIECES, lane = gl_LocalInvocationID.x / PIECES;
  if (lane >= LANES) return;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++)
    mixed[turn] *= kept[min(turn * LANES + lane, QUERIES - 1)];
  for (uint key = 0; key < HALF_KEYS; key++) {
    const vec4 left = tile[key * PITCH + piece], right = tile[(key + HALF_KEYS) * PITCH + piece];
    [[unroll]] for (uint turn = 0; turn < TURNS; turn++) {
      const uint query = min(turn * LANES + lane, QUERIES - 1);
      const vec2 weights = scores[query * SCORE_PITCH + key];
      if (all || sees(part, query, first + key)) mixed[turn] = multiply_add(weights.x, left, mixed[turn]);
      if (all || sees(part, query, first + key + HALF_KEYS)) mixed[turn] = multiply_add(weights.y, right, mixed[turn]);
    }
  }
}

void write_part() {
  const uint piece = gl_LocalInvocationID.x % PIECES, lane = gl_LocalInvocationID.x / PIECES;
  const uint first = gl_WorkGroupID.z * QUERIES, row = (push.part_first + gl_WorkGroupID.y) * push.rows * push.heads;
  if (gl_LocalInvocationID.x < QUERIES && first + gl_LocalInvocationID.x < queries_in_all())
    sums[row + query_place(first + gl_LocalInvocationID.x)] = vec2(largest, total);
  if (lane >= LANES) return;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++) {
    const uint query = turn * LANES + lane;
    if (query >= QUERIES || first + query >= queries_in_all()) continue;
    const uint at = (row + query_place(first + query)) * (HEAD_DIM / 2) + 2 * piece;
    mixes[at] = mixed[turn].xy;
    if (4 * piece + 2 < HEAD_DIM) mixes[at + 1] = mixed[turn].zw;
  }
}

void main() {
  const Part part = make_part();
  store_queries(part);
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++) mixed[turn] = vec4(0.0);
  barrier();
  const uvec2 range = begin_range();
  uint first = part.first;
  if (range.x > first) first += min(range.x - first, part.limit - first) / KEYS * KEYS; /* steps that no query sees */
  load_step(part, first);
  for (; first < part.limit; first += KEYS) {
    store_tile(next_k);
    barrier();
    score_keys();
    barrier();
    store_tile(next_v);
    shift_scores(part, first);
    barrier();
    load_step(part, first + KEYS);
    weigh_keys(part, first);
    barrier();
    sum_weights();
    mix_values(part, first, first >= range.y);
    barrier();
  }
  write_part();
}
