// Activations of profile f16: times 2^k, k the largest integer with absmax * 2^k <= 2^14, rounded to f16 and held as f32.
layout(set = 0, binding = 6) readonly buffer Largest { uint largest[]; };

#include "numbers.glsl"

shared uint largest_found;

vec2 scale_up, scale_down; // 2^k and 2^-k, as two factors: k may lie past f32's exponents

// The exponent k for the largest magnitude, given as bits of a finite f32.
int half_exponent(uint bits) {
  if (bits == 0) return 0;
  const int exponent = take_mantissa(bits) - 127; // bits: 2^23 for a power of two
  return (bits == SMALLEST_NORMAL_BITS ? 14 : 13) - exponent;
}

// Over all rows of the call. A row that is not finite has no say: it stays not finite. All threads come here.
void find_half_scale() {
  if (gl_LocalInvocationIndex == 0) largest_found = 0;
  barrier();
  uint found = 0;
  for (uint r = gl_LocalInvocationIndex; r < push.rows; r += 128)
    if (largest[r] < INFINITY_BITS) found = max(found, largest[r]);
  atomicMax(largest_found, found);
  barrier();
  const int k = half_exponent(largest_found), first = k / 2;
  scale_up = vec2(power_of_two(first), power_of_two(k - first));
  scale_down = vec2(power_of_two(-first), power_of_two(first - k));
}

// To the nearest f16, ties to even; below 2^-14 the step is 2^-24.
float round_half(float x) {
  const uint bits = floatBitsToUint(x), magnitude = bits & ~SIGN_BIT;
  if (magnitude >= INFINITY_BITS) return x;
  if (magnitude < floatBitsToUint(power_of_two(-14))) return roundEven(x * 16777216.0) * power_of_two(-24);
  return uintBitsToFloat((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000);
}

// `precise`, here and below: one factor after the other, for their product may be none of f32.
vec4 to_half(vec4 x) {
  precise const vec4 scaled = x * scale_up.x * scale_up.y;
  return vec4(round_half(scaled.x), round_half(scaled.y), round_half(scaled.z), round_half(scaled.w));
}

float from_half(float sum) {
  precise const float result = sum * scale_down.x * scale_down.y;
  return result;
}
