#include "coop_cases.h"

#include <math.h>
#include <string.h>

#include "draw.h"

/* At most 32 KiB of shared memory each. */
static const TestCoopCase CASES[] = {
    {VULKAN_KERNEL_COOP_F16, 64, 16, 2, 2, 64, 2, 3},       {VULKAN_KERNEL_COOP_F16, 32, 8, 1, 1, 128, 1, 1},
    {VULKAN_KERNEL_COOP_Q8, 128, 8, 1, 1, 96, 3, 3},        {VULKAN_KERNEL_COOP_Q8, 128, 16, 1, 2, 32, 2, 1},
    {VULKAN_KERNEL_COOP_Q4, 64, 8, 2, 1, 64, 2, 3},         {VULKAN_KERNEL_COOP_Q4, 128, 8, 1, 4, 64, 2, 3},
    {VULKAN_KERNEL_COOP_Q4, 32, 16, 4, 1, 32, 1, 1},        {VULKAN_KERNEL_COOP_Q8_DIRECT, 64, 8, 2, 2, 96, 2, 3},
    {VULKAN_KERNEL_COOP_Q4_DIRECT, 128, 8, 2, 1, 64, 2, 3}, {VULKAN_KERNEL_COOP_Q4_DIRECT, 64, 16, 1, 2, 96, 3, 1},
    {VULKAN_KERNEL_COOP_I8, 64, 8, 2, 1, 64, 2, 1},         {VULKAN_KERNEL_COOP_I8, 128, 16, 1, 2, 32, 3, 1},
};

typedef struct Shape {
  int64_t rows, out_rows, cols;
  uint32_t splits;
} Shape;

static const Shape SHAPES[] = {{1, 16, 32, 1},    {3, 65, 352, 1}, {8, 32, 544, 2}, {9, 130, 96, 1},
                               {19, 33, 1056, 3}, {5, 17, 1, 1},   {2, 33, 257, 1}, {8, 20, 333, 2}};

/* Every kernel on f16 parts that this device takes, and every shape, or every case of profile i8. */
#define EACH_CASE(coop, i)                                  \
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) \
    if (CASES[i].kernel != VULKAN_KERNEL_COOP_I8 && test_coop_takes(coop, &CASES[i]))
#define EACH_SHAPE(i, s)                                      \
  for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) \
    if (storage_of(&CASES[i]) != DFLASH_STORAGE_Q4TP || SHAPES[s].cols % TEST_GROUP == 0)

static int32_t storage_of(const TestCoopCase *with) {
  if (with->kernel == VULKAN_KERNEL_COOP_F16) return DFLASH_STORAGE_F16;
  const bool bytes = with->kernel == VULKAN_KERNEL_COOP_Q8 || with->kernel == VULKAN_KERNEL_COOP_Q8_DIRECT;
  return bytes ? DFLASH_STORAGE_Q8_2F : DFLASH_STORAGE_Q4TP;
}

static uint32_t bits_of_weight(const TestCoopCase *with) {
  const int32_t storage = storage_of(with);
  return storage == DFLASH_STORAGE_F16 ? 16 : storage == DFLASH_STORAGE_Q8_2F ? 8 : 4;
}

static void run(TestCoop *coop, TestProduct *p, const TestCoopCase *with, uint32_t splits, int64_t rows) {
  TestPrepared prepared = test_coop_parts(coop, p, bits_of_weight(with), test_coop_is_direct(with), with->parts, rows);
  test_coop_multiply(coop, p, with, splits, rows, &prepared);
  test_prepared_close(&prepared);
}

/* The power of two that takes the largest magnitude to at most 2^14. */
static int scale_exponent(float largest) {
  int exponent;
  const float fraction = frexpf(largest, &exponent); /* of 0.5 to below 1 */
  return 14 - (fraction == 0.5f ? exponent - 1 : exponent);
}

/* x as profile f16 holds it; the step below 2^-14 is 2^-24. */
static double half_x(float x, int exponent) {
  const double scaled = ldexp((double)x, exponent);
  int e;
  frexp(scaled, &e);
  const double step = ldexp(1, e - 11 < -24 ? -24 : e - 11);
  return ldexp(nearbyint(scaled / step) * step, -exponent);
}

