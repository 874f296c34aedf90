/* The norm of a head and the rotation of its halves (i, i + head_dim / 2); a workgroup a head. The heads of two values
 * follow each other along x, each with a weight of its own. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_HEADS
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint TURNS = 2; /* pairs that a thread takes: ceil(head_dim / 2 / 64), 2 at most */

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 2) readonly buffer Table { float table[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 4) readonly buffer OtherX { float other_x[]; };
layout(std430, set = 0, binding = 5) readonly buffer OtherWeight { float other_weight[]; };
layout(std430, set = 0, binding = 6) writeonly buffer OtherY { float other_y[]; };

const uint THREADS = 64, MOST_TURNS = 2;

shared vec4 sums[THREADS / 4];

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

/* The sum of every thread's value, in one order; called once, by all threads. */
float sum_over_threads(float value) {
  const uint thread = gl_LocalInvocationIndex;
  sums[thread / 4][thread % 4] = value;
  barrier();
  vec4 sum = sums[0];
  [[unroll]] for (uint i = 1; i < THREADS / 4; i++) sum += sums[i];
  return sum_of(sum);
}

void main() {
  const uint thread = gl_LocalInvocationIndex, row = gl_WorkGroupID.y, half_dim = push.head_dim / 2;
  const bool other = gl_WorkGroupID.x >= push.heads;
  const uint head = gl_WorkGroupID.x - (other ? push.heads : 0), heads = other ? push.others : push.heads;
  const uint from = (row * heads + head) * push.head_dim;
  const uint to = ((push.y_first + row) * heads + head) * push.head_dim;
  vec2 value[MOST_TURNS], gain[MOST_TURNS], turn[MOST_TURNS]; /* both halves; cosine and sine */
  float squares = 0.0;
  [[unroll]] for (uint k = 0; k < MOST_TURNS; k++) {
    if (k < TURNS) {
      const uint i = min(k * THREADS + thread, half_dim - 1);
      turn[k] = vec2(table[2 * row * half_dim + i], table[(2 * row + 1) * half_dim + i]);
      if (other) {
        value[k] = vec2(other_x[from + i], other_x[from + half_dim + i]);
        gain[k] = vec2(other_weight[i], other_weight[half_dim + i]);
      } else {
        value[k] = vec2(x[from + i], x[from + half_dim + i]);
        gain[k] = vec2(weight[i], weight[half_dim + i]);
      }
    }
  }
  [[unroll]] for (uint k = 0; k < MOST_TURNS; k++)
    if (k < TURNS) squares += mix(0.0, dot(value[k], value[k]), k * THREADS + thread < half_dim);
  const float factor = rsqrt_f32(sum_over_threads(squares) * push.inverse + push.eps);
  [[unroll]] for (uint k = 0; k < MOST_TURNS; k++) {
    const uint i = k * THREADS + thread;
    if (k < TURNS && i < half_dim) {
      vec2 halves = value[k] * factor * gain[k];
      if (push.rotate != 0)
        halves = vec2(halves.x * turn[k].x - halves.y * turn[k].y, halves.y * turn[k].x + halves.x * turn[k].y);
      if (other) {
        other_y[to + i] = halves.x;
        other_y[to + half_dim + i] = halves.y;
      } else {
        y[to + i] = halves.x;
        y[to + half_dim + i] = halves.y;
      }
    }
  }
}
