/* The score of each candidate of a row after each candidate of the row before: its logit and sum((P hp) C), and which of
 * them is best. A workgroup is a candidate p of row j - 1; LANES threads share a sum. The last workgroup walks the rows:
 * each row's best score after the token chosen before it, equal ones by candidate order. Adds 2 to the flags where a
 * score on the way is NaN; such a score loses to all others. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_PAIRS
#include "push.h"
#include "best.glsl"
#include "numbers.glsl"
#define LAST_BINDING 6
#include "last.glsl"

layout(local_size_x = 128, local_size_x_id = 0) in;
layout(constant_id = 1) const uint BEFORE = 0; /* what binding 0 holds */
layout(constant_id = 2) const uint AFTER = 0;  /* what binding 1 holds */
layout(constant_id = 3) const bool WHOLE = false; /* the rank is a multiple of PIECE */

layout(set = 0, binding = 0, std430) readonly buffer Before { uint before_words[]; };
layout(set = 0, binding = 0, std430) readonly buffer BeforeQuads { uvec4 before_quads[]; };
layout(set = 0, binding = 1, std430) readonly buffer After { uint after_words[]; };
layout(set = 0, binding = 1, std430) readonly buffer AfterQuads { uvec4 after_quads[]; };
layout(set = 0, binding = 2, std430) readonly buffer Best { uvec2 best[]; }; /* bits of the logit, token */
layout(set = 0, binding = 3, std430) readonly buffer Anchor { uint anchor[]; };
layout(set = 0, binding = 4, std430) readonly buffer Hidden { uint hidden_words[]; };
layout(set = 0, binding = 4, std430) readonly buffer HiddenQuads { uvec4 hidden_quads[]; };
layout(set = 0, binding = 5, std430) coherent buffer Pairs { uint pairs[]; }; /* scores; then the best of each p */
layout(set = 0, binding = 7, std430) writeonly buffer Result { uint result[]; };

/* What a binding holds: a codebook, or the rows of the candidates alone, as f32. */
const uint F32 = 0, F16 = 1, BF16 = 2, GATHERED = 3;

const uint THREADS = gl_WorkGroupSize.x; /* 128 or more */
const uint LANES = 32, SIDE = THREADS / LANES; /* threads of a sum; sums side by side */
const uint PITCH = SIDE | 1;                   /* odd against bank conflicts */
const uint PIECE = 8;                          /* columns of a lane; then come those of the other lanes */
const uint STEPS = 1024;                       /* of the walk, in shared memory */
const uint NAN_SEEN = 0x80000000u;             /* beside the best of a p: a score after it is NaN */

shared float partial[LANES * PITCH];
shared uvec2 offers[SIDE];
shared uint seen;
shared uint nexts[STEPS], chosen[STEPS], befores[STEPS];

/* PIECE columns as they are stored: halves fill the first four words. */
struct Piece {
  uvec4 low, high;
};

/* ---- what a binding holds; a call says which one by a constant ---- */

uint word_at(bool after, uint i) { return after ? after_words[i] : before_words[i]; }
uvec4 quad_at(bool after, uint i) { return after ? after_quads[i] : before_quads[i]; }

bool is_f32(uint form) { return form == F32 || form == GATHERED; }

/* A column's bits in f32, or a half's. */
uint column_at(bool after, uint form, uint i) {
  if (is_f32(form)) return word_at(after, i);
  return word_at(after, i >> 1) >> 16 * (i & 1u) & 0xffffu;
}

/* The rows of a codebook need not begin at a word, and the last piece need not be full. */
Piece load_columns(bool after, uint form, uint row, uint column) {
  uint at[PIECE];
  [[unroll]] for (uint i = 0; i < PIECE; i++)
    at[i] = column + i < push.rank ? column_at(after, form, row * push.rank + column + i) : 0u;
  if (is_f32(form)) return Piece(uvec4(at[0], at[1], at[2], at[3]), uvec4(at[4], at[5], at[6], at[7]));
  return Piece(uvec4(at[0], at[2], at[4], at[6]) | uvec4(at[1], at[3], at[5], at[7]) << 16, uvec4(0u));
}

Piece load_piece(bool after, uint form, uint row, uint column) {
  if (!WHOLE) return load_columns(after, form, row, column);
  const uint quad = (row * push.rank + column) / (is_f32(form) ? 4 : 8);
  return Piece(quad_at(after, quad), is_f32(form) ? quad_at(after, quad + 1) : uvec4(0u));
}

float half_at(uint form, uvec4 words, uint i) {
  const uint bits = words[i / 2] >> 16 * (i & 1u) & 0xffffu;
  return form == F16 ? decode_f16(bits) : decode_bf16(bits);
}

float number_at(uint form, Piece piece, uint i) {
  if (!is_f32(form)) return half_at(form, piece.low, i);
  return uintBitsToFloat(i < 4 ? piece.low[i & 3] : piece.high[i & 3]);
}

Piece load_hidden(uint row, uint column) {
  if (WHOLE) {
    const uint quad = (row * push.rank + column) / 4;
    return Piece(hidden_quads[quad], hidden_quads[quad + 1]);
  }
  uint at[PIECE];
  [[unroll]] for (uint i = 0; i < PIECE; i++)
    at[i] = column + i < push.rank ? hidden_words[row * push.rank + column + i] : 0u;
  return Piece(uvec4(at[0], at[1], at[2], at[3]), uvec4(at[4], at[5], at[6], at[7]));
}

/* ---- scores ---- */

