const uint PIECE = 4; // columns in 16 bytes

vec4 decode(uvec4 piece, uint quad) { return uintBitsToFloat(piece); }
