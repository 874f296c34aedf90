/* Functions of numbers, made of additions, products and integer operations alone: devices promise too little of their
 * own exp, sin and division. NaN and infinity are told by their bits, because compilers may assume that there are none.
 * Errors in units of the last place (ulp) are bounds over all f32 inputs; a result below 2^-126 may be flushed to 0. */
#ifndef NUMBERS_GLSL
#define NUMBERS_GLSL

const uint SIGN_BIT = 0x80000000u;
const uint INFINITY_BITS = 0x7f800000u;
const uint NAN_BITS = 0x7fc00000u;
const uint SMALLEST_NORMAL_BITS = 0x00800000u;

bool is_nan(float x) { return (floatBitsToUint(x) & ~SIGN_BIT) > INFINITY_BITS; }

bool is_finite(float x) { return (floatBitsToUint(x) & ~SIGN_BIT) < INFINITY_BITS; }

float decode_bf16(uint bits) { return uintBitsToFloat(bits << 16); }

/* The low 16 bits, also subnormal ones. */
float decode_f16(uint bits) {
  const uint sign = (bits & 0x8000u) << 16, size = bits & 0x7fffu;
  if (size >= 0x7c00u) return uintBitsToFloat(sign | INFINITY_BITS | size << 13);
  if (size >= 0x0400u) return uintBitsToFloat(sign | (size << 13) + (112u << 23));
  const float subnormal = float(size) * 5.9604644775390625e-8; /* 2^-24 */
  return uintBitsToFloat(sign | floatBitsToUint(subnormal));
}

/* 2^n for -126 <= n <= 127 */
float power_of_two(int n) { return uintBitsToFloat(uint(n + 127) << 23); }

/* e^x, at most 1.1 ulp: x = n ln 2 + r, |r| <= ln 2 / 2, Taylor's series of r. n ln2_high is exact: 8 and 16 bits. */
float exp_f32(float x) {
  if (is_nan(x)) return x;
  const float ln2_high = 0.693145751953125, ln2_low = 1.42860677e-6;
  const float limited = clamp(x, -105.0, 90.0); /* beyond, it is 0 and infinity */
  const float n = roundEven(limited * 1.44269504);
  precise const float r = (limited - n * ln2_high) - n * ln2_low;
  precise float series = 1.98412698e-4; /* 1 / 7! */
  series = series * r + 1.38888889e-3;
  series = series * r + 8.33333333e-3;
  series = series * r + 4.16666667e-2;
  series = series * r + 0.166666667;
  series = series * r + 0.5;
  precise const float power = 1.0 + (r + (r * r) * series);
  const int first = int(n) >> 1; /* two factors, one after the other: 2^n alone may be none of f32 */
  precise const float result = power * power_of_two(first) * power_of_two(int(n) - first);
  return result;
}

/* x^-1/2, at most 1.5 ulp: Newton's steps on an estimate from the exponent. Of 0 infinity, of negative numbers NaN. */
float rsqrt_f32(float x) {
  uint bits = floatBitsToUint(x);
  if (bits > INFINITY_BITS) return uintBitsToFloat(NAN_BITS);
  if (bits == INFINITY_BITS) return 0.0;
  if (bits == 0u) return uintBitsToFloat(INFINITY_BITS);
  float scale = 1.0;
  if (bits < SMALLEST_NORMAL_BITS) { /* x = bits 2^-149 = (2 bits) 2^-150 */
    x = float(2u * bits);
    bits = floatBitsToUint(x);
    scale = power_of_two(75);
  }
  precise float y = uintBitsToFloat(0x5f375a86u - (bits >> 1));
  for (int step = 0; step < 3; step++) y = y + (0.5 * y) * (1.0 - (x * y) * y);
  return y * scale;
}

/* The mantissa of a positive finite number, with its leading bit at 2^23; the result is its biased exponent. */
int take_mantissa(inout uint bits) {
  if (bits >= SMALLEST_NORMAL_BITS) {
    const int exponent = int(bits >> 23);
    bits = bits & 0x007fffffu | SMALLEST_NORMAL_BITS;
    return exponent;
  }
  const int shift = 23 - findMSB(bits);
  bits <<= shift;
  return 1 - shift;
}

/* quotient / 2^24, of 1 to below 2, times 2^(exponent - 127), rounded to nearest even; inexact: a remainder follows. */
uint round_quotient(uint quotient, bool inexact, int exponent) {
  const int dropped = exponent >= 1 ? 1 : min(2 - exponent, 26); /* bits */
  const uint kept = quotient >> dropped, middle = 1u << (dropped - 1);
  const uint rest = quotient & (2u * middle - 1u);
  const bool up = rest > middle || rest == middle && (inexact || (kept & 1u) != 0u);
  if (exponent > 254) return INFINITY_BITS;
  return (uint(max(exponent, 1) - 1) << 23) + kept + (up ? 1u : 0u);
}

/* a / b, correctly rounded: long division of the mantissas, eight bits a step. */
float divide(float a, float b) {
  const uint sign = (floatBitsToUint(a) ^ floatBitsToUint(b)) & SIGN_BIT;
  uint above = floatBitsToUint(a) & ~SIGN_BIT, below = floatBitsToUint(b) & ~SIGN_BIT;
  if (above > INFINITY_BITS || below > INFINITY_BITS) return uintBitsToFloat(NAN_BITS);
  if (above == below && (above == 0u || above == INFINITY_BITS)) return uintBitsToFloat(NAN_BITS);
  if (above == INFINITY_BITS || below == 0u) return uintBitsToFloat(sign | INFINITY_BITS);
  if (above == 0u || below == INFINITY_BITS) return uintBitsToFloat(sign);
  int exponent = 127 + take_mantissa(above);
  exponent -= take_mantissa(below);
  if (above < below) {
    above <<= 1;
    exponent--;
  }
  uint quotient = 1u, rest = above - below;
  for (int step = 0; step < 3; step++) {
    rest <<= 8;
    const uint digit = rest / below;
    rest -= digit * below;
    quotient = quotient << 8 | digit;
  }
  return uintBitsToFloat(sign | round_quotient(quotient, rest != 0u, exponent));
}

