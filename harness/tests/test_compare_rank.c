#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "time/compare_rank.h"

static void expect_near(double got, double expected, double share) {
  if (!(fabs(got - expected) <= share * fabs(expected))) fail_msg("got %.17g, expected %.17g", got, expected);
}

/* P(W <= w) and P(U <= u) counted by hand. */
static void small_laws_are_exact(void **state) {
  (void)state;
  DflashRankLaw law;
  assert_true(dflash_rank_law_plain(&law, 4, DFLASH_RANK_SIGNS));
  const double sixteenths[] = {1, 2, 3, 5, 7, 9, 11, 13, 14, 15, 16};
  for (int w = 0; w <= 10; w++) expect_near(law.below[2 * w], sixteenths[w] / 16, 1e-15);
  assert_true(dflash_rank_law_p(&law, 0) == 0.125 && dflash_rank_law_p(&law, 20) == 0.125);
  assert_true(dflash_rank_law_p(&law, 10) == 1);
  dflash_rank_law_close(&law);
  assert_true(dflash_rank_law_plain(&law, 5, 2)); /* sums of 2 of 1 .. 5: 3 4 5 5 6 6 7 7 8 9 */
  const double tenths[] = {1, 2, 4, 6, 8, 9, 10};
  for (int u = 0; u <= 6; u++) expect_near(law.below[2 * (u + 3)], tenths[u] / 10, 1e-15);
  expect_near(dflash_rank_law_p(&law, 6), 0.2, 1e-15);
  expect_near(dflash_rank_law_p(&law, 18), 0.2, 1e-15);
  dflash_rank_law_close(&law);
}

/* Values 1 2 2 3: the law of their ranks 1 2.5 2.5 4, two chosen, has six choices. */
static void ties_have_a_law_of_their_own(void **state) {
  (void)state;
  const double values[] = {1, -2, 2, 3};
  int64_t doubled[4];
  assert_true(dflash_rank_values(values, 4, doubled));
  assert_true(doubled[0] == 2 && doubled[1] == 5 && doubled[2] == 5 && doubled[3] == 8);
  DflashRankLaw law;
  assert_true(dflash_rank_law_open(&law, doubled, 4, 2));
  expect_near(law.below[7], 2.0 / 6, 1e-15);
  expect_near(law.below[10], 4.0 / 6, 1e-15);
  expect_near(law.below[13], 1, 1e-15);
  expect_near(dflash_rank_law_p(&law, 7), 2.0 / 3, 1e-15);
  dflash_rank_law_close(&law);
  const double apart[] = {0.5, -0.25, 4};
  assert_false(dflash_rank_values(apart, 3, doubled));
  assert_true(doubled[0] == 4 && doubled[1] == 2 && doubled[2] == 6);
}

static void all_alike_says_nothing(void **state) {
  (void)state;
  int64_t doubled[80];
  DflashRankLaw law;
  for (int n = 6; n <= 80; n += 74) {
    for (int i = 0; i < n; i++) doubled[i] = n + 1;
    assert_true(dflash_rank_law_open(&law, doubled, n, n / 2));
    assert_true(dflash_rank_law_p(&law, (n + 1) * (n / 2)) == 1);
    dflash_rank_law_close(&law);
  }
}

/* Tables of the signed-rank and the U statistic: 5% two-sided. reach is one more than the tabulated critical value. */
static void reach_is_that_of_the_tables(void **state) {
  (void)state;
  const struct {
    int64_t count, chosen, reach;
  } rows[] = {{5, DFLASH_RANK_SIGNS, 0},
              {6, DFLASH_RANK_SIGNS, 1},
              {8, DFLASH_RANK_SIGNS, 4},
              {10, DFLASH_RANK_SIGNS, 9},
              {20, DFLASH_RANK_SIGNS, 53},
              {6, 3, 0},
              {8, 4, 1},
              {16, 8, 14},
              {20, 10, 24},
              {40, 20, 128}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    DflashRankLaw law;
    assert_true(dflash_rank_law_plain(&law, rows[i].count, rows[i].chosen));
    int64_t reach = dflash_rank_law_reach(&law, rows[i].count, rows[i].chosen, 0.05);
    if (reach != rows[i].reach) fail_msg("row %zu: reach %lld", i, (long long)reach);
    dflash_rank_law_close(&law);
  }
}

/* How many deviations from the mean the smallest statistic lies whose share below it is `tail`. */
static double deviations(int64_t n, bool signs, double tail) {
  DflashRankLaw law;
  int64_t s = 0;
  assert_true(dflash_rank_law_plain(&law, n, signs ? DFLASH_RANK_SIGNS : n / 2));
  while (law.below[s] < tail) s += 2;
  dflash_rank_law_close(&law);
  const double m = (double)n, mean = m * (m + 1) / 2; /* of doubled ranks, both statistics */
  return ((double)s - mean) / sqrt(signs ? m * (m + 1) * (2 * m + 1) / 6 : m * m * (m + 1) / 12);
}

/* Just above the bound the normal law takes over: it continues the exact one. */
static void the_normal_law_continues_the_exact_one(void **state) {
  (void)state;
  const double tails[] = {0.5, 0.1, 0.02, 0.005, 0.001};
  for (int signs = 0; signs < 2; signs++)
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
      double exact = deviations(DFLASH_RANK_EXACT, signs, tails[i]);
      double normal = deviations(DFLASH_RANK_EXACT + 2, signs, tails[i]);
      assert_true(fabs(exact - normal) < 0.06);
    }
}

static void least_numbers(void **state) {
  (void)state;
  assert_int_equal(dflash_rank_least_pairs(0.05), 6);    /* 2 / 64 */
  assert_int_equal(dflash_rank_least_pairs(0.0625), 5);  /* 2 / 32 */
  assert_int_equal(dflash_rank_least_pairs(0.0025), 10); /* 2 / 1024 */
  assert_int_equal(dflash_rank_least_side(0.05), 4);     /* 2 / 70 */
  assert_int_equal(dflash_rank_least_side(0.1), 3);      /* 2 / 20 */
  assert_int_equal(dflash_rank_least_side(0.0025), 6);   /* 2 / 924 */
}

static void normal_points(void **state) {
  (void)state;
  expect_near(dflash_normal_point(0.975), 1.959963984540054, 1e-12);
  expect_near(dflash_normal_p(1.959963984540054), 0.05, 1e-12);
  expect_near(dflash_normal_p(-3), 0.0026997960632601866, 1e-12);
  assert_true(fabs(dflash_normal_point(0.5)) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_laws_are_exact),
      cmocka_unit_test(ties_have_a_law_of_their_own),
      cmocka_unit_test(all_alike_says_nothing),
      cmocka_unit_test(reach_is_that_of_the_tables),
      cmocka_unit_test(the_normal_law_continues_the_exact_one),
      cmocka_unit_test(least_numbers),
      cmocka_unit_test(normal_points),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
