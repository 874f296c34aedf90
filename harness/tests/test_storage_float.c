#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "base/random.h"
#include "model/storage.h"

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* From sign, exponent and significand by ldexp. */
static double slow_half(uint16_t bits, int exponent_bits, int significand_bits) {
  int sign = bits >> 15, exponent = bits >> significand_bits & ((1 << exponent_bits) - 1);
  int significand = bits & ((1 << significand_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  double value;
  if (exponent == (1 << exponent_bits) - 1)
    value = significand ? NAN : INFINITY;
  else if (exponent == 0)
    value = ldexp(significand, 1 - bias - significand_bits);
  else
    value = ldexp(significand + (1 << significand_bits), exponent - bias - significand_bits);
  return sign ? -value : value;
}

static void every_half_has_its_value(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 65536; bits++) {
    double f16 = slow_half((uint16_t)bits, 5, 10), bf16 = slow_half((uint16_t)bits, 8, 7);
    float got = dflash_f16_value((uint16_t)bits), got_bf16 = dflash_bf16_value((uint16_t)bits);
    assert_true(isnan(f16) ? isnan(got) : (double)got == f16 && !signbit(got) == !signbit(f16));
    assert_true(isnan(bf16) ? isnan(got_bf16) : (double)got_bf16 == bf16 && !signbit(got_bf16) == !signbit(bf16));
  }
}

static void every_half_rounds_to_itself(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 65536; bits++) {
    float f16 = dflash_f16_value((uint16_t)bits), bf16 = dflash_bf16_value((uint16_t)bits);
    if (!isnan(f16)) assert_int_equal(dflash_f16_round(f16), bits);
    if (!isnan(bf16)) assert_int_equal(dflash_bf16_round(bf16), bits);
    if (isnan(f16)) assert_true(isnan(dflash_f16_value(dflash_f16_round(f16))));
    if (isnan(bf16)) assert_true(isnan(dflash_bf16_value(dflash_bf16_round(bf16))));
  }
}

/* Between neighbours: below the middle down, above it up, in the middle to the even one. */
static void check_between(uint16_t low, float (*value)(uint16_t), uint16_t (*round)(float)) {
  uint16_t high = (uint16_t)(low + 1);
  double next = isinf(value(high)) ? 2 * (double)value(low) - (double)value((uint16_t)(low - 1)) : (double)value(high);
  float middle = (float)(((double)value(low) + next) / 2);
  assert_int_equal(round(middle), low % 2 ? high : low);
  assert_int_equal(round(nextafterf(middle, 0)), low);
  assert_int_equal(round(nextafterf(middle, INFINITY)), high);
  assert_int_equal(round(-middle), (low % 2 ? high : low) | 0x8000);
}

static void rounding_is_to_nearest_even(void **state) {
  (void)state;
  for (uint16_t low = 0; low < 0x7c00; low++) check_between(low, dflash_f16_value, dflash_f16_round);
  for (uint16_t low = 0x80; low < 0x7f80; low++) check_between(low, dflash_bf16_value, dflash_bf16_round);
}

static void extremes_round_as_they_must(void **state) {
  (void)state;
  assert_int_equal(dflash_f16_round(65504.0f), 0x7bff);
  assert_int_equal(dflash_f16_round(65519.996f), 0x7bff);
  assert_int_equal(dflash_f16_round(65520.0f), 0x7c00);
  assert_int_equal(dflash_f16_round(-FLT_MAX), 0xfc00);
  assert_int_equal(dflash_f16_round(0x1p-25f), 0);
  assert_int_equal(dflash_f16_round(nextafterf(0x1p-25f, 1)), 1);
  assert_int_equal(dflash_f16_round(-0.0f), 0x8000);
  assert_int_equal(dflash_bf16_round(FLT_MAX), 0x7f80);
  assert_int_equal(dflash_bf16_round(of_bits(1)), 0);
  assert_int_equal(dflash_bf16_round(of_bits(0xffffffffu)) & 0xff80, 0xff80); /* all-ones NaN does not wrap */
  assert_true(isnan(dflash_bf16_value(dflash_bf16_round(of_bits(0x7f800001u)))));
  assert_true(isnan(dflash_f16_value(dflash_f16_round(of_bits(0x7f800001u)))));
}

