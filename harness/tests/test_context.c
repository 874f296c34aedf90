#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/case.h"

#define PUSH(pos, first_row, n_rows) \
  { DFLASH_OP_PUSH, pos, first_row, n_rows }
#define TRUNCATE(pos) \
  { DFLASH_OP_TRUNCATE, pos, 0, 0 }
#define RESET \
  { DFLASH_OP_RESET, 0, 0, 0 }

typedef struct Expected {
  int64_t first, len, last_push;
  int64_t rows[16];
} Expected;

static void expect(const DflashContextOp *ops, int64_t count, Expected expected) {
  int64_t first = -1, len = -1, last_push = -7, *rows = NULL;
  DflashError error = {0};
  if (dflash_context_replay(ops, count, &first, &len, &rows, &last_push, &error) != DFLASH_OK)
    fail_msg("%s", error.message);
  assert_true(first == expected.first && len == expected.len && last_push == expected.last_push);
  assert_true((rows == NULL) == (len == 0));
  for (int64_t i = 0; rows && i < len; i++) assert_true(rows[i] == expected.rows[i]);
  free(rows);
}

static void nothing_gives_an_empty_context(void **state) {
  (void)state;
  expect(NULL, 0, (Expected){0, 0, -1, {0}});
}

static void pushes_append_rewrite_and_start_over(void **state) {
  (void)state;
  const DflashContextOp ops[] = {PUSH(5, 0, 3), PUSH(8, 3, 2), PUSH(6, 5, 1), PUSH(9, 9, 1), PUSH(2, 4, 2)};
  expect(ops, 1, (Expected){5, 3, 0, {0, 1, 2}});
  expect(ops, 2, (Expected){5, 5, 1, {0, 1, 2, 3, 4}}); /* appended */
  expect(ops, 3, (Expected){5, 2, 2, {0, 5}});          /* all rows from 6 on are forgotten */
  expect(ops, 4, (Expected){9, 1, 3, {9}});             /* a hole at 7, 8: over at 9 */
  expect(ops, 5, (Expected){2, 2, 4, {4, 5}});          /* before first: over at 2 */
}

static void empty_pushes_move_and_forget(void **state) {
  (void)state;
  const DflashContextOp inside[] = {PUSH(5, 0, 4), PUSH(7, 4, 0)};
  const DflashContextOp at_first[] = {PUSH(5, 0, 4), PUSH(5, 4, 0)};
  const DflashContextOp beyond[] = {PUSH(5, 0, 4), PUSH(20, 4, 0)};
  const DflashContextOp then_rows[] = {PUSH(5, 0, 4), PUSH(20, 4, 0), PUSH(20, 1, 2)};
  expect(inside, 2, (Expected){5, 2, -1, {0, 1}});
  expect(at_first, 2, (Expected){5, 0, -1, {0}});
  expect(beyond, 2, (Expected){20, 0, -1, {0}});
  expect(then_rows, 3, (Expected){20, 2, 2, {1, 2}});
}

static void truncation_keeps_first(void **state) {
  (void)state;
  const DflashContextOp past[] = {PUSH(5, 0, 3), TRUNCATE(8)};
  const DflashContextOp inside[] = {PUSH(5, 0, 3), PUSH(8, 7, 2), TRUNCATE(6)};
  const DflashContextOp edge[] = {PUSH(5, 0, 3), PUSH(8, 7, 2), TRUNCATE(8)};
  const DflashContextOp all[] = {PUSH(5, 0, 3), TRUNCATE(5)};
  const DflashContextOp before[] = {PUSH(5, 0, 3), TRUNCATE(1), PUSH(5, 6, 1)};
  expect(past, 2, (Expected){5, 3, 0, {0, 1, 2}});
  expect(inside, 3, (Expected){5, 1, 1, {0}});
  expect(edge, 3, (Expected){5, 3, 1, {0, 1, 2}});
  expect(all, 2, (Expected){5, 0, 0, {0}});
  expect(before, 2, (Expected){5, 0, 0, {0}});
  expect(before, 3, (Expected){5, 1, 2, {6}});
}

static void reset_puts_first_at_zero(void **state) {
  (void)state;
  const DflashContextOp ops[] = {PUSH(5, 0, 3), RESET, PUSH(0, 2, 1)};
  expect(ops, 2, (Expected){0, 0, 0, {0}});
  expect(ops, 3, (Expected){0, 1, 2, {2}});
}

static void outputs_may_be_left_out(void **state) {
  (void)state;
  const DflashContextOp ops[] = {PUSH(5, 0, 3)};
  int64_t first, len;
  assert_int_equal(dflash_context_replay(ops, 1, &first, &len, NULL, NULL, NULL), DFLASH_OK);
  assert_true(first == 5 && len == 3);
}

