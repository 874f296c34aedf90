#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/base64.h"

/* The vectors of RFC 4648, section 10. */
static void test_vectors(void **state) {
  (void)state;
  const char *pairs[][2] = {{"", ""},
                            {"f", "Zg=="},
                            {"fo", "Zm8="},
                            {"foo", "Zm9v"},
                            {"foob", "Zm9vYg=="},
                            {"fooba", "Zm9vYmE="},
                            {"foobar", "Zm9vYmFy"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    char text[16], data[8] = "";
    size_t bytes = strlen(pairs[i][0]);
    dflash_base64_encode(pairs[i][0], bytes, text);
    assert_string_equal(text, pairs[i][1]);
    assert_int_equal(dflash_base64_length(bytes), strlen(text));
    assert_true(dflash_base64_decode(text, strlen(text), data, bytes));
    assert_memory_equal(data, pairs[i][0], bytes);
  }
}

static void test_every_byte(void **state) {
  (void)state;
  for (int value = 0; value < 256; value++) {
    unsigned char in[3] = {(unsigned char)value, (unsigned char)(255 - value), (unsigned char)(value * 31)}, out[3];
    char text[5];
    for (size_t bytes = 1; bytes <= 3; bytes++) {
      dflash_base64_encode(in, bytes, text);
      assert_true(dflash_base64_decode(text, 4, out, bytes));
      assert_memory_equal(in, out, bytes);
    }
  }
}

static void test_refusals(void **state) {
  (void)state;
  const struct {
    const char *text;
    size_t bytes;
  } cases[] = {{"Zg=", 1},  {"Zg", 1},     {"Zg==", 2}, {"Zh==", 1}, {"Zm9=", 2}, {"Z===", 1}, {"Zm9v", 2},
               {"Zm-v", 3}, {"Zm9v\n", 3}, {"Zm=v", 3}, {"=m9v", 3}, {" m9v", 3}, {"Zg=g", 1}, {"Zm9vZg==", 3}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char data[8];
    assert_false(dflash_base64_decode(cases[i].text, strlen(cases[i].text), data, cases[i].bytes));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors), cmocka_unit_test(test_every_byte),
                                     cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
