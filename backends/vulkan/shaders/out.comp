/* h += conv(x, d, base, 1); norm = h / sqrt(mean(h^2) + eps) * weight. A workgroup a row; of h it reads its own. All
 * loads of a thread's pieces and of their first two taps come before the first sum. With FRAGMENTS, and rows that are
 * kept whole, norm is also prepared for products on matrix units, from row row_first on, in one form or two; and x may
 * come in sums, of which each workgroup adds its taps' rows, and writes its own. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_OUT
#include "push.h"
#include "row.glsl"
#define SIDE 1
#define BINDING 1
#ifdef FRAGMENTS
#define SPLIT_X 13
layout(constant_id = 10) const uint SPLITS = 1;
#endif
#include "sums.glsl"
#include "convolution.glsl"

layout(std430, set = 0, binding = 0) buffer H { float h[]; };
layout(std430, set = 0, binding = 0) buffer H2 { vec2 h2[]; };
layout(std430, set = 0, binding = 4) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 4) readonly buffer Weight2 { vec2 weight2[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Norm { float norm[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Norm2 { vec2 norm2[]; };

#ifdef FRAGMENTS
#define PREPARE_BINDINGS 7
#define PREPARE_CONSTANTS 5
#define PREPARE_TURNS TURNS
#define PREPARE_TWICE
#include "prepare.glsl"
#include "fragments.glsl"

layout(constant_id = 8) const uint FORMS = 1;
layout(constant_id = 9) const uint HAS_OTHER_FIELD = 0;

layout(std430, set = 0, binding = 12) readonly buffer OtherColumns { vec2 other_columns[]; };

vec2 load_other_field(uint piece) { return HAS_OTHER_FIELD == 0 ? vec2(1.0) : other_columns[piece]; }
#endif

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
#ifdef FRAGMENTS
  vec2 field[KEPT], other_field[KEPT];
  const uint place = load_place(row - push.row_first);
#endif
  Tap early[EARLY * KEPT];
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    if (k < TURNS) {
      const uint piece = min(k * THREADS + thread, pieces - 1);
      early[EARLY * k] = load_tap(row, 0, piece);
      if (TAPS > 1) early[EARLY * k + 1] = load_tap(row, 1, piece);
      kept[k] = load_h(first + piece);
      gain[k] = load_weight(piece);
#ifdef FRAGMENTS
      field[k] = load_field(piece);
      if (FORMS == 2) other_field[k] = load_other_field(piece);
#endif
    }
  }
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    if (k < TURNS) {
      const uint piece = k * THREADS + thread;
#ifdef FRAGMENTS
      if (SPLITS > 1 && piece < pieces) x2[first + piece] = early[EARLY * k].x;
#endif
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
    precise const vec2 normed = kept[k] * factor * gain[k];
    if (k < TURNS && piece < pieces) {
      store_h(first + piece, kept[k]);
      store_norm(first + piece, normed);
    }
#ifdef FRAGMENTS
    if (k < TURNS) {
      field[k] = piece < pieces ? apply_field(HAS_FIELD, normed, field[k]) : vec2(0.0);
      if (FORMS == 2) other_field[k] = piece < pieces ? apply_field(HAS_OTHER_FIELD, normed, other_field[k]) : vec2(0.0);
    }
#endif
  }
#ifdef FRAGMENTS
  if (row < push.row_first) return;
  [[dont_unroll]] for (uint form = 0; form < FORMS; form++) {
    if (form > 0) barrier();
    prepare_row(form, place, row - push.row_first, field);
    if (FORMS == 2) field = other_field;
  }
#endif
  for (uint piece = KEPT * THREADS + thread; WIDER && piece < pieces; piece += THREADS)
    store_norm(first + piece, load_h(first + piece) * factor * load_weight(piece));
}
