/* Activations as the products on matrix units read them (units.h): in groups of 32 columns, PARTS parts of f16 and a
 * factor each. 16 neighbouring threads of a workgroup prepare a group, a pair of columns each. Before this file:
 * THREADS of the workgroup, a multiple of 16; PREPARE_BINDINGS, the first of three bindings, and PREPARE_CONSTANTS, the
 * first of two constants, as numbers. A thread that has several pairs of a row at once says how many: PREPARE_TURNS.
 * With PREPARE_TWICE there are two more bindings: the words and factors of a second form.
 *
 * X = x 2^k, at most 2^14, is p0 + (p1 + p2) 2^-11, each rounded to nearest, ties to even. Let 2^e <= |X| < 2^(e+1); X
 * is a multiple of 2^(e-23). The step of f16 at X is 2^(e-10), but not below 2^-24. Where e >= -12, X is held exactly:
 * R = 2^11 (X - p0) is at most 2^e, and a multiple of 2^(e-12). The step of f16 at R is at most 2^(e-11), so R - p1
 * is 0 or +-2^(e-12), unless the step is 2^-24, of which 2^(e-12) is a multiple: then it is 0. 2^(e-12) >= 2^-24 is
 * f16. Below, R is off by 2^-25 at most, X by 2^-36: that is 2^-49 of the group's largest. All differences are exact:
 * no fused or reordered operation changes them. */
#ifndef PREPARE_GLSL
#define PREPARE_GLSL

#include "numbers.glsl"

layout(constant_id = PREPARE_CONSTANTS) const uint PARTS = 3;        /* 1 or 3 */
layout(constant_id = PREPARE_CONSTANTS + 1) const uint INTEGERS = 0; /* 1: x is rounded to integers of profile i8 */

/* [8 j + row]: where the pair of columns 2 j, 2 j + 1 of a row stands in a fragment: 2 * thread + word */
layout(set = 0, binding = PREPARE_BINDINGS) readonly buffer Pairs { uint pairs[]; };
/* [tiles of 8 rows][groups][PARTS][32][4] */
layout(set = 0, binding = PREPARE_BINDINGS + 1) writeonly buffer Words { uint words[]; };
/* [tiles of 8 rows][groups][8] */
layout(set = 0, binding = PREPARE_BINDINGS + 2) writeonly buffer Factors { float factors[]; };

#ifdef PREPARE_TWICE
layout(set = 0, binding = PREPARE_BINDINGS + 3) writeonly buffer OtherWords { uint other_words[]; };
layout(set = 0, binding = PREPARE_BINDINGS + 4) writeonly buffer OtherFactors { float other_factors[]; };
#endif

#ifndef PREPARE_TURNS
#define PREPARE_TURNS 1
#endif
shared uvec4 group_area[PREPARE_TURNS * THREADS / 4];

/* Of 32 columns, as many as whole pieces of any storage have (units.h). */
uint groups_of(uint cols) { return (cols + 255) / 256 * 8; }

/* The larger magnitude of a thread's values, as bits, which order as values do, and NaN above all: all threads note
 * theirs, and after a barrier each finds the largest of its group. */
void note_largest(uint turn, vec2 values) {
  const uvec2 bits = floatBitsToUint(values) & ~SIGN_BIT;
  const uint at = turn * THREADS + gl_LocalInvocationIndex;
  group_area[at / 4][at % 4] = max(bits.x, bits.y);
}

uint group_largest(uint turn) {
  const uint first = (turn * THREADS + gl_LocalInvocationIndex) / 16 * 4;
  uvec4 most = uvec4(0);
  for (uint i = 0; i < 4; i++) most = max(most, group_area[first + i]);
  return max(max(most.x, most.y), max(most.z, most.w));
}

/* The largest k with absmax 2^k <= 2^14, but 126 at most: 2^-k is f32's. 0 of a group that is not finite. */
int exponent_of_group(uint bits) {
  if (bits == 0 || bits >= INFINITY_BITS) return 0;
  const int exponent = take_mantissa(bits) - 127; /* bits: 2^23 for a power of two */
  return min((bits == SMALLEST_NORMAL_BITS ? 14 : 13) - exponent, 126);
}

/* To the nearest f16, as bits; rest: what is left. Of numbers of at most 2^14: where 2^13 times the power of two in the
 * number, or in the smallest normal f16, is added, the last bit of the sum is the step of f16. */
uint take_half(inout float rest) {
  const uint sign = floatBitsToUint(rest) & SIGN_BIT;
  const float magnitude = abs(rest);
  const uint power = max((floatBitsToUint(magnitude) & INFINITY_BITS) + (13u << 23), 0x3f000000u); /* 2^-1 */
  precise const float sum = magnitude + uintBitsToFloat(power);
  precise const float taken = sum - uintBitsToFloat(power);
  precise const float left = magnitude - taken;
  rest = uintBitsToFloat(floatBitsToUint(left) ^ sign);
  return sign >> 16 | floatBitsToUint(sum) - power + (power >> 13) - (126u << 10);
}

