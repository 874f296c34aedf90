// Where the elements of a matrix `a` of coop.comp are: thread i's element n is number places[8 * i + n], 16 * row + column.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
#define PUSH_MEASURE
#include "push.h"

layout(local_size_x = 32) in;

layout(set = 0, binding = 0) writeonly buffer Places { uint places[]; };

shared uvec4 area[32];

// Two numbers as f16: all below 2048 are exact.
uint pair(uint number) { return packFloat2x16(f16vec2(float16_t(float(number)), float16_t(float(number + 1)))); }

void main() {
  const uint first = gl_LocalInvocationIndex * 8;
  area[gl_LocalInvocationIndex] = uvec4(pair(first), pair(first + 2), pair(first + 4), pair(first + 6));
  barrier();
  coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;
  coopMatLoad(a, area, 0, 2, gl_CooperativeMatrixLayoutRowMajor);
  for (uint n = 0; n < push.count && n < a.length(); n++)
    places[gl_SubgroupInvocationID * push.count + n] = uint(float(a[n]));
}
