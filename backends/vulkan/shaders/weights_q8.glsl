const uint PIECE = 16; // columns in 16 bytes

layout(set = 0, binding = 1) readonly buffer Scales { float scales[]; };

// Bytes plus 128 stand in the fraction of 2^23; no rounding, fused or not.
vec4 decode(uvec4 piece, uint quad) {
  const uint low = piece[quad] ^ 0x80808080, high = low >> 16;
  const vec4 set = uintBitsToFloat(uvec4(low & 0xff, low & 0xff00, high & 0xff, high & 0xff00) | 0x4b000000);
  return fma(set, vec4(1, 1.0 / 256, 1, 1.0 / 256), vec4(-8388736.0, -32896.0, -8388736.0, -32896.0));
}
