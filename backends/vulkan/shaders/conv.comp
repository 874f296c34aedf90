/* y = conv(x, d, base, 0): a piece of a row a thread. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_CONV
#include "push.h"
#define SIDE 0
#define BINDING 0
#include "convolution.glsl"

layout(std430, set = 0, binding = 3) writeonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Y2 { vec2 y2[]; };

void store_y(uint piece, vec2 value) {
  if (COLUMNS == 2)
    y2[piece] = value;
  else
    y[piece] = value.x;
}

void main() {
  const uint row = gl_WorkGroupID.y, pieces = push.width / COLUMNS;
  const uint piece = min(gl_GlobalInvocationID.x, pieces - 1);
  Tap early[EARLY];
  early[0] = load_tap(row, 0, piece);
  if (TAPS > 1) early[1] = load_tap(row, 1, piece);
  vec2 sum = add_tap(vec2(0.0), early[0], row, 0);
  if (TAPS > 1) sum = add_tap(sum, early[1], row, 1);
  if (TAPS > EARLY) sum = add_late_taps(sum, row, piece);
  if (gl_GlobalInvocationID.x < pieces) store_y(row * pieces + piece, sum);
}
