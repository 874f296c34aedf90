// y = w x on matrix units: w decoded to f16, which holds its integers (or f16 values) exactly, in shared memory or (DIRECT,
// where the places of a matrix's elements are known) in registers; x in PARTS parts of f16,
// element = (p0 + p1 2^-11 + p2 2^-22) 2^-k (parts.comp). WEIGHTS_* says how w is stored. The unit's sums, which may be
// truncated, are moved to f32 sums rounded to nearest every 32 (q4tp, times the group's scale) or STEP columns.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef EMULATED
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
#endif

const uint UNIT = 8;
#if defined(WEIGHTS_Q4)
#define LADDER
const uint PIECE = 32;
#elif defined(WEIGHTS_Q8)
const uint PIECE = 16;
#elif defined(WEIGHTS_F16)
const uint PIECE = 8;
#endif
#include "coop.glsl"

layout(set = 0, binding = 3) readonly buffer Parts { uvec4 parts[]; }; // [rows][PARTS][2 * ceil(cols / 16)]
layout(set = 0, binding = 4) readonly buffer Factors { vec2 factors[]; }; // [rows]: 2^-k, as two factors
#ifdef WEIGHTS_Q8
layout(set = 0, binding = 1) readonly buffer Scales { float scales[]; };
#endif

// Pairs of f16 of a word of w, in the order of its bits: nibbles stand in the fraction of 1024, as they are or 16 times as
// large, bytes plus 128 as they are.
#if defined(WEIGHTS_Q4)
const uint FOLD = 32;

uint nibble_pair(uint word, uint n) {
  const uint low = word >> n / 2 * 8;
  return n % 2 == 0 ? scale_add(low & 0x000f000f | 0x64006400, 1, -1032)
                    : scale_add(low & 0x00f000f0 | 0x64006400, 0.0625, -72);
}

// Columns 0, 4, 1, 5, 2, 6, 3, 7.
uvec4 decode(uvec4 piece, uint unit) {
  const uint word = piece[unit];
  return uvec4(nibble_pair(word, 0), nibble_pair(word, 1), nibble_pair(word, 2), nibble_pair(word, 3));
}
#elif defined(WEIGHTS_Q8)
const uint FOLD = STEP;

uint byte_pair(uint word, uint n) { return scale_add((word ^ 0x80808080) >> n * 8 & 0x00ff00ff | 0x64006400, 1, -1152); }

// Columns 0, 2, 1, 3, 4, 6, 5, 7.
uvec4 decode(uvec4 piece, uint unit) {
  const uint low = piece[unit * 2], high = piece[unit * 2 + 1];
  return uvec4(byte_pair(low, 0), byte_pair(low, 1), byte_pair(high, 0), byte_pair(high, 1));
}
#else
const uint FOLD = STEP;
uvec4 decode(uvec4 piece, uint unit) { return piece; }
#endif

float finish(float sum, uint out_row, uint row) {
#ifdef WEIGHTS_Q8
  sum *= scales[out_row];
#endif
  precise const float result = sum * factors[row].x * factors[row].y; // in turn: their product may be none of f32
  return result;
}

void load_x(uint step, out uvec4 loaded[X_LOADS]) {
  const uint count = (push.cols + 15) / 16 * 2;
  EACH(i, X_LOADS) {
    const uint row = first_x + x_row(i), part = x_unit(i) / UNITS, unit = step * UNITS + x_unit(i) % UNITS;
    const bool inside = x_index(i) < X_UNITS && row < push.rows && unit < count;
    loaded[i] = inside ? parts[(row * PARTS + part) * count + unit] : uvec4(0);
  }
}

void store_x(uvec4 loaded[X_LOADS]) {
  EACH(i, X_LOADS)
    if (x_index(i) < X_UNITS) x_area[x_place(i)] = loaded[i];
}

#ifdef DIRECT
// Pieces as they are stored. A thread takes a word of each row's piece (q4tp: a group; its halves are two steps of the
// matrix unit; q8_2f: one step) and decodes it in registers. Columns of x stand in the order that follows from it.
void store_weights(uvec4 loaded[LOADS]) {
  EACH(i, LOADS)
    if (load_row(i) < BAND) w_area[w_begin(load_row(i)) + load_piece(i)] = loaded[i];
}

