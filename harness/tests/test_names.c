#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/names.h"

static DflashNames make(void) {
  DflashNames names = {0};
  static const char *const all[] = {"rewind-all", "rewind", "main", "rewind", "window+1"};
  for (int i = 0; i < 5; i++) dflash_names_add(&names, all[i]);
  return names;
}

static void test_a_name_stands_once(void **state) {
  (void)state;
  DflashNames names = make();
  DflashText text = {0};
  dflash_names_list(&names, &text);
  assert_string_equal(text.data, "rewind-all, rewind, main, window+1");
  dflash_text_free(&text);
  dflash_names_close(&names);
  assert_int_equal(names.count, 0);
}

static void expect_unmatched(const char *patterns, int wild, const char *word) {
  DflashNames names = make();
  int length = -1;
  const char *found = dflash_names_unmatched(&names, patterns, wild, &length);
  if (word == NULL) {
    assert_null(found);
  } else {
    assert_non_null(found);
    assert_int_equal(length, strlen(word));
    assert_memory_equal(found, word, strlen(word));
  }
  dflash_names_close(&names);
}

static void test_words_that_match_nothing(void **state) {
  (void)state;
  expect_unmatched(NULL, 1, NULL);
  expect_unmatched("", 1, NULL);
  expect_unmatched("main", 1, NULL);
  expect_unmatched("main,window+1", 1, NULL);
  expect_unmatched("mai", 0, "mai"); /* a part of a name is none */
  expect_unmatched("main,rewin,x", 0, "rewin");
  expect_unmatched("x*,main", 0, NULL);
  expect_unmatched("x*,main", 1, "x*");
  expect_unmatched("re*,x*,y", 0, "y");
  expect_unmatched("[r]ewind,main,", 1, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_name_stands_once),
      cmocka_unit_test(test_words_that_match_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
