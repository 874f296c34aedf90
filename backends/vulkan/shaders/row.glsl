/* A workgroup and one row: what a thread keeps of it, and the sum over the row. */
#ifndef ROW_GLSL
#define ROW_GLSL
#include "numbers.glsl"
#include "pieces.glsl"

layout(constant_id = 2) const uint TURNS = 1; /* pieces that a thread keeps, THREADS apart; KEPT where there are more */

const uint KEPT = 8;    /* those of wider rows are read again */
const uint SLOTS = 512; /* piece p is added to slot p % SLOTS: one order of a sum for any THREADS, 512 or 256 */
const uint LANES = 32;  /* threads that add slots */

shared float slots[SLOTS];
shared vec4 lanes[LANES / 4];

/* Rows have pieces that no thread keeps. */
const bool WIDER = TURNS == KEPT;

/* A thread's sums: of slot `thread`, and with 256 threads of slot `thread + 256`. Turn k of a thread goes to one. */
void add_to_slot(inout vec2 own, uint k, float value) {
  if (SLOTS == THREADS || k % 2 == 0)
    own.x += value;
  else
    own.y += value;
}

/* The same bits in whatever a compiler makes of a kernel with other constants. */
float square(vec2 v) {
  precise const float sum = v.x * v.x + v.y * v.y;
  return sum;
}

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

/* The sum of all slots; called once, by all threads. */
float sum_over_row(vec2 own) {
  const uint thread = gl_LocalInvocationIndex;
  slots[thread] = own.x;
  if (SLOTS != THREADS) slots[thread + THREADS] = own.y;
  barrier();
  if (thread < LANES) {
    vec4 sum = vec4(0.0);
    [[unroll]] for (uint k = 0; k < SLOTS / (4 * LANES); k++) {
      const uint i = 4 * LANES * k + thread;
      sum += vec4(slots[i], slots[i + LANES], slots[i + 2 * LANES], slots[i + 3 * LANES]);
    }
    lanes[thread / 4][thread % 4] = sum_of(sum);
  }
  barrier();
  vec4 sum = lanes[0];
  [[unroll]] for (uint i = 1; i < LANES / 4; i++) sum += lanes[i];
  return sum_of(sum);
}

/* 1 / sqrt(squares * inverse + eps), the threads' squares added; inverse is 1 / width. */
float norm_factor(vec2 squares, float inverse, float eps) {
  precise const float mean = sum_over_row(squares) * inverse + eps;
  return rsqrt_f32(mean);
}
#endif
