// One product of fragments, from words and to numbers that the host lays out as it expects the device to hold them.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef EMULATED
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
#endif
const uint SUBGROUPS = 1;
#include "units.glsl"

layout(local_size_x = 32) in;

layout(set = 0, binding = 0) readonly buffer A { uvec4 a_words[]; };
layout(set = 0, binding = 1) readonly buffer B { uvec2 b_words[]; };
layout(set = 0, binding = 2) writeonly buffer C { float products[]; }; // [32][4]

void main() {
  FragmentA a;
  FragmentB b;
  Products c;
  const uvec4 of_a = a_words[this_lane()];
  const uvec2 of_b = b_words[this_lane()];
  SET_A(a, of_a);
  SET_B(b, of_b);
  CLEAR(c);
  MULTIPLY_ADD(a, b, c);
  EACH(n, 4) products[this_lane() * 4 + n] = c[n];
}
