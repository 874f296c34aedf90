/* y = conv(x, d, base, 0): an element a thread. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_CONV
#include "push.h"

layout(local_size_x = 256) in;
layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer D { float d[]; };
layout(std430, set = 0, binding = 2) readonly buffer Base { float base[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i >= push.width) return;
  uint coefficient = row * 2 * push.taps * push.groups + i / push.group, channel = i, from = row * push.width + i;
  float sum = 0.0;
  for (uint tap = 0; tap < push.taps && tap <= row; tap++) {
    sum += (base[channel] + d[coefficient]) * x[from];
    channel += push.width;
    coefficient += push.groups;
    from -= push.width;
  }
  y[row * push.width + i] = sum;
}
