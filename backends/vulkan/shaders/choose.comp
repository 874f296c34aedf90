/* Walks the rows: each row's best score after the token chosen before it, equal ones by candidate order. Adds 2 to the
 * flags where a score on the way is NaN; such a score loses to all others. Binding 3 has no use here. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_CHOOSE
#include "push.h"
#include "best.glsl"

layout(local_size_x = 256) in; /* one a candidate */
layout(set = 0, binding = 0, std430) readonly buffer BestValues { float best_values[]; };
layout(set = 0, binding = 1, std430) readonly buffer BestTokens { int best_tokens[]; };
layout(set = 0, binding = 2, std430) readonly buffer Pairs { float pairs[]; };
layout(set = 0, binding = 4, std430) buffer Flags { uint flags[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Result { uint result[]; };

shared uint keys[2][THREADS]; /* of even and of odd rows */
shared uint seen;

void score_candidate(uint row, uint before, uint candidate) {
  const uint at = row * push.top + candidate;
  const float score = best_values[at] + pairs[(row * push.top + before) * push.top + candidate];
  const uint bits = floatBitsToUint(score);
  if ((bits & 0x7fffffffu) > 0x7f800000u) atomicOr(seen, 2u);
  keys[row % 2][candidate] = key_of(bits);
  result[2 * push.rows + at] = uint(best_tokens[at]);
  result[2 * push.rows + push.rows * push.top + at] = bits;
}

uint best_candidate(uint row) {
  uint best = 0;
  for (uint i = 1; i < push.top; i++)
    if (keys[row % 2][i] > keys[row % 2][best]) best = i;
  return best;
}

void main() {
  const uint thread = gl_LocalInvocationID.x;
  if (thread == 0u) seen = flags[0];
  barrier();
  uint before = 0u;
  for (uint row = 0; row < push.rows; row++) {
    if (thread < push.top) score_candidate(row, before, thread);
    barrier();
    before = best_candidate(row);
    if (thread == 0u) {
      result[row] = uint(best_tokens[row * push.top + before]);
      result[push.rows + row] = uint(best_tokens[row * push.top]);
    }
  }
  barrier();
  if (thread == 0u) {
    flags[0] = seen;
    result[2 * push.rows + 2 * push.rows * push.top] = seen;
  }
}
