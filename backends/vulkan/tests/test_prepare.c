/* Activations as the products on matrix units read them: what the parts hold, and where they stand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "launch.h"
#include "model/storage.h"
#include "units.h"

/* Two workgroups a row, the second one with groups past the last; columns that are not whole groups. */
enum { ROWS = 11, COLS = 601, GROUPS = 24, X_TILES = 2, X_FIRST = 1, X_STRIDE = COLS + 3, GROUP = 32, LANES = 32 };

/* What was prepared of x. */
typedef struct Prepared {
  uint32_t parts, words[X_TILES * GROUPS * 3 * LANES * 4];
  float factors[X_TILES * GROUPS * 8];
} Prepared;

static Prepared made;
static float x[(X_FIRST + ROWS) * X_STRIDE], columns[COLS];

static float *x_at(int64_t row, int64_t col) { return &x[(X_FIRST + row) * X_STRIDE + col]; }

static void prepare(TestKernels *kernels, uint32_t parts, uint32_t integers, uint32_t has_columns) {
  uint32_t pairs[VULKAN_UNITS_PAIRS];
  vulkan_units_pairs(pairs);
  const PreparePush push = {X_FIRST, X_STRIDE, ROWS, COLS, has_columns, GROUPS};
  const size_t words = (size_t)(X_TILES * GROUPS) * parts * LANES * 16;
  const TestArray arrays[] = {{x, sizeof x},
                              {columns, sizeof columns},
                              {pairs, sizeof pairs},
                              {made.words, words},
                              {made.factors, sizeof made.factors}};
  memset(&made, 0xff, sizeof made);
  made.parts = parts;
  test_launch(kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_PREPARE,
                                     .constants = (const uint32_t[]){parts, integers},
                                     .constant_count = 2,
                                     .arrays = arrays,
                                     .push = &push,
                                     .groups = {(GROUPS + 15) / 16, 8 * X_TILES, 1}});
}

/* Word and half of an element's part, by what a thread holds of a fragment. */
static float part_at(uint32_t part, int64_t row, int64_t col) {
  const int64_t group = row / 8 * GROUPS + col / GROUP;
  for (uint32_t i = 0; i < LANES; i++)
    for (uint32_t n = 0; n < 4; n++) {
      const VulkanPlace place = vulkan_units_x(i, n);
      if (place.row != row % 8 || place.col != col % 16) continue;
      const int64_t at = ((group * made.parts + part) * LANES + i) * 4 + col % GROUP / 16 * 2 + n / 2;
      return dflash_f16_value((uint16_t)(made.words[at] >> n % 2 * 16));
    }
  fail();
  return 0;
}

static float factor_at(int64_t row, int64_t col) {
  return made.factors[(row / 8 * GROUPS + col / GROUP) * 8 + row % 8];
}

static double held(int64_t row, int64_t col) {
  double sum = 0;
  for (uint32_t part = 1; part < made.parts; part++) sum += (double)part_at(part, row, col) / 2048;
  return ((double)part_at(0, row, col) + sum) * (double)factor_at(row, col);
}

/* Elements of all magnitudes down to 2^-octaves of one another; rows of very different ones, the last one of zeros. */
static void draw(uint32_t octaves) {
  static const int EXPONENT[ROWS] = {0, 100, -60, 14, 127, 0, -100, -120, 3, 60};
  const DflashRandom random = dflash_random_stream(21, "x");
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = NAN;
  for (int64_t i = 0; i < ROWS * COLS; i++) {
    const int64_t row = i / COLS;
    const uint32_t word = dflash_random_u32(random, (uint64_t)(2 * i));
    const int exponent = -(int)(dflash_random_u32(random, (uint64_t)(2 * i + 1)) % octaves);
    const float value = ldexpf((float)(0x800000 | word >> 9), exponent - 23 + EXPONENT[row]);
    *x_at(row, i % COLS) = row == ROWS - 1 ? 0 : word & 1 ? -value : value;
  }
  for (int64_t col = 0; col < COLS; col++) columns[col] = 1 + 0.5f * test_draw(random, (uint64_t)col << 32);
}

static double largest_at(int64_t row, int64_t col) {
  double largest = 0;
  for (int64_t i = col / GROUP * GROUP; i < col / GROUP * GROUP + GROUP && i < COLS; i++)
    largest = fmax(largest, fabs((double)*x_at(row, i)));
  return largest;
}

