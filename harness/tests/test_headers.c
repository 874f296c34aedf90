/* The public headers: beside this file, a C and a C++ unit a header that includes nothing else. Here: what C and C++
 * must agree on, and the numbers that are written in files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test_headers.h"

static const size_t layout[] = {HEADER_LAYOUT};

static void test_layout_is_the_same_in_both_languages(void **state) {
  (void)state;
  size_t count;
  const size_t *other = cxx_layout(&count);
  assert_int_equal(count, sizeof layout / sizeof *layout);
  for (size_t i = 0; i < count; i++) assert_int_equal(layout[i], other[i]);
}

static void test_structs_begin_with_their_size(void **state) {
  (void)state;
  assert_int_equal(offsetof(DflashBackend, struct_size), 0);
  assert_int_equal(offsetof(DflashBackend, abi), 4);
  assert_int_equal(offsetof(DflashDevice, struct_size), 0);
  assert_int_equal(offsetof(DflashModelDesc, struct_size), 0);
  assert_int_equal(offsetof(DflashModelInfo, struct_size), 0);
  assert_int_equal(offsetof(DflashStageInfo, struct_size), 0);
  assert_int_equal(offsetof(DflashSequenceDesc, struct_size), 0);
  assert_int_equal(offsetof(DflashTokens, struct_size), 0);
  assert_int_equal(offsetof(DflashBlockCall, struct_size), 0);
  assert_int_equal(offsetof(DflashStageCall, struct_size), 0);
  assert_int_equal(offsetof(DflashBlockTime, struct_size), 0);
  assert_int_equal(offsetof(DflashDeviceState, struct_size), 0);
}

static void test_numbers_in_files_stay(void **state) {
  (void)state;
  assert_int_equal(DFLASH_STORAGE_F32, 0);
  assert_int_equal(DFLASH_STORAGE_F16, 1);
  assert_int_equal(DFLASH_STORAGE_BF16, 2);
  assert_int_equal(DFLASH_STORAGE_Q8_2F, 9);
  assert_int_equal(DFLASH_STORAGE_Q4TP, 15);
  assert_int_equal(DFLASH_STAGE_COUNT, 28);
  assert_int_equal(DFLASH_GROUP_COUNT, 12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout_is_the_same_in_both_languages),
                                     cmocka_unit_test(test_structs_begin_with_their_size),
                                     cmocka_unit_test(test_numbers_in_files_stay)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
