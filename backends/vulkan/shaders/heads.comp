/* The norm of a head and the rotation of its halves (i, i + head_dim / 2); a workgroup a head. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_HEADS
#include "push.h"
#define SIDE 8
#include "row.glsl"

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 2) readonly buffer Table { float table[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint thread = gl_LocalInvocationIndex, head = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
  const uint half_dim = push.head_dim / 2;
  const uint from = (row * push.heads + head) * push.head_dim;
  const uint to = ((push.y_first + row) * push.heads + head) * push.head_dim;
  float squares = 0.0;
  for (uint i = thread; i < push.head_dim; i += THREADS) squares += x[from + i] * x[from + i];
  const float factor = norm_factor(squares, push.head_dim, push.eps);
  for (uint i = thread; i < half_dim; i += THREADS) {
    float low = x[from + i] * factor * weight[i];
    float high = x[from + half_dim + i] * factor * weight[half_dim + i];
    if (push.rotate != 0) {
      const float cosine = table[2 * row * half_dim + i], sine = table[(2 * row + 1) * half_dim + i];
      const float turned = low * cosine - high * sine;
      high = high * cosine + low * sine;
      low = turned;
    }
    y[to + i] = low;
    y[to + half_dim + i] = high;
  }
}
