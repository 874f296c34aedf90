/* Cosines and sines of the angles f32(position * inv_freq), one rounding; a workgroup takes angles of one row. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_ROTATION
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Positions { float positions[]; };
layout(std430, set = 0, binding = 1) readonly buffer InvFreq { float inv_freq[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Table { float table[]; };

void main() {
  const uint row = gl_WorkGroupID.y, step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint i = gl_GlobalInvocationID.x; i < push.half_dim; i += step) {
    precise const float angle = positions[row] * inv_freq[i];
    const vec2 turned = cosine_sine(angle);
    table[2 * row * push.half_dim + i] = turned.x;
    table[(2 * row + 1) * push.half_dim + i] = turned.y;
  }
}
