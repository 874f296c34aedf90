/* What may be done with a dataset, from its description alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "load/stored.h"

#define FILE_SIZE 4096

static DflashStored contiguous_f32(void) {
  return (DflashStored){.number = DFLASH_NUMBER_FLOAT,
                        .size = 4,
                        .plain = true,
                        .type_name = "f32",
                        .rank = 2,
                        .shape = {8, 64},
                        .layout = DFLASH_LAYOUT_CONTIGUOUS,
                        .offset = 1024,
                        .allocated = 2048};
}

static const DflashWanted wanted = {DFLASH_ELEMENT_F32, 2, {8, 64}};

static DflashStatus place_of(const DflashStored *found, const DflashWanted *want, DflashPlace *place,
                             DflashError *error) {
  return dflash_stored_place(found, want, "/x", FILE_SIZE, place, error);
}

static void expect_how(const DflashStored *found, int how) {
  DflashPlace place;
  assert_int_equal(place_of(found, &wanted, &place, NULL), DFLASH_OK);
  assert_int_equal(place.how, how);
  assert_int_equal(place.count, 512);
  assert_int_equal(place.bytes, 2048);
}

static void expect_refused(const DflashStored *found, const char *says) {
  DflashPlace place;
  DflashError error = {0};
  assert_int_equal(place_of(found, &wanted, &place, &error), DFLASH_INVALID_DATA);
  if (!strstr(error.message, says)) fail_msg("\"%s\" does not say \"%s\"", error.message, says);
}

static void plain_contiguous_data_are_mapped(void **state) {
  (void)state;
  DflashStored found = contiguous_f32();
  expect_how(&found, DFLASH_PLACE_MAP);
  found.offset = 2048; /* ends exactly at the end of the file */
  expect_how(&found, DFLASH_PLACE_MAP);
}

static void everything_else_is_read(void **state) {
  (void)state;
  DflashStored found = contiguous_f32();
  found.offset = 1026;
  expect_how(&found, DFLASH_PLACE_READ);
  found = contiguous_f32();
  found.plain = false;
  expect_how(&found, DFLASH_PLACE_READ);
  found = contiguous_f32();
  found.size = 2;
  expect_how(&found, DFLASH_PLACE_READ);
  found = contiguous_f32();
  found.layout = DFLASH_LAYOUT_COMPACT;
  expect_how(&found, DFLASH_PLACE_READ);
  found.layout = DFLASH_LAYOUT_CHUNKED;
  found.whole = true;
  found.allocated = 40;
  expect_how(&found, DFLASH_PLACE_READ);
}

static void f64_needs_eight(void **state) {
  (void)state;
  const DflashWanted want = {DFLASH_ELEMENT_F64, 2, {4, 8}};
  DflashStored found = contiguous_f32();
  DflashPlace place;
  found.size = 8;
  found.shape[0] = 4;
  found.shape[1] = 8;
  assert_int_equal(place_of(&found, &want, &place, NULL), DFLASH_OK);
  assert_int_equal(place.how, DFLASH_PLACE_MAP);
  found.offset = 1028;
  assert_int_equal(place_of(&found, &want, &place, NULL), DFLASH_OK);
  assert_int_equal(place.how, DFLASH_PLACE_READ);
}

static void past_the_end_is_refused(void **state) {
  (void)state;
  DflashStored found = contiguous_f32();
  found.offset = 2052;
  expect_refused(&found, "past the end of the file at 4096");
  found.offset = UINT64_MAX - 3;
  expect_refused(&found, "past the end");
  found.offset = DFLASH_NO_OFFSET;
  expect_refused(&found, "holds no data, expected 2048 bytes");
}

static void claims_need_bytes(void **state) {
  (void)state;
  DflashStored found = contiguous_f32();
  found.layout = DFLASH_LAYOUT_COMPACT;
  found.allocated = 2047;
  expect_refused(&found, "2047 bytes in the file cannot hold 2048");
  found.layout = DFLASH_LAYOUT_CHUNKED;
  found.whole = true;
  found.allocated = 0;
  expect_refused(&found, "cannot hold");
  found.allocated = FILE_SIZE + 1;
  expect_refused(&found, "cannot hold");
  found.allocated = 2048;
  found.whole = false;
  expect_refused(&found, "chunks are missing");
}

