/* y = silu(gate) * up, silu(g) = g / (1 + e^-g); a workgroup takes pieces of one row. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_ACT
#include "push.h"
#include "numbers.glsl"
#include "pieces.glsl"

layout(std430, set = 0, binding = 0) readonly buffer Gate { float gate[]; };
layout(std430, set = 0, binding = 0) readonly buffer Gate2 { vec2 gate2[]; };
layout(std430, set = 0, binding = 1) readonly buffer Up { float up[]; };
layout(std430, set = 0, binding = 1) readonly buffer Up2 { vec2 up2[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y2 { vec2 y2[]; };

vec2 load_gate(uint piece) {
  if (COLUMNS == 2) return gate2[piece];
  return vec2(gate[piece], 0.0);
}

vec2 load_up(uint piece) {
  if (COLUMNS == 2) return up2[piece];
  return vec2(up[piece], 0.0);
}

void store_y(uint piece, vec2 value) {
  if (COLUMNS == 2)
    y2[piece] = value;
  else
    y[piece] = value.x;
}

/* Above 20 and below -80 the sum is 1 and e^-g in f32. Below, e^g is taken as two factors: it may be none of f32's
 * normal numbers where the product is. */
float silu_times(float g, float factor) {
  if (g >= 20.0) return g * factor;
  if (g < -80.0) {
    const float root = exp_f32(0.5 * g);
    precise const float product = (g * root) * (root * factor);
    return product;
  }
  return quotient(g, 1.0 + exp_f32(-g)) * factor;
}

void main() {
  const uint pieces = push.width / COLUMNS, first = gl_WorkGroupID.y * pieces, step = gl_NumWorkGroups.x * THREADS;
  for (uint from = gl_WorkGroupID.x * THREADS; from < pieces; from += step) {
    const uint own = from + gl_LocalInvocationIndex, piece = min(own, pieces - 1);
    const vec2 g = load_gate(first + piece), u = load_up(first + piece);
    vec2 value = vec2(silu_times(g.x, u.x), 0.0);
    if (COLUMNS == 2) value.y = silu_times(g.y, u.y);
    if (own < pieces) store_y(first + piece, value);
  }
}
