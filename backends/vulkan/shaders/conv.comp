/* y = conv(x, d, base, 0): a piece of a row a thread. With FRAGMENTS y is also prepared for products on matrix units, and
 * d may come in sums; then each workgroup of a row writes a share of d. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_CONV
#include "push.h"
#define SIDE 0
#define BINDING 0
#ifdef FRAGMENTS
#define SPLIT_D 8
layout(constant_id = 8) const uint SPLITS = 1;
#endif
#include "sums.glsl"
#include "convolution.glsl"

layout(std430, set = 0, binding = 3) writeonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Y2 { vec2 y2[]; };

#ifdef FRAGMENTS
#define PREPARE_BINDINGS 5
#define PREPARE_CONSTANTS 5
#include "prepare.glsl"
#include "fragments.glsl"
#endif

void store_y(uint piece, vec2 value) {
  if (COLUMNS == 2)
    y2[piece] = value;
  else
    y[piece] = value.x;
}

#ifdef FRAGMENTS
/* This workgroup's share of a row of d. */
uint share() { return (d_width() + gl_NumWorkGroups.x - 1) / gl_NumWorkGroups.x; }

float load_own_d() {
  return load_d(gl_WorkGroupID.y, min(gl_WorkGroupID.x * share() + gl_LocalInvocationIndex, d_width() - 1), d_width());
}

void write_d(float own) {
  const uint row = gl_WorkGroupID.y, first = gl_WorkGroupID.x * share(), end = min(first + share(), d_width());
  const uint at = first + gl_LocalInvocationIndex;
  if (at < end) d[row * d_width() + at] = own;
  for (uint later = at + THREADS; later < end; later += THREADS)
    d[row * d_width() + later] = load_d(row, later, d_width());
}
#endif

void main() {
  const uint row = gl_WorkGroupID.y, pieces = push.width / COLUMNS;
  const uint piece = min(gl_GlobalInvocationID.x, pieces - 1);
  Tap early[EARLY];
  early[0] = load_tap(row, 0, piece);
  if (TAPS > 1) early[1] = load_tap(row, 1, piece);
#ifdef FRAGMENTS
  const vec2 field = load_field(piece);
  const uint place = load_place(row);
  const float own_d = SPLITS > 1 ? load_own_d() : 0.0;
#endif
  vec2 sum = add_tap(vec2(0.0), early[0], row, 0);
  if (TAPS > 1) sum = add_tap(sum, early[1], row, 1);
  if (TAPS > EARLY) sum = add_late_taps(sum, row, piece);
#ifdef FRAGMENTS
  if (SPLITS > 1) write_d(own_d);
#endif
  const bool inside = gl_GlobalInvocationID.x < pieces;
  if (inside) store_y(row * pieces + piece, sum);
#ifdef FRAGMENTS
  const vec2 value = inside ? apply_field(HAS_FIELD, sum, field) : vec2(0.0);
  prepare_pair(place, row, gl_GlobalInvocationID.x, groups_of(push.width), value);
#endif
}
