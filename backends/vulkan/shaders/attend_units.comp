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

// ---- from memory to registers

// The row of a key, or of the part's last, in what is bound.
uint key_row(uint key) {
  return (min(key, part.limit - 1) - (part.own ? 0u : push.row_first)) * push.kv_heads + gl_WorkGroupID.x;
}

// A key whose scores this thread holds in its fragment's column, and one whose values it holds.
uint score_key() { return step_first + this_subgroup() * 8 + g_of(); }

uint value_slice(uint slice) { return this_subgroup() / ROW_GROUPS * KEY_SLICES + slice; }

uint value_key(uint slice, uint i) { return step_first + value_slice(slice) * 16 + i / 2 * 8 + 2 * t_of() + i % 2; }

// The piece of V of this thread; past the last one another.
uint value_piece() { return this_subgroup() % ROW_GROUPS * 8 + g_of(); }

void load_queries() {
  EACH(i, QUERY_TURNS) {
    const uint at = i * THREADS + gl_LocalInvocationIndex, query = min(query_of(at / PIECES), queries_in_all() - 1);
    q[i] = q_rows[query_place(query) * PIECES + at % PIECES];
  }
}

#define LOAD(keys, values)                                                    \
  EACH(s, SLICES) k[s] = keys[key_row(score_key()) * PIECES + 4 * s + t_of()]; \
  EACH(s, KEY_SLICES)                                                         \
    EACH(i, 4) v[s][i] = values[key_row(value_key(s, i)) * PIECES + min(value_piece(), PIECES - 1)];

bool is_seen(uint key) { return key >= least_seen && key < part.limit; }

void load_keys() {
  if (part.own) {
    LOAD(own_k, own_v)
  } else {
    LOAD(context_k, context_v)
  }
  if (step_first >= least_seen && part.limit - step_first >= KEYS) return;
  EACH(s, SLICES)
    if (!is_seen(score_key())) k[s] = vec4(0);
  EACH(s, KEY_SLICES) EACH(i, 4)
    if (!is_seen(value_key(s, i))) v[s][i] = vec4(0);
}

// ---- to f16

// Of neighbouring threads, `count` of them, `step` apart, the largest; bits order as magnitudes do, NaN above all.
uint magnitude_of(vec4 x) {
  const uvec4 bits = floatBitsToUint(x) & ~SIGN_BIT;
  return max(max(bits.x, bits.y), max(bits.z, bits.w));
}

uint largest_of(uint own, uint step, uint count) {
  for (uint lane = step; lane < step * count; lane *= 2)
    own = max(own, floatBitsToUint(from_lane(uintBitsToFloat(own), this_lane() ^ lane)));
  return own;
}

// The exponent of the power of two that makes such a magnitude 2^13 to 2^14.
int exponent_of(uint bits) { return min(126 + MOST_EXPONENT - int(bits >> 23), 126); }

// Numbers of which the largest is such are f16 as they are: what is lost of the small ones is 2^-27 of it in two parts,
// 2^-16 in one. A NaN may be passed over.
float larger_magnitude(float most, vec4 x) {
  const vec4 a = abs(x);
  return max(most, max(max(a.x, a.y), max(a.z, a.w)));
}

bool is_plain(float most) { return most <= 32768.0 && (most >= 1.0 / 512 || most == 0.0); }

// A pair's words, of each part one. Where there are two, the first is rounded to 11 bits before it becomes f16, so that
// what it leaves does not depend on how the device would round.
void split_pair(float a, float b, out uint words[MOST_PARTS]) {
  const vec2 x = vec2(a, b);
  const uvec2 rounded = floatBitsToUint(x) + 0x1000 & 0xffffe000;
  words[0] = pack_pair(PARTS > 1 ? uintBitsToFloat(rounded) : x);
  precise const vec2 left = x - uintBitsToFloat(rounded);
  words[MOST_PARTS - 1] = PARTS > 1 ? pack_pair(left * 2048.0) : words[0];
}

