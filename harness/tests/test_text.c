#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void appends_grow(void **state) {
  (void)state;
  DflashText text = {0};
  for (int i = 0; i < 1000; i++) dflash_text_append(&text, "%03d,", i);
  assert_int_equal(text.size, 4000);
  assert_int_equal(strlen(text.data), 4000);
  assert_memory_equal(text.data + 3996, "999,", 5);
  assert_false(text.failed);
  dflash_text_free(&text);
  assert_null(text.data);
}

static void bytes_may_hold_nul(void **state) {
  (void)state;
  DflashText text = {0};
  dflash_text_bytes(&text, "", 0);
  assert_string_equal(text.data, "");
  dflash_text_bytes(&text, "a\0b", 3);
  assert_int_equal(text.size, 3);
  assert_memory_equal(text.data, "a\0b", 4);
  dflash_text_free(&text);
}

static void failure_sticks(void **state) {
  (void)state;
  DflashText text = {0};
  dflash_text_append(&text, "kept");
  dflash_text_bytes(&text, "x", SIZE_MAX - 2);
  assert_true(text.failed);
  dflash_text_append(&text, "more");
  assert_string_equal(text.data, "kept");
  dflash_text_free(&text);
}

static void utf8(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t length;
  } cases[] = {
      {"", 0},
      {"a", 1},
      {"\x7f", 1},
      {"\x80", 0},
      {"\xc1\x80", 0},
      {"\xc2\x80", 2},
      {"\xc2", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xe0\xa0\x80", 3},
      {"\xed\x9f\xbf", 3},
      {"\xed\xa0\x80", 0},
      {"\xef\xbf\xbf", 3},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xf0\x90\x80\x80", 4},
      {"\xf4\x8f\xbf\xbf", 4},
      {"\xf4\x90\x80\x80", 0},
      {"\xf5\x80\x80\x80", 0},
      {"\xe2\x82", 0},
      {"\xf0\x90\x80", 0},
      {"\xc2\xc2", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(dflash_utf8_length(cases[i].bytes), cases[i].length);
  DflashText text = {0};
  dflash_text_utf8(&text, "a\xff\xc3\xa4\xe2\x82");
  assert_string_equal(text.data, "a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd");
  dflash_text_free(&text);
}

static void patterns(void **state) {
  (void)state;
  assert_true(dflash_glob_match(NULL, "x"));
  assert_true(dflash_glob_match("", "x"));
  assert_true(dflash_glob_match("attn.*", "attn.norm/3"));
  assert_true(dflash_glob_match("*/3", "attn.norm/3"));
  assert_true(dflash_glob_match("mlp.*,attn.norm", "attn.norm"));
  assert_true(dflash_glob_match("a,,b", "b"));
  assert_true(dflash_glob_match("[ab]?", "bz"));
  assert_false(dflash_glob_match("attn", "attn.norm"));
  assert_false(dflash_glob_match(",", ""));
  assert_false(dflash_glob_match("mlp.*,attn.norm", "attn.norm/1"));
}

static void integers(void **state) {
  (void)state;
  int64_t value = 42;
  assert_true(dflash_parse_i64("-9223372036854775808", &value));
  assert_true(value == INT64_MIN);
  assert_true(dflash_parse_i64("+7", &value));
  assert_int_equal(value, 7);
  static const char *const bad[] = {"", " 7", "7 ", "7.0", "0x10", "9223372036854775808", "-", "7k", "\n7"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(dflash_parse_i64(bad[i], &value));
  assert_false(dflash_parse_i64(NULL, &value));
  assert_int_equal(value, 7);
}

static void reals(void **state) {
  (void)state;
  double value = 0;
  assert_true(dflash_parse_f64("-1.5e3", &value));
  assert_true(value == -1500);
  static const char *const bad[] = {"", "nan", "inf", "-inf", "1e999", " 1", "1 ", "1,5", "e3", "1%"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(dflash_parse_f64(bad[i], &value));
  assert_true(value == -1500);
}

static void shares(void **state) {
  (void)state;
  double value = 0;
  assert_true(dflash_parse_share("1%", &value));
  assert_true(fabs(value - 0.01) < 1e-15);
  assert_true(dflash_parse_share("0.25", &value));
  assert_true(value == 0.25);
  static const char *const bad[] = {"0", "1", "100%", "0%", "-1%", "5", "1 %", "1%%", "%", "nan", "nan%", ""};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(dflash_parse_share(bad[i], &value));
}

static void seconds(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double value;
  } good[] = {{"60s", 60}, {"500ms", 0.5}, {"2m", 120}, {"1.5", 1.5}, {"250us", 250e-6}, {"1h", 3600}};
  double value;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_true(dflash_parse_seconds(good[i].text, &value));
    assert_true(fabs(value - good[i].value) <= 1e-12 * good[i].value);
  }
  static const char *const bad[] = {"0", "0s", "-1s", "s", "1 s", "1sec", "1e308h", "inf", "nan", "", "5d"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(dflash_parse_seconds(bad[i], &value));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(appends_grow),   cmocka_unit_test(bytes_may_hold_nul),
      cmocka_unit_test(failure_sticks), cmocka_unit_test(utf8),
      cmocka_unit_test(patterns),       cmocka_unit_test(integers),
      cmocka_unit_test(reals),          cmocka_unit_test(shares),
      cmocka_unit_test(seconds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
