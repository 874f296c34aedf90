/* Rows of a codebook as f32, for the candidates of the rows, where the codebook lies in several parts: a workgroup is a
 * candidate. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_GATHER
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer Codebook { uint codebook[]; };
layout(set = 0, binding = 1, std430) readonly buffer Best { uvec2 best[]; }; /* bits of the logit, token */
layout(set = 0, binding = 2, std430) readonly buffer Anchor { int anchor[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { uint y[]; }; /* bits of f32 */

const uint STORAGE_F32 = 0, STORAGE_F16 = 1;

/* The token whose row is wanted; -1: none is. */
int wanted_token(uint row, uint candidate) {
  if (push.predecessor == 0u) return int(best[row * push.top + candidate].y);
  if (row > 0u) return int(best[(row - 1u) * push.top + candidate].y);
  return candidate == 0u ? anchor[0] : -1;
}

uint decode(uint element) {
  if (push.storage == STORAGE_F32) return codebook[element];
  const uint bits = codebook[element >> 1] >> 16 * (element & 1u) & 0xffffu;
  return push.storage == STORAGE_F16 ? floatBitsToUint(decode_f16(bits)) : bits << 16;
}

void main() {
  const uint row = gl_WorkGroupID.x, candidate = gl_WorkGroupID.y;
  const uint token = uint(wanted_token(row, candidate)) - push.token_first; /* below the part: wraps */
  if (token >= push.token_count) return;
  for (uint i = gl_LocalInvocationID.x; i < push.rank; i += 64)
    y[(row * push.top + candidate) * push.rank + i] = decode(token * push.rank + i);
}
