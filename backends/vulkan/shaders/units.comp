// y = w x on matrix units. A workgroup takes a band of rows of w, TILES tiles of 16 for each subgroup, and a run of the
// columns, two steps of them a round. w is read once, in the order of the unit's fragments, a step ahead, and decoded in
// registers; x, in PARTS parts of f16 and a factor for 32 columns (prepare.comp), comes from the cache, when it is used or a
// step ahead, or through shared memory. WEIGHTS_* says how w is stored. The unit's sums, which may be truncated,
// hold 32 columns, and are moved to f32 sums rounded to nearest. Where several workgroups share the columns of a row,
// their sums are left apart for the kernel that reads y, or the one that comes last adds them, in one order; the sums of
// SHARES subgroups of a workgroup meet in shared memory. ADDRESSES: w and x are read by their addresses, which no size is
// compared with; a load is one instruction then, with a constant offset from an address that moves on once a round.
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
#ifdef ADDRESSES
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#define PUSH_UNITS
#include "push.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint XTILES = 1; // of 8 rows of x
layout(constant_id = 2) const uint TILES = 2;  // of 16 rows of w, a subgroup: 1, 2 or 4
// x: 0: from the cache when it is used, 1: through shared memory, 2: from the cache a step ahead
layout(constant_id = 3) const uint X_WAY = 1;
layout(constant_id = 4) const uint PARTS = 3;
// Of a tile, 16 bytes a thread, in a step: 1, 2 or 4; q4tp: 1 or 2; f16: 2. Columns are whole rounds of any of them.
layout(constant_id = 5) const uint PIECES = 2;
// q4tp, PARTS 1: nibbles are multiplied as they are: as bits of f16 they are nibble * 2^-24, or 16 times that, and of the
// products 8 times x is taken away by the matrix unit, too. In more parts that is not exact: their sums have no bit to
// spare.
layout(constant_id = 6) const uint PLAIN = 0;
layout(constant_id = 7) const uint RUNG_STEP = 2; // q4tp: 1, 2 or 4
// Subgroups that take the same rows of w and divide the columns of the workgroup among them, in equal runs of rounds; not
// where x comes through shared memory.
layout(constant_id = 8) const uint SHARES = 1;
const uint SHARED = 1, AHEAD = 2;
const uint SUBGROUPS = THREADS / 32, BANDS = SUBGROUPS / SHARES;

#include "units.glsl"

