/* The convolution over rows, of side SIDE: sum over taps o of (base[SIDE][o] + d[row][SIDE][o]) * x[row - o]. The
 * includer defines SIDE and BINDING, the first of three. */
#ifndef CONVOLUTION_GLSL
#define CONVOLUTION_GLSL
#include "pieces.glsl"

layout(constant_id = 3) const uint GROUP = 1; /* channels that share a coefficient of d */
layout(constant_id = 4) const uint TAPS = 1;

layout(std430, set = 0, binding = BINDING) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = BINDING) readonly buffer X2 { vec2 x2[]; };
layout(std430, set = 0, binding = BINDING + 1) readonly buffer D { float d[]; };
layout(std430, set = 0, binding = BINDING + 2) readonly buffer Base { float base[]; };
layout(std430, set = 0, binding = BINDING + 2) readonly buffer Base2 { vec2 base2[]; };

const uint EARLY = 2; /* taps that are loaded before the first is summed */

struct Tap {
  vec2 base;
  vec2 dynamic;
  vec2 x;
};

vec2 load_x(uint piece) {
  if (COLUMNS == 2) return x2[piece];
  return vec2(x[piece], 0.0);
}

vec2 load_base(uint piece) {
  if (COLUMNS == 2) return base2[piece];
  return vec2(base[piece], 0.0);
}

/* Of a piece's columns, which share a group where groups are even. */
vec2 load_dynamic(uint first, uint piece) {
  const uint column = piece * COLUMNS;
  const float low = d[first + column / GROUP];
  if (COLUMNS == 1) return vec2(low, 0.0);
  if (GROUP % 2 == 0) return vec2(low);
  return vec2(low, d[first + (column + 1) / GROUP]);
}

/* Without a branch: where there is no row so far back, row 0 is loaded and add_tap leaves it out. */
Tap load_tap(uint row, uint tap, uint piece) {
  const uint pieces = push.width / COLUMNS, side_tap = SIDE * TAPS + tap;
  return Tap(load_base(side_tap * pieces + piece),
             load_dynamic((row * 2 * TAPS + side_tap) * push.groups, piece),
             load_x((row - min(tap, row)) * pieces + piece));
}

vec2 add_tap(vec2 sum, Tap loaded, uint row, uint tap) {
  precise const vec2 more = sum + (loaded.base + loaded.dynamic) * loaded.x;
  return mix(sum, more, bvec2(tap <= row));
}

/* The taps behind the early ones. */
vec2 add_late_taps(vec2 sum, uint row, uint piece) {
  for (uint tap = EARLY; tap < TAPS && tap <= row; tap++) sum = add_tap(sum, load_tap(row, tap, piece), row, tap);
  return sum;
}
#endif