static float largest_of_call(const TestProduct *p) {
  uint32_t most = 0;
  for (int64_t row = 0; row < p->rows; row++) most = p->largest[row] > most ? p->largest[row] : most;
  float largest;
  memcpy(&largest, &most, sizeof largest);
  return largest;
}

typedef struct Expected {
  double sum, magnitudes;
} Expected;

static void add_term(Expected *e, double term) {
  e->sum += term;
  e->magnitudes += fabs(term);
}

static Expected expect(const TestProduct *p, int64_t row, int64_t out, bool half) {
  const TestMatrix *m = p->matrix;
  const int exponent = scale_exponent(largest_of_call(p));
  Expected e = {0};
  for (int64_t col = 0; col < m->cols; col++) {
    double x = (double)test_product_x(p, row)[col];
    if (m->storage == DFLASH_STORAGE_Q8_2F) x *= (double)m->columns[col];
    if (half) x = half_x((float)x, exponent);
    add_term(&e, x * m->values[out * m->cols + col]);
  }
  return e;
}

/* No term meets more roundings, or truncations of twice the size: the columns of a fold, the folds of a split, slices,
 * splits, three parts, three scales. */
static double most_roundings(const TestMatrix *m, const TestCoopCase *with, uint32_t splits) {
  return 2.0 * with->step + (double)m->cols / 32 + with->slices + splits + 6;
}

static void check_product(const TestProduct *p, const TestCoopCase *with, uint32_t splits, bool exact) {
  const double bound = exact ? 0 : most_roundings(p->matrix, with, splits) * 0x1p-24;
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t out = 0; out < p->matrix->rows; out++) {
      const Expected e = expect(p, row, out, with->parts == 1);
      const double got = (double)test_product_y(p, row, out);
      if (!(fabs(got - e.sum) <= bound * e.magnitudes))
        fail_msg("kernel %d, %u threads, %lld x %lld, row %lld, out %lld: got %.9g, expected %.9g", with->kernel,
                 with->threads, (long long)p->matrix->rows, (long long)p->matrix->cols, (long long)row, (long long)out,
                 got, e.sum);
    }
}

static void run_shape(TestCoop *coop, const TestCoopCase *with, const Shape *shape, bool integers, uint64_t seed) {
  TestMatrix m =
      test_matrix_draw(dflash_random_stream(seed, "weights"), storage_of(with), shape->out_rows, shape->cols, integers);
  TestProduct p = test_product_draw(dflash_random_stream(seed, "x"), &m, shape->rows, 5, integers ? 0 : 6);
  run(coop, &p, with, shape->splits, shape->rows);
  check_product(&p, with, shape->splits, integers);
  test_product_close(&p);
  test_matrix_close(&m);
}

/* Every case meets every other shape here, and the others below. */
static void test_random_products_are_within_their_roundings(void **state) {
  EACH_CASE(*state, i)
  EACH_SHAPE(i, s) {
    if ((i + s) % 2 == 0) run_shape(*state, &CASES[i], &SHAPES[s], false, 100 * i + s);
  }
}

static void test_integers_are_exact(void **state) {
  EACH_CASE(*state, i)
  EACH_SHAPE(i, s) {
    if ((i + s) % 2 == 1) run_shape(*state, &CASES[i], &SHAPES[s], true, 100 * i + s);
  }
}

/* All weights 0 but one of 4 a row, whose column walks over all of them. */
static int64_t lone_column(const TestMatrix *m, int64_t out) { return out * 37 % m->cols; }

static void set_lone_weights(TestMatrix *m, uint32_t bits) {
  const uint32_t zero = bits == 4 ? 8 : 0, four = bits == 4 ? 12 : bits == 8 ? 4 : 0x4400;
  const int64_t per_word = 32 / bits;
  memset(m->weights, (int)(zero << 4 | zero), (size_t)m->rows * m->pitch * 16);
  for (int64_t out = 0; out < m->rows; out++) {
    const int64_t col = lone_column(m, out);
    m->weights[out * m->pitch * 4 + col / per_word] ^= (zero ^ four) << col % per_word * bits;
  }
}