const uint STEPS_OF_PIECE = PIECE / 16;

// Pair n of the thread's word, of a step of 16 columns that begins at unit k.
uint pair_of(uint word, uint k, uint n) {
#ifdef WEIGHTS_Q4
  return nibble_pair(word, k / 2 % 2 * 2 + n);
#else
  return byte_pair(word, n);
#endif
}

#define TAKE_A(a, t, k)                                                                     \
  {                                                                                         \
    const uint at = w_begin((t) * 16 + lane / 4) + (k) / 2 / STEPS_OF_PIECE;                \
    const uint word = w_area[at][lane % 4], under = w_area[at + 8 * W_STRIDE][lane % 4];    \
    SET_A(a, pair_of(word, k, 0), pair_of(under, k, 0), pair_of(word, k, 1), pair_of(under, k, 1)); \
  }
#else
void store_weights(uvec4 loaded[LOADS]) {
  EACH(i, LOADS)
    if (load_row(i) < BAND)
      EACH(u, PIECE / UNIT)
        w_area[w_begin(load_row(i)) + load_piece(i) * (PIECE / UNIT) + u] = decode(loaded[i], u);
}

#define TAKE_A(a, t, k) LOAD_A(a, w_begin((t) * 16) + (k), W_STRIDE);
#endif

// sums += scale * (products of part 0 + 2^-11 of part 1 + 2^-22 of part 2)
void fold(Products products[PARTS], uint block, uint tile, inout Sums sums) {
#ifdef LADDER
  Sums scale;
  LOAD_ROW_FACTORS(scale, group_scales, scale_place(block, tile * 16));
#endif
  EACH(n, ELEMENTS(sums)) {
    float value = products[PARTS - 1][n];
    EACH(p, PARTS - 1) value = fma(value, 1.0 / 2048, products[PARTS - 2 - p][n]);
#ifdef LADDER
    sums[n] = fma(scale[n], value, sums[n]);
#else
    sums[n] += value;
#endif
  }
}

void multiply(inout Sums sums[TILES]) {
  EACH(block, STEP / FOLD) {
    Products products[TILES][PARTS];
    EACH(t, TILES)
      EACH(p, PARTS) CLEAR(Products, products[t][p]);
    EACH(i, FOLD / UNIT / 2) {
      const uint k = block * FOLD / UNIT + 2 * i;
      FragmentB b[PARTS];
      EACH(p, PARTS) LOAD_B(b[p], x_begin() + p * UNITS + k, X_STRIDE);
      EACH(t, TILES) {
        FragmentA a;
        TAKE_A(a, t, k)
        EACH(p, PARTS) MULTIPLY_ADD(a, b[p], products[t][p]);
      }
    }
    EACH(t, TILES) fold(products[t], block, t, sums[t]);
  }
}

void main() {
  find_place();
  uvec4 w[DEPTH][LOADS], x[X_LOADS];
  load_x(step_of(0), x);
  EACH(d, DEPTH) load_weights(step_of(d), w[d]);
#ifdef LADDER
  uint codes_of[DEPTH][LOADS];
  EACH(d, DEPTH) load_codes(step_of(d), codes_of[d]);
  make_ladders();
#endif
  Sums sums[TILES];
  EACH(t, TILES) CLEAR(Sums, sums[t]);
  for (uint first = 0; first < push.rounds; first += DEPTH)
    EACH(d, DEPTH) {
      const uint round = first + d;
      if (round >= push.rounds) break;
      barrier();
      store_x(x);
      store_weights(w[d]);
      load_x(step_of(round + 1), x);
      load_weights(step_of(round + DEPTH), w[d]);
#ifdef LADDER
      store_scales(codes_of[d], 1);
      load_codes(step_of(round + DEPTH), codes_of[d]);
#endif
      barrier();
      multiply(sums);
    }
  write_sums(sums);
}
