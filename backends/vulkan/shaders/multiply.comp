/* Multiply-adds of f32 without memory: 16 sums a thread, each four steps a round, none waiting for another. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_MEASURE
#include "push.h"

layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) writeonly buffer Sums { float sums[]; };

const uint CHAINS = 16, STEPS = 4;

void main() {
  /* Factors below 1 that the compiler does not know: the sums stay finite and apart. */
  const float factor = 0.5 + float(gl_LocalInvocationID.x) / 1024.0, term = 1.0 / (1.0 + float(push.count));
  float chains[CHAINS], sum = 0.0;
  [[unroll]] for (uint i = 0; i < CHAINS; i++) chains[i] = float(i);
  for (uint round = 0; round < push.count; round++)
    [[unroll]] for (uint step = 0; step < STEPS; step++)
      [[unroll]] for (uint i = 0; i < CHAINS; i++) chains[i] = fma(chains[i], factor, term);
  [[unroll]] for (uint i = 0; i < CHAINS; i++) sum += chains[i];
  sums[gl_GlobalInvocationID.x] = sum;
}
