const uint PIECE = 32; // columns in 16 bytes

// Nibbles stand in the fraction of 2^23, then 8 is taken away; no rounding, fused or not.
vec4 decode(uvec4 piece, uint quad) {
  const uint word = piece[quad / 2] >> quad % 2 * 16;
  const vec4 set = uintBitsToFloat(uvec4(word & 0xf, word & 0xf0, word & 0xf00, word & 0xf000) | 0x4b000000);
  return fma(set, vec4(1, 1.0 / 16, 1.0 / 256, 1.0 / 4096), vec4(-8388616.0, -524296.0, -32776.0, -2056.0));
}
