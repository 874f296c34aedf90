#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "compare/compare.h"
#include "compare/score.h"

enum { ROWS = 4, WIDTH = 32 };

static const DflashGeometry geometry = {
    .hidden = WIDTH, .heads = 4, .kv_heads = 2, .head_dim = 8, .conv_group = 8, .conv_kernel = 2, .block = 8};

typedef struct Values {
  float got[ROWS * WIDTH], golden[ROWS * WIDTH], sigma[ROWS * WIDTH];
} Values;

static void fill(Values *v) {
  for (int i = 0; i < ROWS * WIDTH; i++) {
    v->golden[i] = v->got[i] = (float)(i - 40) * 0.37f;
    v->sigma[i] = 1e-6f;
  }
}

static DflashComparison compare(const Values *v, bool exact) {
  DflashCompareCall call = {.geometry = &geometry,
                            .stage = DFLASH_STAGE_ATTN_NORM,
                            .rows = ROWS,
                            .width = WIDTH,
                            .got = v->got,
                            .golden = v->golden,
                            .sigma = exact ? NULL : v->sigma};
  DflashComparison out;
  dflash_compare_values(&call, &out);
  return out;
}

static void equal_values_pass(void **state) {
  (void)state;
  Values v;
  fill(&v);
  DflashComparison c = compare(&v, true);
  assert_int_equal(c.outcome, DFLASH_OUTCOME_PASS);
  assert_true(c.score == 0 && c.bad == 0 && c.elements == ROWS * WIDTH);
  assert_true(c.metrics.cosine > 0.999999 && c.metrics.nmse == 0);
}

/* Just inside and just outside of lambda * sigma + half a spacing. */
static void the_allowance_is_the_boundary(void **state) {
  (void)state;
  for (int outside = 0; outside < 2; outside++) {
    Values v;
    fill(&v);
    double allowed = DFLASH_LAMBDA * 1e-6 + 0.5 * dflash_spacing(v.golden[70]);
    v.got[70] = (float)(v.golden[70] + allowed * (outside ? 1.2 : 0.8));
    DflashComparison c = compare(&v, false);
    assert_int_equal(c.outcome, outside ? DFLASH_OUTCOME_MISMATCH : DFLASH_OUTCOME_PASS);
    assert_int_equal(c.worst_row, 2);
    assert_int_equal(c.worst_col, 6);
    assert_int_equal(c.bad, outside);
  }
}

/* Also around powers of two, where the neighbour below is nearer, and among denormals. */
static void exact_values_must_have_equal_bits(void **state) {
  (void)state;
  const float values[] = {1.0f, -2.0f, 3.7f, 1e-40f, 0.0f, 1.17549435e-38f, 3e38f};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    assert_true(dflash_score((double)nextafterf(values[i], -INFINITY), (double)values[i], 0) >= 2);
    assert_true(dflash_score((double)nextafterf(values[i], INFINITY), (double)values[i], 0) >= 2);
  }
  Values v;
  fill(&v);
  v.got[5] = nextafterf(v.golden[5], 1e30f);
  DflashComparison c = compare(&v, true);
  assert_int_equal(c.outcome, DFLASH_OUTCOME_MISMATCH);
  assert_true(c.score >= 1.9 && c.metrics.max_ulp == 1);
}

static void zero_has_one_sign_class(void **state) {
  (void)state;
  Values v;
  fill(&v);
  v.golden[9] = 0.0f;
  v.got[9] = -0.0f;
  assert_int_equal(compare(&v, true).outcome, DFLASH_OUTCOME_PASS);
}

/* One NaN anywhere is never lost, whatever stands around it, also where the golden has one. */
static void nan_is_found_at_every_place(void **state) {
  (void)state;
  for (int i = 0; i < ROWS * WIDTH; i++)
    for (int kind = 0; kind < 4; kind++) {
      Values v;
      fill(&v);
      v.got[(i + 7) % (ROWS * WIDTH)] += 1000; /* a large finite difference does not hide it */
      if (kind == 0) v.got[i] = NAN;
      if (kind == 1) v.got[i] = -INFINITY;
      if (kind == 2) v.golden[i] = v.got[i] = NAN;
      if (kind == 3) v.golden[i] = v.got[i] = INFINITY;
      DflashComparison c = compare(&v, false);
      assert_int_equal(c.outcome, DFLASH_OUTCOME_NONFINITE);
      assert_int_equal(c.worst_row * WIDTH + c.worst_col, i);
    }
}

static void poison_left_is_unwritten(void **state) {
  (void)state;
  Values v;
  fill(&v);
  uint32_t bits = DFLASH_POISON_BITS;
  memcpy(&v.got[3 * WIDTH + 31], &bits, sizeof bits);
  DflashComparison c = compare(&v, false);
  assert_int_equal(c.outcome, DFLASH_OUTCOME_UNWRITTEN);
  assert_int_equal(c.first_row, 3);
  assert_int_equal(c.first_col, 31);
}

/* An error scale that is no number must not excuse anything. */
static void a_broken_sigma_excuses_nothing(void **state) {
  (void)state;
  const float broken[] = {NAN, INFINITY, -1.0f};
  for (int k = 0; k < 3; k++) {
    Values v;
    fill(&v);
    v.sigma[11] = broken[k];
    v.got[11] += 1e-7f + fabsf(v.got[11]) * 1e-6f;
    assert_int_equal(compare(&v, false).outcome, DFLASH_OUTCOME_MISMATCH);
  }
}

static void spacing_is_that_of_f32(void **state) {
  (void)state;
  const float values[] = {1.0f, -1.5f, 3e38f, 1e-30f, 1e-40f, 0.0f, 65504.0f};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    float x = fabsf(values[i]);
    double up = (double)nextafterf(x, INFINITY) - (double)x;
    if (isfinite(up)) assert_true(dflash_spacing(values[i]) == up);
  }
}

