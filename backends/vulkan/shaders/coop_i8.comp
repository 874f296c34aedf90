// Profile i8 on q4tp on matrix units: sum over groups of dot(q, nibble - 8) * scale * s, the dot in int32.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef EMULATED
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#pragma use_vulkan_memory_model
#endif

#define INT8
#define LADDER
const uint UNIT = 16, PIECE = 32;
#include "coop.glsl"

layout(set = 0, binding = 3) readonly buffer Words { uvec4 words[]; }; // [rows][cols / 16]: int8
layout(set = 0, binding = 4) readonly buffer Steps { float steps[]; }; // [rows][cols / 32]

shared float x_steps[SLICES * GROUPS * ROWS];

const uint STEP_LOADS = (ROWS * GROUPS + LANES * BANDS - 1) / (LANES * BANDS);

// 16 times (nibble - 8), as int8: the even columns of 8 in a word, then the odd ones.
uvec2 decode(uint word) { return uvec2(word << 4, word) & 0xf0f0f0f0 ^ 0x80808080; }

uvec4 decode_half(uvec4 piece, uint unit) { return uvec4(decode(piece[unit * 2]), decode(piece[unit * 2 + 1])); }

// Of eight bytes those at even and those at odd places.
uvec2 even_odd(uint low, uint high) {
  const uvec2 first = uvec2(low, low >> 8), second = uvec2(high, high >> 8);
  return (first & 0xff) | (first >> 8 & 0xff00) | (second & 0xff) << 16 | (second & 0xff0000) << 8;
}

float finish(float sum, uint out_row, uint row) { return sum; }

void load_x(uint step, out uvec4 loaded[X_LOADS]) {
  const uint count = push.cols / UNIT;
  EACH(i, X_LOADS) {
    const uint row = first_x + x_row(i), unit = step * UNITS + x_unit(i);
    const bool inside = x_index(i) < X_UNITS && row < push.rows && unit < count;
    loaded[i] = inside ? words[row * count + unit] : uvec4(0);
  }
}

void store_x(uvec4 loaded[X_LOADS]) {
  EACH(i, X_LOADS)
    if (x_index(i) < X_UNITS)
      x_area[x_place(i)] = uvec4(even_odd(loaded[i].x, loaded[i].y), even_odd(loaded[i].z, loaded[i].w));
}

// The steps of x: row by row, a slice's groups in each.
void load_steps(uint step, out float loaded[STEP_LOADS]) {
  EACH(i, STEP_LOADS) {
    const uint row = first_x + x_index(i) / GROUPS, group = step * GROUPS + x_index(i) % GROUPS;
    const bool inside = x_index(i) < ROWS * GROUPS && row < push.rows && group < push.cols / GROUP;
    loaded[i] = inside ? steps[row * (push.cols / GROUP) + group] : 0;
  }
}

uint x_step_place(uint g, uint row) { return (slice * GROUPS + g) * ROWS + row; }

void store_steps(float loaded[STEP_LOADS]) {
  EACH(i, STEP_LOADS)
    if (x_index(i) < ROWS * GROUPS) x_steps[x_step_place(x_index(i) % GROUPS, x_index(i) / GROUPS)] = loaded[i];
}

void store_weights(uvec4 loaded[LOADS]) {
  EACH(i, LOADS)
    if (load_row(i) < BAND)
      EACH(u, 2)
        w_area[w_begin(load_row(i)) + load_piece(i) * 2 + u] = decode_half(loaded[i], u);
}

void multiply(inout Sums sums[TILES]) {
  EACH(g, GROUPS) {
    FragmentB b;
    Sums step_of_x;
    LOAD_B(b, x_begin() + g * 2, X_STRIDE);
    LOAD_COLUMN_FACTORS(step_of_x, x_steps, x_step_place(g, 0));
    EACH(t, TILES) {
      FragmentA a;
      Products products;
      Sums scale;
      CLEAR(Products, products);
      LOAD_A(a, w_begin(t * 16) + g * 2, W_STRIDE);
      MULTIPLY_ADD(a, b, products);
      CONVERT(values, products);
      LOAD_ROW_FACTORS(scale, group_scales, scale_place(g, t * 16));
      EACH(n, ELEMENTS(sums[t]))
        sums[t][n] = fma(values[n] * scale[n], step_of_x[n], sums[t][n]);
    }
  }
}

void main() {
  find_place();
  uvec4 w[DEPTH][LOADS], x[X_LOADS];
  uint codes_of[DEPTH][LOADS];
  float steps_of_x[STEP_LOADS];
  load_x(step_of(0), x);
  load_steps(step_of(0), steps_of_x);
  EACH(d, DEPTH) {
    load_weights(step_of(d), w[d]);
    load_codes(step_of(d), codes_of[d]);
  }
  make_ladders();
  Sums sums[TILES];
  EACH(t, TILES) CLEAR(Sums, sums[t]);
  for (uint first = 0; first < push.rounds; first += DEPTH)
    EACH(d, DEPTH) {
      const uint round = first + d;
      if (round >= push.rounds) break;
      barrier();
      store_x(x);
      store_steps(steps_of_x);
      store_weights(w[d]);
      store_scales(codes_of[d], 0.0625);
      load_x(step_of(round + 1), x);
      load_steps(step_of(round + 1), steps_of_x);
      load_weights(step_of(round + DEPTH), w[d]);
      load_codes(step_of(round + DEPTH), codes_of[d]);
      barrier();
      multiply(sums);
    }
  write_sums(sums);
}