/* The rows of P and of C that are wanted. */
uint row_before(uint row, uint p) {
  if (BEFORE == GATHERED) return row * push.top + p;
  return row == 0u ? anchor[0] : best[(row - 1u) * push.top + p].y;
}

uint row_after(uint row, uint candidate) {
  const uint entry = row * push.top + candidate;
  return AFTER == GATHERED ? entry : best[entry].y;
}

/* Sums in an order that neither the threads nor the rows change. */
float part_of_sum(uint row, uint p_row, uint c_row) {
  precise float sum = 0.0;
  if (BEFORE != GATHERED && p_row >= push.tokens || AFTER != GATHERED && c_row >= push.tokens) return sum;
  for (uint column = gl_LocalInvocationID.x % LANES * PIECE; column < push.rank; column += LANES * PIECE) {
    const Piece p = load_piece(false, BEFORE, p_row, column), c = load_piece(true, AFTER, c_row, column);
    const Piece h = load_hidden(row, column);
    [[unroll]] for (uint i = 0; i < PIECE; i++) {
      precise const float gate = number_at(BEFORE, p, i) * number_at(F32, h, i);
      sum = fma(gate, number_at(AFTER, c, i), sum);
    }
  }
  return sum;
}

/* The sum of a candidate's lanes, in pairs. */
float add_lanes(uint side) {
  precise float sums[LANES];
  [[unroll]] for (uint i = 0; i < LANES; i++) sums[i] = partial[i * PITCH + side];
  [[unroll]] for (uint reach = LANES / 2; reach > 0; reach /= 2)
    [[unroll]] for (uint i = 0; i < reach; i++) sums[i] += sums[i + reach];
  return sums[0];
}

/* Scores of the candidates `thread`, `thread` + SIDE ... after p; the best of them is this thread's offer. */
void score_candidates(uint row, uint p) {
  const uint thread = gl_LocalInvocationID.x, side = thread / LANES, p_row = row_before(row, p);
  uvec2 offer = NOTHING;
  for (uint first = 0; first < push.top; first += SIDE) {
    const uint mine = first + thread;
    const bool adds = thread < SIDE && mine < push.top;
    const float logit = uintBitsToFloat(adds ? best[row * push.top + mine].x : 0u);
    const float sum = first + side < push.top ? part_of_sum(row, p_row, row_after(row, first + side)) : 0.0;
    partial[thread % LANES * PITCH + side] = sum;
    barrier();
    if (adds) {
      precise const float score = logit + add_lanes(thread);
      const uint bits = floatBitsToUint(score), key = is_nan_bits(bits) ? 0u : key_of(bits);
      pairs[(row * push.top + p) * push.top + mine] = bits;
      if (key == 0u) seen = NAN_SEEN;
      if (better(uvec2(key, mine), offer)) offer = uvec2(key, mine);
    }
    barrier();
  }
  if (thread < SIDE) offers[thread] = offer;
}

uint first_next() { return push.rows * push.top * push.top; }

/* The best candidate after p. */
void find_next(uint row, uint p) {
  barrier();
  if (gl_LocalInvocationID.x > 0u) return;
  uvec2 offer = offers[0];
  for (uint i = 1; i < SIDE; i++)
    if (better(offers[i], offer)) offer = offers[i];
  pairs[first_next() + row * push.top + p] = offer.y | seen;
}

/* ---- the walk ---- */

/* From `before`, the candidate chosen in the row before, on over `count` rows; what was met. */
void walk(uint first, uint count, inout uint before, inout uint met) {
  const uint thread = gl_LocalInvocationID.x, steps = count * push.top;
  for (uint i = thread; i < steps; i += THREADS) nexts[i] = pairs[first_next() + first * push.top + i];
  barrier();
  for (uint row = 0; row < count; row++) {
    const uint next = nexts[row * push.top + before];
    if (thread == 0u) befores[row] = before;
    before = next & ~NAN_SEEN;
    if (thread == 0u) chosen[row] = before;
    met |= next & NAN_SEEN;
  }
  barrier();
}

/* The results of the rows walked. */
void give_rows(uint first, uint count) {
  const uint entries = push.rows * push.top;
  for (uint i = gl_LocalInvocationID.x; i < count * push.top; i += THREADS) {
    const uint row = i / push.top, candidate = i % push.top, at = first * push.top + i, token = best[at].y;
    result[2 * push.rows + at] = token;
    result[2 * push.rows + entries + at] = pairs[((first + row) * push.top + befores[row]) * push.top + candidate];
    if (candidate == chosen[row]) result[first + row] = token;
    if (candidate == 0u) result[push.rows + first + row] = token;
  }
}

void choose() {
  const uint tile = STEPS / push.top;
  uint before = 0u, met = 0u;
  for (uint first = 0; first < push.rows; first += tile) {
    const uint count = min(push.rows - first, tile);
    walk(first, count, before, met);
    give_rows(first, count);
    barrier();
  }
  if (gl_LocalInvocationID.x > 0u) return;
  const uint all = flags[0] | (met == 0u ? 0u : 2u);
  flags[0] = all;
  result[2 * push.rows + 2 * push.rows * push.top] = all;
}

void main() {
  const uint p = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
  if (row == 0u && p > 0u) return; /* the anchor is the only one before row 0 */
  if (gl_LocalInvocationID.x == 0u) seen = 0u;
  score_candidates(row, p);
  find_next(row, p);
  if (comes_last(1u, 1u + (push.rows - 1u) * push.top)) choose();
}
