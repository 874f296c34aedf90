const uint PIECE = 8; // columns in 16 bytes

vec4 decode(uvec4 piece, uint quad) {
  const uint low = piece[quad * 2], high = piece[quad * 2 + 1];
  return uintBitsToFloat(uvec4(low << 16, low & 0xffff0000, high << 16, high & 0xffff0000));
}
