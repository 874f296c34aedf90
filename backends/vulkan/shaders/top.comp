/* The best logits of a chunk of a row, largest first, equal ones by lower token. Logits are handled as bits. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_TOP
#include "push.h"
#include "best.glsl"

layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) readonly buffer Logits { uint logits[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Values { uint values[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Tokens { int tokens[]; };
layout(set = 0, binding = 3, std430) buffer Flags { uint flags[]; };

const uint TURNS = 16; /* a chunk has 4096 elements at most */

uint keys[TURNS]; /* of elements thread + 256 turn; 0: past the end, or picked */

void load_keys() {
  const uint first = gl_WorkGroupID.x * push.chunk, row = gl_WorkGroupID.y * push.width;
  bool nan = false;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++) {
    const uint element = turn * THREADS + gl_LocalInvocationID.x;
    keys[turn] = 0u;
    if (element < push.chunk && first + element < push.width) {
      const uint bits = logits[row + first + element];
      nan = nan || (bits & 0x7fffffffu) > 0x7f800000u;
      keys[turn] = key_of(bits);
    }
  }
  if (nan) atomicOr(flags[0], 1u);
}

uvec2 own_best() {
  uvec2 best = NOTHING;
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++)
    if (keys[turn] > best.x) best = uvec2(keys[turn], turn * THREADS + gl_LocalInvocationID.x);
  return best;
}

void forget(uint element) {
  [[unroll]] for (uint turn = 0; turn < TURNS; turn++)
    if (element == turn * THREADS + gl_LocalInvocationID.x) keys[turn] = 0u;
}

void main() {
  const uint to = (gl_WorkGroupID.y * push.chunks + gl_WorkGroupID.x) * push.top;
  load_keys();
  offers[gl_LocalInvocationID.x] = own_best();
  collect_offers();
  for (uint pick = 0; pick < push.top; pick++) {
    const uvec2 best = best_offer();
    const bool none = best.x == 0u;
    if (gl_LocalInvocationID.x == (none ? 0u : best.y % THREADS)) {
      const uint token = gl_WorkGroupID.x * push.chunk + best.y;
      values[to + pick] = none ? 0xff800000u : logits[gl_WorkGroupID.y * push.width + token];
      tokens[to + pick] = none ? -1 : int(token);
      if (!none) forget(best.y);
      offers[gl_LocalInvocationID.x] = own_best();
    }
    collect_offers();
  }
}