// Dimensions 4 t .. 4 t + 3 of a slice stand in columns 2 t, 2 t + 1, 2 t + 8, 2 t + 9.
void store_queries() {
  float most[QUERY_TURNS];
  bool plain = true;
  EACH(i, QUERY_TURNS) {
    most[i] = larger_magnitude(0.0, q[i]);
    plain = plain && is_plain(most[i]);
  }
  plain = all_agree(plain);
  EACH(i, QUERY_TURNS) {
    const uint at = i * THREADS + gl_LocalInvocationIndex, query = at / PIECES, piece = at % PIECES;
    const uint row = query % 16, lane = row % 8 * 4 + piece % 4, word = row / 8 * 2;
    vec4 scaled = q[i];
    float back = push.scale;
    if (!plain) {
      const int exponent = exponent_of(largest_of(magnitude_of(q[i]), 1, PIECES));
      scaled *= power_of_two(exponent);
      back *= power_of_two(-exponent);
    }
    uint low[MOST_PARTS], high[MOST_PARTS];
    split_pair(scaled.x, scaled.y, low);
    split_pair(scaled.z, scaled.w, high);
    EACH(p, PARTS) {
      const uint to = ((query / 16 * SLICES + piece / 4) * PARTS + p) * LANES + lane;
      q_area[to][word] = low[p];
      q_area[to][word + 1] = high[p];
    }
    if (piece == 0) q_back[query] = back;
  }
}

// ---- products

// Sums of products of parts: of both first ones, and of one of them, which are 2^11 times as large. That of two second
// ones is 2^-24 of the first and less: it is left out.
const uint ORDERS = PARTS, MOST_ORDERS = MOST_PARTS;

// One fragment of columns, of all parts, as words.
struct Column {
  uvec2 part[MOST_PARTS];
};

Column column_of(vec4 x) {
  Column column;
  uint low[MOST_PARTS], high[MOST_PARTS];
  split_pair(x.x, x.y, low);
  split_pair(x.z, x.w, high);
  EACH(p, PARTS) column.part[p] = uvec2(low[p], high[p]);
  return column;
}

Column keys[SLICES], values[KEY_SLICES][DIMS];

// ---- scores

uint tile_query(uint band, uint half_band) { return band * 16 + half_band * 8 + g_of(); }

// K to f16; of keys that do not fit what their scores are multiplied by afterwards, of this thread's in its products.
bool pack_keys(out float back[2]) {
  float most = 0.0;
  EACH(s, SLICES) most = larger_magnitude(most, k[s]);
  const bool plain = all_agree(is_plain(most));
  if (!plain) {
    uint largest_bits = 0;
    EACH(s, SLICES) largest_bits = max(largest_bits, magnitude_of(k[s]));
    const int exponent = exponent_of(largest_of(largest_bits, 1, 4));
    EACH(s, SLICES) k[s] *= power_of_two(exponent);
    const float own = power_of_two(-exponent);
    EACH(c, 2) back[c] = from_lane(own, (2 * t_of() + c) * 4);
  }
  EACH(s, SLICES) keys[s] = column_of(k[s]);
  return plain;
}

// Of this subgroup's keys: [band][2 r + c], of query r and key c.
void multiply_keys(inout float scores[BANDS][4]) {
  Products c[BANDS][MOST_ORDERS];
  EACH(b, BANDS) EACH(o, ORDERS) CLEAR(c[b][o]);
  EACH(s, SLICES) {
    EACH(b, BANDS) EACH(p, PARTS) {
      FragmentA a;
      const uvec4 words = q_area[((b * SLICES + s) * PARTS + p) * LANES + this_lane()];
      SET_A(a, words);
      EACH(r, PARTS - p) {
        FragmentB column;
        const uvec2 column_words = keys[s].part[r];
        SET_B(column, column_words);
        MULTIPLY_ADD(a, column, c[b][p + r]);
      }
    }
    if (PARTS > 1 && s % 2 == 1 || s == SLICES - 1) // 32 columns, or all
      EACH(b, BANDS) {
        EACH(i, 4) scores[b][i] += float(c[b][0][i]);
        CLEAR(c[b][0]);
      }
  }
  if (PARTS > 1)
    EACH(b, BANDS) EACH(i, 4) scores[b][i] = fma(float(c[b][MOST_ORDERS - 1][i]), 1.0 / 2048, scores[b][i]);
}

