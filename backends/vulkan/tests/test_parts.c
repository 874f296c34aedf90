/* Activations in f16 parts: what they hold, and in which order. */
#include "coop_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, COLS = 2125 }; /* more than one workgroup a row */

static float half_value(uint32_t bits) {
  const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  const float magnitude = exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
  if (exponent == 31) return fraction ? NAN : INFINITY;
  return bits >> 15 & 1 ? -magnitude : magnitude;
}

/* Where a kernel that stores weights of `bits` bits wants column c of eight. */
static int64_t place_of(uint32_t bits, int64_t c) {
  static const int64_t NIBBLES[] = {0, 2, 4, 6, 1, 3, 5, 7}, BYTES[] = {0, 2, 1, 3, 4, 6, 5, 7};
  return bits == 4 ? NIBBLES[c] : bits == 8 ? BYTES[c] : c;
}

static float part_at(const TestPrepared *made, uint32_t bits, uint32_t parts, int64_t row, uint32_t part, int64_t col) {
  const int64_t units = (COLS + 15) / 16 * 2, unit = (row * parts + part) * units + col / 8;
  const int64_t half = unit * 8 + place_of(bits, col % 8);
  return half_value(made->x[half / 2] >> half % 2 * 16 & 0xffff);
}

/* What the parts of an element add up to, its power of two undone. */
static double held(const TestPrepared *made, uint32_t bits, uint32_t parts, int64_t row, int64_t col) {
  double sum = 0;
  for (uint32_t part = parts; part-- > 0;) sum = sum / 2048 + (double)part_at(made, bits, parts, row, part, col);
  return sum * (double)made->factors[2 * row] * (double)made->factors[2 * row + 1];
}

static float drawn(DflashRandom random, uint64_t i, uint32_t octaves) {
  const uint32_t word = dflash_random_u32(random, 2 * i);
  const float value =
      ldexpf((float)(0x800000 | word >> 9), -23 - (int)(dflash_random_u32(random, 2 * i + 1) % octaves));
  return word & 1 ? -value : value;
}

/* Elements of all magnitudes; rows of very different ones, the last of zeros. */
static TestProduct draw(const TestMatrix *m, uint32_t octaves) {
  static const int EXPONENT[ROWS] = {0, 100, -60, 14, 127, 0};
  const DflashRandom random = dflash_random_stream(21, "x");
  TestProduct p = test_product_draw(random, m, ROWS, 0, 0);
  for (int64_t i = 0; i < ROWS * COLS; i++) {
    const int64_t row = i / COLS;
    const float value = ldexpf(drawn(random, (uint64_t)i, octaves), EXPONENT[row]);
    test_product_x(&p, row)[i % COLS] = row == ROWS - 1 ? 0 : value;
  }
  return p;
}

static double largest_of(const TestProduct *p, int64_t row) {
  double most = 0;
  for (int64_t col = 0; col < COLS; col++) most = fmax(most, fabs((double)test_product_x(p, row)[col]));
  return most;
}

static void check_scale(const TestPrepared *made, int64_t row, double largest) {
  const double scaled = largest / (double)made->factors[2 * row] / (double)made->factors[2 * row + 1];
  assert_true(largest == 0 || (scaled > 8192 && scaled <= 16384));
}

/* To the bit down to 2^-36 of the row's largest, and never off by more than 2^-60 of it. */
static void test_three_parts_hold_every_bit(void **state) {
  static const uint32_t BITS[] = {4, 8, 16};
  TestMatrix m = test_matrix_draw(dflash_random_stream(2, "w"), DFLASH_STORAGE_F16, 16, COLS, true);
  TestProduct p = draw(&m, 64);
  for (size_t b = 0; b < 3; b++) {
    TestPrepared made = test_coop_parts(*state, &p, BITS[b], false, 3, ROWS);
    for (int64_t row = 0; row < ROWS; row++) {
      const double largest = largest_of(&p, row);
      check_scale(&made, row, largest);
      for (int64_t col = 0; col < COLS; col++) {
        const double x = (double)test_product_x(&p, row)[col], off = fabs(held(&made, BITS[b], 3, row, col) - x);
        assert_true(fabs(x) >= largest * 0x1p-36 ? off == 0 : off <= largest * 0x1p-60);
      }
    }
    test_prepared_close(&made);
  }
  test_product_close(&p);
  test_matrix_close(&m);
}

/* One part is the nearest f16, with the same power of two for all rows. */
static void test_one_part_is_the_nearest_f16(void **state) {
  TestMatrix m = test_matrix_draw(dflash_random_stream(2, "w"), DFLASH_STORAGE_F16, 16, COLS, true);
  TestProduct p = draw(&m, 30);
  TestPrepared made = test_coop_parts(*state, &p, 16, false, 1, ROWS);
  double most = 0;
  for (int64_t row = 0; row < ROWS; row++) most = fmax(most, largest_of(&p, row));
  check_scale(&made, 0, most);
  const double scale = 1 / (double)made.factors[0] / (double)made.factors[1];
  for (int64_t i = 0; i < ROWS * COLS; i++) {
    const int64_t row = i / COLS, col = i % COLS;
    assert_memory_equal(&made.factors[2 * row], made.factors, 8);
    const double x = (double)test_product_x(&p, row)[col] * scale, got = (double)part_at(&made, 16, 1, row, 0, col);
    int exponent;
    frexp(x, &exponent);
    const double step = ldexp(1, exponent - 11 < -24 ? -24 : exponent - 11);
    assert_true(got == nearbyint(x / step) * step);
  }
  test_prepared_close(&made);
  test_product_close(&p);
  test_matrix_close(&m);
}

/* The column field is applied first, with one rounding; columns past the last are zero. */
static void test_the_column_field_is_rounded_in(void **state) {
  TestMatrix m = test_matrix_draw(dflash_random_stream(4, "w"), DFLASH_STORAGE_Q8_2F, 16, COLS, false);
  TestProduct p = draw(&m, 20);
  TestPrepared made = test_coop_parts(*state, &p, 8, false, 3, 1);
  for (int64_t col = 0; col < COLS; col++) {
    volatile float x = test_product_x(&p, 0)[col];
    x *= m.columns[col];
    assert_true(held(&made, 8, 3, 0, col) == (double)x);
  }
  for (int64_t col = COLS; col < (COLS + 15) / 16 * 16; col++)
    for (uint32_t part = 0; part < 3; part++) assert_true(part_at(&made, 8, 3, 0, part, col) == 0);
  test_prepared_close(&made);
  test_product_close(&p);
  test_matrix_close(&m);
}

int main(void) {
  static TestCoop coop;
  test_kernels_open(&coop.kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_three_parts_hold_every_bit, &coop),
      cmocka_unit_test_prestate(test_one_part_is_the_nearest_f16, &coop),
      cmocka_unit_test_prestate(test_the_column_field_is_rounded_in, &coop),
  };
  const int failed = cmocka_run_group_tests_name("parts", tests, NULL, NULL);
  return test_kernels_close(&coop.kernels) ? failed : 1;
}
