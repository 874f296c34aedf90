/* The sum of the parts of attend: each is scaled to the largest score of all. A workgroup is a head of a row; all of
 * its loads are under way at once. With FRAGMENTS y is also prepared for products on matrix units, whose groups of columns
 * lie in one head each; workgroups past the last head prepare what groups there are past the last column. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_MIX
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 128, local_size_x_id = 0) in;
layout(set = 0, binding = 0, std430) readonly buffer Sums { vec2 sums[]; };
layout(set = 0, binding = 1, std430) readonly buffer Mixes { vec2 mixes[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { vec2 y[]; };

const uint THREADS = gl_WorkGroupSize.x; /* 128 or 256 */
const uint MOST_PARTS = 64;
const uint LANES = 64;               /* pairs of numbers at a time */
const uint GROUPS = THREADS / LANES; /* a thread has every GROUPS-th part */
const uint TURNS = MOST_PARTS / GROUPS;
const uint LOWEST = 0xff800000u; /* bits of minus infinity */

shared vec4 largest[MOST_PARTS / 4], totals[MOST_PARTS / 4];
shared float weights[MOST_PARTS];
shared vec2 partial[THREADS];

/* Where the row's head lies in a part. */
uint place_in(uint part) { return (part * push.rows + gl_WorkGroupID.y) * push.heads + gl_WorkGroupID.x; }

/* Weights of the parts, 0 for those that are none. Where all scores of all parts are minus infinity, they are NaN. */
void weigh_parts(vec2 own) {
  const uint thread = gl_LocalInvocationID.x;
  if (thread < MOST_PARTS) largest[thread / 4][thread % 4] = own.x;
  barrier();
  if (thread < MOST_PARTS) {
    vec4 tops = largest[0];
    [[unroll]] for (uint i = 1; i < MOST_PARTS / 4; i++) tops = max(tops, largest[i]);
    const float weight = exp_f32(own.x - max(max(tops.x, tops.y), max(tops.z, tops.w)));
    weights[thread] = weight;
    totals[thread / 4][thread % 4] = weight * own.y;
  }
  barrier();
}

float sum_of_exp() {
  precise vec4 sum = totals[0];
  [[unroll]] for (uint i = 1; i < MOST_PARTS / 4; i++) sum += totals[i];
  precise const float all = (sum.x + sum.y) + (sum.z + sum.w);
  return all;
}

#ifdef FRAGMENTS
#define PREPARE_BINDINGS 4
#define PREPARE_CONSTANTS 1
#include "prepare.glsl"
#include "fragments.glsl"

const uint NEVER = 0xffff0000u; /* no pair of a row */

uint row_groups() { return groups_of(push.heads * push.head_dim); }

void prepare_nothing() {
  const uint halves = push.head_dim / 2, lane = gl_LocalInvocationID.x % LANES;
  for (uint first = 0; first < halves; first += LANES) {
    const bool takes = gl_LocalInvocationID.x < LANES && first + lane < halves;
    prepare_pair(load_place(gl_WorkGroupID.y), gl_WorkGroupID.y,
                 takes ? gl_WorkGroupID.x * halves + first + lane : NEVER, row_groups(), vec2(0.0));
  }
}
#endif

/* mixed / total; infinite values stay so. */
float mean(float mixed, float total) { return is_finite(mixed) ? quotient(mixed, total) : mixed * total; }

vec2 mean_of_groups() {
  precise vec2 sum = partial[gl_LocalInvocationID.x];
  [[unroll]] for (uint g = 1; g < GROUPS; g++) sum += partial[gl_LocalInvocationID.x + g * LANES];
  const float total = sum_of_exp();
  return vec2(mean(sum.x, total), mean(sum.y, total));
}

void main() {
  const uint thread = gl_LocalInvocationID.x, lane = thread % LANES, group = thread / LANES;
  const uint halves = push.head_dim / 2, last = push.parts - 1;
#ifdef FRAGMENTS
  if (gl_WorkGroupID.x >= push.heads) {
    prepare_nothing();
    return;
  }
#endif
#ifdef FRAGMENTS
  const uint place = load_place(gl_WorkGroupID.y);
#endif
  vec2 own = sums[place_in(min(thread, last))];
  if (thread > last) own = vec2(uintBitsToFloat(LOWEST), 0.0);
  for (uint first = 0; first < halves; first += LANES) {
    vec2 found[TURNS];
    [[unroll]] for (uint i = 0; i < TURNS; i++)
      found[i] = mixes[place_in(min(group + i * GROUPS, last)) * halves + min(first + lane, halves - 1)];
#ifdef FRAGMENTS
    const uint pair = gl_WorkGroupID.x * halves + first + lane;
    const vec2 field = load_field(min(pair, push.heads * halves - 1));
#endif
    if (first == 0) weigh_parts(own);
    vec2 sum = vec2(0.0);
    [[unroll]] for (uint i = 0; i < TURNS; i++) {
      precise const vec2 more = fma(vec2(weights[group + i * GROUPS]), found[i], sum);
      if (group + i * GROUPS <= last) sum = more;
    }
    barrier();
    partial[thread] = sum;
    barrier();
    const bool writes = group == 0 && first + lane < halves;
    const vec2 value = writes ? mean_of_groups() : vec2(0.0);
    if (writes) y[place_in(0) * halves + first + lane] = value;
#ifdef FRAGMENTS
    prepare_pair(place, gl_WorkGroupID.y, writes ? pair : NEVER, row_groups(), apply_field(HAS_FIELD, value, field));
#endif
  }
}
