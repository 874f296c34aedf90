/* Joins the parts of attend: each is scaled to the largest score of all. A workgroup is a head of a row. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_MIX
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer Sums { vec2 sums[]; };
layout(set = 0, binding = 1, std430) readonly buffer Mixes { float mixes[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { float y[]; };

const uint THREADS = 64;
const uint TURNS = 4; /* head_dim is 256 at most */
const uint LOWEST = 0xff800000u; /* bits of minus infinity */

shared float largest[THREADS]; /* of every 64th part */
shared float weights[THREADS], totals[THREADS];

vec2 sums_of(uint part) {
  return sums[(part * push.rows + gl_WorkGroupID.y) * push.heads + gl_WorkGroupID.x];
}

float largest_score() {
  const uint thread = gl_LocalInvocationID.x;
  float found = uintBitsToFloat(LOWEST);
  for (uint part = thread; part < push.parts; part += THREADS) found = max(found, sums_of(part).x);
  largest[thread] = found;
  barrier();
  for (uint i = 0; i < THREADS; i++) found = max(found, largest[i]);
  return found;
}

/* Weights of parts first .. first + 64. Where all scores of all parts are minus infinity, they are NaN. */
void weigh_parts(uint first, float top) {
  const uint thread = gl_LocalInvocationID.x;
  if (first + thread >= push.parts) return;
  const vec2 sum = sums_of(first + thread);
  weights[thread] = exp_f32(sum.x - top);
  totals[thread] = weights[thread] * sum.y;
}

/* mixed / total; infinite values stay so. */
float mean(float mixed, float total) { return is_finite(mixed) ? quotient(mixed, total) : mixed * total; }

void main() {
  const uint head = gl_WorkGroupID.y * push.heads + gl_WorkGroupID.x;
  const uint part_width = push.rows * push.heads * push.head_dim;
  const float top = largest_score();
  float total = 0.0, mixed[TURNS] = float[](0.0, 0.0, 0.0, 0.0);
  for (uint first = 0; first < push.parts; first += THREADS) {
    barrier();
    weigh_parts(first, top);
    barrier();
    for (uint i = 0; i < min(THREADS, push.parts - first); i++) {
      total += totals[i];
      [[unroll]] for (uint turn = 0; turn < TURNS; turn++) {
        const uint dim = turn * THREADS + gl_LocalInvocationID.x;
        if (dim < push.head_dim)
          mixed[turn] = fma(weights[i], mixes[(first + i) * part_width + head * push.head_dim + dim], mixed[turn]);
      }
    }
  }
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++) {
    const uint dim = turn * THREADS + gl_LocalInvocationID.x;
    if (dim < push.head_dim) y[head * push.head_dim + dim] = mean(mixed[turn], total);
  }
}
