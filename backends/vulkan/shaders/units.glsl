// Products with matrix units: fragments of 16 x 16 times 16 x 8, in f16, that a subgroup of 32 threads holds together. Of
// a fragment a, a thread holds four words, of b two, of the products four numbers; which elements those are is the
// device's own affair, found out once (units_probe.comp): weights and activations lie in memory in that order, so that
// every thread reads its own words, 16 bytes at a time, and nothing is exchanged. EMULATED: the same by plain arithmetic
// on shared memory, to test the kernels without matrix units.
#ifndef EMULATED
#define EACH(i, n) [[unroll]] for (uint i = 0; i < (n); i++)
#else // code without end, where a product of fragments is long
#define EACH(i, n) [[dont_unroll]] for (uint i = 0; i < (n); i++)
#endif
const uint LANES = 32;

#ifndef EMULATED

#define FragmentA coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define FragmentB coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>
#define Products coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>
#define SET_WORD(m, n, word)                       \
  {                                                \
    const f16vec2 v = unpackFloat2x16(uint(word)); \
    m[2 * (n)] = v.x;                              \
    m[2 * (n) + 1] = v.y;                          \
  }
#define SET_A(a, words)       \
  {                           \
    SET_WORD(a, 0, (words).x) \
    SET_WORD(a, 1, (words).y) \
    SET_WORD(a, 2, (words).z) \
    SET_WORD(a, 3, (words).w) \
  }
#define SET_B(b, words)       \
  {                           \
    SET_WORD(b, 0, (words).x) \
    SET_WORD(b, 1, (words).y) \
  }
#define CLEAR(c) c = Products(0)
#define MULTIPLY_ADD(a, b, c) c = coopMatMulAdd(a, b, c)

// Two f16 of a word, times a factor, plus a number.
uint scale_add(uint pair, float factor, float number) {
  return packFloat2x16(fma(unpackFloat2x16(pair), f16vec2(float16_t(factor)), f16vec2(float16_t(number))));
}

uint scale_pair(uint pair, float factor) {
  return packFloat2x16(unpackFloat2x16(pair) * f16vec2(float16_t(factor)));
}

uint this_subgroup() { return gl_SubgroupID; }

uint this_lane() { return gl_SubgroupInvocationID; }

float from_lane(float value, uint lane) { return subgroupShuffle(value, lane); }

// Two numbers as f16, rounded as the device does.
uint pack_pair(vec2 x) { return packFloat2x16(f16vec2(x)); }

#ifdef VOTES
bool all_agree(bool own) { return subgroupAll(own); }
#endif

// What the subgroup wrote to shared memory is seen by the subgroup.
void meet_subgroup() {
  subgroupMemoryBarrierShared();
  subgroupBarrier();
}

#else

// Thread 4 g + t: of a rows g and g + 8, of both columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9; of b column g, the same rows;
// of the products rows g and g + 8, columns 2 t and 2 t + 1.
#define FragmentA uvec4
#define FragmentB uvec2
#define Products float[4]
#define SET_A(a, words) a = words
#define SET_B(b, words) b = words
#define CLEAR(c) EACH(n_, 4) c[n_] = 0

shared uvec4 all_a[SUBGROUPS * LANES];
shared uvec2 all_b[SUBGROUPS * LANES];

uint this_subgroup() { return gl_LocalInvocationIndex / LANES; }

uint this_lane() { return gl_LocalInvocationIndex % LANES; }

shared float all_values[SUBGROUPS * LANES];

float from_lane(float value, uint lane) {
  barrier();
  all_values[gl_LocalInvocationIndex] = value;
  barrier();
  return all_values[gl_LocalInvocationIndex - this_lane() + lane];
}

void meet_subgroup() { barrier(); }

uint pack_pair(vec2 x) { return packHalf2x16(x); }

// Of the whole workgroup: what only some subgroups do must not meet a barrier.
bool all_agree(bool own) {
  bool all = true;
  barrier();
  all_values[gl_LocalInvocationIndex] = own ? 1.0 : 0.0;
  barrier();
  for (uint i = 0; i < SUBGROUPS * LANES; i++) all = all && all_values[i] == 1.0;
  return all;
}

uint scale_add(uint pair, float factor, float number) { return packHalf2x16(unpackHalf2x16(pair) * factor + number); }

uint scale_pair(uint pair, float factor) { return packHalf2x16(unpackHalf2x16(pair) * factor); }

float add_words(uint a, uint b, float sum) {
  const vec2 x = unpackHalf2x16(a), y = unpackHalf2x16(b);
  return fma(x.y, y.y, fma(x.x, y.x, sum));
}

void share(uvec4 a, uvec2 b) {
  barrier();
  all_a[gl_LocalInvocationIndex] = a;
  all_b[gl_LocalInvocationIndex] = b;
  barrier();
}

// Words x and y of a are row g's, z and w row g + 8's.
#define MULTIPLY_ADD(a, b, c)                                                     \
  {                                                                               \
    share(a, b);                                                                  \
    EACH(n_, 4)                                                                   \
      for (uint t_ = 0; t_ < 4; t_++) {                                           \
        const uint first_ = gl_LocalInvocationIndex - this_lane();                \
        const uvec4 a_ = all_a[first_ + this_lane() / 4 * 4 + t_];                \
        const uvec2 b_ = all_b[first_ + (this_lane() % 4 * 2 + n_ % 2) * 4 + t_]; \
        c[n_] = add_words(n_ < 2 ? a_.x : a_.z, b_.x, c[n_]);                     \
        c[n_] = add_words(n_ < 2 ? a_.y : a_.w, b_.y, c[n_]);                     \
      }                                                                           \
  }
#endif
