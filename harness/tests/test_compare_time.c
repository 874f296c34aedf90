/* The comparison of times: estimates, verdicts, one rate over a whole and its parts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "time/compare_whole.h"

enum { N = 16 };

static DflashTimesRule rule(void) {
  DflashTimesRule r;
  dflash_times_rule_default(&r);
  return r;
}

/* level, spread over +-1% in an order that has nothing to do with time. */
static void spread(double *times, double level, int step) {
  for (int i = 0; i < N; i++) times[i] = level * (1 + 0.01 * (((i * step) % N) / (N - 1.0) * 2 - 1));
}

static DflashTimeShift shift_of(const double *a, const double *b, int64_t n, int paired, double between) {
  DflashTimesRule r = rule();
  DflashTimeShift shift;
  DflashError error = {0};
  r.between = between;
  DflashTimeUnits units = {a, b, n, n, paired};
  if (dflash_times_shift(&units, &r, r.rate, &shift, &error) != DFLASH_OK) fail_msg("%s", error.message);
  DflashTimesItem item = {shift, 1, 1};
  dflash_times_decide(&r, r.rate, &item, 1);
  return item.shift;
}

static void the_shift_is_a_share(void **state) {
  (void)state;
  double a[N], b[N];
  spread(a, 2e6, 5);
  for (int i = 0; i < N; i++) b[i] = 1.5 * a[i];
  for (int paired = 0; paired < 2; paired++) {
    DflashTimeShift s = shift_of(a, b, N, paired, 0);
    assert_true(fabs(s.shift - 0.5) < 1e-12 && fabs(s.b / s.a - 1.5) < 1e-12);
    assert_true(s.low <= s.shift && s.shift <= s.high && s.p < 0.001);
    assert_int_equal(s.verdict, DFLASH_TIME_SLOWER);
    s = shift_of(b, a, N, paired, 0);
    assert_true(fabs(s.shift + 1.0 / 3) < 1e-12);
    assert_int_equal(s.verdict, DFLASH_TIME_FASTER);
  }
}

/* All 16 pairs in one direction: p is 2 / 2^16 exactly; the interval of pairs with one ratio is a point. */
static void pairs_see_what_drift_hides(void **state) {
  (void)state;
  double a[N], b[N];
  for (int i = 0; i < N; i++) {
    a[i] = 1e6 * (1 + i); /* a machine that slows down all the time */
    b[i] = 1.02 * a[i];
  }
  DflashTimeShift s = shift_of(a, b, N, 1, 0);
  assert_true(s.p == ldexp(1, -15) && s.high - s.low < 1e-12);
  assert_int_equal(s.verdict, DFLASH_TIME_SLOWER);
  assert_int_equal(shift_of(a, b, N, 0, 0).verdict, DFLASH_TIME_CANNOT_TELL);
}

static void nothing_differs(void **state) {
  (void)state;
  double a[N], b[N];
  spread(a, 1e6, 5);
  spread(b, 1e6, 7);
  DflashTimeShift s = shift_of(a, b, N, 0, 0);
  assert_true(fabs(s.shift) < 1e-3 && s.p > 0.5);
  assert_int_equal(shift_of(a, a, N, 1, 0).verdict, DFLASH_TIME_SAME);
  assert_true(shift_of(a, a, N, 1, 0).p == 1); /* pairs equal to the bit say nothing */
  assert_true(shift_of(a, a, N, 0, 0).p == 1);
}

/* Significant but small is no change; large but by chance is none either. */
static void both_must_say_so(void **state) {
  (void)state;
  double a[N], b[N];
  spread(a, 1e6, 5);
  for (int i = 0; i < N; i++) b[i] = 1.005 * a[i];
  DflashTimeShift s = shift_of(a, b, N, 1, 0);
  assert_true(s.p < 0.001);
  assert_int_equal(s.verdict, DFLASH_TIME_SAME);
  b[0] = b[1] = 40e6;
  for (int i = 2; i < N; i++) b[i] = a[i] * (i % 2 ? 1.2 : 0.9);
  s = shift_of(a, b, N, 1, 0);
  assert_true(s.shift > 0.01 && s.p > 0.005);
  assert_int_equal(s.verdict, DFLASH_TIME_CANNOT_TELL);
}

