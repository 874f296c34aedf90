// Attention on matrix units: what attend.comp does, with the same bindings, parts and steps, for heads of 32, 64 or 128
// numbers. q, K, V and the weights of keys become PARTS parts of f16, each row or column of a fragment with a power of two
// of its own; softmax and the sums over 32 products and more are f32. A workgroup is four subgroups. Of a step's 64 keys a
// subgroup scores 16, and adds 32 dimensions of the values of all. All loads of a step are issued before any of them is
// waited for, in the order in which the units want them: pairs of dimensions, or of keys, may stand in any columns that
// both factors agree on, so a thread loads 16 bytes at a time. Rows of keys that no query of the tile sees become 0: they
// may be NaN.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef EMULATED
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
#endif
#define PUSH_ATTEND
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint HEAD_DIM = 128; // 32, 64 or 128
layout(constant_id = 1) const uint PARTS = 2;      // of a number x 2^k, at most 2^14: p0 + p1 2^-11; 1: p0 alone
const uint MOST_PARTS = 2;
const uint THREADS = 128, SUBGROUPS = THREADS / 32;
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
const uint KEYS = 64;           // of a step
const uint COLUMNS = 2;         // of 8 keys, that a subgroup scores
const uint SLICES = HEAD_DIM / 16;
const uint KEY_SLICES = KEYS / 16;
const uint DIMS = 4; // of 8 dimensions, of which a subgroup adds values
const uint QUERY_TURNS = QUERIES * PIECES / THREADS;
const uint LOWEST = 0xff800000u; // bits of minus infinity
const uint NEVER = 0xffffffffu;
const int MOST_EXPONENT = 14;
const float WEIGHT_SCALE = 16384.0; // a weight is at most 1

shared uvec4 q_area[PARTS * BANDS * SLICES * LANES];          // fragments of queries
shared uvec4 weight_area[PARTS * KEY_SLICES * BANDS * LANES]; // of their keys' weights
shared float found[SUBGROUPS * QUERIES];                      // by a subgroup, for a query
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
uint rep;        // heads of a kv head

vec4 q[QUERY_TURNS], k[COLUMNS][SLICES], v[KEY_SLICES][4];
// Of this thread's queries, two of each band: largest score so far, this thread's share of the sum of exp, and values.
float largest[BANDS][2], total[BANDS][2], mixed[BANDS][DIMS][4];

// This thread in a fragment: lane 4 g + t.
uint g_of() { return this_lane() / 4; }

uint t_of() { return this_lane() % 4; }

uint queries_in_all() { return push.rows * rep; }

// The query of the whole block that is the tile's i-th.
uint query_of(uint i) { return gl_WorkGroupID.z * QUERIES + i; }

// The row and head of a query, as rows * heads count them.
uint query_place(uint query) { return query / rep * push.heads + gl_WorkGroupID.x * rep + query % rep; }

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
  const uint low = query_of(0) / rep, high = min(query_of(QUERIES - 1), queries_in_all() - 1) / rep;
  least_seen = part.own ? 0u : visible[1 + low];
  all_see = part.own ? 0u : visible[1 + high];
  step_first = part.first;
  if (least_seen > step_first) step_first += min(least_seen - step_first, part.limit - step_first) / KEYS * KEYS;
  const uint i = gl_LocalInvocationIndex, query = query_of(i), row = query / rep;
  if (i >= QUERIES) return;
  begins[i] = row >= push.rows ? NEVER : part.own ? 0u : visible[1 + row];
  places[i] = row >= push.rows ? NEVER : part_index() * push.rows * push.heads + query_place(query);
}

// ---- from memory to registers

// The row of a key, or of the part's last, in what is bound.
uint key_row(uint key) {
  return (min(key, part.limit - 1) - (part.own ? 0u : push.row_first)) * push.kv_heads + gl_WorkGroupID.x;
}

// A key whose scores this thread holds in a column of its fragments, and one whose values it holds.
uint score_key(uint column) { return step_first + this_subgroup() * 16 + column * 8 + g_of(); }

uint value_key(uint slice, uint i) { return step_first + slice * 16 + i / 2 * 8 + 2 * t_of() + i % 2; }

// The piece of V of this thread; past the last one another.
uint value_piece() { return this_subgroup() * 8 + g_of(); }

void load_queries() {
  EACH(i, QUERY_TURNS) {
    const uint at = i * THREADS + gl_LocalInvocationIndex, query = min(query_of(at / PIECES), queries_in_all() - 1);
    q[i] = q_rows[query_place(query) * PIECES + at % PIECES];
  }
}

