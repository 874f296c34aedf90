#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

static void products_and_sums_are_checked(void **state) {
  (void)state;
  int64_t out = -7;
  assert_true(dflash_mul_i64(INT64_MAX / 2, 2, &out));
  assert_true(out == INT64_MAX - 1);
  assert_false(dflash_mul_i64(INT64_MAX / 2 + 1, 2, &out));
  assert_false(dflash_mul_i64(-1, 0, &out));
  assert_false(dflash_mul_i64(0, -1, &out));
  assert_true(dflash_mul_i64(0, INT64_MAX, &out));
  assert_true(out == 0);
  assert_true(dflash_add_i64(INT64_MAX, 0, &out));
  assert_false(dflash_add_i64(INT64_MAX, 1, &out));
  assert_false(dflash_add_i64(-1, 2, &out));
}

static void alloc_is_aligned_and_zeroed(void **state) {
  (void)state;
  for (size_t count = 0; count < 70; count += 23) {
    unsigned char *memory = dflash_alloc(count, 3);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    for (size_t i = 0; i < count * 3; i++) assert_int_equal(memory[i], 0);
    free(memory);
  }
}

static void alloc_refuses_overflow(void **state) {
  (void)state;
  assert_null(dflash_alloc(SIZE_MAX, 2));
  assert_null(dflash_alloc(SIZE_MAX, 1));
  assert_null(dflash_alloc((size_t)PTRDIFF_MAX, 1));
}

static void put(float *at, uint32_t bits) { memcpy(at, &bits, sizeof bits); }

static void guards_see_each_side(void **state) {
  (void)state;
  DflashGuarded g;
  assert_true(dflash_guarded_open(&g, 37));
  assert_int_equal((uintptr_t)g.data % 64, 0);
  assert_int_equal(dflash_guarded_damage(&g), 0);
  for (int distance = 1; distance <= 256; distance += 51) {
    g.data[36 + distance] = 0;
    assert_int_equal(dflash_guarded_damage(&g), distance);
    dflash_guarded_poison(&g);
    g.data[-distance] = 0;
    assert_int_equal(dflash_guarded_damage(&g), -distance);
    dflash_guarded_poison(&g);
  }
  dflash_guarded_close(&g);
  dflash_guarded_close(&g);
}

/* Poison written past the end, or the band's own values moved by one, are damage too. */
static void guards_see_poison_and_shifts(void **state) {
  (void)state;
  DflashGuarded g;
  assert_true(dflash_guarded_open(&g, 8));
  put(g.data + 8, DFLASH_POISON_BITS);
  assert_int_equal(dflash_guarded_damage(&g), 1);
  dflash_guarded_poison(&g);
  memmove(g.data + 9, g.data + 8, 16 * sizeof(float));
  assert_int_equal(dflash_guarded_damage(&g), 2);
  dflash_guarded_close(&g);
}

static void unwritten_counts_poison(void **state) {
  (void)state;
  DflashGuarded g;
  assert_true(dflash_guarded_open(&g, 100));
  assert_int_equal(dflash_guarded_unwritten(&g), 100);
  for (int i = 0; i < 97; i++) g.data[i] = 1;
  put(g.data + 3, 0x7fc00000u); /* an ordinary NaN was written */
  assert_int_equal(dflash_guarded_unwritten(&g), 3);
  assert_int_equal(dflash_guarded_damage(&g), 0);
  dflash_guarded_close(&g);
}

static void guarded_edges(void **state) {
  (void)state;
  DflashGuarded g;
  assert_false(dflash_guarded_open(&g, SIZE_MAX / 4));
  assert_null(g.data);
  dflash_guarded_close(&g);
  assert_true(dflash_guarded_open(&g, 0));
  assert_int_equal(dflash_guarded_unwritten(&g), 0);
  assert_int_equal(dflash_guarded_damage(&g), 0);
  dflash_guarded_close(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_and_sums_are_checked),
      cmocka_unit_test(alloc_is_aligned_and_zeroed),
      cmocka_unit_test(alloc_refuses_overflow),
      cmocka_unit_test(guards_see_each_side),
      cmocka_unit_test(guards_see_poison_and_shifts),
      cmocka_unit_test(unwritten_counts_poison),
      cmocka_unit_test(guarded_edges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
