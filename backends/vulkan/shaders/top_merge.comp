/* The best of all chunks' best. A thread offers the best of its entries that come behind the last pick. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_TOP_MERGE
#include "push.h"
#include "best.glsl"

layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1, std430) readonly buffer Tokens { int tokens[]; };
layout(set = 0, binding = 2, std430) writeonly buffer BestValues { uint best_values[]; };
layout(set = 0, binding = 3, std430) writeonly buffer BestTokens { int best_tokens[]; };

uint offered; /* where this thread's offer stands */

uvec2 own_best(uvec2 last) {
  const uint row = gl_WorkGroupID.x * push.count;
  uvec2 best = NOTHING;
  for (uint i = gl_LocalInvocationID.x; i < push.count; i += THREADS) {
    const int token = tokens[row + i];
    const uvec2 entry = token < 0 ? NOTHING : uvec2(key_of(values[row + i]), uint(token));
    if (!better(last, entry) || !better(entry, best)) continue;
    best = entry;
    offered = row + i;
  }
  return best;
}

void main() {
  uvec2 own = own_best(uvec2(NEVER, 0u));
  offers[gl_LocalInvocationID.x] = own;
  collect_offers();
  for (uint pick = 0; pick < push.top; pick++) {
    const uvec2 best = best_offer();
    const uint to = gl_WorkGroupID.x * push.top + pick;
    if (best == NOTHING && gl_LocalInvocationID.x == 0u) {
      best_values[to] = 0xff800000u;
      best_tokens[to] = -1;
    }
    if (best != NOTHING && best == own) {
      best_values[to] = values[offered];
      best_tokens[to] = int(best.y);
      own = own_best(best);
      offers[gl_LocalInvocationID.x] = own;
    }
    collect_offers();
  }
}
