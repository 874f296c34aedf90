// y = w x on matrix units. A workgroup takes a band of rows of w, TILES tiles of 16 for each subgroup, and a run of the
// columns, a step at a time. w is read once, in the order of the unit's fragments, and decoded in registers; x, in PARTS
// parts of f16 and a factor for 32 columns (prepare.comp), comes through the cache, or (SHARED_X) through shared memory, a
// step ahead. WEIGHTS_* says how w is stored. The unit's sums, which may be truncated, hold 32 columns, and are moved to f32 sums rounded to nearest.
// Where several workgroups share the columns of a row, their sums are left apart for the kernel that reads y, or the
// workgroup that comes last adds them, in one order.
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
#define PUSH_UNITS
#include "push.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint XTILES = 1; // of 8 rows of x
layout(constant_id = 2) const uint TILES = 2;  // of 16 rows of w, a subgroup: 1 or 2
layout(constant_id = 3) const uint SHARED_X = 1; // else x is read through the cache
layout(constant_id = 4) const uint PARTS = 3;
layout(constant_id = 5) const uint PIECES = 2; // of a tile, 16 bytes a thread, in a step: 1, 2 or 4 (f16: 2)
const uint SUBGROUPS = THREADS / 32;

#include "units.glsl"

layout(set = 0, binding = 0) readonly buffer Weights { uvec4 weights[]; }; // [tiles][pieces][32]
#ifdef WEIGHTS_Q4
layout(set = 0, binding = 1) readonly buffer Scales { vec2 scales[]; }; // [rows]: a ladder's first rung, its step
#else
layout(set = 0, binding = 1) readonly buffer Scales { float scales[]; }; // [rows], of q8_2f
#endif
layout(set = 0, binding = 2) readonly buffer Codes { uint codes[]; }; // [tiles][pieces][8]: of two rows, two groups each
layout(set = 0, binding = 3) readonly buffer X { uvec4 x_words[]; };  // [tiles of x][groups][PARTS][32]
layout(set = 0, binding = 4) readonly buffer Factors { vec2 factors[]; }; // [tiles of x][groups][4]
layout(set = 0, binding = 5) writeonly buffer Y { float y[]; };
// [tiles][splits][tiles of x][32]; of all workgroups
layout(set = 0, binding = 6) coherent buffer Found { vec4 found[]; };
layout(set = 0, binding = 7) coherent buffer Arrivals { uint arrivals[]; }; // 0, before and after
layout(set = 0, binding = 8) readonly buffer Masks { uint masks[2]; }; // of nibbles, of bytes

#if defined(WEIGHTS_Q4)
const uint GROUPS = 2 * PIECES; // of 32 columns, in a step
#elif defined(WEIGHTS_Q8)
const uint GROUPS = PIECES;
#else
const uint GROUPS = PIECES / 2;
#endif
const uint ROWS = 16 * TILES; // of w, a subgroup

// x of a step, of all its tiles, and of the next one.
const uint X_UNITS = XTILES * GROUPS * PARTS * LANES, X_LOADS = (X_UNITS + THREADS - 1) / THREADS;
const uint FACTORS = XTILES * GROUPS * 4, FACTOR_LOADS = (FACTORS + THREADS - 1) / THREADS;
shared uvec4 x_area[SHARED_X == 0 ? 1 : 2 * X_UNITS];
shared vec2 factor_area[SHARED_X == 0 ? 1 : 2 * FACTORS];
shared bool is_last;

uint first_tile, first_x, end_step, mask;

// Of this thread's products, 2 r + c is of row row_of(r) of w's tile and col_of(c) of x's (units.h).
uint row_of(uint r) { return this_lane() / 4 + 8 * r; }

uint col_of(uint c) { return this_lane() % 4 * 2 + c; }

void find_place() {
  first_tile = (gl_WorkGroupID.x * SUBGROUPS + this_subgroup()) * TILES;
  first_x = gl_WorkGroupID.y * XTILES;
#ifdef WEIGHTS_Q4
  mask = masks[0];
#else
  mask = masks[1];
#endif
}

#ifdef WEIGHTS_Q4
// A group's scale is a rung of its row's ladder. For each step a thread looks up some of its subgroup's scales, and all
// of them read what they need.
const uint RUNGS = 32;
shared float rungs[SUBGROUPS * RUNGS * ROWS];

// TILES 1: the first 16 threads look up the piece's first group, the others its second.
uint code_row() { return this_lane() % ROWS; }

uint ladder_at(uint rung) { return (this_subgroup() * RUNGS + rung) * ROWS + code_row(); }

// Every product of the ladder is rounded to f32.
void make_ladders() {
  const vec2 ladder = scales[min(first_tile * 16 + code_row(), push.out_rows - 1)];
  precise float rung = ladder.x;
  for (uint c = 0; c < RUNGS; c++) {
    if (this_lane() < ROWS) rungs[ladder_at(c)] = rung;
    rung = rung * ladder.y;
  }
}

// Of a piece's two groups: the scales that this thread looks up (TILES 1: the first is the one that it has).
vec2 look_up(uint code) {
  if (TILES == 2) return vec2(rungs[ladder_at(code & 31)], rungs[ladder_at(code >> 8 & 31)]);
  return vec2(rungs[ladder_at(code >> this_lane() / 16 * 8 & 31)], 0);
}

// The scale of group g of the piece, of row r of tile t.
float scale_of(vec2 found_here, uint t, uint r, uint g) {
  return TILES == 2 ? from_lane(found_here[g], t * 16 + row_of(r)) : from_lane(found_here.x, g * 16 + row_of(r));
}
#endif

struct Step {
  uvec4 w[TILES][PIECES];
#ifdef WEIGHTS_Q4
  uint codes[PIECES];
#endif
};

