/* A workgroup of SIDE * SIDE threads and one row: sums over its threads, and the factor of a norm. The includer defines
 * SIDE. */
#ifndef ROW_GLSL
#define ROW_GLSL
#include "numbers.glsl"

const uint THREADS = SIDE * SIDE;
layout(local_size_x = SIDE * SIDE) in;

shared float thread_sums[THREADS];
shared float column_sums[SIDE];

/* The sum of every thread's value, in one order whatever the device; called once, by all threads. */
float sum_over_threads(float value) {
  const uint thread = gl_LocalInvocationIndex;
  thread_sums[thread] = value;
  barrier();
  if (thread < SIDE) {
    float sum = thread_sums[thread];
    for (uint i = 1; i < SIDE; i++) sum += thread_sums[thread + i * SIDE];
    column_sums[thread] = sum;
  }
  barrier();
  float sum = column_sums[0];
  for (uint i = 1; i < SIDE; i++) sum += column_sums[i];
  return sum;
}

/* 1 / sqrt(squares / width + eps); the threads' squares are added. */
float norm_factor(float squares, uint width, float eps) {
  return rsqrt_f32(divide(sum_over_threads(squares), float(width)) + eps);
}
#endif