/* A power of two that takes the largest of a group to between 2^13 and 2^14, but no larger than 2^126. */
static void check_factors(void) {
  for (int64_t row = 0; row < 8 * X_TILES; row++)
    for (int64_t col = 0; col < GROUPS * GROUP; col += GROUP) {
      const double largest = row < ROWS && col < COLS ? largest_at(row, col) : 0, factor = (double)factor_at(row, col);
      int exponent;
      if (largest == 0) assert_true(factor == 0);
      if (largest == 0) continue;
      assert_true(frexp(factor, &exponent) == 0.5);
      assert_true(largest <= factor * 16384 && (largest > factor * 8192 || factor == 0x1p-126));
    }
}

static void check_zeros(void) {
  for (int64_t row = 0; row < 8 * X_TILES; row++)
    for (int64_t col = 0; col < GROUPS * GROUP; col++)
      for (uint32_t part = 0; part < made.parts; part++)
        if (row >= ROWS || col >= COLS) assert_true(part_at(part, row, col) == 0);
}

/* To the bit down to 2^-25 of the group's largest, and never off by more than 2^-49 of it. */
static void test_three_parts_hold_every_bit(void **state) {
  draw(64);
  prepare(*state, 3, 0, 0);
  check_factors();
  check_zeros();
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t col = 0; col < COLS; col++) {
      const double value = (double)*x_at(row, col), largest = largest_at(row, col);
      if (fabs(value) < 0x1p-126) continue; /* may be flushed */
      const double off = fabs(held(row, col) - value);
      assert_true(fabs(value) >= largest * 0x1p-25 ? off == 0 : off <= largest * 0x1p-49 || off < 0x1p-149 * 0x1p15);
    }
}

static double nearest_f16(double value) {
  int exponent;
  frexp(value, &exponent);
  const double step = ldexp(1, exponent - 11 < -24 ? -24 : exponent - 11);
  return nearbyint(value / step) * step;
}

static void test_one_part_is_the_nearest_f16(void **state) {
  draw(30);
  prepare(*state, 1, 0, 0);
  check_factors();
  check_zeros();
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t col = 0; col < COLS; col++) {
      const double factor = (double)factor_at(row, col), value = (double)*x_at(row, col);
      if (fabs(value) < 0x1p-126) continue;
      assert_true((double)part_at(0, row, col) == (factor > 0 ? nearest_f16(value / factor) : 0));
    }
}

/* It is applied first, with one rounding. */
static void test_the_column_field_is_rounded_in(void **state) {
  draw(20);
  prepare(*state, 3, 0, 1);
  check_zeros();
  for (int64_t col = 0; col < COLS; col++) {
    volatile float value = *x_at(0, col);
    value *= columns[col];
    assert_true(held(0, col) == (double)value);
  }
}

/* As block.md's profile i8 asks for; a group below 2^-100 is zero. */
static void test_integers(void **state) {
  draw(12);
  prepare(*state, 1, 1, 0);
  check_zeros();
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t col = 0; col < COLS; col++) {
      const float largest = (float)largest_at(row, col), value = *x_at(row, col);
      const bool zero = largest < 0x1p-100f;
      volatile float scaled = value * (zero ? 0 : 127 / largest);
      assert_true(factor_at(row, col) == (zero ? 0 : largest / 127));
      assert_true(part_at(0, row, col) == nearbyintf(scaled));
    }
}

/* And it leaves the other groups alone. */
static void test_what_is_not_finite_stays(void **state) {
  for (uint32_t integers = 0; integers < 2; integers++) {
    draw(12);
    *x_at(2, 40) = NAN;
    *x_at(9, 600) = -INFINITY;
    prepare(*state, integers ? 1 : 3, integers, 0);
    for (int64_t row = 0; row < ROWS; row++)
      for (int64_t col = 0; col < COLS; col++) {
        const bool spoiled = (row == 2 && col / GROUP == 1) || (row == 9 && col / GROUP == 600 / GROUP);
        if (!spoiled) assert_true(isfinite(held(row, col)));
        if (spoiled && integers) assert_true(isnan(held(row, col)));
        if (spoiled && !integers) assert_true(factor_at(row, col) == 1);
      }
    if (integers) continue;
    assert_true(isnan(held(2, 40)));
    assert_true(part_at(0, 9, 600) == -INFINITY);
  }
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_three_parts_hold_every_bit, &kernels),
      cmocka_unit_test_prestate(test_one_part_is_the_nearest_f16, &kernels),
      cmocka_unit_test_prestate(test_the_column_field_is_rounded_in, &kernels),
      cmocka_unit_test_prestate(test_integers, &kernels),
      cmocka_unit_test_prestate(test_what_is_not_finite_stays, &kernels),
  };
  const int failed = cmocka_run_group_tests_name("prepare", tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : 1;
}
