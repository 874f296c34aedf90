/* The matrix kernels on f32 activations against sums in f64. */
#include "matrices.h"

#include <math.h>
#include <string.h>

static const struct Kind {
  int32_t storage;
  int kernel;
  int piece; /* columns in 16 bytes */
} KINDS[] = {{DFLASH_STORAGE_F32, VULKAN_KERNEL_MATRIX_F32, 4},
             {DFLASH_STORAGE_F16, VULKAN_KERNEL_MATRIX_F16, 8},
             {DFLASH_STORAGE_BF16, VULKAN_KERNEL_MATRIX_BF16, 8},
             {DFLASH_STORAGE_Q8_2F, VULKAN_KERNEL_MATRIX_Q8, 16},
             {DFLASH_STORAGE_Q4TP, VULKAN_KERNEL_MATRIX_Q4, 32}};

enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

/* The sum in f64, and the sum of magnitudes. */
static double expected_y(const TestProduct *p, int64_t row, int64_t out, double *magnitudes) {
  const TestMatrix *m = p->matrix;
  double sum = 0;
  *magnitudes = 0;
  for (int64_t col = 0; col < m->cols; col++) {
    double term = (double)test_product_x(p, row)[col] * m->values[out * m->cols + col];
    if (m->storage == DFLASH_STORAGE_Q8_2F) term *= (double)m->columns[col];
    sum += term;
    *magnitudes += fabs(term);
  }
  return sum;
}

/* No term is rounded more often than a thread's columns, the tree's 4 levels, a group's, column's and row's scale say.
 */
static int64_t most_roundings(int64_t cols, int piece) {
  const int64_t step = 16 * piece, steps = (cols + step - 1) / step;
  return steps * piece + 5 + 3;
}

static void check_bound(const TestProduct *p, int64_t rows, int piece) {
  for (int64_t row = 0; row < rows; row++)
    for (int64_t out = 0; out < p->matrix->rows; out++) {
      double magnitudes;
      const double sum = expected_y(p, row, out, &magnitudes), got = (double)test_product_y(p, row, out);
      if (!(fabs(got - sum) <= (double)most_roundings(p->matrix->cols, piece) * 0x1p-24 * magnitudes))
        fail_msg("storage %d, %lld x %lld, row %lld, out %lld: got %.9g, expected %.9g", (int)p->matrix->storage,
                 (long long)p->matrix->rows, (long long)p->matrix->cols, (long long)row, (long long)out, got, sum);
    }
}

static void check_exact(const TestProduct *p, int64_t rows) {
  double magnitudes;
  for (int64_t row = 0; row < rows; row++)
    for (int64_t out = 0; out < p->matrix->rows; out++)
      assert_float_equal(test_product_y(p, row, out), (float)expected_y(p, row, out, &magnitudes), 0);
}

static bool fits(int32_t storage, int64_t cols) { return storage != DFLASH_STORAGE_Q4TP || cols % TEST_GROUP == 0; }

/* Sizes, x's spare columns, and the tile. */
typedef struct Shape {
  int64_t rows, out_rows, cols, spare;
  uint32_t tile_rows, weight_rows;
} Shape;

static void run_shape(TestKernels *kernels, const struct Kind *kind, const Shape *shape, bool integers, uint64_t seed) {
  const DflashRandom random = dflash_random_stream(seed, "weights"), inputs = dflash_random_stream(seed, "x");
  TestMatrix m = test_matrix_draw(random, kind->storage, shape->out_rows, shape->cols, integers);
  TestProduct p = test_product_draw(inputs, &m, shape->rows, shape->spare, integers ? 0 : 4);
  test_product_run(kernels, &p, kind->kernel, shape->tile_rows, shape->weight_rows, shape->rows);
  if (integers)
    check_exact(&p, shape->rows);
  else
    check_bound(&p, shape->rows, kind->piece);
  test_product_close(&p);
  test_matrix_close(&m);
}

/* Tiles are few: a device that is a processor takes its time to make a pipeline. */
static const Shape SHAPES[] = {{1, 1, 32, 0, 8, 1},     {2, 7, 96, 4, 8, 1},    {7, 33, 160, 1, 8, 4},
                               {8, 250, 544, 0, 8, 4},  {9, 33, 96, 0, 8, 1},   {9, 7, 1056, 3, 16, 2},
                               {16, 65, 160, 0, 16, 2}, {17, 33, 96, 2, 16, 2}, {3, 9, 5120, 0, 8, 1},
                               {5, 7, 1, 0, 8, 1},      {2, 33, 3, 1, 8, 4},    {8, 1, 30, 0, 8, 4},
                               {17, 7, 257, 0, 16, 2},  {1, 34, 257, 3, 8, 4}};

