/* y = silu(gate) * up, silu(g) = g / (1 + e^-g); a workgroup takes pieces of one row. With FRAGMENTS y is also prepared
 * for products on matrix units, its last group of columns, too, of which a row may have a part; and gate and up may come in
 * sums, and are written. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_ACT
#include "push.h"
#include "numbers.glsl"
#include "pieces.glsl"
#include "sums.glsl"

#ifdef FRAGMENTS
#define INPUT writeonly
#else
#define INPUT readonly
#endif
layout(std430, set = 0, binding = 0) INPUT buffer Gate { float gate[]; };
layout(std430, set = 0, binding = 0) INPUT buffer Gate2 { vec2 gate2[]; };
layout(std430, set = 0, binding = 1) INPUT buffer Up { float up[]; };
layout(std430, set = 0, binding = 1) INPUT buffer Up2 { vec2 up2[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y2 { vec2 y2[]; };

#ifdef FRAGMENTS
#define PREPARE_BINDINGS 4
#define PREPARE_CONSTANTS 2
#include "prepare.glsl"
#include "fragments.glsl"

layout(constant_id = 5) const uint GATE_SPLITS = 1;
layout(constant_id = 6) const uint UP_SPLITS = 1;

layout(std430, set = 0, binding = 7) readonly buffer GateSums { vec2 gate_sums[]; };
layout(std430, set = 0, binding = 8) readonly buffer UpSums { vec2 up_sums[]; };

ADD_SPLITS(vec2, load_gate, gate_sums, GATE_SPLITS)
ADD_SPLITS(vec2, load_up, up_sums, UP_SPLITS)
#else
vec2 load_gate(uint row, uint piece, uint pieces) {
  if (COLUMNS == 2) return gate2[row * pieces + piece];
  return vec2(gate[row * pieces + piece], 0.0);
}

vec2 load_up(uint row, uint piece, uint pieces) {
  if (COLUMNS == 2) return up2[row * pieces + piece];
  return vec2(up[row * pieces + piece], 0.0);
}
#endif

void store_y(uint piece, vec2 value) {
  if (COLUMNS == 2)
    y2[piece] = value;
  else
    y[piece] = value.x;
}

/* Above 20 and below -80 the sum is 1 and e^-g in f32. Below, e^g is taken as two factors: it may be none of f32's
 * normal numbers where the product is. */
float silu_times(float g, float factor) {
  if (g >= 20.0) return g * factor;
  if (g < -80.0) {
    const float root = exp_f32(0.5 * g);
    precise const float product = (g * root) * (root * factor);
    return product;
  }
  return quotient(g, 1.0 + exp_f32(-g)) * factor;
}

void main() {
  const uint row = gl_WorkGroupID.y, pieces = push.width / COLUMNS, first = row * pieces;
  const uint step = gl_NumWorkGroups.x * THREADS;
#ifdef FRAGMENTS
  const uint end = groups_of(push.width) * 16, place = load_place(row);
#else
  const uint end = pieces;
#endif
  for (uint from = gl_WorkGroupID.x * THREADS; from < end; from += step) {
    const uint own = from + gl_LocalInvocationIndex, piece = min(own, pieces - 1);
    const vec2 g = load_gate(row, piece, pieces), u = load_up(row, piece, pieces);
#ifdef FRAGMENTS
    const vec2 field = load_field(piece);
    if (GATE_SPLITS > 1 && own < pieces) gate2[first + piece] = g;
    if (UP_SPLITS > 1 && own < pieces) up2[first + piece] = u;
#endif
    vec2 value = vec2(silu_times(g.x, u.x), 0.0);
    if (COLUMNS == 2) value.y = silu_times(g.y, u.y);
    if (own < pieces) store_y(first + piece, value);
#ifdef FRAGMENTS
    prepare_pair(place, row, own, groups_of(push.width), own < pieces ? apply_field(HAS_FIELD, value, field) : vec2(0.0));
#endif
  }
}