static void too_few_can_call_nothing(void **state) {
  (void)state;
  double a[N], b[N];
  spread(a, 1e6, 5);
  for (int i = 0; i < N; i++) b[i] = 3 * a[i];
  const int64_t pairs = dflash_times_least(0.005, 1), side = dflash_times_least(0.005, 0);
  assert_int_equal(shift_of(a, b, pairs - 1, 1, 0).verdict, DFLASH_TIME_CANNOT_TELL);
  assert_true(isinf(shift_of(a, b, pairs - 1, 1, 0).visible));
  assert_int_equal(shift_of(a, b, pairs, 1, 0).verdict, DFLASH_TIME_SLOWER);
  assert_true(isfinite(shift_of(a, b, pairs, 1, 0).visible));
  assert_int_equal(shift_of(a, b, side - 1, 0, 0).verdict, DFLASH_TIME_CANNOT_TELL);
  assert_int_equal(shift_of(a, b, side, 0, 0).verdict, DFLASH_TIME_SLOWER);
  DflashTimeShift one = shift_of(a, b, 1, 0, 0);
  assert_true(isnan(one.low) && one.p == 1 && one.verdict == DFLASH_TIME_CANNOT_TELL);
}

/* 4% would be called; not if the sides may differ by 1% each for other reasons. */
static void what_sides_have_in_common_is_allowed_for(void **state) {
  (void)state;
  double a[N], b[N];
  spread(a, 1e6, 5);
  for (int i = 0; i < N; i++) b[i] = 1.04 * a[i];
  assert_int_equal(shift_of(a, b, N, 0, 0).verdict, DFLASH_TIME_SLOWER);
  DflashTimeShift s = shift_of(a, b, N, 0, 0.01);
  assert_int_equal(s.verdict, DFLASH_TIME_CANNOT_TELL);
  assert_true(s.low < 0.04 - 1.96 * 0.014 + 0.001 && s.visible > 0.05);
  for (int i = 0; i < N; i++) b[i] = 1.1 * a[i];
  assert_int_equal(shift_of(a, b, N, 0, 0.01).verdict, DFLASH_TIME_SLOWER);
  assert_int_equal(shift_of(a, a, N, 0, 0.01).verdict, DFLASH_TIME_CANNOT_TELL);
}

static void bad_times_are_refused(void **state) {
  (void)state;
  const double bad[] = {0, -1, NAN, INFINITY};
  DflashTimesRule r = rule();
  DflashTimeShift out;
  DflashError error;
  for (int i = 0; i < 4; i++) {
    double a[] = {1, 2}, b[] = {1, bad[i]};
    DflashTimeUnits units = {a, b, 2, 2, 0};
    assert_int_equal(dflash_times_shift(&units, &r, r.rate, &out, &error), DFLASH_INVALID_DATA);
    assert_non_null(strstr(error.message, "side B"));
  }
  double a[] = {1, 2};
  DflashTimeUnits uneven = {a, a, 2, 1, 1}, none = {a, a, 0, 1, 0};
  assert_int_equal(dflash_times_shift(&uneven, &r, r.rate, &out, &error), DFLASH_INVALID_DATA);
  assert_int_equal(dflash_times_shift(&none, &r, r.rate, &out, &error), DFLASH_INVALID_DATA);
}

static DflashTimesItem item(double p, double weight) {
  return (DflashTimesItem){{.p = p, .shift = 0.5, .low = 0.4, .high = 0.6}, weight, 1};
}

/* Weighted Holm by hand: 0.01 over weights 2, 1, 1. */
static void one_rate_over_many(void **state) {
  (void)state;
  const DflashTimesRule r = rule();
  DflashTimesItem items[] = {item(0.004, 2), item(0.006, 1), item(0.004, 1), item(0, 0)};
  dflash_times_decide(&r, 0.01, items, 4);
  assert_int_equal(items[0].shift.verdict, DFLASH_TIME_SLOWER);      /* 0.004 <= 0.01 * 2 / 4 */
  assert_int_equal(items[2].shift.verdict, DFLASH_TIME_SLOWER);      /* 0.004 <= 0.01 * 1 / 2 */
  assert_int_equal(items[1].shift.verdict, DFLASH_TIME_SLOWER);      /* 0.006 <= 0.01 */
  assert_int_equal(items[3].shift.verdict, DFLASH_TIME_CANNOT_TELL); /* no weight: never called */
  items[0].shift.p = 0.0051;
  dflash_times_decide(&r, 0.01, items, 3);
  for (int i = 0; i < 3; i++) assert_int_equal(items[i].shift.verdict, DFLASH_TIME_CANNOT_TELL);
}

typedef struct Block {
  double a[N], b[N], parts_a[3][N], parts_b[3][N];
} Block;

/* Parts of 60%, 39.9% and 0.1%; part `slow` of side B takes `times` as long. */
static void make_block(Block *block, int slow, double times) {
  const double level[] = {6e5, 3.99e5, 1e3};
  memset(block, 0, sizeof *block);
  for (int p = 0; p < 3; p++) {
    spread(block->parts_a[p], level[p], 5);
    spread(block->parts_b[p], level[p] * (p == slow ? times : 1), 11);
    for (int i = 0; i < N; i++) {
      block->a[i] += block->parts_a[p][i];
      block->b[i] += block->parts_b[p][i];
    }
  }
}

