/* Picks the best of what 256 threads offer, again and again: two barriers a pick, and only the thread whose offer won
 * looks for another. An offer is a key, larger is better, and an order: of equal keys the lower one wins. */
#ifndef BEST_GLSL
#define BEST_GLSL

const uint THREADS = 256;
const uint GROUP = 16; /* threads whose best offer is kept */
const uint NEVER = 0xffffffffu;
const uvec2 NOTHING = uvec2(0u, NEVER); /* loses to every number */

shared uvec2 offers[THREADS], bests[THREADS / GROUP];

/* Numbers by size: 0 for none; -0 equals 0; NaN ranks with minus infinity. Subnormal numbers stay apart, whatever the
 * device's floats do. */
uint key_of(uint bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) bits = 0xff800000u;
  if (bits == 0x80000000u) bits = 0u;
  return bits >= 0x80000000u ? ~bits : bits | 0x80000000u;
}

bool better(uvec2 a, uvec2 b) { return a.x > b.x || a.x == b.x && a.y < b.y; }

/* All threads: once every one has stored its offer. */
void collect_offers() {
  barrier();
  if (gl_LocalInvocationID.x < THREADS / GROUP) {
    uvec2 best = NOTHING;
    for (uint i = 0; i < GROUP; i++) {
      const uvec2 offer = offers[gl_LocalInvocationID.x * GROUP + i];
      if (better(offer, best)) best = offer;
    }
    bests[gl_LocalInvocationID.x] = best;
  }
  barrier();
}

uvec2 best_offer() {
  uvec2 best = bests[0];
  for (uint i = 1; i < THREADS / GROUP; i++)
    if (better(bests[i], best)) best = bests[i];
  return best;
}

#endif
