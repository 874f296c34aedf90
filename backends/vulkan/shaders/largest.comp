// The largest magnitude of a row of x, or of x times the column field. Bits order as values do, and NaN above all.
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_LARGEST
#include "push.h"

layout(local_size_x = 128) in;

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) readonly buffer Columns { float columns[]; };
layout(set = 0, binding = 2) writeonly buffer Largest { uint largest[]; };

shared uint found;

void main() {
  if (gl_LocalInvocationIndex == 0) found = 0;
  barrier();
  const uint row = gl_WorkGroupID.x, begin = (push.x_first + row) * push.x_stride;
  uint most = 0;
  for (uint i = gl_LocalInvocationIndex; i < push.cols; i += 128) {
    float value = x[begin + i];
    if (push.has_columns != 0) value *= columns[i];
    most = max(most, floatBitsToUint(value) & 0x7fffffff);
  }
  atomicMax(found, most);
  barrier();
  if (gl_LocalInvocationIndex == 0) largest[row] = found;
}
