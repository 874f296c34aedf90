/* How logits, scores and their places rank: an entry is a key, larger is better, and a place: of equal keys the lower
 * one wins. */
#ifndef BEST_GLSL
#define BEST_GLSL

const uint NEVER = 0xffffffffu;
const uint LOWEST_BITS = 0xff800000u; /* minus infinity */
const uint LOWEST_KEY = ~LOWEST_BITS;
const uvec2 NOTHING = uvec2(0u, NEVER); /* loses to every number */

bool is_nan_bits(uint bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

/* Numbers by size, LOWEST_KEY and up; -0 equals 0; 0 for the bits NEVER. Subnormal numbers stay apart, whatever the
 * device's floats do. */
uint key_of(uint bits) {
  if (bits == 0x80000000u) bits = 0u;
  return bits >= 0x80000000u ? ~bits : bits | 0x80000000u;
}

bool better(uvec2 a, uvec2 b) { return a.x > b.x || a.x == b.x && a.y < b.y; }

#endif
