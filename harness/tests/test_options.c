/* Modes, profiles, and the text that tells runs apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/options.h"

static void test_modes(void **state) {
  (void)state;
  unsigned modes = 0;
  char text[32];
  DflashError error;
  assert_int_equal(dflash_modes_parse("local,alone", &modes, &error), DFLASH_OK);
  assert_int_equal(modes, 1U << DFLASH_MODE_ALONE | 1U << DFLASH_MODE_LOCAL);
  assert_string_equal(dflash_modes_text(modes, text), "alone,local");
  assert_string_equal(dflash_modes_text(7, text), "alone,chain,local");
  assert_string_equal(dflash_modes_text(0, text), "");
  static const char *const bad[] = {"", "al", "alone,", ",alone", "alone chain", "aloneness"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(dflash_modes_parse(bad[i], &modes, &error), DFLASH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "there are alone, chain, local"));
  }
  assert_string_equal(dflash_mode_name(99), "-");
}

static void test_profiles(void **state) {
  (void)state;
  int32_t profile = -1;
  DflashError error;
  for (int32_t p = 0; p < DFLASH_PROFILE_COUNT; p++) {
    assert_int_equal(dflash_profile_parse(dflash_profile_name(p), &profile, &error), DFLASH_OK);
    assert_int_equal(profile, p);
  }
  assert_int_equal(dflash_profile_parse("f1", &profile, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "there are exact, i8, f16, bf16"));
}

static void expect_settings(DflashRunOptions options, const char *expected) {
  char *text = dflash_run_settings(&options);
  assert_string_equal(text, expected);
  free(text);
}

static void test_settings(void **state) {
  (void)state;
  const DflashRunOptions usual = {.layer = -1, .repeat = 1};
  DflashRunOptions o = usual;
  expect_settings(o, "");
  o.stages = "attn.*";
  o.layer = 0;
  expect_settings(o, "stage=attn.* layer=0");
  o = usual;
  o.load_context = 1;
  o.repeat = 3;
  o.round = 16;
  o.cold = 1;
  o.threads = 2;
  o.options[0] = (DflashOption){"form", "f32"};
  o.option_count = 1;
  expect_settings(o, "context=load repeat=3 round=16 cold threads=2 option:form=f32");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_modes),
      cmocka_unit_test(test_profiles),
      cmocka_unit_test(test_settings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
