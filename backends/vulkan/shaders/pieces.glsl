/* Rows in pieces of neighbouring columns: two where rows are even, else one. A thread loads and stores a piece at once;
 * the second number of a piece of one is 0. */
#ifndef PIECES_GLSL
#define PIECES_GLSL

layout(local_size_x = 256, local_size_x_id = 0) in;
layout(constant_id = 1) const uint COLUMNS = 1; /* of a piece: 2 or 1 */

const uint THREADS = gl_WorkGroupSize.x; /* a multiple of 32: 16 pieces of two lie in one half of a subgroup of 32 */

#endif
