/* The functions of numbers.glsl, bound like the kernel `act`: y = FUNCTION(a, b). All are bits: nothing is flushed on the
 * way. */
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_ACT
#include "push.h"
#include "numbers.glsl"
#include "numbers.h"

layout(constant_id = 0) const uint FUNCTION = 0;
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(std430, set = 0, binding = 1) readonly buffer B { uint b[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Y { uint y[]; };

uint value(uint first, uint second) {
  const float x = uintBitsToFloat(first), z = uintBitsToFloat(second);
  switch (FUNCTION) {
  case NUMBERS_EXP: return floatBitsToUint(exp_f32(x));
  case NUMBERS_RSQRT: return floatBitsToUint(rsqrt_f32(x));
  case NUMBERS_COSINE: return floatBitsToUint(cosine_sine(x).x);
  case NUMBERS_SINE: return floatBitsToUint(cosine_sine(x).y);
  case NUMBERS_DIVIDE: return floatBitsToUint(divide(x, z));
  case NUMBERS_QUOTIENT: return floatBitsToUint(quotient(x, z));
  case NUMBERS_F16: return floatBitsToUint(decode_f16(first));
  case NUMBERS_BF16: return floatBitsToUint(decode_bf16(first));
  case NUMBERS_IS_NAN: return is_nan(x) ? 1u : 0u;
  default: return is_finite(x) ? 1u : 0u;
  }
}

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < push.width) y[i] = value(a[i], b[i]);
}
