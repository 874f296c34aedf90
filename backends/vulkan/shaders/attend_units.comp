// Attention on matrix units: what attend.comp does, with the same bindings, parts and steps, for heads of 32, 64 or 128
// numbers. q, K, V and the weights of keys become PARTS parts of f16; softmax and the sums over 32 products and more are
// f32. A workgroup is eight subgroups. Of a step's 64 keys a subgroup scores 8, and adds 32 dimensions of the values of 32:
// each of many threads has little code to run, which is read anew from far away whenever a layer comes to it. All loads of
// a step are issued before any of them is waited for, in the order in which the units want them: pairs of dimensions, or
// of keys, may stand in any columns that both factors agree on, so a thread loads 16 bytes at a time. Rows of keys that no
// query of the tile sees become 0: they may be NaN.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef EMULATED
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
#endif
#define PUSH_ATTEND
#define VOTES
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint HEAD_DIM = 128; // 32, 64 or 128
layout(constant_id = 1) const uint PARTS = 2;      // of a number: p0 + p1 2^-11; 1: p0 alone
layout(constant_id = 2) const uint REP = 4;        // heads of a kv head
const uint MOST_PARTS = 2;
const uint THREADS = 256, SUBGROUPS = THREADS / 32;
#include "units.glsl"

layout(set = 0, binding = 0, std430) readonly buffer Query { vec4 q_rows[]; };
layout(set = 0, binding = 1, std430) readonly buffer ContextKeys { vec4 context_k[]; };
layout(set = 0, binding = 2, std430) readonly buffer ContextValues { vec4 context_v[]; };
layout(set = 0, binding = 3, std430) readonly buffer OwnKeys { vec4 own_k[]; };
layout(set = 0, binding = 4, std430) readonly buffer OwnValues { vec4 own_v[]; };
layout(set = 0, binding = 5, std430) readonly buffer Visible { uint visible[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Sums { vec2 sums[]; };
layout(set = 0, binding = 7, std430) writeonly buffer Mixes { vec4 mixes[]; };

const uint PIECES = HEAD_DIM / 4; // of four numbers, in a head
const uint QUERIES = 32;          // of a tile
const uint BANDS = QUERIES / 16;
const uint KEYS = 64;           // of a step, 8 a subgroup
const uint SLICES = HEAD_DIM / 16;
const uint ROW_GROUPS = 4;               // subgroups that share the dimensions of the values of some keys
const uint KEY_SLICES = KEYS / 16 / 2;   // of 16 keys, of which a subgroup adds values
const uint DIMS = 4;                     // of 8 dimensions
const uint QUERY_TURNS = QUERIES * PIECES / THREADS;
const uint LOWEST = 0xff800000u; // bits of minus infinity
const uint NEVER = 0xffffffffu;
const int MOST_EXPONENT = 14;
const float WEIGHT_SCALE = 16384.0; // a weight is at most 1

const uint Q_UNITS = PARTS * BANDS * SLICES * LANES, HALF_UNITS = ROW_GROUPS * DIMS * LANES;
shared uvec4 q_area[Q_UNITS > HALF_UNITS ? Q_UNITS : HALF_UNITS]; // fragments of queries; values of half the keys
// Of their keys' weights: of both bands, or in two parts of one band after the other, so that two workgroups find room.
const uint WEIGHT_TURNS = PARTS > 1 ? BANDS : 1, WEIGHT_BANDS = BANDS / WEIGHT_TURNS;
shared uvec4 weight_area[PARTS * KEYS / 16 * WEIGHT_BANDS * LANES];
shared vec4 found[QUERIES * SUBGROUPS / 4];                   // for a query, by a subgroup
shared float q_back[QUERIES];                                 // what undoes a query's power of two
shared uint begins[QUERIES];                                  // the first key that a query sees
shared uint places[QUERIES];                                  // of its sums in this part; NEVER: there is none

// Keys first .. limit of the context, counted from its first row, or of the block itself.
struct Part {
  bool own;
  uint first, limit;
};
Part part;
uint step_first; // the step's first key
uint least_seen; // by any query of the tile
uint all_see;    // from this key on, every query of the tile sees every key

vec4 q[QUERY_TURNS], k[SLICES], v[KEY_SLICES][4];
// Of this thread's queries, two of each band: largest score so far, this thread's share of the sum of exp, and values.
float largest[BANDS][2], total[BANDS][2], mixed[BANDS][DIMS][4];

// This thread in a fragment: lane 4 g + t.
uint g_of() { return this_lane() / 4; }

uint t_of() { return this_lane() % 4; }

uint queries_in_all() { return push.rows * REP; }

// The query of the whole block that is the tile's i-th.
uint query_of(uint i) { return gl_WorkGroupID.z * QUERIES + i; }

// The row and head of a query, as rows * heads count them.
uint query_place(uint query) { return query / REP * push.heads + gl_WorkGroupID.x * REP + query % REP; }

uint part_index() { return push.part_first + gl_WorkGroupID.y; }

void find_part() {
  const uint last = push.row_first + push.row_count;
  const uint begin = clamp(visible[1], push.row_first, last), end = clamp(visible[0], begin, last);
  const uint share = (end - begin + push.splits - 1) / push.splits;
  const uint keys = max((share + KEYS - 1) / KEYS, 1u) * KEYS;
  const uint first = min(begin + gl_WorkGroupID.y * keys, end);
  part = Part(false, first, min(first + keys, end));
  if (part_index() + 1 == push.parts) part = Part(true, 0u, push.rows);
}

// What the tile's queries see; steps that none of them sees are left out.
void find_steps() {
  const uint low = query_of(0) / REP, high = min(query_of(QUERIES - 1), queries_in_all() - 1) / REP;
  least_seen = part.own ? 0u : visible[1 + low];
  all_see = part.own ? 0u : visible[1 + high];
  step_first = part.first;
  if (least_seen > step_first) step_first += min(least_seen - step_first, part.limit - step_first) / KEYS * KEYS;
  const uint i = gl_LocalInvocationIndex, query = query_of(i), row = query / REP;
  if (i >= QUERIES) return;
  begins[i] = row >= push.rows ? NEVER : part.own ? 0u : visible[1 + row];
  places[i] = row >= push.rows ? NEVER : part_index() * push.rows * push.heads + query_place(query);
}

#include "attend_units_load.glsl"
#include "attend_units_scores.glsl"
#include "attend_units_values.glsl"

// ---- a part

// A part of which nothing is seen.
void write_empty() {
  const uint thread = gl_LocalInvocationIndex;
  barrier();
  for (uint at = thread; at < QUERIES * PIECES; at += THREADS)
    if (places[at / PIECES] != NEVER) mixes[places[at / PIECES] * PIECES + at % PIECES] = vec4(0.0);
  if (thread < QUERIES && places[thread] != NEVER) sums[places[thread]] = vec2(uintBitsToFloat(LOWEST), 0.0);
}

// What the second half of the keys gives goes to the subgroups of the first one, a band at a time, where the queries were.
void add_halves() {
  const uint at = (this_subgroup() % ROW_GROUPS * DIMS) * LANES + this_lane();
  EACH(b, BANDS) {
    barrier();
    if (this_subgroup() >= ROW_GROUPS)
      EACH(d, DIMS)
        q_area[at + d * LANES] = floatBitsToUint(vec4(mixed[b][d][0], mixed[b][d][1], mixed[b][d][2], mixed[b][d][3]));
    barrier();
    if (this_subgroup() < ROW_GROUPS)
      EACH(d, DIMS) {
        const vec4 more = uintBitsToFloat(q_area[at + d * LANES]);
        EACH(i, 4) mixed[b][d][i] += more[i];
      }
  }
}

// Column j of the d-th fragment of values is dimension 4 j + d of the subgroup's 32.
void write_values() {
  add_halves();
  if (this_subgroup() >= ROW_GROUPS) return;
  EACH(b, BANDS) EACH(r, 2) {
    const uint place = places[tile_query(b, r)];
    EACH(i, 2) {
      const uint piece = this_subgroup() * 8 + 2 * t_of() + i;
      const vec4 value = vec4(mixed[b][0][2 * r + i], mixed[b][1][2 * r + i], mixed[b][2][2 * r + i],
                              mixed[b][3][2 * r + i]);
      if (place != NEVER && piece < PIECES) mixes[place * PIECES + piece] = value;
    }
  }
}

void write_sums() {
  EACH(b, BANDS) EACH(r, 2) {
    precise float sum = total[b][r];
    sum += from_lane(sum, this_lane() ^ 1);
    sum += from_lane(sum, this_lane() ^ 2);
    if (t_of() == 0) put_found(tile_query(b, r), sum);
  }
  barrier();
  if (this_subgroup() > 0 || t_of() > 0) return;
  EACH(b, BANDS) EACH(r, 2) {
    const uint query = tile_query(b, r), place = places[query];
    precise const vec4 all = found[query * 2] + found[query * 2 + 1];
    precise const float sum = (all.x + all.y) + (all.z + all.w);
    if (place != NEVER) sums[place] = vec2(largest[b][r], sum);
  }
}

void take_step(bool first) {
  float scores[BANDS][4];
  load_keys();
  if (first) {
    store_queries();
    barrier();
  }
  score_keys(scores);
  weigh_keys(scores);
  mix_values(scores);
}

void main() {
  find_part();
  find_steps();
  if (step_first >= part.limit) {
    write_empty();
    return;
  }
  EACH(b, BANDS) EACH(r, 2) {
    largest[b][r] = uintBitsToFloat(LOWEST);
    total[b][r] = 0.0;
    EACH(d, DIMS) EACH(i, 2) mixed[b][d][2 * r + i] = 0.0;
  }
  load_queries();
  bool first = true;
  [[dont_unroll]] for (; step_first < part.limit; step_first += KEYS) {
    take_step(first);
    first = false;
  }
  write_sums();
  write_values();
}