/* The same of any number. */
uint take_any_half(inout float rest) {
  const uint bits = floatBitsToUint(rest), magnitude = bits & ~SIGN_BIT, sign = bits >> 16 & 0x8000;
  if (magnitude >= INFINITY_BITS) {
    rest = 0;
    return sign | (magnitude > INFINITY_BITS ? 0x7e00 : 0x7c00);
  }
  uint half_bits;
  float taken;
  if (magnitude < 113u << 23) { /* below 2^-14 the step is 2^-24 */
    taken = roundEven(uintBitsToFloat(magnitude) * 16777216.0);
    half_bits = uint(taken);
    taken *= power_of_two(-24);
  } else {
    const uint rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) & 0xffffe000;
    taken = uintBitsToFloat(rounded);
    half_bits = min((rounded >> 13) - (112u << 10), 0x7c00);
  }
  rest -= sign != 0 ? -taken : taken;
  return sign | half_bits;
}

uint take_pair(inout vec2 rest, bool finite) {
  const uint low = finite ? take_half(rest.x) : take_any_half(rest.x);
  return low | (finite ? take_half(rest.y) : take_any_half(rest.y)) << 16;
}

struct Taken {
  uint words[3];
};

/* Of a group that is finite, or not. */
Taken take_parts(vec2 rest, bool finite) {
  Taken taken;
  taken.words[0] = take_pair(rest, finite);
  if (PARTS > 1) {
    rest *= 2048;
    taken.words[1] = take_pair(rest, finite);
    taken.words[2] = take_pair(rest, finite);
  }
  return taken;
}

/* Profile i8: below 2^-100 zero; else the step is absmax / 127, the integer round(x * r), r = 127 / absmax, ties to
 * even; each of the three rounded to f32. A group that is not finite has a step of NaN. */
vec2 to_integers(vec2 values, uint largest, out float factor) {
  const float absmax = uintBitsToFloat(largest);
  const bool finite = largest < INFINITY_BITS, zero = largest < 27u << 23; /* 2^-100 */
  factor = !finite ? uintBitsToFloat(NAN_BITS) : zero ? 0 : divide(absmax, 127);
  if (zero || !finite) return vec2(0);
  precise const vec2 scaled = values * divide(127, absmax);
  return roundEven(scaled);
}

void put_word(uint form, uint at, uint word) {
#ifdef PREPARE_TWICE
  if (form == 1) {
    other_words[at] = word;
    return;
  }
#endif
  words[at] = word;
}

void put_factor(uint form, uint at, float factor) {
#ifdef PREPARE_TWICE
  if (form == 1) {
    other_factors[at] = factor;
    return;
  }
#endif
  factors[at] = factor;
}

/* Where this thread's pairs of a row stand in their fragments; loaded with the rest of what it reads. */
uint load_place(uint row) { return pairs[gl_LocalInvocationIndex % 8 * 8 + row % 8]; }

/* `pair` counts along the row, which has `groups` groups; it is this thread's in a workgroup's multiple of 16. Both
 * values are 0 past the last column. All threads of the group noted theirs. */
void write_pair(uint form, uint turn, uint place, uint row, uint pair, uint groups, vec2 values) {
  if (pair / 16 >= groups) return;
  const uint group = row / 8 * groups + pair / 16;
  const uint largest = group_largest(turn);
  float factor;
  vec2 rest;
  if (INTEGERS != 0) {
    rest = to_integers(values, largest, factor);
  } else {
    const int k = exponent_of_group(largest);
    rest = values * power_of_two(k);
    factor = largest == 0 ? 0 : power_of_two(-k);
  }
  const uint at = group * PARTS * 128 + place / 2 * 4 + pair % 16 / 8 * 2 + place % 2;
  Taken taken;
  if (largest < INFINITY_BITS)
    taken = take_parts(rest, true);
  else
    taken = take_parts(rest, false);
  put_word(form, at, taken.words[0]);
  if (PARTS > 1) {
    put_word(form, at + 128, taken.words[1]);
    put_word(form, at + 256, taken.words[2]);
  }
  if (pair % 16 == 0) put_factor(form, group * 8 + row % 8, factor);
}

/* One pair a thread. All threads of the workgroup come here, those past the last group, too. */
void prepare_pair(uint place, uint row, uint pair, uint groups, vec2 values) {
  note_largest(0, values);
  barrier();
  write_pair(0, 0, place, row, pair, groups, values);
  barrier(); /* before what is noted next */
}

#endif