/* The upper 12 bits of the mantissa: products of two such numbers are exact. */
float upper_half(float x) { return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); }

/* a / b, at most 1 ulp and faster: the device's quotient and what it leaves of a, exactly. For finite a and |b| from
 * 2^-100 to 2^120; NaN stays NaN. */
float quotient(float a, float b) {
  const float inverse = 1.0 / b;
  precise const float q = a * inverse;
  const float q_high = upper_half(q), b_high = upper_half(b);
  precise const float q_low = q - q_high;
  precise const float b_low = b - b_high;
  precise const float rest = ((a - q_high * b_high) - q_high * b_low) - q_low * b_high - q_low * b_low;
  precise const float result = q + rest * inverse;
  return result;
}

/* Zero and the first 224 bits of 2 / pi behind the point. */
const uint TWO_OVER_PI[8] = uint[](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
                                   0xfe5163abu);

/* 32 bits of TWO_OVER_PI from bit `first` on */
uint two_over_pi(uint first) {
  const uint word = first >> 5, shift = first & 31u;
  const uint high = TWO_OVER_PI[word] << shift;
  return shift == 0u ? high : high | TWO_OVER_PI[word + 1u] >> (32u - shift);
}

/* |angle| * 2 / pi modulo 4 in 96 bits, two of them before the point; pi / 4 <= |angle| < infinity. Bits of 2 / pi that
 * add multiples of 4 are left out. The first 70 bits behind the point are right; every f32 is at least 2^-30 away from
 * a whole number of quarters. */
uvec3 count_quarters(float angle) {
  const uint bits = floatBitsToUint(angle) & ~SIGN_BIT;
  const uint mantissa = bits & 0x007fffffu | SMALLEST_NORMAL_BITS;
  const uint first = (bits >> 23) - 120u; /* the bit that counts 2: angle = mantissa 2^(exponent - 150) */
  uint low, middle, middle_low, carry;
  umulExtended(mantissa, two_over_pi(first + 64u), middle_low, low);
  uint high = mantissa * two_over_pi(first);
  umulExtended(mantissa, two_over_pi(first + 32u), carry, middle);
  high += carry;
  middle = uaddCarry(middle, middle_low, carry);
  return uvec3(high + carry, middle, low);
}

/* An angle is quarter pi / 2 + (high + low), |high| below 0.79 and low below 2^-22 of it. */
struct Turn {
  uint quarter;
  float high;
  float low;
};

Turn reduce_angle(float angle) {
  if ((floatBitsToUint(angle) & ~SIGN_BIT) <= 0x3f490fdbu) return Turn(0u, angle, 0.0); /* pi / 4 */
  uvec3 turns = count_quarters(angle);
  uint quarter = (turns.x + 0x20000000u) >> 30;
  turns.x -= quarter << 30;
  const bool negative = (turns.x & SIGN_BIT) != 0u;
  if (negative) turns = ~turns;
  const int lead = findMSB(turns.x);
  const uint leading = turns.x << (31 - lead) | turns.y >> (lead + 1); /* 32 bits, the first set */
  uint radians, unused;
  umulExtended(leading, 0xc90fdaa2u, radians, unused); /* pi / 2 = 2^-31 times this */
  const float unit = power_of_two(lead - 60);
  float high = float(radians & 0xffffff00u) * unit, low = float(radians & 0xffu) * unit;
  if (negative != angle < 0.0) high = -high, low = -low;
  if (angle < 0.0) quarter = -quarter;
  return Turn(quarter & 3u, high, low);
}

/* sin(high + low) for |high| <= pi / 4, by Taylor's series */
float sine_near_zero(float high, float low) {
  precise const float square = high * high;
  precise float series = 2.75573192e-6; /* 1 / 9! */
  series = series * square - 1.98412698e-4;
  series = series * square + 8.33333333e-3;
  series = series * square - 0.166666667;
  precise const float result = high + (low + (high * square) * series);
  return result;
}

/* cos(high + low) for |high| <= pi / 4; what 1 - square / 2 loses in rounding is added to the small terms. */
float cosine_near_zero(float high, float low) {
  precise const float square = high * high;
  precise float series = -2.75573192e-7; /* 1 / 10! */
  series = series * square + 2.48015873e-5;
  series = series * square - 1.38888889e-3;
  series = series * square + 4.16666667e-2;
  precise const float half_square = 0.5 * square;
  precise const float first = 1.0 - half_square;
  precise const float lost = (1.0 - first) - half_square;
  precise const float result = first + (lost + ((square * square) * series - high * low));
  return result;
}

/* Cosine and sine, at most 1.2 ulp at any finite angle; NaN of infinity and NaN. */
vec2 cosine_sine(float angle) {
  if (!is_finite(angle)) return vec2(uintBitsToFloat(NAN_BITS));
  const Turn turn = reduce_angle(angle);
  const float cosine = cosine_near_zero(turn.high, turn.low), sine = sine_near_zero(turn.high, turn.low);
  const vec2 turned = (turn.quarter & 1u) == 0u ? vec2(cosine, sine) : vec2(-sine, cosine);
  return (turn.quarter & 2u) == 0u ? turned : -turned;
}

#endif
