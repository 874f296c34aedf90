// y = the sum of what the splits of a product found, in their order.
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_COOP_SUM
#include "push.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer Found { float found[]; }; // [splits][rows][out_rows]
layout(set = 0, binding = 1) writeonly buffer Output { float y[]; };

void main() {
  const uint out_row = gl_WorkGroupID.x * 256 + gl_LocalInvocationIndex, row = gl_WorkGroupID.y;
  if (out_row >= push.out_rows) return;
  float sum = 0;
  for (uint s = 0; s < push.splits; s++) sum += found[(s * push.rows + row) * push.out_rows + out_row];
  y[(push.y_first + row) * push.y_stride + out_row] = sum;
}
