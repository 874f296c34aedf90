#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "model/json.h"

static void refuse(const char *text, uint64_t size) {
  cJSON *object = (cJSON *)1;
  DflashError error = {0};
  assert_int_equal(dflash_json_parse(text, size, "here", &object, &error), DFLASH_INVALID_DATA);
  assert_null(object);
  assert_memory_equal(error.message, "here ", 5);
}

static void test_refusals(void **state) {
  (void)state;
  const char *texts[] = {"",
                         " ",
                         "{",
                         "}",
                         "[]",
                         "7",
                         "null",
                         "{} x",
                         "{}{}",
                         "{\"a\":}",
                         "{\"a\"}",
                         "{a:1}",
                         "{\"a\":1,}",
                         "\xef\xbb\xbf",
                         "{\"\xff\":1}",
                         "{\"a\":\"\xc3\"}",
                         "{\"a\":nan}",
                         "{\"a\":\"\\q\"}"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) refuse(texts[i], strlen(texts[i]));
  refuse("{}\0", 3);
  refuse("{}", DFLASH_JSON_LIMIT + 1); /* refused before it is read */
}

/* The text need not end in NUL, and nothing past its size is read. */
static void test_exact_size(void **state) {
  (void)state;
  const char text[] = "{\"a\":[1,2.5e1,true,null,\"x\"]}";
  size_t size = sizeof text - 1;
  for (size_t cut = 1; cut < size; cut++) {
    char *part = malloc(cut);
    memcpy(part, text, cut);
    refuse(part, cut);
    free(part);
  }
  cJSON *object;
  assert_int_equal(dflash_json_parse(text, size, "here", &object, NULL), DFLASH_OK);
  cJSON_Delete(object);
}

static void test_members(void **state) {
  (void)state;
  const char text[] = "{\"A\":1,\"a\":\"x\",\"n\":null,\"o\":{\"b\":2}}";
  cJSON *object;
  assert_int_equal(dflash_json_parse(text, sizeof text - 1, "here", &object, NULL), DFLASH_OK);
  assert_string_equal(dflash_json_text(object, "a"), "x");
  assert_null(dflash_json_text(object, "A"));
  assert_null(dflash_json_get(object, "n"));
  assert_null(dflash_json_get(object, "O"));
  assert_null(dflash_json_get(NULL, "a"));
  assert_null(dflash_json_get(dflash_json_get(object, "a"), "b"));
  assert_non_null(dflash_json_get(dflash_json_get(object, "o"), "b"));
  cJSON_Delete(object);
}

static void test_integers(void **state) {
  (void)state;
  const struct {
    const char *text;
    bool valid;
    int64_t value;
  } cases[] = {
      {"{\"v\":0}", true, 0},
      {"{\"v\":-3}", true, -3},
      {"{\"v\":1e3}", true, 1000},
      {"{\"v\":9007199254740992}", true, INT64_C(9007199254740992)},
      {"{\"v\":9007199254740994}", false, 0},
      {"{\"v\":1.5}", false, 0},
      {"{\"v\":1e999}", false, 0},
      {"{\"v\":-1e999}", false, 0},
      {"{\"v\":\"1\"}", false, 0},
      {"{\"v\":true}", false, 0},
      {"{}", false, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cJSON *object;
    int64_t value = 0;
    assert_int_equal(dflash_json_parse(cases[i].text, strlen(cases[i].text), "here", &object, NULL), DFLASH_OK);
    assert_int_equal(dflash_json_integer(dflash_json_get(object, "v"), &value), cases[i].valid);
    assert_true(value == cases[i].value);
    cJSON_Delete(object);
  }
}

static void test_utf8(void **state) {
  (void)state;
  const char *valid[] = {"",
                         "a",
                         "\xc2\x80",
                         "\xdf\xbf",
                         "\xe0\xa0\x80",
                         "\xed\x9f\xbf",
                         "\xee\x80\x80",
                         "\xef\xbf\xbf",
                         "\xf0\x90\x80\x80",
                         "\xf4\x8f\xbf\xbf"};
  const char *invalid[] = {"\x80",
                           "\xbf",
                           "\xc0\x80",
                           "\xc1\xbf",
                           "\xc2",
                           "\xc2\x41",
                           "\xe0\x9f\xbf",
                           "\xe0\xa0",
                           "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf",
                           "\xf0\x90\x80",
                           "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80",
                           "\xff",
                           "a\xe2\x82"};
  for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++)
    assert_true(dflash_utf8_valid(valid[i], strlen(valid[i])));
  for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
    assert_false(dflash_utf8_valid(invalid[i], strlen(invalid[i])));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refusals), cmocka_unit_test(test_exact_size), cmocka_unit_test(test_members),
      cmocka_unit_test(test_integers), cmocka_unit_test(test_utf8),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
