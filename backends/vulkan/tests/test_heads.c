/* heads: the norm of each head, and the rotation of its halves. */
#include <math.h>
#include <stdlib.h>

#include "launch.h"
#include "rows.h"
#include "values.h"

static const float eps = 1e-6F;

/* A call and its arrays; y has y_first rows before the first. */
typedef struct Heads {
  uint32_t rows, heads, head_dim, rotate, y_first;
  float *x, *weight, *table, *y;
} Heads;

static Heads heads_open(uint32_t rows, uint32_t heads, uint32_t head_dim, uint32_t rotate, uint32_t y_first) {
  const size_t row = (size_t)heads * head_dim;
  Heads h = {rows, heads, head_dim, rotate, y_first, NULL, NULL, NULL, NULL};
  h.x = test_drawn(rows * row, "x");
  h.weight = test_drawn(head_dim, "weight");
  h.table = test_drawn((size_t)rows * head_dim, "table");
  h.y = test_poisoned((rows + y_first) * row);
  return h;
}

static void heads_close(Heads *h) {
  free(h->y);
  free(h->table);
  free(h->weight);
  free(h->x);
}

static size_t row_bytes(const Heads *h) { return (size_t)h->heads * h->head_dim * sizeof(float); }

/* Both by the table of the first; only sizes of the heads differ. NULL: no other heads. */
static void run_both(TestKernels *kernels, const Heads *h, const Heads *other) {
  const Heads *o = other ? other : h;
  float none = 0;
  const TestArray arrays[] = {{h->x, h->rows * row_bytes(h)},
                              {h->weight, h->head_dim * sizeof(float)},
                              {h->table, h->rows * h->head_dim * sizeof(float)},
                              {h->y, (h->rows + h->y_first) * row_bytes(h)},
                              {o->x, o->rows * row_bytes(o)},
                              {o->weight, o->head_dim * sizeof(float)},
                              other ? (TestArray){o->y, (o->rows + o->y_first) * row_bytes(o)}
                                    : (TestArray){&none, sizeof none}};
  const uint32_t others = other ? other->heads : 0;
  const HeadsPush push = {h->heads, others, h->head_dim, h->rotate, h->y_first, 1 / (float)h->head_dim, eps};
  uint32_t constants[VULKAN_MAX_CONSTANTS];
  const uint32_t count = vulkan_row_constants(&kernels->device.traits, &(DflashGeometry){.head_dim = h->head_dim},
                                              VULKAN_KERNEL_HEADS, constants);
  test_launch(kernels,
              &(TestLaunch){VULKAN_KERNEL_HEADS, constants, count, arrays, &push, {h->heads + others, h->rows, 1}});
}

static void run(TestKernels *kernels, const Heads *h) { run_both(kernels, h, NULL); }

/* Roundings: root (3), sum of squares (1), two products of the norm, one of the turn, a sum. */
enum { LIMIT_ROUNDINGS = 8 };

static void assert_near(float got, double exact, double size) {
  if (!(fabs(got - exact) <= LIMIT_ROUNDINGS * TEST_ROUNDING * size))
    fail_msg("%a, should be %a: %.2f roundings of %a", (double)got, exact, fabs(got - exact) / size / TEST_ROUNDING,
             size);
}

static void assert_head(const Heads *h, uint32_t r, uint32_t head) {
  const uint32_t half = h->head_dim / 2;
  const float *x = h->x + (r * h->heads + head) * h->head_dim;
  const float *y = h->y + ((h->y_first + r) * h->heads + head) * h->head_dim;
  double squares = 0;
  for (uint32_t i = 0; i < h->head_dim; i++) squares += (double)x[i] * x[i];
  const double factor = 1 / sqrt(squares / h->head_dim + (double)eps);
  for (uint32_t i = 0; i < half; i++) {
    const double low = x[i] * factor * h->weight[i], high = x[half + i] * factor * h->weight[half + i];
    const double c = h->rotate ? h->table[2 * r * half + i] : 1, s = h->rotate ? h->table[(2 * r + 1) * half + i] : 0;
    assert_near(y[i], low * c - high * s, fabs(low * c) + fabs(high * s));
    assert_near(y[half + i], high * c + low * s, fabs(high * c) + fabs(low * s));
  }
}