/* One entry a position, in a plain array: the rule word by word. */
typedef struct Plain {
  int64_t first, len, rows[4096];
} Plain;

static void plain_apply(Plain *plain, const DflashContextOp *op) {
  int64_t end = plain->first + plain->len;
  if (op->op == DFLASH_OP_RESET) {
    plain->first = plain->len = 0;
  } else if (op->op == DFLASH_OP_TRUNCATE) {
    if (op->pos <= plain->first)
      plain->len = 0;
    else if (op->pos < end)
      plain->len = op->pos - plain->first;
  } else {
    if (op->pos >= plain->first && op->pos <= end) {
      plain->len = op->pos - plain->first;
    } else {
      plain->first = op->pos;
      plain->len = 0;
    }
    for (int64_t i = 0; i < op->n_rows; i++) plain->rows[plain->len++] = op->first_row + i;
  }
}

static void drawn_operations_agree_with_a_plain_array(void **state) {
  (void)state;
  enum { COUNT = 40 };
  for (uint64_t seed = 0; seed < 300; seed++) {
    DflashRandom random = dflash_random_stream(seed, "context");
    DflashContextOp ops[COUNT];
    Plain plain = {0};
    for (uint64_t i = 0; i < COUNT; i++) {
      uint32_t kind = dflash_random_below(random, 4 * i, 12);
      ops[i] =
          (DflashContextOp){kind < 8    ? DFLASH_OP_PUSH
                            : kind < 11 ? DFLASH_OP_TRUNCATE
                                        : DFLASH_OP_RESET,
                            dflash_random_below(random, 4 * i + 1, 60), dflash_random_below(random, 4 * i + 2, 1000),
                            dflash_random_below(random, 4 * i + 3, 20)};
      if (kind < 4) ops[i].pos = plain.first + plain.len; /* appends */
      plain_apply(&plain, &ops[i]);
    }
    int64_t first, len, *rows;
    assert_int_equal(dflash_context_replay(ops, COUNT, &first, &len, &rows, NULL, NULL), DFLASH_OK);
    assert_true(first == plain.first && len == plain.len && (rows == NULL) == (len == 0));
    for (int64_t i = 0; rows && i < len; i++) assert_true(rows[i] == plain.rows[i]);
    free(rows);
  }
}

static void hostile_operations_are_refused(void **state) {
  (void)state;
  static const struct {
    DflashContextOp op;
    const char *part;
  } cases[] = {{{3, 0, 0, 0}, "op is 3"},
               {{-1, 0, 0, 0}, "op is -1"},
               {PUSH(-1, 0, 1), "pos is -1"},
               {TRUNCATE(-1), "pos is -1"},
               {PUSH(INT64_MAX, 0, 1), "pos is 9223372036854775807"},
               {PUSH(0, 0, -1), "n_rows is -1"},
               {PUSH((int64_t)1 << 62, 0, 1), "n_rows is 1"},
               {PUSH(1, 0, INT64_MAX), "n_rows is 9223372036854775807"},
               {PUSH(0, -1, 1), "first_row is -1"},
               {PUSH(0, INT64_MAX, 1), "first_row is 9223372036854775807"},
               {PUSH(0, 0, (int64_t)1 << 61), "at most 2^28"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const DflashContextOp ops[] = {PUSH(0, 0, 1), cases[i].op};
    int64_t first, len, *rows;
    DflashError error = {0};
    assert_int_equal(dflash_context_replay(ops, 2, &first, &len, &rows, NULL, &error), DFLASH_INVALID_DATA);
    if (!strstr(error.message, cases[i].part) || !strstr(error.message, "operation 1")) fail_msg("%s", error.message);
    assert_null(rows);
  }
  int64_t first, len;
  assert_int_equal(dflash_context_replay(NULL, -1, &first, &len, NULL, NULL, NULL), DFLASH_INVALID_ARGUMENT);
}

static void positions_reach_2_to_the_62(void **state) {
  (void)state;
  const int64_t far = ((int64_t)1 << 62) - 2;
  const DflashContextOp ops[] = {PUSH(far, 0, 2), TRUNCATE((int64_t)1 << 62)};
  expect(ops, 2, (Expected){far, 2, 0, {0, 1}});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_gives_an_empty_context),
      cmocka_unit_test(pushes_append_rewrite_and_start_over),
      cmocka_unit_test(empty_pushes_move_and_forget),
      cmocka_unit_test(truncation_keeps_first),
      cmocka_unit_test(reset_puts_first_at_zero),
      cmocka_unit_test(outputs_may_be_left_out),
      cmocka_unit_test(drawn_operations_agree_with_a_plain_array),
      cmocka_unit_test(hostile_operations_are_refused),
      cmocka_unit_test(positions_reach_2_to_the_62),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
