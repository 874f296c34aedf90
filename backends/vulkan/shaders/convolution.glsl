/* The convolution over rows, of side SIDE: sum over taps o of (base[SIDE][o] + d[row][SIDE][o]) * x[row - o]. The
 * includer includes sums.glsl, and defines SIDE and BINDING, the first of three. SPLIT_D or SPLIT_X: where a product left that value in SPLITS
 * sums (sums.glsl), a constant; then it is written, too. */
#ifndef CONVOLUTION_GLSL
#define CONVOLUTION_GLSL
#include "pieces.glsl"

layout(constant_id = 3) const uint GROUP = 1; /* channels that share a coefficient of d */
layout(constant_id = 4) const uint TAPS = 1;

#ifdef SPLIT_X
#define X_ACCESS writeonly
#else
#define X_ACCESS readonly
#endif
#ifdef SPLIT_D
#define D_ACCESS writeonly
#else
#define D_ACCESS readonly
#endif
layout(std430, set = 0, binding = BINDING) X_ACCESS buffer X { float x[]; };
layout(std430, set = 0, binding = BINDING) X_ACCESS buffer X2 { vec2 x2[]; };
layout(std430, set = 0, binding = BINDING + 1) D_ACCESS buffer D { float d[]; };
layout(std430, set = 0, binding = BINDING + 2) readonly buffer Base { float base[]; };
layout(std430, set = 0, binding = BINDING + 2) readonly buffer Base2 { vec2 base2[]; };

#ifdef SPLIT_D
layout(std430, set = 0, binding = SPLIT_D) readonly buffer DSums { float d_sums[]; };
#endif
#ifdef SPLIT_X
layout(std430, set = 0, binding = SPLIT_X) readonly buffer XSums { vec2 x_sums[]; }; /* rows are even */
#endif

const uint EARLY = 2; /* taps that are loaded before the first is summed */

struct Tap {
  vec2 base;
  vec2 dynamic;
  vec2 x;
};

#ifdef SPLIT_X
ADD_SPLITS(vec2, load_x, x_sums, SPLITS)
#else
vec2 load_x(uint row, uint piece, uint pieces) {
  if (COLUMNS == 2) return x2[row * pieces + piece];
  return vec2(x[row * pieces + piece], 0.0);
}
#endif

uint d_width() { return 2 * TAPS * push.groups; }

#ifdef SPLIT_D
ADD_SPLITS(float, load_d, d_sums, SPLITS)
#else
float load_d(uint row, uint at, uint width) { return d[row * width + at]; }
#endif

vec2 load_base(uint piece) {
  if (COLUMNS == 2) return base2[piece];
  return vec2(base[piece], 0.0);
}

/* Of a piece's columns, which share a group where groups are even. */
vec2 load_dynamic(uint row, uint first, uint piece) {
  const uint column = piece * COLUMNS;
  const float low = load_d(row, first + column / GROUP, d_width());
  if (COLUMNS == 1) return vec2(low, 0.0);
  if (GROUP % 2 == 0) return vec2(low);
  return vec2(low, load_d(row, first + (column + 1) / GROUP, d_width()));
}

/* Without a branch: where there is no row so far back, row 0 is loaded and add_tap leaves it out. */
Tap load_tap(uint row, uint tap, uint piece) {
  const uint pieces = push.width / COLUMNS, side_tap = SIDE * TAPS + tap;
  return Tap(load_base(side_tap * pieces + piece),
             load_dynamic(row, side_tap * push.groups, piece),
             load_x(row - min(tap, row), piece, pieces));
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