static void test_random_products_are_within_their_roundings(void **state) {
  for (int k = 0; k < KIND_COUNT; k++)
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
      if (fits(KINDS[k].storage, SHAPES[s].cols))
        run_shape(*state, &KINDS[k], &SHAPES[s], false, 100 * (uint64_t)k + s);
}

static void test_integers_are_exact(void **state) {
  for (int k = 0; k < KIND_COUNT; k++)
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
      if (fits(KINDS[k].storage, SHAPES[s].cols)) run_shape(*state, &KINDS[k], &SHAPES[s], true, 100 * (uint64_t)k + s);
}

static void keep_y(const TestProduct *p, float *values) {
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t out = 0; out < p->matrix->rows; out++)
      values[row * p->matrix->rows + out] = test_product_y(p, row, out);
}

/* A block cut to its first rows, and any tile, give the same bits. */
static void test_bits_do_not_depend_on_the_tile(void **state) {
  enum { ROWS = 17, OUT_ROWS = 41, CUT = 3 };
  for (int k = 0; k < KIND_COUNT; k++) {
    TestMatrix m = test_matrix_draw(dflash_random_stream(7, "weights"), KINDS[k].storage, OUT_ROWS, 1120, false);
    TestProduct p = test_product_draw(dflash_random_stream(7, "x"), &m, ROWS, 0, 4);
    float values[3][ROWS * OUT_ROWS];
    test_product_run(*state, &p, KINDS[k].kernel, 16, 2, ROWS);
    keep_y(&p, values[0]);
    test_product_run(*state, &p, KINDS[k].kernel, 8, 1, ROWS);
    keep_y(&p, values[1]);
    test_product_run(*state, &p, KINDS[k].kernel, 8, 4, CUT);
    keep_y(&p, values[2]);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    assert_memory_equal(values[0], values[2], CUT * OUT_ROWS * sizeof(float));
    test_product_close(&p);
    test_matrix_close(&m);
  }
}

/* One-hot activations show (nibble - 8) * rung for every rung: every product of the ladder is rounded to f32. */
static void test_the_ladder_is_equal_to_the_bit(void **state) {
  enum { ROWS = 16, OUT_ROWS = 70, GROUPS = 67 };
  TestMatrix m =
      test_matrix_draw(dflash_random_stream(11, "weights"), DFLASH_STORAGE_Q4TP, OUT_ROWS, GROUPS * TEST_GROUP, false);
  TestProduct p = test_product_draw(dflash_random_stream(11, "x"), &m, ROWS, 0, 1);
  for (int64_t row = 0; row < ROWS; row++) {
    memset(test_product_x(&p, row), 0, (size_t)m.cols * sizeof *p.x);
    test_product_x(&p, row)[row * 139 % m.cols] = 1;
  }
  test_product_run(*state, &p, VULKAN_KERNEL_MATRIX_Q4, 16, 2, ROWS);
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t out = 0; out < OUT_ROWS; out++) {
      const int64_t col = row * 139 % m.cols;
      const float value = (float)test_nibble(&m, out, col) * test_rung(&m, out, col / TEST_GROUP);
      assert_float_equal(test_product_y(&p, row, out), value, 0);
    }
  test_product_close(&p);
  test_matrix_close(&m);
}

static void test_nan_reaches_its_row_and_no_other(void **state) {
  enum { ROWS = 10, OUT_ROWS = 20, COLS = 608 };
  for (int k = 0; k < KIND_COUNT; k++) {
    TestMatrix m = test_matrix_draw(dflash_random_stream(13, "weights"), KINDS[k].storage, OUT_ROWS, COLS, false);
    TestProduct p = test_product_draw(dflash_random_stream(13, "x"), &m, ROWS, 0, 1);
    test_product_x(&p, 3)[COLS - 1] = NAN;
    test_product_x(&p, 9)[0] = INFINITY;
    test_product_run(*state, &p, KINDS[k].kernel, 8, 4, ROWS);
    for (int64_t row = 0; row < ROWS; row++)
      for (int64_t out = 0; out < OUT_ROWS; out++) {
        const float y = test_product_y(&p, row, out);
        assert_true(row == 3 ? isnan(y) : row == 9 ? !isfinite(y) : isfinite(y));
      }
    test_product_close(&p);
    test_matrix_close(&m);
  }
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_random_products_are_within_their_roundings, &kernels),
      cmocka_unit_test_prestate(test_integers_are_exact, &kernels),
      cmocka_unit_test_prestate(test_bits_do_not_depend_on_the_tile, &kernels),
      cmocka_unit_test_prestate(test_the_ladder_is_equal_to_the_bit, &kernels),
      cmocka_unit_test_prestate(test_nan_reaches_its_row_and_no_other, &kernels),
  };
  const int failed = cmocka_run_group_tests_name("matrix", tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : 1;
}
