/* Profile f16: the largest magnitudes of activations, and products of activations rounded to f16. */
#include "matrices.h"

#include <math.h>
#include <string.h>

static const struct Kind {
  int32_t storage;
  int kernel;
} KINDS[] = {{DFLASH_STORAGE_F32, VULKAN_KERNEL_HALF_F32},
             {DFLASH_STORAGE_F16, VULKAN_KERNEL_HALF_F16},
             {DFLASH_STORAGE_BF16, VULKAN_KERNEL_HALF_BF16},
             {DFLASH_STORAGE_Q8_2F, VULKAN_KERNEL_HALF_Q8},
             {DFLASH_STORAGE_Q4TP, VULKAN_KERNEL_HALF_Q4}};

enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

/* An activation as the kernel sees it before it is rounded to f16. */
static float folded(const TestProduct *p, int64_t row, int64_t col) {
  const float x = test_product_x(p, row)[col];
  return p->matrix->storage == DFLASH_STORAGE_Q8_2F ? x * p->matrix->columns[col] : x;
}

static void find_largest(TestKernels *kernels, const TestProduct *p) {
  const TestMatrix *m = p->matrix;
  const LargestPush push = {(uint32_t)m->cols, TEST_X_FIRST, (uint32_t)p->x_stride, m->storage == DFLASH_STORAGE_Q8_2F};
  const TestArray arrays[] = {{p->x, (size_t)((TEST_X_FIRST + p->rows + 1) * p->x_stride) * 4},
                              {m->columns, (size_t)m->cols * 4},
                              {p->largest, (size_t)p->rows * 4}};
  test_launch(kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_LARGEST,
                                     .arrays = arrays,
                                     .push = &push,
                                     .groups = {(uint32_t)p->rows, 1, 1}});
}

static float largest_of(const TestProduct *p, int64_t row) {
  float found;
  memcpy(&found, &p->largest[row], sizeof found);
  return found;
}

static void check_largest(const TestProduct *p) {
  for (int64_t row = 0; row < p->rows; row++) {
    float largest = 0;
    for (int64_t col = 0; col < p->matrix->cols; col++) largest = fmaxf(largest, fabsf(folded(p, row, col)));
    assert_float_equal(largest_of(p, row), largest, 0);
  }
}

static void test_largest_magnitudes(void **state) {
  static const int64_t COLS[] = {1, 30, 128, 257, 5120};
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < sizeof COLS / sizeof COLS[0]; i++) {
      const int32_t storage = k == 0 ? DFLASH_STORAGE_F32 : DFLASH_STORAGE_Q8_2F;
      TestMatrix m = test_matrix_draw(dflash_random_stream(i, "weights"), storage, 1, COLS[i], false);
      TestProduct p = test_product_draw(dflash_random_stream(i, "x"), &m, 5, 3, 8);
      find_largest(*state, &p);
      check_largest(&p);
      test_product_close(&p);
      test_matrix_close(&m);
    }
}

static void test_nan_is_the_largest_of_its_row(void **state) {
  TestMatrix m = test_matrix_draw(dflash_random_stream(3, "weights"), DFLASH_STORAGE_F32, 1, 300, false);
  TestProduct p = test_product_draw(dflash_random_stream(3, "x"), &m, 4, 0, 8);
  test_product_x(&p, 1)[299] = NAN;
  test_product_x(&p, 2)[0] = -INFINITY;
  find_largest(*state, &p);
  for (int64_t row = 0; row < 4; row++) {
    const float found = largest_of(&p, row);
    assert_true(row == 1 ? isnan(found) : row == 2 ? found == INFINITY : isfinite(found));
  }
  test_product_close(&p);
  test_matrix_close(&m);
}

/* The largest 2^k with largest * 2^k <= 2^14; 1 for zero. */
static int scale_exponent(const TestProduct *p) {
  double largest = 0;
  for (int64_t row = 0; row < p->rows; row++)
    if (isfinite(largest_of(p, row))) largest = fmax(largest, (double)largest_of(p, row));
  int k = 0;
  if (largest == 0) return 0;
  while (ldexp(largest, k) > 0x1p14) k--;
  while (ldexp(largest, k + 1) <= 0x1p14) k++;
  return k;
}

/* To f16's grid, ties to even: 11 bits, steps of 2^-24 at least. */
static double round_half(double x) {
  int exponent;
  (void)frexp(x, &exponent);
  const int step = exponent - 11 > -24 ? exponent - 11 : -24;
  return ldexp(nearbyint(ldexp(x, -step)), step);
}

static double expected_y(const TestProduct *p, int64_t row, int64_t out, int k, double *magnitudes) {
  const TestMatrix *m = p->matrix;
  double sum = 0;
  *magnitudes = 0;
  for (int64_t col = 0; col < m->cols; col++) {
    const double x = ldexp(round_half(ldexp((double)folded(p, row, col), k)), -k);
    sum += x * m->values[out * m->cols + col];
    *magnitudes += fabs(x * m->values[out * m->cols + col]);
  }
  return sum;
}

