// Activations as f16 for matrix units: X = x 2^k in PARTS parts, p0 + p1 2^-11 + p2 2^-22, each rounded to nearest even.
// k is the largest integer with absmax 2^k <= 2^14: 3 parts: absmax of the row; 1 part: of all rows (profile f16).
//
// Three parts hold X exactly where |X| >= 2^-23, that is |x| >= absmax 2^-36 at least; below, they are off by at most
// 2^-47, that is absmax 2^-60. Let 2^e <= |X| < 2^(e+1), e <= 14; X is a multiple of 2^(e-23). The step of f16 at X is
// 2^(e-10), but not below 2^-24.
//   e >= -14: r0 = X - p0 is at most 2^(e-11), R1 = 2^11 r0 at most 2^e and a multiple of 2^(e-12). The step of f16 at
//     R1 is at most 2^(e-11), so r1 = R1 - p1 is 0 or +-2^(e-12), unless the step is 2^-24: then r1 is at most 2^-25.
//     2^11 r1 is at most 2^(e-1) or 2^-14, and a multiple of 2^(e-1) >= 2^-15, so p2 is exact.
//   -23 <= e < -14: r0 is at most 2^-25, R1 at most 2^-14 and a multiple of 2^(e-12), r1 at most 2^-25, 2^11 r1 at most
//     2^-14 and a multiple of 2^(e-1) >= 2^-24: exact.
//   e < -23: 2^11 r1 is at most 2^-14 and p2 off by at most 2^-25: X is off by at most 2^-47.
// All differences and products here are exact: no fused or reordered operation changes them.
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_PARTS
#include "push.h"
#include "numbers.glsl"

const uint THREADS = 256;

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint PARTS = 3; // 1 or 3
layout(constant_id = 1) const uint BITS = 4;  // of a stored weight: its kernel wants columns in an order of its own,
layout(constant_id = 2) const uint DIRECT = 0; // and another one when it decodes into registers

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) readonly buffer Columns { float columns[]; };
layout(set = 0, binding = 2) readonly buffer Largest { uint largest[]; };
layout(set = 0, binding = 3) writeonly buffer Parts { uvec4 parts[]; };
layout(set = 0, binding = 4) writeonly buffer Factors { vec2 factors[]; };

shared uint found;

float value_at(uint row, uint col) {
  precise float value = x[(push.x_first + row) * push.x_stride + col];
  if (push.has_columns != 0) value = value * columns[col];
  return value;
}

// The largest magnitude that has a say, as bits, which order as values do and NaN above all: of the row, or of the rows
// that are finite. One that is not finite has a factor of 1 of its own: it stays not finite.
uint absmax_bits(uint row) {
  if (gl_LocalInvocationIndex == 0) found = 0;
  barrier();
  uint most = 0;
  if (PARTS == 1) {
    for (uint r = gl_LocalInvocationIndex; r < push.rows; r += THREADS)
      if (largest[r] < INFINITY_BITS) most = max(most, largest[r]);
  } else {
    for (uint col = gl_LocalInvocationIndex; col < push.cols; col += THREADS)
      most = max(most, floatBitsToUint(value_at(row, col)) & ~SIGN_BIT);
  }
  atomicMax(found, most);
  barrier();
  return found < INFINITY_BITS ? found : 0;
}

int exponent_of_scale(uint bits) {
  if (bits == 0) return 0;
  const int exponent = take_mantissa(bits) - 127; // bits: 2^23 for a power of two
  return (bits == SMALLEST_NORMAL_BITS ? 14 : 13) - exponent;
}

// To the nearest f16, ties to even, as bits; *rest: 2^11 times what is left.
uint take_half(inout float rest) {
  const uint bits = floatBitsToUint(rest), magnitude = bits & ~SIGN_BIT, sign = bits >> 16 & 0x8000;
  if (magnitude >= INFINITY_BITS) {
    rest = 0;
    return sign | (magnitude > INFINITY_BITS ? 0x7e00 : 0x7c00);
  }
  uint half_bits;
  float taken;
  if (magnitude < 113u << 23) { // below 2^-14 the step is 2^-24
    taken = roundEven(uintBitsToFloat(magnitude) * 16777216.0);
    half_bits = uint(taken);
    taken *= power_of_two(-24);
  } else {
    const uint rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) & 0xffffe000;
    taken = uintBitsToFloat(rounded);
    half_bits = min((rounded >> 13) - (112u << 10), 0x7c00);
  }
  rest = (rest - (sign != 0 ? -taken : taken)) * 2048;
  return sign | half_bits;
}

// The column at place p of a unit of eight: the order in which the kernels decode weights.
uint column_at(uint unit, uint p) {
  if (BITS == 4 && DIRECT == 1) return unit / 4 * 32 + 8 * (p / 2) + 4 * (p % 2) + unit % 4;
  if (BITS == 4) return unit * 8 + p / 2 + 4 * (p % 2);
  if (BITS == 8 && DIRECT == 1) return unit / 2 * 16 + 4 * (p / 2) + 2 * (p % 2) + unit % 2;
  if (BITS == 8) return unit * 8 + p / 4 * 4 + p / 2 % 2 + 2 * (p % 2);
  return unit * 8 + p;
}

void main() {
  const uint row = gl_WorkGroupID.y, unit = gl_WorkGroupID.x * THREADS + gl_LocalInvocationIndex;
  const uint units = (push.cols + 15) / 16 * 2;
  const int k = exponent_of_scale(absmax_bits(row)), first = k / 2;
  if (unit == 0) factors[row] = vec2(power_of_two(-first), power_of_two(first - k));
  if (unit >= units) return;
  uvec4 held[3] = uvec4[3](uvec4(0), uvec4(0), uvec4(0));
  for (uint p = 0; p < 8; p++) {
    const uint col = column_at(unit, p);
    if (col >= push.cols) continue;
    precise float value = value_at(row, col) * power_of_two(first);
    value = value * power_of_two(k - first);
    for (uint part = 0; part < PARTS; part++) held[part][p / 2] |= take_half(value) << 16 * (p % 2);
  }
  for (uint part = 0; part < PARTS; part++) parts[(row * PARTS + part) * units + unit] = held[part];
}
