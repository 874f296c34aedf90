/* Many workgroups write values; the one that comes last goes on with all of them, and no dispatch is needed for that. A
 * shader defines LAST_BINDING, where the flags and the counters behind them are bound. */
#ifndef LAST_GLSL
#define LAST_GLSL

layout(set = 0, binding = LAST_BINDING, std430) coherent buffer Flags { uint flags[]; };

shared uint arrivals;

/* All threads of a workgroup, once it has written: true in the last of `groups` workgroups, which then sees what all of
 * them wrote to coherent buffers. Before the first of them flags[counter] is 0. */
bool comes_last(uint counter, uint groups) {
  memoryBarrierBuffer();
  barrier();
  if (gl_LocalInvocationID.x == 0u) arrivals = atomicAdd(flags[counter], 1u);
  barrier();
  if (arrivals + 1u != groups) return false;
  memoryBarrierBuffer();
  return true;
}

#endif