static void check(TestKernels *kernels, uint32_t rows, uint32_t heads, uint32_t head_dim, uint32_t y_first) {
  for (uint32_t rotate = 0; rotate < 2; rotate++) {
    Heads h = heads_open(rows, heads, head_dim, rotate, y_first);
    run(kernels, &h);
    for (uint32_t i = 0; i < y_first * heads * head_dim; i++) assert_true(isnan(h.y[i]));
    for (uint32_t r = 0; r < rows; r++)
      for (uint32_t head = 0; head < heads; head++) assert_head(&h, r, head);
    heads_close(&h);
  }
}

static void heads_of_any_size(void **state) {
  static const uint32_t sizes[] = {2, 4, 6, 62, 64, 66, 80, 96, 128, 130, 192, 254, 256};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) check(*state, 3, 5, sizes[i], 0);
}

static void check_both(TestKernels *kernels, uint32_t heads, uint32_t others, uint32_t head_dim) {
  enum { ROWS = 3 };
  Heads h = heads_open(ROWS, heads, head_dim, 1, 2), other = heads_open(ROWS, others, head_dim, 1, 2);
  for (uint32_t i = 0; i < ROWS * others * head_dim; i++) other.x[i] *= 3;
  for (uint32_t i = 0; i < head_dim; i++) other.weight[i] -= 2;
  run_both(kernels, &h, &other);
  for (uint32_t i = 0; i < 2 * others * head_dim; i++) assert_true(isnan(other.y[i]));
  for (uint32_t r = 0; r < ROWS; r++) {
    for (uint32_t head = 0; head < heads; head++) assert_head(&h, r, head);
    for (uint32_t head = 0; head < others; head++) assert_head(&other, r, head);
  }
  heads_close(&other);
  heads_close(&h);
}

/* Each value has its own x, weight and y. */
static void two_values_side_by_side(void **state) {
  check_both(*state, 5, 2, 64);
  check_both(*state, 2, 5, 130);
  check_both(*state, 1, 1, 6);
  check_both(*state, 32, 8, 128);
}

static void any_rows_and_heads(void **state) {
  check(*state, 1, 1, 64, 0);
  check(*state, 17, 2, 64, 0);
  check(*state, 8, 32, 128, 0);
}

static void rows_go_where_they_are_told(void **state) { check(*state, 3, 2, 64, 5); }

static void a_head_alone_gives_the_same_bits(void **state) {
  Heads all = heads_open(7, 3, 96, 1, 0), one = heads_open(1, 3, 96, 1, 0);
  run(*state, &all);
  run(*state, &one);
  assert_memory_equal(all.y, one.y, 3 * 96 * sizeof(float));
  heads_close(&one);
  heads_close(&all);
}

/* NaN takes its head; in the table its pair, and nothing when there is no rotation. */
static void what_is_not_finite_stays_in_its_head(void **state) {
  enum { DIM = 80, HEADS = 3, ROW = DIM * HEADS };
  for (uint32_t rotate = 0; rotate < 2; rotate++) {
    Heads h = heads_open(2, HEADS, DIM, rotate, 0);
    h.x[ROW + DIM + 79] = NAN;
    h.table[2] = INFINITY;  /* row 0, cosine 2 */
    h.table[DIM / 2] = NAN; /* row 0, sine 0 */
    run(*state, &h);
    for (uint32_t i = 0; i < 2 * ROW; i++) {
      const uint32_t pair = i % (DIM / 2);
      const bool in_head = i / DIM == HEADS + 1, in_pair = rotate && i < ROW && (pair == 0 || pair == 2);
      assert_int_equal(isfinite(h.y[i]), !(in_head || in_pair));
    }
    heads_close(&h);
  }
}

int main(void) {
  static TestKernels kernels;
  test_kernels_open(&kernels);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(heads_of_any_size, &kernels),
      cmocka_unit_test_prestate(any_rows_and_heads, &kernels),
      cmocka_unit_test_prestate(two_values_side_by_side, &kernels),
      cmocka_unit_test_prestate(rows_go_where_they_are_told, &kernels),
      cmocka_unit_test_prestate(a_head_alone_gives_the_same_bits, &kernels),
      cmocka_unit_test_prestate(what_is_not_finite_stays_in_its_head, &kernels),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return test_kernels_close(&kernels) && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
