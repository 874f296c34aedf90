// What the kernels on matrix units share. A workgroup takes ROWS rows of x and BANDS * BAND rows of w; its subgroups take
// a band each, and one of SLICES slices of the columns: slice s of a round is the step `round * SLICES + s` of STEP
// columns. The sums of slices are added at the end, in order. Workgroups along z take `rounds` rounds each; what they
// find is added by another kernel. The order of a sum depends on the constants, the columns and the rounds alone.
#define PUSH_COOP
#include "push.h"

// A loop over i < n, unrolled. Emulated: never, because a processor's compiler takes long then; rounds is not 0.
#ifndef EMULATED
#define EACH(i, n) [[unroll]] for (uint i = 0; i < (n); i++)
#else
#define EACH(i, n) for (uint i = 0; i < (push.rounds == 0 ? 0 : (n)); i++)
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 8;   // 8 or 16
layout(constant_id = 2) const uint TILES = 2;  // of 16 rows of w that a subgroup takes
layout(constant_id = 3) const uint SLICES = 1;
layout(constant_id = 4) const uint STEP = 64;  // columns, a multiple of 32
layout(constant_id = 5) const uint DEPTH = 2;  // steps whose weights are on their way
layout(constant_id = 6) const uint PARTS = 3;  // f16 parts of an element of x (i8: 1)

const uint THREADS = gl_WorkGroupSize.x, SUBGROUPS = THREADS / 32, BANDS = SUBGROUPS / SLICES, BAND = 16 * TILES;

// UNIT: columns in 16 bytes of x's area, PIECE: in 16 bytes of w. Strides are odd: rows of an area begin in all banks.
const uint UNITS = STEP / UNIT, PIECES = STEP / PIECE;
#ifdef DIRECT // w's area holds pieces as they are stored
const uint W_STRIDE = PIECES | 1;
#else
const uint W_STRIDE = UNITS | 1;
#endif
const uint X_STRIDE = (PARTS * UNITS) | 1, W_AREA = 16 * W_STRIDE, SUMS_AREA = 4 * ROWS; // of a tile

layout(set = 0, binding = 0) readonly buffer Weights { uvec4 weights[]; };
layout(set = 0, binding = 5) writeonly buffer Output { float y[]; };

// The weights of a subgroup's step; at the end its sums.
shared uvec4 w_area[SUBGROUPS * TILES * (W_AREA > SUMS_AREA ? W_AREA : SUMS_AREA)];
shared uvec4 x_area[SLICES * ROWS * X_STRIDE];    // a slice's step of x

#include "coop_ops.glsl"

const uint LOADS = (BAND * PIECES + LANES - 1) / LANES;
const uint X_UNITS = ROWS * PARTS * UNITS, X_LOADS = (X_UNITS + LANES * BANDS - 1) / (LANES * BANDS);

uint lane, subgroup, slice, band; // the thread's place
uint first_w, first_x;            // rows of w and x that its band and workgroup begin with

void find_place() {
  lane = this_lane();
  subgroup = this_subgroup();
  slice = subgroup / BANDS;
  band = subgroup % BANDS;
  first_w = (gl_WorkGroupID.x * BANDS + band) * BAND;
  first_x = gl_WorkGroupID.y * ROWS;
}

// The slice's step of a round.
uint step_of(uint round) { return (gl_WorkGroupID.z * push.rounds + round) * SLICES + slice; }

// A subgroup's i-th load: which row of the band, which piece of the step. Neighbours read a row's neighbouring pieces.
uint load_row(uint i) { return (lane + LANES * i) / PIECES; }

uint load_piece(uint i) { return (lane + LANES * i) % PIECES; }

// Zeros past the last row and piece, and for rows past the band when the loads do not fill it.
void load_weights(uint step, out uvec4 loaded[LOADS]) {
  const uint count = (push.cols + PIECE - 1) / PIECE;
  EACH(i, LOADS) {
    const uint row = first_w + load_row(i), piece = step * PIECES + load_piece(i);
    const bool inside = load_row(i) < BAND && row < push.out_rows && piece < count;
    loaded[i] = inside ? weights[row * push.pitch + piece] : uvec4(0);
  }
}

#ifdef LADDER
layout(set = 0, binding = 1) readonly buffer Scales { vec2 pairs[]; };
layout(set = 0, binding = 2) readonly buffer Codes { uint codes[]; };

