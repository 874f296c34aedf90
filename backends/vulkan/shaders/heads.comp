/* The norm of a head and the rotation of its halves (i, i + head_dim / 2); a workgroup a head. The heads of two values
 * follow each other along x, each with a weight of its own. With SUMS the products x, other x and v may come in sums; they
 * are written, v by workgroups behind the heads. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_HEADS
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint TURNS = 2; /* pairs that a thread takes: ceil(head_dim / 2 / 64), 2 at most */

#ifdef SUMS
#define INPUT writeonly
#else
#define INPUT readonly
#endif
layout(std430, set = 0, binding = 0) INPUT buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 2) readonly buffer Table { float table[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 4) INPUT buffer OtherX { float other_x[]; };
layout(std430, set = 0, binding = 5) readonly buffer OtherWeight { float other_weight[]; };
layout(std430, set = 0, binding = 6) writeonly buffer OtherY { float other_y[]; };

const uint THREADS = 64, MOST_TURNS = 2;

shared vec4 sums[THREADS / 4];

#ifdef SUMS
#include "sums.glsl"
layout(constant_id = 1) const uint SPLITS = 1;
layout(constant_id = 2) const uint OTHER_SPLITS = 1;
layout(constant_id = 3) const uint V_SPLITS = 1;
layout(std430, set = 0, binding = 7) readonly buffer XSums { float x_sums[]; };
layout(std430, set = 0, binding = 8) readonly buffer OtherXSums { float other_x_sums[]; };
layout(std430, set = 0, binding = 9) readonly buffer VSums { float v_sums[]; };
layout(std430, set = 0, binding = 10) writeonly buffer V { float v[]; };

ADD_SPLITS(float, load_x, x_sums, SPLITS)
ADD_SPLITS(float, load_other_x, other_x_sums, OTHER_SPLITS)
ADD_SPLITS(float, load_v, v_sums, V_SPLITS)

void add_v(uint row, uint head) {
  const uint width = push.others * push.head_dim, first = head * push.head_dim;
  float values[2 * MOST_TURNS];
  [[unroll]] for (uint k = 0; k < 2 * MOST_TURNS; k++)
    if (k < 2 * TURNS)
      values[k] = load_v(row, first + min(k * THREADS + gl_LocalInvocationIndex, push.head_dim - 1), width);
  [[unroll]] for (uint k = 0; k < 2 * MOST_TURNS; k++) {
    const uint i = k * THREADS + gl_LocalInvocationIndex;
    if (k < 2 * TURNS && i < push.head_dim) v[row * width + first + i] = values[k];
  }
}
#else
float load_x(uint row, uint column, uint width) { return x[row * width + column]; }

float load_other_x(uint row, uint column, uint width) { return other_x[row * width + column]; }
#endif

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
  const uint width = heads * push.head_dim, from = head * push.head_dim;
#ifdef SUMS
  if (head >= heads) {
    add_v(row, head - heads);
    return;
  }
#endif
  const uint to = ((push.y_first + row) * heads + head) * push.head_dim;
  vec2 value[MOST_TURNS], gain[MOST_TURNS], turn[MOST_TURNS]; /* both halves; cosine and sine */
  float squares = 0.0;
  [[unroll]] for (uint k = 0; k < MOST_TURNS; k++) {
    if (k < TURNS) {
      const uint i = min(k * THREADS + thread, half_dim - 1);
      turn[k] = vec2(table[2 * row * half_dim + i], table[(2 * row + 1) * half_dim + i]);
      if (other) {
        value[k] = vec2(load_other_x(row, from + i, width), load_other_x(row, from + half_dim + i, width));
        gain[k] = vec2(other_weight[i], other_weight[half_dim + i]);
      } else {
        value[k] = vec2(load_x(row, from + i, width), load_x(row, from + half_dim + i, width));
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
#ifdef SUMS
      if (!other && SPLITS > 1) {
        x[row * width + from + i] = value[k].x;
        x[row * width + from + half_dim + i] = value[k].y;
      }
      if (other && OTHER_SPLITS > 1) {
        other_x[row * width + from + i] = value[k].x;
        other_x[row * width + from + half_dim + i] = value[k].y;
      }
#endif
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
