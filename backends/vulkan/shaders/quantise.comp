// Activations of profile i8, by groups of 32 columns: absmax below 2^-100: zero; else step = absmax / 127,
// r = 127 / absmax, q = round(x * r), ties to even; each of the three rounded to f32. A group that is not finite has a
// step of NaN. A workgroup takes 4 groups of a row.
#version 450
#extension GL_GOOGLE_include_directive : require
#define PUSH_QUANTISE
#include "push.h"
#include "numbers.glsl"

layout(local_size_x = 128) in;

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Words { uint words[]; };
layout(set = 0, binding = 2) writeonly buffer Steps { float steps[]; };

const uint GROUP = 32, GROUPS = 4;

shared uint area[128]; // magnitudes, then bytes

// The largest of a group's magnitudes; bits order as values do, and NaN above all.
uint group_largest(uint magnitude, uint first) {
  area[gl_LocalInvocationIndex] = magnitude;
  barrier();
  uint found = 0;
  for (uint i = 0; i < GROUP; i++) found = max(found, area[first + i]);
  barrier();
  return found;
}

uint quantised(float value, float absmax) {
  precise float scaled = value * divide(127, absmax);
  return uint(int(roundEven(scaled))) & 0xff;
}

void main() {
  const uint lane = gl_LocalInvocationIndex % GROUP, first = gl_LocalInvocationIndex - lane;
  const uint groups = push.cols / GROUP, row = gl_WorkGroupID.y;
  const uint group = gl_WorkGroupID.x * GROUPS + gl_LocalInvocationIndex / GROUP;
  const bool inside = group < groups && row < push.rows;
  const float value = inside ? x[(push.x_first + row) * push.x_stride + group * GROUP + lane] : 0;
  const uint largest = group_largest(floatBitsToUint(value) & 0x7fffffff, first);
  const bool finite = largest < INFINITY_BITS, zero = largest < 27u << 23; // 2^-100
  const float absmax = uintBitsToFloat(largest);
  area[gl_LocalInvocationIndex] = zero || !finite ? 0 : quantised(value, absmax);
  barrier();
  if (!inside) return;
  const uint index = row * groups + group, byte = first + lane * 4;
  if (lane < GROUP / 4)
    words[index * (GROUP / 4) + lane] = area[byte] | area[byte + 1] << 8 | area[byte + 2] << 16 | area[byte + 3] << 24;
  if (lane == 0) steps[index] = !finite ? uintBitsToFloat(NAN_BITS) : zero ? 0 : divide(absmax, 127);
}