/* All 24 bits of activations that lie up to 2^25 apart reach the output. */
static void test_one_weight_a_row_shows_all_bits_of_x(void **state) {
  enum { ROWS = 8, OUT_ROWS = 160, COLS = 160 };
  const DflashRandom random = dflash_random_stream(5, "bits");
  EACH_CASE(*state, i) {
    if (CASES[i].parts == 1) continue;
    TestMatrix m = test_matrix_draw(random, storage_of(&CASES[i]), OUT_ROWS, COLS, true);
    TestProduct p = test_product_draw(random, &m, ROWS, 0, 0);
    set_lone_weights(&m, bits_of_weight(&CASES[i]));
    for (int64_t n = 0; n < ROWS * COLS; n++) {
      const uint32_t word = dflash_random_u32(random, (uint64_t)n);
      const float value = ldexpf((float)(0x800001 | word >> 9), (int)(word % 25) - 40);
      test_product_x(&p, n / COLS)[n % COLS] = word & 256 ? -value : value;
    }
    run(*state, &p, &CASES[i], 1, ROWS);
    for (int64_t n = 0; n < ROWS * OUT_ROWS; n++)
      assert_float_equal(test_product_y(&p, n / OUT_ROWS, n % OUT_ROWS),
                         4 * test_product_x(&p, n / OUT_ROWS)[lone_column(&m, n % OUT_ROWS)], 0);
    test_product_close(&p);
    test_matrix_close(&m);
  }
}

/* One-hot activations show (nibble - 8) * rung for every rung: every product of the ladder is rounded to f32. */
static void test_the_ladder_is_equal_to_the_bit(void **state) {
  enum { ROWS = 16, OUT_ROWS = 70, GROUPS = 67 };
  const DflashRandom random = dflash_random_stream(11, "ladder");
  TestMatrix m = test_matrix_draw(random, DFLASH_STORAGE_Q4TP, OUT_ROWS, GROUPS * TEST_GROUP, false);
  TestProduct p = test_product_draw(random, &m, ROWS, 0, 1);
  for (int64_t row = 0; row < ROWS; row++) {
    memset(test_product_x(&p, row), 0, (size_t)m.cols * sizeof *p.x);
    test_product_x(&p, row)[row * 139 % m.cols] = 1;
  }
  EACH_CASE(*state, i) {
    if (storage_of(&CASES[i]) != DFLASH_STORAGE_Q4TP) continue;
    run(*state, &p, &CASES[i], 1, ROWS);
    for (int64_t n = 0; n < ROWS * OUT_ROWS; n++) {
      const int64_t row = n / OUT_ROWS, out = n % OUT_ROWS, col = row * 139 % m.cols;
      const float value = (float)test_nibble(&m, out, col) * test_rung(&m, out, col / TEST_GROUP);
      assert_float_equal(test_product_y(&p, row, out), value, 0);
    }
  }
  test_product_close(&p);
  test_matrix_close(&m);
}

/* A block cut to its first rows gives the same bits. */
static void test_bits_do_not_depend_on_the_rows(void **state) {
  enum { ROWS = 19, OUT_ROWS = 41 };
  EACH_CASE(*state, i) {
    if (CASES[i].parts == 1) continue; /* all rows share a power of two */
    TestMatrix m = test_matrix_draw(dflash_random_stream(7, "weights"), storage_of(&CASES[i]), OUT_ROWS, 1120, false);
    TestProduct p = test_product_draw(dflash_random_stream(7, "x"), &m, ROWS, 0, 4);
    float first[ROWS * OUT_ROWS];
    run(*state, &p, &CASES[i], 2, ROWS);
    for (int64_t n = 0; n < ROWS * OUT_ROWS; n++) first[n] = test_product_y(&p, n / OUT_ROWS, n % OUT_ROWS);
    for (int64_t rows = 3; rows < ROWS; rows += 8) {
      run(*state, &p, &CASES[i], 2, rows);
      for (int64_t n = 0; n < rows * OUT_ROWS; n++)
        assert_float_equal(test_product_y(&p, n / OUT_ROWS, n % OUT_ROWS), first[n], 0);
    }
    test_product_close(&p);
    test_matrix_close(&m);
  }
}