void score_keys(out float scores[BANDS][4]) {
  float back[2];
  EACH(b, BANDS) EACH(i, 4) scores[b][i] = 0.0;
  const bool plain = pack_keys(back);
  multiply_keys(scores);
  if (!plain)
    EACH(b, BANDS) EACH(i, 4) scores[b][i] *= back[i % 2];
  EACH(b, BANDS) EACH(r, 2) {
    const float factor = q_back[tile_query(b, r)];
    EACH(c, 2) {
      precise const float score = scores[b][2 * r + c] * factor;
      scores[b][2 * r + c] = score;
    }
  }
  if (step_first >= all_see && part.limit - step_first >= KEYS) return;
  EACH(b, BANDS) EACH(r, 2) {
    const uint begin = begins[tile_query(b, r)], first = step_first + this_subgroup() * 8 + 2 * t_of();
    EACH(c, 2)
      if (first + c < begin || first + c >= part.limit) scores[b][2 * r + c] = uintBitsToFloat(LOWEST);
  }
}

// The larger one; NaN is passed over, and comes back as a weight.
float larger(float a, float b) { return !is_nan(b) && b > a ? b : a; }

void put_found(uint query, float value) { found[query * 2 + this_subgroup() / 4][this_subgroup() % 4] = value; }

// The largest score so far of each of this thread's queries: of four threads, then of all subgroups.
void find_largest(float scores[BANDS][4], out float now[BANDS][2]) {
  EACH(b, BANDS) EACH(r, 2) {
    float own = larger(uintBitsToFloat(LOWEST), scores[b][2 * r]);
    own = larger(own, scores[b][2 * r + 1]);
    own = max(own, from_lane(own, this_lane() ^ 1));
    own = max(own, from_lane(own, this_lane() ^ 2));
    if (t_of() == 0) put_found(tile_query(b, r), own);
  }
  barrier();
  EACH(b, BANDS) EACH(r, 2) {
    const vec4 most = max(found[tile_query(b, r) * 2], found[tile_query(b, r) * 2 + 1]);
    now[b][r] = max(largest[b][r], max(max(most.x, most.y), max(most.z, most.w)));
  }
}

// e^x of x at most 0. With one part of f16 the device's own will do, which Vulkan promises to 3 + 2 |x| units of the last
// place: a 20th of f16's step at most where it is not 0.
float weight_of(float x) {
  if (PARTS > 1) return exp_f32(x);
  return x < -100.0 ? 0.0 : exp(x);
}

// Scores become weights; what was summed before is scaled to the new largest score.
void weigh_keys(inout float scores[BANDS][4]) {
  float now[BANDS][2], before[BANDS][2];
  find_largest(scores, now);
  EACH(b, BANDS) EACH(r, 2) {
    // Without a score above minus infinity nothing is subtracted.
    const bool none = floatBitsToUint(now[b][r]) == LOWEST;
    const float shift = none ? 0.0 : now[b][r];
    before[b][r] = none ? 1.0 : weight_of(largest[b][r] - now[b][r]);
    precise float sum = total[b][r] * before[b][r];
    EACH(i, 2) {
      const float weight = weight_of(scores[b][2 * r + i] - shift);
      scores[b][2 * r + i] = weight;
      sum += weight;
    }
    total[b][r] = sum;
    largest[b][r] = now[b][r];
    EACH(d, DIMS) EACH(i, 2) mixed[b][d][2 * r + i] *= before[b][r];
  }
}

