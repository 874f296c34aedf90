// Rows of x, times the column field where there is one, as the products on matrix units read them. A workgroup takes 16
// groups of 32 columns of a row.
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_PREPARE
#include "push.h"

const uint THREADS = 256;

layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) readonly buffer Columns { float columns[]; };

#define PREPARE_BINDINGS 2
#define PREPARE_CONSTANTS 0
#include "prepare.glsl"

// A column past the last is another one again, and does not count.
float value_at(uint row, uint col) {
  const uint inside = min(col, push.cols - 1);
  precise float value = x[(push.x_first + min(row, push.rows - 1)) * push.x_stride + inside];
  if (push.has_columns != 0) value = value * columns[inside];
  return row < push.rows && col < push.cols ? value : 0;
}

void main() {
  const uint row = gl_WorkGroupID.y, pair = gl_WorkGroupID.x * THREADS + gl_LocalInvocationIndex;
  prepare_pair(load_place(row), row, pair, push.groups, vec2(value_at(row, 2 * pair), value_at(row, 2 * pair + 1)));
}
