/* h += conv(x, d, base, 1); norm = h / sqrt(mean(h^2) + eps) * weight. A workgroup a row; of h it reads its own. All
 * loads of a thread's pieces and of their first two taps come before the first sum. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_OUT
#include "push.h"
#include "row.glsl"
#define SIDE 1
#define BINDING 1
#include "convolution.glsl"

layout(std430, set = 0, binding = 0) buffer H { float h[]; };
layout(std430, set = 0, binding = 0) buffer H2 { vec2 h2[]; };
layout(std430, set = 0, binding = 4) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 4) readonly buffer Weight2 { vec2 weight2[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Norm { float norm[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Norm2 { vec2 norm2[]; };

vec2 load_h(uint piece) {
  if (COLUMNS == 2) return h2[piece];
  return vec2(h[piece], 0.0);
}

vec2 load_weight(uint piece) {
  if (COLUMNS == 2) return weight2[piece];
  return vec2(weight[piece], 0.0);
}

void store_h(uint piece, vec2 value) {
  if (COLUMNS == 2)
    h2[piece] = value;
  else
    h[piece] = value.x;
}

void store_norm(uint piece, vec2 value) {
  if (COLUMNS == 2)
    norm2[piece] = value;
  else
    norm[piece] = value.x;
}

/* Of a piece behind those that are kept. */
vec2 sum_late(uint row, uint pieces, uint piece) {
  vec2 sum = vec2(0.0);
  for (uint tap = 0; tap < TAPS && tap <= row; tap++) sum = add_tap(sum, load_tap(row, tap, piece), row, tap);
  return load_h(row * pieces + piece) + sum;
}

void main() {
  const uint thread = gl_LocalInvocationIndex, row = gl_WorkGroupID.x;
  const uint pieces = push.width / COLUMNS, first = row * pieces;
  vec2 kept[KEPT], gain[KEPT], squares = vec2(0.0);
  Tap early[EARLY * KEPT];
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    if (k < TURNS) {
      const uint piece = min(k * THREADS + thread, pieces - 1);
      early[EARLY * k] = load_tap(row, 0, piece);
      if (TAPS > 1) early[EARLY * k + 1] = load_tap(row, 1, piece);
      kept[k] = load_h(first + piece);
      gain[k] = load_weight(piece);
    }
  }
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    if (k < TURNS) {
      const uint piece = k * THREADS + thread;
      vec2 sum = add_tap(vec2(0.0), early[EARLY * k], row, 0);
      if (TAPS > 1) sum = add_tap(sum, early[EARLY * k + 1], row, 1);
      if (TAPS > EARLY) sum = add_late_taps(sum, row, min(piece, pieces - 1));
      kept[k] += sum;
      add_to_slot(squares, k, mix(0.0, square(kept[k]), piece < pieces));
    }
  }
  for (uint k = KEPT, piece = KEPT * THREADS + thread; WIDER && piece < pieces; k++, piece += THREADS) {
    const vec2 value = sum_late(row, pieces, piece);
    store_h(first + piece, value);
    add_to_slot(squares, k, square(value));
  }
  const float factor = norm_factor(squares, push.inverse, push.eps);
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    const uint piece = k * THREADS + thread;
    if (k < TURNS && piece < pieces) {
      store_h(first + piece, kept[k]);
      store_norm(first + piece, kept[k] * factor * gain[k]);
    }
  }
  for (uint piece = KEPT * THREADS + thread; WIDER && piece < pieces; piece += THREADS)
    store_norm(first + piece, load_h(first + piece) * factor * load_weight(piece));
}
