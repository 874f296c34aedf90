/* What a candidate adds to the score of each candidate of the next row: sum((P hp) C). A workgroup is a candidate p of
 * row j - 1; 16 threads share a sum. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_PAIRS
#include "push.h"

layout(local_size_x = 128) in;
layout(set = 0, binding = 0, std430) readonly buffer Predecessors { float predecessors[]; };
layout(set = 0, binding = 1, std430) readonly buffer Successors { float successors[]; };
layout(set = 0, binding = 2, std430) readonly buffer Hidden { float hidden[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Pairs { float pairs[]; };

const uint LANES = 16, SIDE = 8; /* threads of a sum; sums side by side */

shared float partial[LANES * SIDE];

float part_of_sum(uint row, uint before, uint candidate) {
  const uint p = (row * push.top + before) * push.rank, c = (row * push.top + candidate) * push.rank;
  precise float sum = 0.0;
  for (uint i = gl_LocalInvocationID.x % LANES; i < push.rank; i += LANES) {
    precise const float gate = predecessors[p + i] * hidden[row * push.rank + i];
    sum = fma(gate, successors[c + i], sum);
  }
  return sum;
}

/* The sum of 16 neighbours, in the first of them. */
void add_lanes() {
  const uint thread = gl_LocalInvocationID.x;
  for (uint reach = LANES / 2; reach > 0; reach /= 2) {
    barrier();
    if (thread % LANES < reach) partial[thread] += partial[thread + reach];
  }
}

void main() {
  const uint before = gl_WorkGroupID.x, row = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x % LANES;
  if (row == 0u && before > 0u) return; /* the anchor is the only one before row 0 */
  for (uint first = 0; first < push.top; first += SIDE) {
    const uint candidate = first + gl_LocalInvocationID.x / LANES;
    partial[gl_LocalInvocationID.x] = candidate < push.top ? part_of_sum(row, before, candidate) : 0.0;
    add_lanes();
    if (lane == 0u && candidate < push.top)
      pairs[(row * push.top + before) * push.top + candidate] = partial[gl_LocalInvocationID.x];
    barrier();
  }
}
