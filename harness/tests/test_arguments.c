/* Options as a table: values, refusals, operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/arguments.h"

typedef struct Values {
  int flag;
  const char *text, *called;
  int64_t number, threads;
  double share, seconds;
} Values;

static DflashStatus call(void *context, const char *value, DflashError *error) {
  (void)error;
  *(const char **)context = value;
  return DFLASH_OK;
}

static Values values;
static DflashError error;
static int operands, helped;
static char *arguments[16];

/* The words, split at blanks, after a program's name. */
static DflashStatus parse(const char *line) {
  static char copy[256];
  int count = 1;
  snprintf(copy, sizeof copy, "%s", line);
  arguments[0] = (char *)"program";
  for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) arguments[count++] = word;
  arguments[count] = NULL;
  values = (Values){0};
  const DflashArgument table[] = {{"quiet,q", NULL, "f", DFLASH_ARGUMENT_FLAG, &values.flag, 0},
                                  {"output,o", "FILE", "t", DFLASH_ARGUMENT_TEXT, &values.text, 0},
                                  {"rows", "N", "n", DFLASH_ARGUMENT_NUMBER, &values.number, 0},
                                  {"threads,t", "N", "n", DFLASH_ARGUMENT_THREADS, &values.threads, 0},
                                  {"share", "S", "s", DFLASH_ARGUMENT_SHARE, &values.share, 0},
                                  {"budget", "T", "s", DFLASH_ARGUMENT_SECONDS, &values.seconds, 0},
                                  {"set", "X", "c", DFLASH_ARGUMENT_CALL, &values.called, call}};
  return dflash_arguments_parse(count, arguments, "usage", table, 7, &operands, &helped, &error);
}

static void test_values(void **state) {
  (void)state;
  assert_int_equal(parse("a -q --output=x b --rows 7 -t2 --share 1% --budget 500ms --set k=v c"), DFLASH_OK);
  assert_int_equal(values.flag, 1);
  assert_string_equal(values.text, "x");
  assert_int_equal(values.number, 7);
  assert_int_equal(values.threads, 2);
  assert_true(values.share == 0.01 && values.seconds == 0.5);
  assert_string_equal(values.called, "k=v");
  assert_int_equal(operands, 3);
  assert_string_equal(arguments[1], "a");
  assert_string_equal(arguments[3], "c");
  assert_int_equal(parse("-qo x -- -q"), DFLASH_OK);
  assert_int_equal(operands, 1);
  assert_string_equal(arguments[1], "-q");
}

static void expect_refusal(const char *line, const char *message) {
  assert_int_equal(parse(line), DFLASH_INVALID_ARGUMENT);
  assert_string_equal(error.message, message);
}

static void test_refusals(void **state) {
  (void)state;
  expect_refusal("--nosuch", "option '--nosuch' is unknown here; --help lists what there is");
  expect_refusal("-z", "option '-z' is unknown here; --help lists what there is");
  expect_refusal("a -qz", "option '-z' is unknown here; --help lists what there is");
  expect_refusal("a -zq", "option '-z' is unknown here; --help lists what there is");
  expect_refusal("--quiet=1", "option '--quiet=1': it takes no value");
  expect_refusal("a --output", "option '--output' needs a value");
  expect_refusal("a -o", "option '-o' needs a value");
  expect_refusal("--rows -1", "--rows: '-1' is not a whole number from 0");
  expect_refusal("--rows 1x", "--rows: '1x' is not a whole number from 0");
  expect_refusal("--rows 9223372036854775808", "--rows: '9223372036854775808' is not a whole number from 0");
  expect_refusal("--threads 1025", "--threads: '1025' is not a number of threads from 0 (all CPUs) to 1024");
  expect_refusal("--share 2", "--share: '2' is not a share such as 1% or 0.01");
  expect_refusal("--budget 0s", "--budget: '0s' is not a time such as 60s, 500ms or 2m");
}

/* Leading zeros are no octal sign. */
static void test_seeds(void **state) {
  (void)state;
  uint64_t seed = 5;
  assert_int_equal(dflash_argument_seed(NULL, &seed, &error), DFLASH_OK);
  assert_true(seed == 5);
  assert_int_equal(dflash_argument_seed("010", &seed, &error), DFLASH_OK);
  assert_true(seed == 10);
  assert_int_equal(dflash_argument_seed("08", &seed, &error), DFLASH_OK);
  assert_true(seed == 8);
  assert_int_equal(dflash_argument_seed("18446744073709551615", &seed, &error), DFLASH_OK);
  assert_true(seed == UINT64_MAX);
  static const char *const refused[] = {"", "0x10", "-1", "+1", " 1", "1 ", "1.0", "18446744073709551616"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    assert_int_equal(dflash_argument_seed(refused[i], &seed, &error), DFLASH_INVALID_ARGUMENT);
  assert_string_equal(error.message, "--seed: '18446744073709551616' is not a whole number below 2^64");
  assert_true(seed == UINT64_MAX);
}

static void test_numbers_are_decimal(void **state) {
  (void)state;
  assert_int_equal(parse("--rows 010 --threads 08"), DFLASH_OK);
  assert_int_equal(values.number, 10);
  assert_int_equal(values.threads, 8);
  expect_refusal("--rows 0x10", "--rows: '0x10' is not a whole number from 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_seeds),
      cmocka_unit_test(test_numbers_are_decimal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
