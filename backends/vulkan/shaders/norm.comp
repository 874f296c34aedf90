/* y = x / sqrt(mean(x^2) + eps) * weight, a workgroup a row. All of a thread's loads come before the first sum. With COPY
 * also h = x: x is where the host wrote it, and far away, so it is read once where a row is kept whole. With FRAGMENTS, and such rows, y is also prepared for products on matrix
 * units. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_NORM
#include "push.h"
#include "row.glsl"

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 0) readonly buffer X2 { vec2 x2[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weight2 { vec2 weight2[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y2 { vec2 y2[]; };

#ifdef COPY
layout(std430, set = 0, binding = 3) writeonly buffer H { float h[]; };
layout(std430, set = 0, binding = 3) writeonly buffer H2 { vec2 h2[]; };
#endif

#ifdef FRAGMENTS
#define PREPARE_BINDINGS 5
#define PREPARE_CONSTANTS 3
#define PREPARE_TURNS TURNS
#include "prepare.glsl"
#include "fragments.glsl"
#endif

vec2 load_x(uint piece) {
  if (COLUMNS == 2) return x2[piece];
  return vec2(x[piece], 0.0);
}

vec2 load_weight(uint piece) {
  if (COLUMNS == 2) return weight2[piece];
  return vec2(weight[piece], 0.0);
}

void store_y(uint piece, vec2 value) {
  if (COLUMNS == 2)
    y2[piece] = value;
  else
    y[piece] = value.x;
}

/* What the kernel gives of a piece of the row. */
void store(uint piece, vec2 value, vec2 normed) {
  store_y(piece, normed);
#ifdef COPY
  if (COLUMNS == 2)
    h2[piece] = value;
  else
    h[piece] = value.x;
#endif
}

void main() {
  const uint thread = gl_LocalInvocationIndex, pieces = push.width / COLUMNS, first = gl_WorkGroupID.x * pieces;
  vec2 kept[KEPT], gain[KEPT], squares = vec2(0.0);
#ifdef FRAGMENTS
  vec2 field[KEPT];
  const uint place = load_place(gl_WorkGroupID.x);
#endif
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    if (k < TURNS) {
      const uint piece = min(k * THREADS + thread, pieces - 1);
      kept[k] = load_x(first + piece);
      gain[k] = load_weight(piece);
#ifdef FRAGMENTS
      field[k] = load_field(piece);
#endif
    }
  }
  [[unroll]] for (uint k = 0; k < KEPT; k++)
    if (k < TURNS) add_to_slot(squares, k, mix(0.0, square(kept[k]), k * THREADS + thread < pieces));
  for (uint k = KEPT, piece = KEPT * THREADS + thread; WIDER && piece < pieces; k++, piece += THREADS) {
    const vec2 value = load_x(first + piece);
    add_to_slot(squares, k, square(value));
  }
  const float factor = norm_factor(squares, push.inverse, push.eps);
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    const uint piece = k * THREADS + thread;
    precise const vec2 normed = kept[k] * factor * gain[k];
    if (k < TURNS && piece < pieces) store(first + piece, kept[k], normed);
#ifdef FRAGMENTS
    if (k < TURNS) field[k] = piece < pieces ? apply_field(HAS_FIELD, normed, field[k]) : vec2(0.0);
#endif
  }
#ifdef FRAGMENTS
  prepare_row(0, place, gl_WorkGroupID.x, field);
#endif
  for (uint piece = KEPT * THREADS + thread; WIDER && piece < pieces; piece += THREADS) {
    const vec2 value = load_x(first + piece);
    store(first + piece, value, value * factor * load_weight(piece));
  }
}
