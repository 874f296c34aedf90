#include "numbers.glsl"

const uint PIECE = 8; // columns in 16 bytes

vec4 decode(uvec4 piece, uint quad) {
  const uint low = piece[quad * 2], high = piece[quad * 2 + 1];
  return vec4(decode_f16(low & 0xffff), decode_f16(low >> 16), decode_f16(high & 0xffff), decode_f16(high >> 16));
}