/* 2^x by the series of e^y in long double, y below 0.35: shares nothing with libm's exp2. */
static long double slow_exp2(double x) {
  double whole = floor(x + 0.5);
  long double y = ((long double)x - whole) * 0.693147180559945309417232121458176568L, sum = 0;
  for (int n = 22; n > 0; n--) sum = (sum + 1) * y / n;
  return ldexpl(1 + sum, (int)whole);
}

/* Whether `rounded` is the f32 nearest to `exact`, ties to even: exact lies between the middles to both neighbours. */
static int is_nearest(long double exact, float rounded) {
  const long double overflow = 0x1.ffffffp127L, slack = exact * 0x1p-60L; /* above the series' error */
  if (isinf(rounded)) return exact >= overflow;
  long double below = ((long double)rounded + nextafterf(rounded, 0)) / 2;
  long double above = ((long double)rounded + nextafterf(rounded, INFINITY)) / 2;
  if (rounded == FLT_MAX) above = overflow;
  if (rounded == 0) below = -1;
  int even = bits_of(rounded) % 2 == 0;
  return (exact > below + slack || (exact == below && even)) && (exact < above - slack || (exact == above && even));
}

static void exp2_is_correctly_rounded_for_every_f16(void **state) {
  (void)state;
  int finite = 0, denormal = 0, infinite = 0, zero = 0;
  for (uint32_t bits = 0; bits < 65536; bits++) {
    float x = dflash_f16_value((uint16_t)bits);
    if (!isfinite(x)) continue;
    float got = dflash_exp2_f32(x);
    finite++;
    infinite += isinf(got) != 0;
    zero += got == 0;
    denormal += got > 0 && got < FLT_MIN;
    assert_false(isnan(got));
    if (fabsf(x) > 300) {
      assert_true(x > 0 ? isinf(got) : got == 0);
      continue;
    }
    long double exact = slow_exp2((double)x);
    assert_true(is_nearest(exact, got));
    if (got > 0) assert_false(is_nearest(exact, nextafterf(got, 0)));
    if (!isinf(got)) assert_false(is_nearest(exact, nextafterf(got, INFINITY)));
  }
  assert_int_equal(finite, 63488);
  assert_true(denormal > 100 && infinite > 1000 && zero > 1000);
  assert_true(bits_of(dflash_exp2_f32(-149)) == 1 && dflash_exp2_f32(-150) == 0);
  assert_true(isinf(dflash_exp2_f32(128)) && dflash_exp2_f32(0) == 1);
}

static void ladders_round_every_product(void **state) {
  (void)state;
  DflashRandom random = dflash_random_stream(1, "ladders");
  for (uint64_t i = 0; i < 2000; i++) {
    uint16_t lo = (uint16_t)dflash_random_u32(random, 2 * i), step = (uint16_t)dflash_random_u32(random, 2 * i + 1);
    float rungs[32];
    dflash_q4tp_ladder(lo, step, rungs);
    float factor = dflash_exp2_f32(dflash_f16_value(step)), expected = dflash_exp2_f32(dflash_f16_value(lo));
    for (int c = 0; c < 32; c++) {
      assert_true(isnan(expected) ? isnan(rungs[c]) : rungs[c] == expected);
      expected = (float)((double)expected * (double)factor); /* exact in f64, then rounded */
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_half_has_its_value),
      cmocka_unit_test(every_half_rounds_to_itself),
      cmocka_unit_test(rounding_is_to_nearest_even),
      cmocka_unit_test(extremes_round_as_they_must),
      cmocka_unit_test(exp2_is_correctly_rounded_for_every_f16),
      cmocka_unit_test(ladders_round_every_product),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
