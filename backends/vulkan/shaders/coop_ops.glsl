// Matrices of 16 x 16 times 16 x ROWS that a subgroup of 32 threads holds together (i8: 16 x 32 times 32 x ROWS). Which
// thread holds which element is not known here: elements are only treated alike, or loaded and stored. Areas are arrays
// of uvec4 in shared memory; places and strides count those. Barriers around reads and writes of areas belong to the
// caller. EMULATED: the same on plain shared memory, to test the kernels without matrix units.
const uint LANES = 32;

#ifndef EMULATED

#ifdef INT8
#define FragmentA coopmat<int8_t, gl_ScopeSubgroup, 16, 32, gl_MatrixUseA>
#define FragmentB coopmat<int8_t, gl_ScopeSubgroup, 32, ROWS, gl_MatrixUseB>
#define Products coopmat<int, gl_ScopeSubgroup, 16, ROWS, gl_MatrixUseAccumulator>
#else
#define FragmentA coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define FragmentB coopmat<float16_t, gl_ScopeSubgroup, 16, ROWS, gl_MatrixUseB>
#define Products coopmat<float, gl_ScopeSubgroup, 16, ROWS, gl_MatrixUseAccumulator>
#endif
#define Sums coopmat<float, gl_ScopeSubgroup, 16, ROWS, gl_MatrixUseAccumulator>

#define ELEMENTS(sums) (sums).length()
#define CLEAR(Type, c) c = Type(0)
// Row i of a, and column j of b, begin at at + stride * i, at + stride * j.
#define LOAD_A(a, at, stride) coopMatLoad(a, w_area, at, stride, gl_CooperativeMatrixLayoutRowMajor)
#define LOAD_B(b, at, stride) coopMatLoad(b, x_area, at, stride, gl_CooperativeMatrixLayoutColumnMajor)
#ifdef DIRECT
// The elements that a thread holds, as pairs of neighbouring columns. Thread 4 g + t: of row g columns 2 t and 2 t + 8, of
// row g + 8 the same. coop_probe.comp asks the device whether this is so.
#define SET_A(a, low, low_under, high, high_under) \
  SET_PAIR(a, 0, low)                              \
  SET_PAIR(a, 2, low_under)                        \
  SET_PAIR(a, 4, high)                             \
  SET_PAIR(a, 6, high_under)
#define SET_PAIR(a, n, pair)        \
  {                                 \
    f16vec2 v = unpackFloat2x16(pair); \
    a[n] = v.x;                     \
    a[n + 1] = v.y;                 \
  }
#endif
#define MULTIPLY_ADD(a, b, c) c = coopMatMulAdd(a, b, c)
// Declares sums: the compiler refuses the same as an assignment.
#define CONVERT(sums, products) Sums sums = Sums(products)
// A factor for each row, or column, of sums, from an array of floats: every column, or row, is the same one.
#define LOAD_ROW_FACTORS(f, array, at) coopMatLoad(f, array, at, 0, gl_CooperativeMatrixLayoutColumnMajor)
#define LOAD_COLUMN_FACTORS(f, array, at) coopMatLoad(f, array, at, 0, gl_CooperativeMatrixLayoutRowMajor)
// Element (i, j) becomes float 16 * j + i from `at` on.
#define STORE_SUMS(sums, at) coopMatStore(sums, w_area, at, 4, gl_CooperativeMatrixLayoutColumnMajor)

uint this_subgroup() { return gl_SubgroupID; }

uint this_lane() { return gl_SubgroupInvocationID; }

#ifndef INT8
// Two f16 of a word, times a factor, plus a number.
uint scale_add(uint pair, float factor, float number) {
  return packFloat2x16(fma(unpackFloat2x16(pair), f16vec2(float16_t(factor)), f16vec2(float16_t(number))));
}
#endif

#else

const uint HELD = ROWS / 2; // elements of sums that a thread holds: lane + 32 * n is element (i, j) = 16 * j + i

#ifdef DIRECT
#define FragmentA uvec4
shared uint a_area[SUBGROUPS * 128]; // what the threads of a subgroup hold of a: 16 rows of 8 pairs
#else
#define FragmentA uvec2
#endif
#define FragmentB uvec2
#ifdef INT8
#define Products int[HELD]
#else
#define Products float[HELD]
#endif
#define Sums float[HELD]

#define ELEMENTS(sums) HELD
#define CLEAR(Type, c) EACH(n, HELD) c[n] = 0
#define CONVERT(sums, products) \
  Sums sums;                    \
  EACH(n, HELD) sums[n] = float(products[n])
#define LOAD_A(a, at, stride) a = uvec2(at, stride)
#define LOAD_B(b, at, stride) b = uvec2(at, stride)
#define LOAD_ROW_FACTORS(f, array, at) EACH(n, HELD) f[n] = array[(at) + held_row(n)]
#define LOAD_COLUMN_FACTORS(f, array, at) EACH(n, HELD) f[n] = array[(at) + held_column(n)]

uint this_subgroup() { return gl_LocalInvocationIndex / LANES; }

uint this_lane() { return gl_LocalInvocationIndex % LANES; }

uint held_row(uint n) { return (this_lane() + LANES * n) % 16; }

uint held_column(uint n) { return (this_lane() + LANES * n) / 16; }

#ifdef INT8
int add_words(uint a, uint b, int sum) {
  for (int k = 0; k < 32; k += 8) sum += bitfieldExtract(int(a), k, 8) * bitfieldExtract(int(b), k, 8);
  return sum;
}
#else
uint scale_add(uint pair, float factor, float number) {
  return packHalf2x16(unpackHalf2x16(pair) * factor + number);
}

float add_words(uint a, uint b, float sum) {
  const vec2 x = unpackHalf2x16(a), y = unpackHalf2x16(b);
  return fma(x.y, y.y, fma(x.x, y.x, sum));
}
#endif

#ifdef DIRECT
#define SET_A(a, low, low_under, high, high_under) a = uvec4(low, low_under, high, high_under)

void share_a(uvec4 a) {
  const uint at = this_subgroup() * 128 + this_lane() / 4 * 8 + this_lane() % 4;
  barrier();
  a_area[at] = a.x;
  a_area[at + 64] = a.y;
  a_area[at + 4] = a.z;
  a_area[at + 68] = a.w;
  barrier();
}

#define SHARE_A(a) share_a(a);
#define WORD_OF_A(a, n, word) a_area[this_subgroup() * 128 + held_row(n) * 8 + word]
#else
#define SHARE_A(a)
#define WORD_OF_A(a, n, word) w_area[(a).x + (a).y * held_row(n) + word / 4][word % 4]
#endif

// A row of a, and a column of b, are two pieces of 16 bytes.
#define MULTIPLY_ADD(a, b, c)                                 \
  {                                                           \
    SHARE_A(a)                                                \
    EACH(n, HELD)                                             \
      EACH(word, 8)                                           \
        c[n] = add_words(WORD_OF_A(a, n, word),               \
                         x_area[(b).x + (b).y * held_column(n) + word / 4][word % 4], c[n]); \
  }
#define STORE_SUMS(sums, at) \
  EACH(n, HELD)              \
    w_area[(at) + 4 * held_column(n) + held_row(n) / 4][held_row(n) % 4] = floatBitsToUint(sums[n])

#endif