#define LOAD(keys, values)                                                                                     \
  EACH(c, COLUMNS) EACH(s, SLICES) k[c][s] = keys[key_row(score_key(c)) * PIECES + 4 * s + t_of()];            \
  EACH(s, KEY_SLICES)                                                                                          \
    EACH(i, 4) v[s][i] = values[key_row(value_key(s, i)) * PIECES + min(value_piece(), PIECES - 1)];

bool is_seen(uint key) { return key >= least_seen && key < part.limit; }

void load_keys() {
  if (part.own) {
    LOAD(own_k, own_v)
  } else {
    LOAD(context_k, context_v)
  }
  if (step_first >= least_seen && part.limit - step_first >= KEYS) return;
  EACH(c, COLUMNS) EACH(s, SLICES)
    if (!is_seen(score_key(c))) k[c][s] = vec4(0);
  EACH(s, KEY_SLICES) EACH(i, 4)
    if (!is_seen(value_key(s, i))) v[s][i] = vec4(0);
}

// ---- to f16

// Bits order as magnitudes do, NaN above all.
uint magnitude_of(vec4 x) {
  const uvec4 bits = floatBitsToUint(x) & ~SIGN_BIT;
  return max(max(bits.x, bits.y), max(bits.z, bits.w));
}

// The largest of neighbouring threads, `count` of them, `step` apart.
uint largest_of(uint own, uint step, uint count) {
  for (uint lane = step; lane < step * count; lane *= 2)
    own = max(own, floatBitsToUint(from_lane(uintBitsToFloat(own), this_lane() ^ lane)));
  return own;
}

// The exponent of the power of two that makes such a magnitude 2^13 to 2^14.
int exponent_of(uint bits) { return min(126 + MOST_EXPONENT - int(bits >> 23), 126); }

// To 11 bits, rounded to nearest, so that it does not matter how the device makes f16 of them.
vec2 round_pair(vec2 x) {
  precise const vec2 wide = x * 8193.0;
  precise const vec2 rest = wide - x;
  precise const vec2 rounded = wide - rest;
  return rounded;
}

// A pair's words, of each part one.
void split_pair(float a, float b, out uint words[MOST_PARTS]) {
  vec2 x = vec2(a, b);
  EACH(p, PARTS) {
    const vec2 part = round_pair(x);
    words[p] = packHalf2x16(part);
    precise const vec2 left = x - part;
    x = left * 2048.0;
  }
}

// Dimensions 4 t .. 4 t + 3 of a slice stand in columns 2 t, 2 t + 1, 2 t + 8, 2 t + 9.
void store_queries() {
  EACH(i, QUERY_TURNS) {
    const uint at = i * THREADS + gl_LocalInvocationIndex, query = at / PIECES, piece = at % PIECES;
    const uint row = query % 16, lane = row % 8 * 4 + piece % 4, word = row / 8 * 2;
    const int exponent = exponent_of(largest_of(magnitude_of(q[i]), 1, PIECES));
    const vec4 scaled = q[i] * power_of_two(exponent);
    uint low[MOST_PARTS], high[MOST_PARTS];
    split_pair(scaled.x, scaled.y, low);
    split_pair(scaled.z, scaled.w, high);
    EACH(p, PARTS) {
      const uint to = ((query / 16 * SLICES + piece / 4) * PARTS + p) * LANES + lane;
      q_area[to][word] = low[p];
      q_area[to][word + 1] = high[p];
    }
    if (piece == 0) q_back[query] = power_of_two(-exponent);
  }
}

// ---- products

// Sums of products of parts: of both first ones, of one of them, of none; the latter are 2^11 and 2^22 times as large.
const uint ORDERS = 2 * PARTS - 1, MOST_ORDERS = 2 * MOST_PARTS - 1;

// One fragment of columns, of all parts.
struct Column {
  FragmentB part[MOST_PARTS];
};

Column column_of(float a, float b, float c, float d) {
  Column column;
  uint low[MOST_PARTS], high[MOST_PARTS];
  split_pair(a, b, low);
  split_pair(c, d, high);
  EACH(p, PARTS) {
    const uvec2 words = uvec2(low[p], high[p]);
    SET_B(column.part[p], words);
  }
  return column;
}

// ---- scores

uint tile_query(uint band, uint half_band) { return band * 16 + half_band * 8 + g_of(); }

// The power of two of this thread's key in a column, as its exponent.
int key_exponent(uint column) {
  uint largest_bits = 0;
  EACH(s, SLICES) largest_bits = max(largest_bits, magnitude_of(k[column][s]));
  return exponent_of(largest_of(largest_bits, 1, 4));
}