static void test_nan_reaches_its_row_and_no_other(void **state) {
  enum { ROWS = 10, OUT_ROWS = 20, COLS = 608 };
  EACH_CASE(*state, i) {
    TestMatrix m = test_matrix_draw(dflash_random_stream(13, "weights"), storage_of(&CASES[i]), OUT_ROWS, COLS, false);
    TestProduct p = test_product_draw(dflash_random_stream(13, "x"), &m, ROWS, 0, 1);
    test_product_x(&p, 3)[COLS - 1] = NAN;
    test_product_x(&p, 9)[0] = INFINITY;
    run(*state, &p, &CASES[i], 1, ROWS);
    for (int64_t row = 0; row < ROWS; row++)
      for (int64_t out = 0; out < OUT_ROWS; out++) {
        const float y = test_product_y(&p, row, out);
        assert_true(row == 3 ? isnan(y) : row == 9 ? !isfinite(y) : isfinite(y));
      }
    test_product_close(&p);
    test_matrix_close(&m);
  }
}

static TestPrepared draw_int8(const TestProduct *p, bool integers, uint64_t seed) {
  const DflashRandom random = dflash_random_stream(seed, "int8");
  const size_t count = (size_t)(p->rows * p->matrix->cols);
  TestPrepared made = test_prepared_open(count / 4, count / TEST_GROUP);
  for (size_t i = 0; i < count; i++) {
    const int q = (int)(dflash_random_u32(random, i) % 255) - 127;
    made.x[i / 4] |= (uint32_t)(q & 255) << i % 4 * 8;
  }
  for (size_t i = 0; i < made.factor_count; i++)
    made.factors[i] = integers ? 0.25f : 1 + 0.5f * test_draw(random, count + i);
  return made;
}

static Expected expect_int8(const TestMatrix *m, const TestPrepared *prepared, int64_t row, int64_t out) {
  Expected e = {0};
  for (int64_t col = 0; col < m->cols; col++) {
    const int64_t i = row * m->cols + col;
    const int8_t q = (int8_t)(prepared->x[i / 4] >> i % 4 * 8 & 255);
    add_term(&e, q * m->values[out * m->cols + col] * (double)prepared->factors[i / TEST_GROUP]);
  }
  return e;
}

static void run_int8(TestCoop *coop, const TestCoopCase *with, const Shape *shape, bool integers, uint64_t seed) {
  TestMatrix m = test_matrix_draw(dflash_random_stream(seed, "weights"), DFLASH_STORAGE_Q4TP, shape->out_rows,
                                  shape->cols, integers);
  TestProduct p = test_product_draw(dflash_random_stream(seed, "x"), &m, shape->rows, 0, 0);
  TestPrepared prepared = draw_int8(&p, integers, seed);
  test_coop_multiply(coop, &p, with, shape->splits, shape->rows, &prepared);
  const int64_t groups = m.cols / TEST_GROUP;
  const double bound = integers ? 0 : (double)(groups + 8) * 0x1p-24;
  for (int64_t row = 0; row < shape->rows; row++)
    for (int64_t out = 0; out < shape->out_rows; out++) {
      const Expected e = expect_int8(&m, &prepared, row, out);
      assert_true(fabs((double)test_product_y(&p, row, out) - e.sum) <= bound * e.magnitudes);
    }
  test_prepared_close(&prepared);
  test_product_close(&p);
  test_matrix_close(&m);
}

static void test_int8_products(void **state) {
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    if (CASES[i].kernel != VULKAN_KERNEL_COOP_I8 || !test_coop_takes(*state, &CASES[i])) continue;
    EACH_SHAPE(i, s) {
      run_int8(*state, &CASES[i], &SHAPES[s], true, s);
      run_int8(*state, &CASES[i], &SHAPES[s], false, s);
    }
  }
}

int test_coop_run(TestCoop *coop, const char *name) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_random_products_are_within_their_roundings, coop),
      cmocka_unit_test_prestate(test_integers_are_exact, coop),
      cmocka_unit_test_prestate(test_one_weight_a_row_shows_all_bits_of_x, coop),
      cmocka_unit_test_prestate(test_the_ladder_is_equal_to_the_bit, coop),
      cmocka_unit_test_prestate(test_bits_do_not_depend_on_the_rows, coop),
      cmocka_unit_test_prestate(test_nan_reaches_its_row_and_no_other, coop),
      cmocka_unit_test_prestate(test_int8_products, coop),
  };
  return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