// Tiles and steps past the end are others again: their sums are dropped, their weights not used.
void load_step(uint step, out Step s) {
  step = min(step, end_step - 1);
  EACH(t, TILES) EACH(u, PIECES)
    s.w[t][u] = weights[(min(first_tile + t, push.tiles - 1) * push.pieces + step * PIECES + u) * LANES + this_lane()];
#ifdef WEIGHTS_Q4
  const uint tile = min(first_tile + code_row() / 16, push.tiles - 1);
  EACH(u, PIECES)
    s.codes[u] = codes[(tile * push.pieces + step * PIECES + u) * 8 + code_row() % 16 / 2] >> code_row() % 2 * 16;
#endif
}

// The words of the k-th fragment of a group: nibbles stand in the fraction of 1024, as they are or 16 times as large, bytes
// plus 128 as they are. Signs are stored flipped (pack.h). The mask comes from outside: a second constant in one
// instruction would cost another one.
#if defined(WEIGHTS_Q4)
uvec4 decode(uvec4 w[PIECES], uint g, uint k) {
  const uint word = w[g / 2][g % 2 * 2 + k], high = word >> 8, upper = mask << 4;
  return uvec4(scale_add(word & mask ^ 0x64086408, 1, -1032), scale_add(word & upper ^ 0x64806480, 0.0625, -72),
               scale_add(high & mask ^ 0x64086408, 1, -1032), scale_add(high & upper ^ 0x64806480, 0.0625, -72));
}
#elif defined(WEIGHTS_Q8)
uint byte_pair(uint word) { return scale_add(word & mask ^ 0x64806480, 1, -1152); }

uvec4 decode(uvec4 w[PIECES], uint g, uint k) {
  const uint low = w[g][2 * k], high = w[g][2 * k + 1];
  return uvec4(byte_pair(low), byte_pair(low >> 8), byte_pair(high), byte_pair(high >> 8));
}
#else
uvec4 decode(uvec4 w[PIECES], uint g, uint k) { return w[k]; }
#endif

struct NextX {
  uvec4 words[X_LOADS];
  vec2 factors[FACTOR_LOADS];
};

void load_x(uint step, out NextX next) {
  step = min(step, end_step - 1);
  EACH(i, X_LOADS) {
    const uint at = min(i * THREADS + gl_LocalInvocationIndex, X_UNITS - 1), of_tile = GROUPS * PARTS * LANES;
    next.words[i] = x_words[((first_x + at / of_tile) * push.groups + step * GROUPS) * PARTS * LANES + at % of_tile];
  }
  EACH(i, FACTOR_LOADS) {
    const uint at = min(i * THREADS + gl_LocalInvocationIndex, FACTORS - 1), of_tile = GROUPS * 4;
    next.factors[i] = factors[((first_x + at / of_tile) * push.groups + step * GROUPS) * 4 + at % of_tile];
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

const uint FRAGMENTS = 2; // of a group
// Part 0, and the others, which are 2^11 times as large as they say.
const uint SUMS_OF_GROUP = PARTS > 1 ? 2 : 1;

void multiply(Step s, uint step, uint area, inout float sums[TILES][XTILES][4]) {
#ifdef WEIGHTS_Q4
  vec2 looked_up[PIECES];
  EACH(u, PIECES) looked_up[u] = look_up(s.codes[u]);
#endif
  EACH(g, GROUPS) {
#ifdef WEIGHTS_Q4
    float scale[TILES][2];
    EACH(t, TILES) EACH(r, 2) scale[t][r] = scale_of(looked_up[g / 2], t, r, g % 2);
#endif
    EACH(j, XTILES) {
      const uint outside = (first_x + j) * push.groups + min(step, end_step - 1) * GROUPS + g;
      const uint inside = (area * XTILES + j) * GROUPS + g, of_four = this_lane() % 4;
      vec2 factor = SHARED_X == 0 ? factors[outside * 4 + of_four] : factor_area[inside * 4 + of_four];
      if (area == 1) factor = step < end_step ? factor : vec2(0);
      uvec4 x[PARTS];
      EACH(p, PARTS)
        x[p] = SHARED_X == 0 ? x_words[(outside * PARTS + p) * LANES + this_lane()]
                             : x_area[(inside * PARTS + p) * LANES + this_lane()];
      Products c[TILES][SUMS_OF_GROUP];
      EACH(t, TILES) EACH(p, SUMS_OF_GROUP) CLEAR(c[t][p]);
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
        value *= factor[n % 2];
        sums[t][j][n] = fma(value, scale[t][n / 2], sums[t][j][n]);
#else
        sums[t][j][n] = fma(value, factor[n % 2], sums[t][j][n]);
#endif
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

void main() {
  find_place();
  const uint begin = gl_WorkGroupID.z * push.split_steps;
  end_step = min(begin + push.split_steps, push.steps);
  float sums[TILES][XTILES][4];
  EACH(t, TILES) EACH(j, XTILES) EACH(n, 4) sums[t][j][n] = 0;
  Step held[2];
  NextX next;
  load_step(begin, held[0]);
  if (SHARED_X != 0) load_x(begin, next);
#ifdef WEIGHTS_Q4
  make_ladders();
  meet_subgroup();
#endif
  if (SHARED_X != 0) {
    store_x(0, next);
    load_x(begin + 1, next);
  }
  // Two steps a round, without a branch between them: weights that are asked for in one are waited for in the next. A
  // step past the end multiplies by 0.
  for (uint first = begin; first < end_step; first += 2)
    EACH(d, 2) {
      if (SHARED_X != 0) {
        barrier();
        store_x(1 - d, next);
        load_x(first + d + 2, next);
      }
      load_step(first + d + 1, held[1 - d]);
      multiply(held[d], first + d, d, sums);
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
