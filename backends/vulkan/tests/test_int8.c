/* Profile i8: quantised activations and their products, to the bit. */
#include "matrices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

enum { TEAM = 16, TEAMS = 8, QUANTISE_GROUPS = 4 };

/* Quantised rows. */
typedef struct Quantised {
  int64_t rows, cols;
  int8_t *q;    /* [rows][cols] */
  float *steps; /* [rows][cols / 32] */
} Quantised;

static Quantised quantised_open(int64_t rows, int64_t cols) {
  return (Quantised){rows, cols, test_memory((size_t)(rows * cols), 1),
                     test_memory((size_t)(rows * cols / TEST_GROUP), sizeof(float))};
}

static void quantised_close(Quantised *quantised) {
  free(quantised->q);
  free(quantised->steps);
}

/* As the profile is defined. */
static float quantise_group(const float *x, int8_t *q) {
  float absmax = 0;
  bool finite = true;
  for (int i = 0; i < TEST_GROUP; i++) {
    absmax = fmaxf(absmax, fabsf(x[i]));
    finite = finite && isfinite(x[i]);
  }
  memset(q, 0, TEST_GROUP);
  if (!finite) return NAN;
  if (absmax < 0x1p-100f) return 0;
  const float r = 127 / absmax;
  for (int i = 0; i < TEST_GROUP; i++) q[i] = (int8_t)nearbyintf(x[i] * r);
  return absmax / 127;
}

static Quantised quantise(const TestProduct *p) {
  Quantised made = quantised_open(p->rows, p->matrix->cols);
  const int64_t groups = made.cols / TEST_GROUP;
  for (int64_t row = 0; row < p->rows; row++)
    for (int64_t g = 0; g < groups; g++)
      made.steps[row * groups + g] =
          quantise_group(test_product_x(p, row) + g * TEST_GROUP, made.q + row * made.cols + g * TEST_GROUP);
  return made;
}

static Quantised quantise_on_device(TestKernels *kernels, const TestProduct *p) {
  Quantised made = quantised_open(p->rows, p->matrix->cols);
  const int64_t groups = made.cols / TEST_GROUP;
  const QuantisePush push = {(uint32_t)p->rows, (uint32_t)made.cols, TEST_X_FIRST, (uint32_t)p->x_stride};
  const TestArray arrays[] = {{p->x, (size_t)((TEST_X_FIRST + p->rows + 1) * p->x_stride) * 4},
                              {made.q, (size_t)(made.rows * made.cols)},
                              {made.steps, (size_t)(made.rows * groups) * 4}};
  test_launch(kernels, &(TestLaunch){.kernel = VULKAN_KERNEL_QUANTISE,
                                     .arrays = arrays,
                                     .push = &push,
                                     .groups = {(uint32_t)((groups + QUANTISE_GROUPS - 1) / QUANTISE_GROUPS),
                                                (uint32_t)p->rows, 1}});
  return made;
}

static void check_quantised(TestKernels *kernels, const TestProduct *p) {
  Quantised got = quantise_on_device(kernels, p), expected = quantise(p);
  assert_memory_equal(got.q, expected.q, (size_t)(got.rows * got.cols));
  for (int64_t g = 0; g < got.rows * got.cols / TEST_GROUP; g++)
    if (isnan(expected.steps[g]))
      assert_true(isnan(got.steps[g]));
    else
      assert_memory_equal(&got.steps[g], &expected.steps[g], sizeof(float));
  quantised_close(&got);
  quantised_close(&expected);
}

static void test_activations_are_quantised_to_the_bit(void **state) {
  static const int64_t COLS[] = {32, 96, 160, 5120};
  for (size_t i = 0; i < sizeof COLS / sizeof COLS[0]; i++) {
    TestMatrix m = test_matrix_draw(dflash_random_stream(i, "weights"), DFLASH_STORAGE_Q4TP, 1, COLS[i], false);
    TestProduct p = test_product_draw(dflash_random_stream(i, "x"), &m, 9, 5, 6);
    check_quantised(*state, &p);
    test_product_close(&p);
    test_matrix_close(&m);
  }
}

/* Groups from 2^-104 to 2^126, ties of a step, zeros, and what is not finite. */
static void test_groups_of_any_size(void **state) {
  enum { GROUPS = 250 };
  TestMatrix m =
      test_matrix_draw(dflash_random_stream(4, "weights"), DFLASH_STORAGE_Q4TP, 1, GROUPS * TEST_GROUP, false);
  TestProduct p = test_product_draw(dflash_random_stream(4, "x"), &m, 3, 0, 6);
  for (int64_t col = 0; col < m.cols; col++) {
    const int exponent = (int)(col / TEST_GROUP) - 104;
    test_product_x(&p, 0)[col] = ldexpf(test_product_x(&p, 0)[col], exponent < 126 ? exponent : 126);
    test_product_x(&p, 1)[col] = col % TEST_GROUP == 0 ? 127 : (float)(col % 250) * 0.5f - 62.5f;
    test_product_x(&p, 2)[col] = col / TEST_GROUP % 2 ? 0 : 0x1p-100f;
  }
  test_product_x(&p, 2)[0] = NAN;
  test_product_x(&p, 2)[64 + 31] = -INFINITY;
  test_product_x(&p, 2)[128 + 5] = 0x1.fffffep127f;
  for (int64_t col = 192; col < 192 + TEST_GROUP; col++) test_product_x(&p, 2)[col] = 0x1.fffffep-101f;
  check_quantised(*state, &p);
  test_product_close(&p);
  test_matrix_close(&m);
}