const uint GROUP = 32, GROUPS = STEP / GROUP; // a piece is a group
const uint RUNGS = 32, KEPT = 8, LADDER_STRIDE = KEPT + 1; // every fourth rung, then pair.y; odd against bank conflicts

shared float ladders[BANDS * BAND * LADDER_STRIDE];
shared float group_scales[SUBGROUPS * GROUPS * BAND];

// Rung c of a row's ladder: t[0] = pair.x, t[c] = t[c - 1] * pair.y, every product rounded to f32.
void make_ladders() {
  for (uint r = gl_LocalInvocationIndex; r < BANDS * BAND; r += THREADS) {
    const uint row = gl_WorkGroupID.x * BANDS * BAND + r;
    const vec2 pair = row < push.out_rows ? pairs[row] : vec2(0);
    precise float rung = pair.x;
    for (uint c = 0; c < RUNGS; c++) {
      if (c % 4 == 0) ladders[r * LADDER_STRIDE + c / 4] = rung;
      rung = rung * pair.y;
    }
    ladders[r * LADDER_STRIDE + KEPT] = pair.y;
  }
}

float rung_of(uint r, uint code) {
  const float ratio = ladders[r * LADDER_STRIDE + KEPT];
  precise float rung = ladders[r * LADDER_STRIDE + code / 4];
  for (uint c = 0; c < 3; c++) rung = c < code % 4 ? rung * ratio : rung;
  return rung;
}

// 5 bits a group, the first in the lowest bits; a code may straddle two words.
uint code_at(uint row, uint group) {
  const uint bit = group * 5, at = row * push.code_pitch + bit / 32, shift = bit % 32;
  const uint low = codes[at] >> shift;
  return (shift > 27 ? low | codes[at + 1] << (32 - shift) : low) & 31;
}

void load_codes(uint step, out uint loaded[LOADS]) {
  EACH(i, LOADS) {
    const uint row = first_w + load_row(i), group = step * GROUPS + load_piece(i);
    const bool inside = load_row(i) < BAND && row < push.out_rows && group < push.cols / GROUP;
    loaded[i] = inside ? code_at(row, group) : 0;
  }
}

// The scale of the subgroup's g-th group of row r of the band.
uint scale_place(uint g, uint r) { return (subgroup * GROUPS + g) * BAND + r; }

void store_scales(uint loaded[LOADS], float factor) {
  EACH(i, LOADS)
    if (load_row(i) < BAND)
      group_scales[scale_place(load_piece(i), load_row(i))] = rung_of(band * BAND + load_row(i), loaded[i]) * factor;
}
#endif

// The i-th unit of x that a thread fetches for its slice: row, and unit of that row's parts.
uint x_index(uint i) { return band * LANES + lane + i * LANES * BANDS; }

uint x_row(uint i) { return x_index(i) / (PARTS * UNITS); }

uint x_unit(uint i) { return x_index(i) % (PARTS * UNITS); }

uint x_place(uint i) { return (slice * ROWS + x_row(i)) * X_STRIDE + x_unit(i); }

// Where row r of the band, and row 0 of x, begin in the areas.
uint w_begin(uint r) { return (subgroup * BAND + r) * W_STRIDE; }

uint x_begin() { return slice * ROWS * X_STRIDE; }

// What becomes of a finished sum; each kernel has its own.
float finish(float sum, uint out_row, uint row);

void write_sums(Sums sums[TILES]) {
  barrier();
  EACH(t, TILES) STORE_SUMS(sums[t], (subgroup * TILES + t) * 4 * ROWS);
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < ROWS * BANDS * BAND; i += THREADS) {
    const uint r = i % (BANDS * BAND), j = i / (BANDS * BAND);
    const uint out_row = gl_WorkGroupID.x * BANDS * BAND + r, row = first_x + j;
    if (out_row >= push.out_rows || row >= push.rows) continue;
    float sum = 0;
    for (uint s = 0; s < SLICES; s++) {
      const uint tile = (s * BANDS * BAND + r) / 16;
      sum += uintBitsToFloat(w_area[(tile * ROWS + j) * 4 + r % 16 / 4][r % 4]);
    }
    y[gl_WorkGroupID.z * push.split_stride + (push.y_first + row) * push.y_stride + push.out_first + out_row] =
        finish(sum, out_row, row);
  }
}