// Of this subgroup's keys: [band][column][2 r + c], of query r and key c.
void multiply_keys(int exponents[COLUMNS], inout float scores[BANDS][COLUMNS][4]) {
  Products c[BANDS][COLUMNS][MOST_ORDERS];
  EACH(b, BANDS) EACH(n, COLUMNS) EACH(o, ORDERS) CLEAR(c[b][n][o]);
  EACH(s, SLICES) {
    Column keys[COLUMNS];
    EACH(n, COLUMNS) {
      const vec4 key = k[n][s] * power_of_two(exponents[n]);
      keys[n] = column_of(key.x, key.y, key.z, key.w);
    }
    EACH(b, BANDS) EACH(p, PARTS) {
      FragmentA a;
      const uvec4 words = q_area[((b * SLICES + s) * PARTS + p) * LANES + this_lane()];
      SET_A(a, words);
      EACH(n, COLUMNS) EACH(r, PARTS) MULTIPLY_ADD(a, keys[n].part[r], c[b][n][p + r]);
    }
    if (s % 2 == 1) // 32 columns
      EACH(b, BANDS) EACH(n, COLUMNS) {
        EACH(i, 4) scores[b][n][i] += float(c[b][n][0][i]);
        CLEAR(c[b][n][0]);
      }
  }
  if (PARTS > 1)
    EACH(b, BANDS) EACH(n, COLUMNS) EACH(i, 4) {
      const float more = fma(float(c[b][n][MOST_ORDERS - 1][i]), 1.0 / 2048, float(c[b][n][1][i]));
      scores[b][n][i] = fma(more, 1.0 / 2048, scores[b][n][i]);
    }
}

void score_keys(out float scores[BANDS][COLUMNS][4]) {
  int exponents[COLUMNS];
  EACH(b, BANDS) EACH(n, COLUMNS) EACH(i, 4) scores[b][n][i] = 0.0;
  EACH(n, COLUMNS) exponents[n] = key_exponent(n);
  multiply_keys(exponents, scores);
  EACH(n, COLUMNS) EACH(c, 2) {
    const float own = power_of_two(-exponents[n]), back = from_lane(own, (2 * t_of() + c) * 4);
    const uint key = step_first + this_subgroup() * 16 + n * 8 + 2 * t_of() + c;
    EACH(b, BANDS) EACH(r, 2) {
      const uint query = tile_query(b, r);
      precise const float score = scores[b][n][2 * r + c] * back * q_back[query] * push.scale;
      const bool sees = key >= begins[query] && key < part.limit;
      scores[b][n][2 * r + c] = sees ? score : uintBitsToFloat(LOWEST);
    }
  }
}

// The larger one; NaN is passed over, and comes back as a weight.
float larger(float a, float b) { return !is_nan(b) && b > a ? b : a; }

// The largest score so far of each of this thread's queries: of four threads, then of all subgroups.
void find_largest(float scores[BANDS][COLUMNS][4], out float now[BANDS][2]) {
  EACH(b, BANDS) EACH(r, 2) {
    float own = uintBitsToFloat(LOWEST);
    EACH(n, COLUMNS) EACH(i, 2) own = larger(own, scores[b][n][2 * r + i]);
    own = max(own, from_lane(own, this_lane() ^ 1));
    own = max(own, from_lane(own, this_lane() ^ 2));
    if (t_of() == 0) found[this_subgroup() * QUERIES + tile_query(b, r)] = own;
  }
  barrier();
  EACH(b, BANDS) EACH(r, 2) {
    now[b][r] = largest[b][r];
    EACH(s, SUBGROUPS) now[b][r] = max(now[b][r], found[s * QUERIES + tile_query(b, r)]);
  }
}

// e^x of x at most 0. With one part of f16 the device's own will do, which Vulkan promises to 3 + 2 |x| units of the last
// place: a 20th of f16's step at most where it is not 0.
float weight_of(float x) {
  if (PARTS > 1) return exp_f32(x);
  return x < -100.0 ? 0.0 : exp(x);
}

// Scores become weights, in fragments; what was summed before is scaled to the new largest score.
void weigh_keys(float scores[BANDS][COLUMNS][4]) {
  float now[BANDS][2], before[BANDS][2];
  find_largest(scores, now);
  EACH(b, BANDS) EACH(r, 2) {
    // Without a score above minus infinity nothing is subtracted.
    const bool none = floatBitsToUint(now[b][r]) == LOWEST;
    const float shift = none ? 0.0 : now[b][r];
    before[b][r] = none ? 1.0 : weight_of(largest[b][r] - now[b][r]);
    precise float sum = total[b][r] * before[b][r];
    EACH(n, COLUMNS) EACH(i, 2) {
      const float weight = weight_of(scores[b][n][2 * r + i] - shift);
      scores[b][n][2 * r + i] = weight;
      sum += weight;
    }
    total[b][r] = sum;
    largest[b][r] = now[b][r];
    EACH(d, DIMS) EACH(i, 2) mixed[b][d][2 * r + i] *= before[b][r];
  }
  EACH(b, BANDS) {
    uint words[4][MOST_PARTS];
    EACH(n, COLUMNS) EACH(r, 2)
      split_pair(scores[b][n][2 * r] * WEIGHT_SCALE, scores[b][n][2 * r + 1] * WEIGHT_SCALE, words[2 * r + n]);
    EACH(p, PARTS)
      weight_area[((this_subgroup() * BANDS + b) * PARTS + p) * LANES + this_lane()] =
          uvec4(words[0][p], words[1][p], words[2][p], words[3][p]);
  }
  barrier();
}