/* What a thread of a team sums: every 16th group, in turn. */
static float lane_sum(const TestMatrix *m, const Quantised *x, int64_t row, int64_t out, int64_t lane) {
  const int64_t groups = m->cols / TEST_GROUP;
  float sum = 0;
  for (int64_t g = lane; g < groups; g += TEAM) {
    int dot = 0;
    for (int64_t col = g * TEST_GROUP; col < (g + 1) * TEST_GROUP; col++)
      dot += x->q[row * m->cols + col] * test_nibble(m, out, col);
    sum += (float)dot * test_rung(m, out, g) * x->steps[row * groups + g];
  }
  return sum;
}

static float team_sum(const TestMatrix *m, const Quantised *x, int64_t row, int64_t out) {
  float part[4] = {0};
  for (int64_t lane = 0; lane < TEAM; lane++) part[lane % 4] += lane_sum(m, x, row, out, lane);
  return (part[0] + part[1]) + (part[2] + part[3]);
}

static void check_product(TestKernels *kernels, TestProduct *p, int kernel, uint32_t tile_rows, uint32_t weight_rows) {
  const TestMatrix *m = p->matrix;
  Quantised x = quantise(p);
  const MatrixPush push = {.rows = (uint32_t)p->rows,
                           .cols = (uint32_t)m->cols,
                           .out_rows = (uint32_t)m->rows,
                           .pitch = m->pitch,
                           .code_pitch = m->code_pitch,
                           .x_stride = (uint32_t)m->cols,
                           .y_stride = (uint32_t)m->rows};
  const TestArray arrays[] = {{m->weights, (size_t)(m->rows * m->pitch) * 16},
                              {m->scales, (size_t)m->rows * 8},
                              {m->codes, (size_t)(m->rows * m->code_pitch) * 4},
                              {m->columns, 4},
                              {x.q, (size_t)(x.rows * x.cols)},
                              {p->y, (size_t)(p->rows * m->rows) * 4},
                              {x.steps, (size_t)(x.rows * x.cols / TEST_GROUP) * 4}};
  test_launch(kernels, &(TestLaunch){.kernel = kernel,
                                     .constants = (const uint32_t[]){tile_rows, weight_rows},
                                     .constant_count = 2,
                                     .arrays = arrays,
                                     .push = &push,
                                     .groups = {(uint32_t)((m->rows + TEAMS * weight_rows - 1) / (TEAMS * weight_rows)),
                                                (uint32_t)((p->rows + tile_rows - 1) / tile_rows), 1}});
  for (int64_t i = 0; i < p->rows * m->rows; i++) {
    const float expected = team_sum(m, &x, i / m->rows, i % m->rows);
    if (isnan(expected))
      assert_true(isnan(p->y[i]));
    else
      assert_float_equal(p->y[i], expected, 0);
  }
  quantised_close(&x);
}

static void check_kernel(TestKernels *kernels, int kernel) {
  static const struct {
    int64_t rows, out_rows, cols;
    uint32_t tile_rows, weight_rows;
  } SHAPES[] = {{1, 1, 32, 8, 1},    {7, 33, 160, 8, 1},  {8, 9, 5120, 8, 1},
                {9, 65, 544, 16, 4}, {17, 33, 96, 16, 4}, {16, 7, 1120, 16, 4}};
  for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++) {
    TestMatrix m = test_matrix_draw(dflash_random_stream(s, "weights"), DFLASH_STORAGE_Q4TP, SHAPES[s].out_rows,
                                    SHAPES[s].cols, false);
    TestProduct p = test_product_draw(dflash_random_stream(s, "x"), &m, SHAPES[s].rows, 0, 6);
    if (SHAPES[s].rows > 1) test_product_x(&p, 1)[SHAPES[s].cols - 1] = NAN;
    check_product(kernels, &p, kernel, SHAPES[s].tile_rows, SHAPES[s].weight_rows);
    test_product_close(&p);
    test_matrix_close(&m);
  }
}

static void test_products_are_equal_to_the_bit(void **state) { check_kernel(*state, VULKAN_KERNEL_MATRIX_I8); }

static void test_packed_dots_are_equal_to_the_bit(void **state) {
  const TestKernels *kernels = *state;
  if (!kernels->device.traits.integer_dot) skip();
  check_kernel(*state, VULKAN_KERNEL_MATRIX_I8_DOT);
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(test_activations_are_quantised_to_the_bit, &kernels),
      cmocka_unit_test_prestate(test_groups_of_any_size, &kernels),
      cmocka_unit_test_prestate(test_products_are_equal_to_the_bit, &kernels),
      cmocka_unit_test_prestate(test_packed_dots_are_equal_to_the_bit, &kernels),
  };
  const int failed = cmocka_run_group_tests_name("int8", tests, NULL, NULL);
  return test_kernels_close(&kernels) ? failed : 1;
}