#ifdef WEIGHTS_Q4
layout(set = 0, binding = 1) readonly buffer Scales { vec2 scales[]; }; // [rows]: a ladder's first rung, its step
#else
layout(set = 0, binding = 1) readonly buffer Scales { float scales[]; }; // [rows], of q8_2f
#endif
// A place in w [tiles][pieces][32], codes [tiles][pieces / 4][32], x [tiles of x][groups][PARTS][32] or factors [tiles of
// x][groups][4], from which elements are counted: an index, or an address.
#ifndef ADDRESSES
layout(set = 0, binding = 0) readonly buffer Weights { uvec4 weights[]; };
layout(set = 0, binding = 2) readonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 3) readonly buffer X { uvec4 x_words[]; };
layout(set = 0, binding = 4) readonly buffer Factors { vec2 factors[]; };
#define QuadPlace uint
#define WordPlace uint
#define PairPlace uint
#define WEIGHTS_AT(index) (index)
#define CODES_AT(index) (index)
#define X_AT(index) (index)
#define FACTORS_AT(index) (index)
#define WEIGHT(place, n) weights[(place) + (n)]
#define CODE(place, n) codes[(place) + (n)]
#define X_WORDS(place, n) x_words[(place) + (n)]
#define FACTOR(place, n) factors[(place) + (n)]
#define MOVE(Place, place, count, bytes) place += count
#else
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer QuadPlace { uvec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer WordPlace { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer PairPlace { vec2 at[]; };
#define ADDRESS(Place, name, index, bytes) \
  Place(packUint2x32(uvec2(push.name##_low, push.name##_high)) + uint64_t(index) * bytes)
#define WEIGHTS_AT(index) ADDRESS(QuadPlace, weights, index, 16)
#define CODES_AT(index) ADDRESS(WordPlace, codes, index, 4)
#define X_AT(index) ADDRESS(QuadPlace, x, index, 16)
#define FACTORS_AT(index) ADDRESS(PairPlace, factors, index, 8)
#define WEIGHT(place, n) (place).at[n]
#define CODE(place, n) (place).at[n]
#define X_WORDS(place, n) (place).at[n]
#define FACTOR(place, n) (place).at[n]
#define MOVE(Place, place, count, bytes) place = Place(uint64_t(place) + uint64_t((count) * (bytes)))
#endif
layout(set = 0, binding = 5) writeonly buffer Y { float y[]; };
// [tiles][splits][tiles of x][32]; of all workgroups
layout(set = 0, binding = 6) coherent buffer Found { vec4 found[]; };
layout(set = 0, binding = 7) coherent buffer Arrivals { uint arrivals[]; }; // 0, before and after
layout(set = 0, binding = 8) readonly buffer Masks { uint masks[3]; }; // of nibbles, of bytes; -8 * 2^-24 twice

#if defined(WEIGHTS_Q4)
const uint GROUPS = 2 * PIECES; // of 32 columns, in a step
#elif defined(WEIGHTS_Q8)
const uint GROUPS = PIECES;
#else
const uint GROUPS = PIECES / 2;
#endif
const uint ROWS = 16 * TILES; // of w, a subgroup

const uint X_QUADS = GROUPS * PARTS * LANES, X_FACTORS = GROUPS * 4; // of a step, of a tile of x

// x of a step, of all its tiles, and of the next one.
const uint X_UNITS = XTILES * X_QUADS, X_LOADS = (X_UNITS + THREADS - 1) / THREADS;
const uint FACTORS = XTILES * X_FACTORS, FACTOR_LOADS = (FACTORS + THREADS - 1) / THREADS;
shared uvec4 x_area[X_WAY == SHARED ? 2 * X_UNITS : 1];
shared vec2 factor_area[X_WAY == SHARED ? 2 * FACTORS : 1];
shared bool is_last;
// What all shares but the first one found.
const uint LEFT = SUBGROUPS - BANDS;
shared vec4 shared_sums[SHARES > 1 ? LEFT * TILES * XTILES * LANES : 1];

uint first_tile, first_x, end_step, mask, eights;
// Where this thread reads next; all of them move on two steps at a time.
QuadPlace w_at[TILES], x_at[XTILES];
PairPlace factors_at[XTILES];
#ifdef WEIGHTS_Q4
WordPlace codes_at[TILES];
#endif

// Of this thread's products, 2 r + c is of row row_of(r) of w's tile and col_of(c) of x's (units.h).
uint row_of(uint r) { return this_lane() / 4 + 8 * r; }

uint col_of(uint c) { return this_lane() % 4 * 2 + c; }

uint this_band() { return this_subgroup() / SHARES; }

uint this_share() { return this_subgroup() % SHARES; }

// Tiles past the end are others again: their sums are dropped.
void find_place(uint step) {
  first_tile = (gl_WorkGroupID.x * BANDS + this_band()) * TILES;
  first_x = gl_WorkGroupID.y * XTILES;
#ifdef WEIGHTS_Q4
  mask = masks[0];
  eights = masks[2]; // no constant: a compiler may make 0 of one so small
#else
  mask = masks[1];
#endif
  EACH(t, TILES) {
    const uint piece = min(first_tile + t, push.tiles - 1) * push.pieces + step * PIECES;
    w_at[t] = WEIGHTS_AT(piece * LANES + this_lane());
#ifdef WEIGHTS_Q4
    codes_at[t] = CODES_AT(piece / 4 * LANES + this_lane());
#endif
  }
  EACH(j, XTILES) {
    const uint group = (first_x + j) * push.groups + step * GROUPS;
    x_at[j] = X_AT(group * PARTS * LANES + this_lane());
    factors_at[j] = FACTORS_AT(group * 4 + this_lane() % 4);
  }
}

// `steps` is 2, or 0 behind the last round: what is loaded then is not used. code_step: words of codes.
void move_weights(uint steps, uint code_step) {
  EACH(t, TILES) {
    MOVE(QuadPlace, w_at[t], steps * PIECES * LANES, 16);
#ifdef WEIGHTS_Q4
    MOVE(WordPlace, codes_at[t], (steps == 0 ? 0 : code_step) * LANES, 4);
#endif
  }
}

void move_x(uint steps) {
  EACH(j, XTILES) {
    MOVE(QuadPlace, x_at[j], steps * X_QUADS, 16);
    MOVE(PairPlace, factors_at[j], steps * X_FACTORS, 8);
  }
}

#ifdef WEIGHTS_Q4
// A group's scale is a rung of its row's ladder. Of the four threads that hold a row's products each looks up the scale
// of one of four groups, and all of them read what they need. Every RUNG_STEP-th rung is kept, because shared memory says
// how many subgroups run at once, and so that the four threads meet different banks.
const uint RUNGS = 32 / RUNG_STEP, RUNG_STRIDE = ROWS + 4;
shared float rungs[BANDS * RUNGS * RUNG_STRIDE];

float rung_factors[TILES][2]; // of this thread's rows: from one rung to the next

vec2 ladder_of(uint row) { return scales[min(first_tile * 16 + row, push.out_rows - 1)]; }

// Every product of a ladder is rounded to f32.
void make_ladders() {
  EACH(t, TILES) EACH(r, 2) rung_factors[t][r] = ladder_of(t * 16 + row_of(r)).y;
  for (uint row = this_lane(); row < ROWS && this_share() == 0; row += LANES) {
    const vec2 ladder = ladder_of(row);
    precise float rung = PLAIN != 0 ? ladder.x * 16777216.0 : ladder.x;
    for (uint c = 0; c < RUNGS; c++) {
      rungs[(this_band() * RUNGS + c) * RUNG_STRIDE + row] = rung;
      EACH(i, RUNG_STEP) rung = rung * ladder.y;
    }
  }
}

// A word of codes is of 256 columns; PIECES 1: two rounds. Half a word is of four groups, of rows row_of(0) and
// row_of(1).
float look_up(uint word, uint half_word, uint t, uint r) {
  const uint code = word >> (16 * half_word + 8 * r) & 31, kept = this_band() * RUNGS + code / RUNG_STEP;
  precise float rung = rungs[kept * RUNG_STRIDE + row_of(0) + t * 16 + r * 8];
  EACH(i, RUNG_STEP - 1) {
    precise const float next = rung * rung_factors[t][r];
    rung = code % RUNG_STEP > i ? next : rung;
  }
  return rung;
}
#endif

struct Step {
  uvec4 w[TILES][PIECES];
  uvec4 x[X_WAY == AHEAD ? XTILES * GROUPS * PARTS : 1];
  vec2 factors[X_WAY == AHEAD ? XTILES * GROUPS : 1];
};

// d: steps past the places.
void load_step(uint d, out Step s) {
  EACH(t, TILES) EACH(u, PIECES) s.w[t][u] = WEIGHT(w_at[t], (d * PIECES + u) * LANES);
  if (X_WAY == AHEAD) EACH(j, XTILES) {
      EACH(i, GROUPS * PARTS) s.x[j * GROUPS * PARTS + i] = X_WORDS(x_at[j], d * X_QUADS + i * LANES);
      EACH(g, GROUPS) s.factors[j * GROUPS + g] = FACTOR(factors_at[j], d * X_FACTORS + g * 4);
    }
}

// The words of the k-th fragment of a group: nibbles stand in the fraction of 1024 (PLAIN: alone), as they are or 16
// times as large, bytes plus 128 as they are. Signs are stored flipped (pack.h). The mask comes from outside: a second
// constant in one instruction would cost another one.
#if defined(WEIGHTS_Q4)
uint nibble_pair(uint word, uint k) {
  if (PLAIN != 0) return k == 0 ? word & mask ^ 0x00080008 : word & mask << 4 ^ 0x00800080;
  if (k == 0) return scale_add(word & mask ^ 0x64086408, 1, -1032);
  return scale_add(word & mask << 4 ^ 0x64806480, 0.0625, -72);
}

uvec4 decode(uvec4 w[PIECES], uint g, uint k) {
  const uint low = w[g / 2][g % 2 * 2], high = w[g / 2][g % 2 * 2 + 1];
  return uvec4(nibble_pair(low, k), nibble_pair(low >> 8, k), nibble_pair(high, k), nibble_pair(high >> 8, k));
}
#elif defined(WEIGHTS_Q8)
uint byte_pair(uint word) { return scale_add(word & mask ^ 0x64806480, 1, -1152); }

uvec4 decode(uvec4 w[PIECES], uint g, uint k) {
  const uint low = w[g][2 * k], high = w[g][2 * k + 1];
  return uvec4(byte_pair(low), byte_pair(low >> 8), byte_pair(high), byte_pair(high >> 8));
}
#else
uvec4 decode(uvec4 w[PIECES], uint g, uint k) { return w[2 * g + k]; }
#endif

struct NextX {
  uvec4 words[X_LOADS];
  vec2 factors[FACTOR_LOADS];
};

// Steps past the end are the last one again, and not used.
void load_x(uint step, out NextX next) {
  step = min(step, end_step - 1);
  EACH(i, X_LOADS) {
    const uint at = min(i * THREADS + gl_LocalInvocationIndex, X_UNITS - 1);
    const uint group = (first_x + at / X_QUADS) * push.groups + step * GROUPS;
    next.words[i] = X_WORDS(X_AT(group * PARTS * LANES + at % X_QUADS), 0);
  }
  EACH(i, FACTOR_LOADS) {
    const uint at = min(i * THREADS + gl_LocalInvocationIndex, FACTORS - 1);
    const uint group = (first_x + at / X_FACTORS) * push.groups + step * GROUPS;
    next.factors[i] = FACTOR(FACTORS_AT(group * 4 + at % X_FACTORS), 0);
  }
}

void store_x(uint area, NextX next) {
  EACH(i, X_LOADS) {
    const uint at = i * THREADS + gl_LocalInvocationIndex;
    if (at < X_UNITS) x_area[area * X_UNITS + at] = next.words[i];
  }
  EACH(i, FACTOR_LOADS) {
    const uint at = i * THREADS + gl_LocalInvocationIndex;
    if (at < FACTORS) factor_area[area * FACTORS + at] = next.factors[i];
  }
}

uvec4 x_quad(Step s, uint d, uint j, uint i) {
  if (X_WAY == AHEAD) return s.x[j * GROUPS * PARTS + i];
  if (X_WAY == SHARED) return x_area[(d * XTILES + j) * X_QUADS + i * LANES + this_lane()];
  return X_WORDS(x_at[j], d * X_QUADS + i * LANES);
}

vec2 x_factor(Step s, uint d, uint j, uint g) {
  if (X_WAY == AHEAD) return s.factors[j * GROUPS + g];
  if (X_WAY == SHARED) return factor_area[(d * XTILES + j) * X_FACTORS + g * 4 + this_lane() % 4];
  return FACTOR(factors_at[j], d * X_FACTORS + g * 4);
}

const uint FRAGMENTS = 2; // of a group
// Part 0, and the others, which are 2^11 times as large as they say.
const uint SUMS_OF_GROUP = PARTS > 1 ? 2 : 1;

#ifdef WEIGHTS_Q4
// PLAIN: what a group's products begin with; and the second fragment of x, whose nibbles are 16 times as large.
void take_eights(inout uvec4 x, inout Products start) {
  FragmentA a;
  const uvec4 words = uvec4(eights);
  SET_A(a, words);
  EACH(k, FRAGMENTS) {
    FragmentB b;
    const uvec2 x_pair = uvec2(x[2 * k], x[2 * k + 1]);
    SET_B(b, x_pair);
    MULTIPLY_ADD(a, b, start);
  }
  x.z = scale_pair(x.z, 0.0625);
  x.w = scale_pair(x.w, 0.0625);
}
#endif

// The d-th step of a round.
void multiply(Step s, uint d, float looked_up[TILES][2], inout float sums[TILES][XTILES][4]) {
  EACH(g, GROUPS) {
#ifdef WEIGHTS_Q4
    float scales_here[TILES][2];
    EACH(t, TILES) EACH(r, 2) scales_here[t][r] = from_lane(looked_up[t][r], this_lane() / 4 * 4 + (d * GROUPS + g) % 4);
#endif
    EACH(j, XTILES) {
      const vec2 factor = x_factor(s, d, j, g);
      uvec4 x[PARTS];
      EACH(p, PARTS) x[p] = x_quad(s, d, j, g * PARTS + p);
      Products start;
      Products c[TILES][SUMS_OF_GROUP];
      CLEAR(start);
#ifdef WEIGHTS_Q4
      if (PLAIN != 0) take_eights(x[0], start);
#endif
      EACH(t, TILES) EACH(p, SUMS_OF_GROUP) c[t][p] = start;
      EACH(k, FRAGMENTS) EACH(t, TILES) {
        FragmentA a;
        const uvec4 tile_words = decode(s.w[t], g, k);
        SET_A(a, tile_words);
        EACH(p, PARTS) {
          FragmentB b;
          const uvec2 x_pair = uvec2(x[p][2 * k], x[p][2 * k + 1]);
          SET_B(b, x_pair);
          MULTIPLY_ADD(a, b, c[t][min(p, 1u)]);
        }
      }
      EACH(t, TILES) EACH(n, 4) {
        float value = c[t][0][n];
        if (PARTS > 1) value = fma(c[t][SUMS_OF_GROUP - 1][n], 1.0 / 2048, value);
#ifdef WEIGHTS_Q4
        value *= scales_here[t][n / 2];
#endif
        sums[t][j][n] = fma(value, factor[n % 2], sums[t][j][n]);
      }
    }
  }
}

#ifdef WEIGHTS_Q8
void scale_rows(inout float sums[TILES][XTILES][4]) {
  EACH(t, TILES) EACH(r, 2) {
    const float scale = scales[min((first_tile + t) * 16 + row_of(r), push.out_rows - 1)];
    EACH(j, XTILES) EACH(c, 2) sums[t][j][2 * r + c] *= scale;
  }
}
#endif

void write_tile(uint tile, uint x_tile, float sums[4]) {
  const uint first = gl_WorkGroupID.z * push.split_stride + push.out_first;
  EACH(n, 4) {
    const uint out_row = tile * 16 + row_of(n / 2), row = x_tile * 8 + col_of(n % 2);
    if (out_row < push.out_rows && row < push.rows) y[(push.y_first + row) * push.y_stride + first + out_row] = sums[n];
  }
}

uint found_at(uint tile, uint split, uint x_tile) {
  return (((push.found_first + tile) * push.splits + split) * push.x_tiles + x_tile) * LANES + this_lane();
}

// Whether all the others that share this one's rows have written their sums.
bool arrive_last() {
  const uint place = push.arrival_first + gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  memoryBarrierBuffer();
  barrier();
  if (gl_LocalInvocationIndex == 0) {
    is_last = atomicAdd(arrivals[place], 1) == push.splits - 1;
    if (is_last) arrivals[place] = 0;
  }
  barrier();
  memoryBarrierBuffer();
  return is_last;
}

// Eight loads are under way at once, of splits and tiles past the last of others again.
void add_splits(inout float sums[TILES][XTILES][4]) {
  const uint AT_ONCE = 8;
  EACH(t, TILES) EACH(j, XTILES) {
    const uint tile = min(first_tile + t, push.tiles - 1);
    vec4 sum = vec4(0);
    for (uint first = 0; first < push.splits; first += AT_ONCE) {
      vec4 more[AT_ONCE];
      EACH(s, AT_ONCE) more[s] = found[found_at(tile, min(first + s, push.splits - 1), first_x + j)];
      EACH(s, AT_ONCE)
        if (first + s < push.splits) sum += more[s];
    }
    EACH(n, 4) sums[t][j][n] = sum[n];
  }
}

// The sums of all shares, in their order, to the first one's.
void add_shares(inout float sums[TILES][XTILES][4]) {
  const uint own = ((this_subgroup() - this_band() - 1) * TILES * XTILES) * LANES + this_lane();
  if (this_share() != 0)
    EACH(t, TILES) EACH(j, XTILES)
      shared_sums[own + (t * XTILES + j) * LANES] =
          vec4(sums[t][j][0], sums[t][j][1], sums[t][j][2], sums[t][j][3]);
  barrier();
  if (this_share() != 0) return;
  EACH(t, TILES) EACH(j, XTILES) {
    vec4 sum = vec4(sums[t][j][0], sums[t][j][1], sums[t][j][2], sums[t][j][3]);
    EACH(s, SHARES - 1)
      sum += shared_sums[((this_band() * (SHARES - 1) + s) * TILES * XTILES + t * XTILES + j) * LANES + this_lane()];
    EACH(n, 4) sums[t][j][n] = sum[n];
  }
}

void load_codes(out uint round_codes[TILES]) {
#ifdef WEIGHTS_Q4
  EACH(t, TILES) round_codes[t] = CODE(codes_at[t], 0);
#endif
}

// For the d-th step, unless the one before has looked up the same.
void look_up_all(uint first, uint d, uint round_codes[TILES], inout float looked_up[TILES][2]) {
#ifdef WEIGHTS_Q4
  if (PIECES == 1 && d == 1) return;
  EACH(t, TILES) EACH(r, 2) looked_up[t][r] = look_up(round_codes[t], PIECES == 1 ? first / 2 % 2 : d, t, r);
#endif
}

void main() {
  const uint share_steps = SHARES > 1 ? push.steps / SHARES : push.split_steps;
  const uint begin = (SHARES > 1 ? this_share() : gl_WorkGroupID.z) * share_steps;
  end_step = min(begin + share_steps, push.steps);
  find_place(begin);
  float sums[TILES][XTILES][4];
  EACH(t, TILES) EACH(j, XTILES) EACH(n, 4) sums[t][j][n] = 0;
  Step held[2];
  NextX next;
  uint round_codes[TILES], next_codes[TILES];
  float looked_up[TILES][2];
  load_step(0, held[0]);
  load_codes(round_codes);
  if (X_WAY == SHARED) load_x(begin, next);
#ifdef WEIGHTS_Q4
  make_ladders();
  if (SHARES > 1)
    barrier();
  else
    meet_subgroup();
#endif
  if (X_WAY == SHARED) {
    store_x(0, next);
    load_x(begin + 1, next);
  }
  // Rounds of two steps, without a branch inside: what is asked for in one step is waited for in the next. A workgroup's
  // steps are whole rounds.
  for (uint first = begin; first < end_step; first += 2) {
    EACH(d, 2) {
      if (X_WAY == SHARED) {
        barrier();
        store_x(1 - d, next);
        load_x(first + d + 2, next);
      }
      if (d == 1) {
        move_weights(first + 2 < end_step ? 2 : 0, PIECES == 1 ? first / 2 % 2 : 1);
        if (X_WAY == AHEAD) move_x(first + 2 < end_step ? 2 : 0);
        load_codes(next_codes);
      }
      load_step(1 - d, held[1 - d]);
      look_up_all(first, d, round_codes, looked_up);
      multiply(held[d], d, looked_up, sums);
    }
    if (X_WAY != AHEAD) move_x(2);
    EACH(t, TILES) round_codes[t] = next_codes[t];
  }
  if (SHARES > 1) {
    add_shares(sums);
    if (this_share() != 0) return;
  }
#ifdef WEIGHTS_Q8
  scale_rows(sums);
#endif
  if (push.splits > 1 && push.split_stride == 0) {
    EACH(t, TILES) EACH(j, XTILES)
      if (first_tile + t < push.tiles)
        found[found_at(first_tile + t, gl_WorkGroupID.z, first_x + j)] =
            vec4(sums[t][j][0], sums[t][j][1], sums[t][j][2], sums[t][j][3]);
    if (!arrive_last()) return;
    add_splits(sums);
  }
  EACH(t, TILES) EACH(j, XTILES) write_tile(first_tile + t, first_x + j, sums[t][j]);
}
