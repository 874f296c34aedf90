// y = w x, w at its exact values, sums in f32. WEIGHTS_* says how w is stored; HALF: activations in f16.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "product.glsl"
#if defined(WEIGHTS_F32)
#include "weights_f32.glsl"
#elif defined(WEIGHTS_F16)
#include "weights_f16.glsl"
#elif defined(WEIGHTS_BF16)
#include "weights_bf16.glsl"
#elif defined(WEIGHTS_Q8)
#include "weights_q8.glsl"
#elif defined(WEIGHTS_Q4)
#include "weights_q4.glsl"
#include "ladder.glsl"
#endif
#ifdef HALF
#include "half.glsl"
#endif

// The same binding twice: in quads where all rows begin at one.
layout(set = 0, binding = 4) readonly buffer Input { float x[]; };
layout(set = 0, binding = 4) readonly buffer InputQuads { vec4 x_quads[]; };
#ifdef WEIGHTS_Q8
layout(set = 0, binding = 3) readonly buffer Columns { float columns[]; };
#endif

const uint QUADS = PIECE / 4;
const uint QUAD_STRIDE = QUADS | 1; // of a piece of a row; odd against bank conflicts
const uint TILE_QUADS = TEAM * QUADS; // columns of a step, in quads

float finish(float sum, uint row) {
#ifdef WEIGHTS_Q8
  sum *= scales[row];
#endif
#ifdef HALF
  sum = from_half(sum);
#endif
  return sum;
}

// Columns col .. col + 3 of a row of x; zeros past the last column and row.
vec4 load_x(uint row, uint col) {
  vec4 quad = vec4(0);
  if (row >= push.rows || col >= push.cols) return quad;
  const uint at = (push.x_first + row) * push.x_stride + col;
  if (((push.cols | push.x_stride) & 3) == 0) {
    quad = x_quads[at / 4];
  } else {
    for (uint c = 0; c < 4; c++)
      if (col + c < push.cols) quad[c] = x[at + c];
  }
#ifdef WEIGHTS_Q8
  for (uint c = 0; c < 4; c++)
    if (col + c < push.cols) quad[c] *= columns[col + c];
#endif
#ifdef HALF
  quad = to_half(quad);
#endif
  return quad;
}

// The columns of a step of PASS rows of x into shared memory.
void load_tile(uint step, uint pass) {
  for (uint i = gl_LocalInvocationIndex; i < PASS * TILE_QUADS; i += 128) {
    const uint r = i / TILE_QUADS, quad = i % TILE_QUADS;
    area[(r * TEAM + quad / QUADS) * QUAD_STRIDE + quad % QUADS] =
        floatBitsToUint(load_x(first_row() + pass * PASS + r, (step * TILE_QUADS + quad) * 4));
  }
}

// `precise`: fused in every tile or in none, so that tiles agree to the bit.
float multiply_add(float a, float b, float sum) {
  precise const float result = fma(a, b, sum);
  return result;
}

float multiply_add(vec4 a, vec4 b, float sum) {
  sum = multiply_add(a.y, b.y, multiply_add(a.x, b.x, sum));
  return multiply_add(a.w, b.w, multiply_add(a.z, b.z, sum));
}

// Adds the thread's pieces times the tile to the sums of the pass. With a ladder a group is summed before its scale.
void add_tile(uint pass) {
  float part[MAX_W][MAX_PASS];
  [[unroll]] for (uint i = 0; i < W; i++)
    [[unroll]] for (uint r = 0; r < PASS; r++)
#ifdef WEIGHTS_Q4
      part[i][r] = 0;
#else
      part[i][r] = sums[i][pass * PASS + r];
#endif
  [[unroll]] for (uint quad = 0; quad < QUADS; quad++) {
    vec4 w[MAX_W];
    [[unroll]] for (uint i = 0; i < W; i++) w[i] = decode(pieces[i], quad);
    [[unroll]] for (uint r = 0; r < PASS; r++) {
      const vec4 value = uintBitsToFloat(area[(r * TEAM + lane) * QUAD_STRIDE + quad]);
      [[unroll]] for (uint i = 0; i < W; i++) part[i][r] = multiply_add(w[i], value, part[i][r]);
    }
  }
  [[unroll]] for (uint i = 0; i < W; i++)
    [[unroll]] for (uint r = 0; r < PASS; r++)
#ifdef WEIGHTS_Q4
      sums[i][pass * PASS + r] = multiply_add(scales[i], part[i][r], sums[i][pass * PASS + r]);
#else
      sums[i][pass * PASS + r] = part[i][r];
#endif
}

void main() {
  find_place();
  clear_sums();
#ifdef HALF
  find_half_scale();
#endif
  const uint count = (push.cols + PIECE - 1) / PIECE, steps = (count + TEAM - 1) / TEAM;
  load_next_pieces(lane, count);
#ifdef WEIGHTS_Q4
  load_next_codes(lane, count);
  make_ladders();
  barrier();
#endif
  for (uint step = 0; step < steps; step++) {
    pieces = next_pieces;
    load_next_pieces((step + 1) * TEAM + lane, count);
#ifdef WEIGHTS_Q4
    look_up_scales();
    load_next_codes((step + 1) * TEAM + lane, count);
#endif
    [[unroll]] for (uint pass = 0; pass < ROWS / PASS; pass++) {
      barrier();
      load_tile(step, pass);
      barrier();
      add_tile(pass);
    }
  }
  write_sums();
}
