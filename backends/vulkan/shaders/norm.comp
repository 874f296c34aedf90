/* y = x / sqrt(mean(x^2) + eps) * weight, a workgroup a row. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_NORM
#include "push.h"
#define SIDE 16
#include "row.glsl"

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

const uint KEPT = 20; /* elements that a thread holds; those of wider rows are read twice */

void main() {
  const uint thread = gl_LocalInvocationIndex, first = gl_WorkGroupID.x * push.width;
  float kept[KEPT], gain[KEPT], squares = 0.0;
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    const uint i = k * THREADS + thread;
    kept[k] = gain[k] = 0.0;
    if (i < push.width) {
      kept[k] = x[first + i];
      gain[k] = weight[i];
    }
  }
  [[unroll]] for (uint k = 0; k < KEPT; k++) squares += kept[k] * kept[k];
  for (uint i = KEPT * THREADS + thread; i < push.width; i += THREADS) squares += x[first + i] * x[first + i];
  const float factor = norm_factor(squares, push.width, push.eps);
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    const uint i = k * THREADS + thread;
    if (i < push.width) y[first + i] = kept[k] * factor * gain[k];
  }
  for (uint i = KEPT * THREADS + thread; i < push.width; i += THREADS) y[first + i] = x[first + i] * factor * weight[i];
}
