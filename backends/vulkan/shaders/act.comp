/* y = silu(gate) * up, silu(g) = g / (1 + e^-g). */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_ACT
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 256) in;
layout(std430, set = 0, binding = 0) readonly buffer Gate { float gate[]; };
layout(std430, set = 0, binding = 1) readonly buffer Up { float up[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

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
  const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint i = gl_GlobalInvocationID.x; i < push.count; i += step) y[i] = silu_times(gate[i], up[i]);
}