static DflashTimesWhole judge(const Block *block, DflashTimesPart *parts) {
  const DflashTimesRule r = rule();
  DflashTimesWhole out;
  DflashError error = {0};
  const DflashTimeUnits whole = {block->a, block->b, N, N, 0};
  for (int p = 0; p < 3; p++) parts[p] = (DflashTimesPart){.units = {block->parts_a[p], block->parts_b[p], N, N, 0}};
  if (dflash_times_whole(&r, r.rate, &whole, parts, 3, &out, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return out;
}

static void a_slow_part_is_named(void **state) {
  (void)state;
  Block block;
  DflashTimesPart parts[3];
  make_block(&block, 1, 1.1);
  DflashTimesWhole out = judge(&block, parts);
  assert_int_equal(out.verdict, DFLASH_TIME_SLOWER);
  assert_int_equal(out.whole.verdict, DFLASH_TIME_SLOWER);
  assert_int_equal(out.place, 1);
  assert_int_equal(parts[1].item.shift.verdict, DFLASH_TIME_SLOWER);
  assert_true(fabs(parts[1].moved - 0.0399) < 0.002);
  make_block(&block, 0, 0.8);
  out = judge(&block, parts);
  assert_int_equal(out.verdict, DFLASH_TIME_FASTER);
  assert_int_equal(out.place, 0);
  assert_true(out.least < out.least_parts && out.least_parts <= N);
}

/* 10% of a part that is 0.1% of the block is called by nobody; three times its time is, by its group alone. */
static void a_small_part_must_move_the_whole(void **state) {
  (void)state;
  Block block;
  DflashTimesPart parts[3];
  make_block(&block, 2, 1.1);
  DflashTimesWhole out = judge(&block, parts);
  assert_int_not_equal(out.verdict, DFLASH_TIME_SLOWER);
  assert_int_equal(out.place, -1);
  make_block(&block, 2, 3);
  out = judge(&block, parts);
  assert_int_not_equal(out.whole.verdict, DFLASH_TIME_SLOWER);
  assert_int_equal(out.verdict, DFLASH_TIME_SLOWER);
  assert_int_equal(out.place, 2);
}

/* Without units a part is never called, and still located. */
static void parts_with_medians_alone_locate(void **state) {
  (void)state;
  Block block;
  make_block(&block, 1, 1.2);
  const DflashTimesRule r = rule();
  DflashTimesPart parts[2] = {{.item.shift = {.a = 6e5, .b = 6e5}}, {.item.shift = {.a = 3.99e5, .b = 4.788e5}}};
  DflashTimesWhole out;
  const DflashTimeUnits whole = {block.a, block.b, N, N, 0};
  assert_int_equal(dflash_times_whole(&r, r.rate, &whole, parts, 2, &out, NULL), DFLASH_OK);
  assert_int_equal(out.verdict, DFLASH_TIME_SLOWER);
  assert_int_equal(out.place, 1);
  assert_int_equal(parts[1].item.shift.verdict, DFLASH_TIME_CANNOT_TELL);
  assert_int_equal(out.least_parts, 0);
  assert_int_equal(out.least, dflash_times_least(r.rate, 0)); /* the whole has the whole rate */
}

static void batches(void **state) {
  (void)state;
  double samples[300], medians[16];
  for (int i = 0; i < 300; i++) samples[i] = i;
  assert_int_equal(dflash_times_batches(samples, 15, medians), 0);
  assert_int_equal(dflash_times_batches(samples, 16, medians), 8);
  assert_true(medians[0] == 0.5 && medians[7] == 14.5);
  assert_int_equal(dflash_times_batches(samples, 100, medians), 10);
  assert_int_equal(dflash_times_batches(samples, 300, medians), 16);
  assert_true(medians[0] == 9 && medians[15] == 290.5);
}

static void looks_share_the_rate(void **state) {
  (void)state;
  double sum = 0;
  for (int look = 0; look < 40; look++) sum += dflash_times_look_rate(0.005, look);
  assert_true(dflash_times_look_rate(0.005, 0) == 0.0025 && sum <= 0.005 && sum > 0.00499);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_shift_is_a_share),
      cmocka_unit_test(pairs_see_what_drift_hides),
      cmocka_unit_test(nothing_differs),
      cmocka_unit_test(both_must_say_so),
      cmocka_unit_test(too_few_can_call_nothing),
      cmocka_unit_test(what_sides_have_in_common_is_allowed_for),
      cmocka_unit_test(bad_times_are_refused),
      cmocka_unit_test(one_rate_over_many),
      cmocka_unit_test(a_slow_part_is_named),
      cmocka_unit_test(a_small_part_must_move_the_whole),
      cmocka_unit_test(parts_with_medians_alone_locate),
      cmocka_unit_test(batches),
      cmocka_unit_test(looks_share_the_rate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
