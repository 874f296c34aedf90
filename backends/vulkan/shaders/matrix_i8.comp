// Profile i8 on q4tp: sum over groups of dot(q, nibble - 8) * scale * s, the dot in int32. INTEGER_DOT: by packed dot
// products.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef INTEGER_DOT
#extension GL_EXT_spirv_intrinsics : require
#endif
#include "product.glsl"
#include "ladder.glsl"

layout(set = 0, binding = 4) readonly buffer Input { uvec4 x[]; }; // two a group of 32 columns
layout(set = 0, binding = 6) readonly buffer Steps { float steps_of_x[]; };

const uint GROUP_QUADS = 3; // of a group of x in shared memory: see load_group

#ifdef INTEGER_DOT
// OpSDot of DotProduct and DotProductInput4x8BitPacked; format 0 is four bytes in a word.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int packed_dot(int a, int b, spirv_literal int format);

int dot_bytes(uint a, uint b) { return packed_dot(int(a), int(b), 0); }
#else
int dot_bytes(uint a, uint b) {
  int sum = 0;
  [[unroll]] for (int k = 0; k < 32; k += 8) sum += bitfieldExtract(int(a), k, 8) * bitfieldExtract(int(b), k, 8);
  return sum;
}
#endif

float finish(float sum, uint row) { return sum; }

// Of eight bytes, those at even and those at odd places: as the low and the high nibbles of a word of w stand.
uint even_bytes(uint low, uint high) {
  return (low & 0xff) | (low >> 8 & 0xff00) | (high & 0xff) << 16 | (high & 0xff0000) << 8;
}

uint odd_bytes(uint low, uint high) { return even_bytes(low >> 8, high >> 8); }

uvec4 even_odd(uvec4 words) {
  return uvec4(even_bytes(words.x, words.y), odd_bytes(words.x, words.y), even_bytes(words.z, words.w),
               odd_bytes(words.z, words.w));
}

int dot_quads(uvec4 a, uvec4 b) {
  return dot_bytes(a.x, b.x) + dot_bytes(a.y, b.y) + dot_bytes(a.z, b.z) + dot_bytes(a.w, b.w);
}

// A group of x: columns 0 .. 15, columns 16 .. 31, then its step and 8 times the sum of q, all of it bits.
void load_group(uint at, uint row, uint group) {
  const uint groups = push.cols / 32;
  uvec4 first = uvec4(0), second = uvec4(0);
  float step = 0;
  if (row < push.rows && group < groups) {
    const uint index = (push.x_first + row) * groups + group;
    first = x[index * 2];
    second = x[index * 2 + 1];
    step = steps_of_x[index];
  }
  const int sum = dot_quads(first, uvec4(0x01010101)) + dot_quads(second, uvec4(0x01010101));
  area[at] = even_odd(first);
  area[at + 1] = even_odd(second);
  area[at + 2] = uvec4(floatBitsToUint(step), uint(8 * sum), 0, 0);
}

void load_tile(uint step) {
  for (uint i = gl_LocalInvocationIndex; i < ROWS * TEAM; i += 128)
    load_group(i * GROUP_QUADS, first_row() + i / TEAM, step * TEAM + i % TEAM);
}

// Low and high nibbles of two words, a byte each.
uvec4 nibbles(uint first, uint second) { return uvec4(first, first >> 4, second, second >> 4) & 0x0f0f0f0f; }

// Every product and the sum rounded to f32: below 2^15 the dot is exact.
float add_scaled(float sum, int product, float scale, float step) {
  precise float value = sum + float(product) * scale * step;
  return value;
}

// dot(q, nibble - 8) = dot(q, nibble) - 8 * sum of q.
void add_tile() {
  [[unroll]] for (uint r = 0; r < ROWS; r++) {
    const uint at = (r * TEAM + lane) * GROUP_QUADS;
    const uvec4 first = area[at], second = area[at + 1], rest = area[at + 2];
    [[unroll]] for (uint i = 0; i < W; i++) {
      const int product = dot_quads(first, nibbles(pieces[i].x, pieces[i].y)) +
                          dot_quads(second, nibbles(pieces[i].z, pieces[i].w)) - int(rest.y);
      sums[i][r] = add_scaled(sums[i][r], product, scales[i], uintBitsToFloat(rest.x));
    }
  }
}

void main() {
  find_place();
  clear_sums();
  const uint count = push.cols / 32, steps = (count + TEAM - 1) / TEAM;
  load_next_pieces(lane, count);
  load_next_codes(lane, count);
  make_ladders();
  for (uint step = 0; step < steps; step++) {
    barrier();
    load_tile(step);
    barrier();
    pieces = next_pieces;
    look_up_scales();
    load_next_pieces((step + 1) * TEAM + lane, count);
    load_next_codes((step + 1) * TEAM + lane, count);
    add_tile();
  }
  write_sums();
}