/* Only sums of f32 round, and activations exactly as f16 does: an eighth of one step of f16 would show. */
static void check(TestKernels *kernels, TestProduct *p, int kernel, uint32_t tile_rows, uint32_t weight_rows) {
  find_largest(kernels, p);
  test_product_run(kernels, p, kernel, tile_rows, weight_rows, p->rows);
  const int k = scale_exponent(p);
  const int64_t roundings = p->matrix->cols / 16 + 40; /* of a term, at most */
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t out = 0; out < p->matrix->rows; out++) {
      double magnitudes;
      const double sum = expected_y(p, row, out, k, &magnitudes), got = (double)test_product_y(p, row, out);
      if (!(fabs(got - sum) <= (double)roundings * 0x1p-24 * magnitudes))
        fail_msg("kernel %d, k %d, row %lld, out %lld: got %.9g, expected %.9g", kernel, k, (long long)row,
                 (long long)out, got, sum);
    }
}

/* Activations over 40 octaves: the small ones are denormals of f16, or nothing. */
static void test_products_of_rounded_activations(void **state) {
  for (int kind = 0; kind < KIND_COUNT; kind++)
    for (uint32_t tall = 0; tall < 2; tall++) {
      const uint64_t seed = 10 * (uint64_t)kind + tall;
      TestMatrix m = test_matrix_draw(dflash_random_stream(seed, "weights"), KINDS[kind].storage, 37, 672, false);
      TestProduct p = test_product_draw(dflash_random_stream(seed, "x"), &m, tall ? 17 : 7, tall, 40);
      check(*state, &p, KINDS[kind].kernel, tall ? 16 : 8, tall ? 4 : 1);
      test_product_close(&p);
      test_matrix_close(&m);
    }
}

/* One activation a row and one column: what is rounded, and how, stands in y alone. */
static void test_each_activation_is_rounded_as_f16_does(void **state) {
  enum { ROWS = 64 };
  TestMatrix m = test_matrix_draw(dflash_random_stream(5, "weights"), DFLASH_STORAGE_F32, 1, 1, true);
  TestProduct p = test_product_draw(dflash_random_stream(5, "x"), &m, ROWS, 0, 40);
  for (int64_t row = 1; row < ROWS; row++) { /* ties and their neighbours at every exponent down to half a step */
    const float tie = ldexpf(1024 + (float)(row % 4) + 0.5f, 4 - (int)row);
    test_product_x(&p, row)[0] = row % 3 == 0 ? tie : nextafterf(tie, row % 3 == 1 ? 0 : INFINITY);
  }
  test_product_x(&p, 0)[0] = 0x1p14f;
  find_largest(*state, &p);
  assert_int_equal(scale_exponent(&p), 0);
  test_product_run(*state, &p, VULKAN_KERNEL_HALF_F32, 8, 1, ROWS);
  for (int64_t row = 0; row < ROWS; row++) {
    const double rounded = round_half((double)test_product_x(&p, row)[0]);
    assert_float_equal(test_product_y(&p, row, 0), (float)(rounded * m.values[0]), 0);
  }
  test_product_close(&p);
  test_matrix_close(&m);
}

/* Powers of two and their neighbours, far from 1 and at it. */
static void test_scales_of_any_size(void **state) {
  static const float LARGEST[] = {0x1p0f,         0x1.000002p0f, 0x1.fffffep13f, 0x1p14f,
                                  0x1.000002p14f, 0x1p-100f,     0x1p100f,       0};
  TestMatrix m = test_matrix_draw(dflash_random_stream(6, "weights"), DFLASH_STORAGE_F32, 9, 40, true);
  for (size_t i = 0; i < sizeof LARGEST / sizeof LARGEST[0]; i++) {
    TestProduct p = test_product_draw(dflash_random_stream(i, "x"), &m, 3, 0, 12);
    for (int64_t row = 0; row < 3; row++)
      for (int64_t col = 0; col < m.cols; col++) test_product_x(&p, row)[col] *= LARGEST[i];
    test_product_x(&p, 1)[7] = LARGEST[i];
    check(*state, &p, VULKAN_KERNEL_HALF_F32, 8, 1);
    test_product_close(&p);
  }
  test_matrix_close(&m);
}

static void test_a_row_that_is_not_finite_stays_alone(void **state) {
  enum { ROWS = 4, OUT_ROWS = 5 };
  TestMatrix m = test_matrix_draw(dflash_random_stream(8, "weights"), DFLASH_STORAGE_F32, OUT_ROWS, 70, true);
  TestProduct p = test_product_draw(dflash_random_stream(8, "x"), &m, ROWS, 0, 0);
  test_product_x(&p, 1)[3] = NAN;
  test_product_x(&p, 3)[69] = INFINITY;
  find_largest(*state, &p);
  test_product_run(*state, &p, VULKAN_KERNEL_HALF_F32, 8, 1, ROWS);
  for (int64_t row = 0; row < ROWS; row++)
    for (int64_t out = 0; out < OUT_ROWS; out++) {
      double magnitudes;
      const float y = test_product_y(&p, row, out);
      if (row % 2)
        assert_false(isfinite(y));
      else
        assert_float_equal(y, (float)expected_y(&p, row, out, 0, &magnitudes), 0);
    }
  test_product_close(&p);
  test_matrix_close(&m);
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_largest_magnitudes, &kernels),
      cmocka_unit_test_prestate(test_nan_is_the_largest_of_its_row, &kernels),
      cmocka_unit_test_prestate(test_products_of_rounded_activations, &kernels),
      cmocka_unit_test_prestate(test_each_activation_is_rounded_as_f16_does, &kernels),
      cmocka_unit_test_prestate(test_scales_of_any_size, &kernels),
      cmocka_unit_test_prestate(test_a_row_that_is_not_finite_stays_alone, &kernels),
  };
  const int failed = cmocka_run_group_tests_name("half", tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : 1;
}