static void metrics_are_those_of_other_tools(void **state) {
  (void)state;
  Values v;
  fill(&v);
  v.golden[0] = 2;
  v.got[0] = 3;
  DflashComparison c = compare(&v, false);
  assert_true(c.metrics.max_abs == 1 && c.metrics.max_rel == 0.5);
  double sum = 0;
  for (int i = 0; i < ROWS * WIDTH; i++) sum += (double)v.golden[i] * (double)v.golden[i];
  assert_true(fabs(c.metrics.nmse - 1 / sum) < 1e-12);
}

static void values_that_prove_little(void **state) {
  (void)state;
  Values v;
  const char *why;
  fill(&v);
  assert_true(dflash_value_trusted(v.golden, ROWS * WIDTH, &why));
  for (int i = 0; i < 40; i++) v.golden[i] = 0;
  assert_false(dflash_value_trusted(v.golden, ROWS * WIDTH, &why));
  assert_non_null(strstr(why, "zero"));
  for (int i = 0; i < ROWS * WIDTH; i++) v.golden[i] = 4.5f;
  assert_false(dflash_value_trusted(v.golden, ROWS * WIDTH, &why));
  for (int i = 0; i < ROWS * WIDTH; i++) v.golden[i] = i % 2 ? 448.0f : (float)i;
  assert_false(dflash_value_trusted(v.golden, ROWS * WIDTH, &why));
  assert_non_null(strstr(why, "largest"));
}

static void spacings_of_narrow_types(void **state) {
  (void)state;
  assert_true(dflash_storage_spacing(1, DFLASH_STORED_F16) == 0x1p-10);
  assert_true(dflash_storage_spacing(1.5F, DFLASH_STORED_BF16) == 0x1p-7);
  assert_true(dflash_storage_spacing(-2, DFLASH_STORED_F16) == 0x1p-9);
  assert_true(dflash_storage_spacing(1e-6F, DFLASH_STORED_F16) == 0x1p-24);
  assert_true(dflash_storage_spacing(0, DFLASH_STORED_BF16) == 0x1p-133);
  assert_true(dflash_storage_spacing(3, DFLASH_STORED_F32) == dflash_spacing(3));
}

/* A stored value's own rounding: its spacing s adds s^2 / 12 to the variance, and s / 2 is the floor. */
static void storage_adds_one_rounding(void **state) {
  (void)state;
  const double step = 0x1p-7, sigma = 1e-3;
  const double allowed = DFLASH_LAMBDA * sqrt(sigma * sigma + step * step / 12) + step / 2;
  assert_true(fabs(dflash_score_stored(1 + allowed, 1, sigma, DFLASH_STORED_BF16) - 1) < 1e-12);
  assert_true(dflash_score_stored(1, 1, sigma, DFLASH_STORED_BF16) == 0);
  assert_true(dflash_score_stored(1 + step, 1, 0, DFLASH_STORED_F32) > 2);
  assert_true(dflash_score_stored(1 + step, 1, 0, DFLASH_STORED_BF16) < 1);
  assert_true(isinf(dflash_score_stored(2, 1, -1, DFLASH_STORED_F16)));
  assert_true(isinf(dflash_score_stored(2, 1, (double)NAN, DFLASH_STORED_F16)));
  assert_true(dflash_score_stored(1 + 1e-6, 1, 1e-6, DFLASH_STORED_F32) == dflash_score(1 + 1e-6, 1, 1e-6));
}

/* Of a part of the rows, places and patterns have the value's own numbers. */
static void a_part_of_the_rows_keeps_its_numbers(void **state) {
  (void)state;
  static const int64_t ids[ROWS] = {9, 2, 7, 4};
  Values v;
  fill(&v);
  for (int c = 0; c < WIDTH; c++) v.got[2 * WIDTH + c] += 1.0F + (float)(c * c % 7);
  const DflashCompareCall call = {.geometry = &geometry,
                                  .stage = DFLASH_STAGE_ATTN_NORM,
                                  .rows = ROWS,
                                  .width = WIDTH,
                                  .row_ids = ids,
                                  .row_count = 10,
                                  .got = v.got,
                                  .golden = v.golden,
                                  .sigma = v.sigma};
  DflashComparison c;
  dflash_compare_values(&call, &c);
  assert_int_equal(c.elements, ROWS * WIDTH);
  assert_int_equal(c.worst_row, 7);
  assert_int_equal(c.first_row, 7);
  assert_string_equal(c.pattern, "one row (7)");
  assert_memory_equal(c.place, "row 7,", 6);
  for (int i = 0; i < ROWS * WIDTH; i++) v.got[i] = v.golden[i] + 1.0F + (float)(i * i % 7);
  dflash_compare_values(&call, &c);
  assert_string_equal(c.pattern, "every element");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spacings_of_narrow_types),
      cmocka_unit_test(storage_adds_one_rounding),
      cmocka_unit_test(a_part_of_the_rows_keeps_its_numbers),
      cmocka_unit_test(equal_values_pass),
      cmocka_unit_test(the_allowance_is_the_boundary),
      cmocka_unit_test(exact_values_must_have_equal_bits),
      cmocka_unit_test(zero_has_one_sign_class),
      cmocka_unit_test(nan_is_found_at_every_place),
      cmocka_unit_test(poison_left_is_unwritten),
      cmocka_unit_test(a_broken_sigma_excuses_nothing),
      cmocka_unit_test(spacing_is_that_of_f32),
      cmocka_unit_test(metrics_are_those_of_other_tools),
      cmocka_unit_test(values_that_prove_little),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