// ---- values

// V to f16, as K; a power of two for each of this thread's dimensions, and the factor for the columns of its products.
bool pack_values(out float back[DIMS][2]) {
  bool plain = true;
  EACH(d, DIMS) {
    float most = 0.0;
    EACH(s, KEY_SLICES) most = larger_magnitude(most, vec4(v[s][0][d], v[s][1][d], v[s][2][d], v[s][3][d]));
    plain = plain && is_plain(most);
  }
  plain = all_agree(plain);
  if (!plain)
    EACH(d, DIMS) {
      uint largest_bits = 0;
      EACH(s, KEY_SLICES)
        largest_bits = max(largest_bits, magnitude_of(vec4(v[s][0][d], v[s][1][d], v[s][2][d], v[s][3][d])));
      const int exponent = exponent_of(largest_of(largest_bits, 1, 4));
      EACH(s, KEY_SLICES) EACH(i, 4) v[s][i][d] *= power_of_two(exponent);
      const float own = power_of_two(-exponent);
      EACH(c, 2) back[d][c] = from_lane(own, (2 * t_of() + c) * 4);
    }
  EACH(s, KEY_SLICES) EACH(d, DIMS) values[s][d] = column_of(vec4(v[s][0][d], v[s][1][d], v[s][2][d], v[s][3][d]));
  return plain;
}

// Weights of the bands of a turn, for all subgroups.
void store_weights(uint turn, float weights[BANDS][4]) {
  EACH(i, WEIGHT_BANDS) EACH(r, 2) {
    const uint b = turn * WEIGHT_BANDS + i;
    uint words[MOST_PARTS];
    split_pair(weights[b][2 * r] * WEIGHT_SCALE, weights[b][2 * r + 1] * WEIGHT_SCALE, words);
    EACH(p, PARTS) {
      const uint at = ((this_subgroup() / 2 * WEIGHT_BANDS + i) * PARTS + p) * LANES + this_lane();
      weight_area[at][2 * r + this_subgroup() % 2] = words[p];
    }
  }
}

// Of one band: the i-th of a turn.
void multiply_values(uint i, inout float found_values[DIMS][4]) {
  Products c[DIMS][MOST_ORDERS];
  EACH(d, DIMS) EACH(o, ORDERS) CLEAR(c[d][o]);
  EACH(s, KEY_SLICES) EACH(p, PARTS) { // 32 keys in all
    FragmentA weights;
    const uvec4 words = weight_area[((value_slice(s) * WEIGHT_BANDS + i) * PARTS + p) * LANES + this_lane()];
    SET_A(weights, words);
    EACH(d, DIMS) EACH(r, PARTS - p) {
      FragmentB column;
      const uvec2 column_words = values[s][d].part[r];
      SET_B(column, column_words);
      MULTIPLY_ADD(weights, column, c[d][p + r]);
    }
  }
  EACH(d, DIMS) EACH(n, 4) {
    found_values[d][n] = float(c[d][0][n]);
    if (PARTS > 1) found_values[d][n] = fma(float(c[d][MOST_ORDERS - 1][n]), 1.0 / 2048, found_values[d][n]);
  }
}

void mix_values(float weights[BANDS][4]) {
  float back[DIMS][2];
  const bool plain = pack_values(back);
  EACH(turn, WEIGHT_TURNS) {
    if (turn > 0) barrier();
    store_weights(turn, weights);
    barrier();
    EACH(i, WEIGHT_BANDS) {
      const uint b = turn * WEIGHT_BANDS + i;
      float found_values[DIMS][4];
      multiply_values(i, found_values);
      if (!plain)
        EACH(d, DIMS) EACH(n, 4) found_values[d][n] *= back[d][n % 2];
      EACH(d, DIMS) EACH(n, 4) mixed[b][d][n] = fma(found_values[d][n], 1.0 / WEIGHT_SCALE, mixed[b][d][n]);
    }
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
