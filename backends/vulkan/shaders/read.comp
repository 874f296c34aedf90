/* Reads all words once, eight pieces of 16 bytes a thread at a time, side by side over all threads. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_MEASURE
#include "push.h"

layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) readonly buffer Words { uvec4 words[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Sums { uint sums[]; };

const uint THREADS = 256, LOADS = 8;

shared uint partial[THREADS];

uvec4 read_words() {
  const uint stride = gl_NumWorkGroups.x * THREADS;
  uint at = gl_GlobalInvocationID.x;
  uvec4 sum = uvec4(0u), loaded[LOADS];
  for (; at + (LOADS - 1) * stride < push.count; at += LOADS * stride) {
    [[unroll]] for (uint i = 0; i < LOADS; i++) loaded[i] = words[at + i * stride];
    [[unroll]] for (uint i = 0; i < LOADS; i++) sum += loaded[i];
  }
  for (; at < push.count; at += stride) sum += words[at];
  return sum;
}

void main() {
  const uvec4 sum = read_words();
  const uint thread = gl_LocalInvocationID.x;
  partial[thread] = sum.x + sum.y + sum.z + sum.w;
  for (uint reach = THREADS / 2; reach > 0; reach /= 2) {
    barrier();
    if (thread < reach) partial[thread] += partial[thread + reach];
  }
  if (thread == 0u) sums[gl_WorkGroupID.x] = partial[0];
}
