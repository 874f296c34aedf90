/* For kernels that make an activation and also prepare it. Rows are even, and come in pieces of two columns. Before this
 * file: prepare.glsl. The binding before its own is the column field of the matrix; the constant behind its own says
 * whether there is one. */
#ifndef FRAGMENTS_GLSL
#define FRAGMENTS_GLSL

layout(constant_id = PREPARE_CONSTANTS + 2) const uint HAS_FIELD = 0;

layout(std430, set = 0, binding = PREPARE_BINDINGS - 1) readonly buffer Columns { vec2 columns[]; };

/* Of a piece's columns; loaded with the rest of what a thread reads. */
vec2 load_field(uint piece) { return HAS_FIELD == 0 ? vec2(1.0) : columns[piece]; }

/* One rounding, before anything is split. */
vec2 apply_field(uint has_field, vec2 value, vec2 field) {
  precise const vec2 product = value * field;
  return has_field == 0 ? value : product;
}

#ifdef ROW_GLSL
/* Pieces of a row that its workgroup keeps whole: TURNS < KEPT. The code of one is there once, and takes them by turns:
 * few workgroups run it, and wait for every line of it that the device reads. */
void prepare_row(uint form, uint place, uint row, vec2 values[KEPT]) {
  [[unroll]] for (uint k = 0; k < KEPT; k++)
    if (k < TURNS) note_largest(k, values[k]);
  barrier();
  [[dont_unroll]] for (uint k = 0; k < TURNS; k++) {
    write_pair(form, k, place, row, k * THREADS + gl_LocalInvocationIndex, groups_of(push.width), values[0]);
    [[unroll]] for (uint next = 1; next < KEPT; next++) values[next - 1] = values[next];
  }
}
#endif
#endif