static void data_elsewhere_are_refused(void **state) {
  (void)state;
  DflashStored found = contiguous_f32();
  found.external = true;
  expect_refused(&found, "another file");
  found = contiguous_f32();
  found.layout = DFLASH_LAYOUT_OTHER;
  expect_refused(&found, "virtual");
}

static void types_do_not_narrow(void **state) {
  (void)state;
  DflashStored found = contiguous_f32();
  found.size = 8;
  strcpy(found.type_name, "f64");
  expect_refused(&found, "/x: type f64, expected f32");
  found = contiguous_f32();
  found.number = DFLASH_NUMBER_INTEGER;
  expect_refused(&found, "expected f32");
  found.number = DFLASH_NUMBER_OTHER;
  expect_refused(&found, "expected f32");
}

static void bits_are_unsigned(void **state) {
  (void)state;
  const DflashWanted want = {DFLASH_ELEMENT_U16, 2, {8, 64}};
  DflashStored found = contiguous_f32();
  DflashPlace place;
  found.number = DFLASH_NUMBER_INTEGER;
  found.size = 2;
  assert_int_equal(place_of(&found, &want, &place, NULL), DFLASH_OK);
  assert_int_equal(place.how, DFLASH_PLACE_MAP);
  found.is_signed = true;
  assert_int_equal(place_of(&found, &want, &place, NULL), DFLASH_INVALID_DATA);
  found.is_signed = false;
  found.size = 4;
  assert_int_equal(place_of(&found, &want, &place, NULL), DFLASH_INVALID_DATA);
}

static void shapes_must_agree(void **state) {
  (void)state;
  DflashStored found = contiguous_f32();
  found.shape[1] = 63;
  expect_refused(&found, "/x: shape [8, 63], expected [8, 64]");
  found = contiguous_f32();
  found.rank = 1;
  expect_refused(&found, "/x: shape [8], expected [8, 64]");
  found.rank = -1;
  expect_refused(&found, "/x: shape no dataspace, expected [8, 64]");
  found.rank = 0;
  expect_refused(&found, "/x: shape [], expected [8, 64]");
}

static void open_dimensions_are_found(void **state) {
  (void)state;
  const DflashWanted want = {DFLASH_ELEMENT_F32, 2, {DFLASH_ANY, 64}};
  DflashStored found = contiguous_f32();
  DflashPlace place;
  assert_int_equal(place_of(&found, &want, &place, NULL), DFLASH_OK);
  assert_int_equal(place.shape[0], 8);
  found.shape[0] = 0;
  found.offset = DFLASH_NO_OFFSET;
  assert_int_equal(place_of(&found, &want, &place, NULL), DFLASH_OK);
  assert_int_equal(place.how, DFLASH_PLACE_EMPTY);
}

static void products_do_not_wrap(void **state) {
  (void)state;
  const DflashWanted want = {DFLASH_ELEMENT_F32, 2, {DFLASH_ANY, 64}};
  DflashStored found = contiguous_f32();
  DflashPlace place;
  DflashError error = {0};
  found.shape[0] = (uint64_t)1 << 58;
  assert_int_equal(place_of(&found, &want, &place, &error), DFLASH_INVALID_DATA);
  assert_non_null(strstr(error.message, "overflow"));
  found.shape[0] = UINT64_MAX;
  assert_int_equal(place_of(&found, &want, &place, &error), DFLASH_INVALID_DATA);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_contiguous_data_are_mapped),
      cmocka_unit_test(everything_else_is_read),
      cmocka_unit_test(f64_needs_eight),
      cmocka_unit_test(past_the_end_is_refused),
      cmocka_unit_test(claims_need_bytes),
      cmocka_unit_test(data_elsewhere_are_refused),
      cmocka_unit_test(types_do_not_narrow),
      cmocka_unit_test(bits_are_unsigned),
      cmocka_unit_test(shapes_must_agree),
      cmocka_unit_test(open_dimensions_are_found),
      cmocka_unit_test(products_do_not_wrap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
