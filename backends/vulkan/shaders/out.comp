/* h += conv(x, d, base, 1); norm = h / sqrt(mean(h^2) + eps) * weight. A workgroup a row; of h it reads its own. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define PUSH_OUT
#include "push.h"
#define SIDE 16
#include "row.glsl"

layout(std430, set = 0, binding = 0) buffer H { float h[]; };
layout(std430, set = 0, binding = 1) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 2) readonly buffer D { float d[]; };
layout(std430, set = 0, binding = 3) readonly buffer Base { float base[]; };
layout(std430, set = 0, binding = 4) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Norm { float norm[]; };

const uint KEPT = 20; /* elements that a thread holds; those of wider rows are written and read again */

/* Channels of a thread, THREADS apart, and the group of each, without a division a channel. */
struct Channel {
  uint index;
  uint group;
  uint within; /* the group */
};

Channel first_channel() {
  const uint thread = gl_LocalInvocationIndex;
  return Channel(thread, thread / push.group, thread % push.group);
}

void next_channel(inout Channel channel, uint groups, uint rest) {
  channel.index += THREADS;
  channel.group += groups;
  channel.within += rest;
  if (channel.within >= push.group) {
    channel.within -= push.group;
    channel.group++;
  }
}

/* The term of one tap: channel `index` of the row `tap` rows back. */
float term(uint row, uint tap, Channel channel) {
  const uint side_tap = push.taps + tap;
  const float dynamic = d[(row * 2 * push.taps + side_tap) * push.groups + channel.group];
  return (base[side_tap * push.width + channel.index] + dynamic) * x[(row - tap) * push.width + channel.index];
}

void main() {
  const uint thread = gl_LocalInvocationIndex, row = gl_WorkGroupID.x, first = row * push.width;
  const uint taps = min(push.taps, row + 1), groups = THREADS / push.group, rest = THREADS % push.group;
  float kept[KEPT], gain[KEPT], squares = 0.0;
  [[unroll]] for (uint k = 0; k < KEPT; k++) kept[k] = 0.0;
  for (uint tap = 0; tap < taps; tap++) {
    Channel channel = first_channel();
    [[unroll]] for (uint k = 0; k < KEPT; k++) {
      if (channel.index < push.width) kept[k] += term(row, tap, channel);
      next_channel(channel, groups, rest);
    }
  }
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    const uint i = k * THREADS + thread;
    gain[k] = 0.0;
    if (i < push.width) {
      kept[k] = h[first + i] + kept[k];
      gain[k] = weight[i];
    }
  }
  [[unroll]] for (uint k = 0; k < KEPT; k++) squares += kept[k] * kept[k];
  for (uint i = KEPT * THREADS + thread; i < push.width; i += THREADS) {
    const Channel channel = Channel(i, i / push.group, 0u);
    float sum = 0.0;
    for (uint tap = 0; tap < taps; tap++) sum += term(row, tap, channel);
    sum = h[first + i] + sum;
    h[first + i] = sum;
    squares += sum * sum;
  }
  const float factor = norm_factor(squares, push.width, push.eps);
  [[unroll]] for (uint k = 0; k < KEPT; k++) {
    const uint i = k * THREADS + thread;
    if (i < push.width) {
      h[first + i] = kept[k];
      norm[first + i] = kept[k] * factor * gain[k];
    }
  }
  for (uint i = KEPT * THREADS + thread; i < push.width; i += THREADS)
    norm[first + i] = h[first + i] * factor * weight[i];
}