// ---- values

// The power of two of one of this thread's four dimensions, as its exponent.
int value_exponent(uint dim) {
  uint largest_bits = 0;
  EACH(s, KEY_SLICES) {
    const vec4 column = vec4(v[s][0][dim], v[s][1][dim], v[s][2][dim], v[s][3][dim]);
    largest_bits = max(largest_bits, magnitude_of(column));
  }
  return exponent_of(largest_of(largest_bits, 1, 4));
}

void multiply_values(int exponents[DIMS], inout float found_values[BANDS][DIMS][4]) {
  Products c[BANDS][DIMS][MOST_ORDERS];
  EACH(b, BANDS) EACH(d, DIMS) EACH(o, ORDERS) CLEAR(c[b][d][o]);
  EACH(s, KEY_SLICES) {
    Column values[DIMS];
    EACH(d, DIMS) {
      const vec4 value = vec4(v[s][0][d], v[s][1][d], v[s][2][d], v[s][3][d]) * power_of_two(exponents[d]);
      values[d] = column_of(value.x, value.y, value.z, value.w);
    }
    EACH(b, BANDS) EACH(p, PARTS) {
      FragmentA weights;
      const uvec4 words = weight_area[((s * BANDS + b) * PARTS + p) * LANES + this_lane()];
      SET_A(weights, words);
      EACH(d, DIMS) EACH(r, PARTS) MULTIPLY_ADD(weights, values[d].part[r], c[b][d][p + r]);
    }
    if (s % 2 == 1)
      EACH(b, BANDS) EACH(d, DIMS) {
        EACH(i, 4) found_values[b][d][i] += float(c[b][d][0][i]);
        CLEAR(c[b][d][0]);
      }
  }
  if (PARTS > 1)
    EACH(b, BANDS) EACH(d, DIMS) EACH(i, 4) {
      const float more = fma(float(c[b][d][MOST_ORDERS - 1][i]), 1.0 / 2048, float(c[b][d][1][i]));
      found_values[b][d][i] = fma(more, 1.0 / 2048, found_values[b][d][i]);
    }
}

void mix_values() {
  int exponents[DIMS];
  float values[BANDS][DIMS][4];
  EACH(b, BANDS) EACH(d, DIMS) EACH(i, 4) values[b][d][i] = 0.0;
  EACH(d, DIMS) exponents[d] = value_exponent(d);
  multiply_values(exponents, values);
  EACH(d, DIMS) EACH(c, 2) {
    const float own = power_of_two(-exponents[d]), back = from_lane(own, (2 * t_of() + c) * 4) / WEIGHT_SCALE;
    EACH(b, BANDS) EACH(r, 2) mixed[b][d][2 * r + c] = fma(values[b][d][2 * r + c], back, mixed[b][d][2 * r + c]);
  }
}

// ---- a part

// A part of which nothing is seen.
void write_empty() {
  const uint thread = gl_LocalInvocationIndex;
  barrier();
  for (uint at = thread; at < QUERIES * PIECES; at += THREADS)
    if (places[at / PIECES] != NEVER) mixes[places[at / PIECES] * PIECES + at % PIECES] = vec4(0.0);
  if (thread < QUERIES && places[thread] != NEVER) sums[places[thread]] = vec2(uintBitsToFloat(LOWEST), 0.0);
}

// Column j of the d-th fragment of values is dimension 4 j + d of the subgroup's 32.
void write_values() {
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
    if (t_of() == 0) found[this_subgroup() * QUERIES + tile_query(b, r)] = sum;
  }
  barrier();
  EACH(b, BANDS) EACH(r, 2) {
    const uint query = tile_query(b, r), place = places[query];
    precise float sum = 0.0;
    EACH(s, SUBGROUPS) sum += found[s * QUERIES + query];
    if (this_subgroup() == 0 && t_of() == 0 && place != NEVER) sums[place] = vec2(largest[b][r], sum);
  }
}

void take_step(bool first) {
  float scores[BANDS][COLUMNS][4];
  load_keys();
  if (first) {
    store_queries();
    barrier();
  }
  score_keys(scores);
  weigh_keys(scores);
  mix_values();
}

void main() {
  rep = push.heads / push.kv_heads;
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
  write_values();
  write_sums();
}
