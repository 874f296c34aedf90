/* Planted relations between got and the golden: each is named, with what it usually comes from. Noise is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "compare/compare.h"

enum { ROWS = 6, HEADS = 8, KV = 4, DIM = 8, WIDTH = HEADS * DIM };

/* hidden 64 in 4 groups of 16: a kernel row is 2 sides, 2 taps, 4 groups */
static const DflashGeometry geometry = {
    .hidden = WIDTH, .heads = HEADS, .kv_heads = KV, .head_dim = DIM, .conv_group = 16, .conv_kernel = 2, .block = 8};

static float golden[ROWS * WIDTH], got[ROWS * WIDTH], sigma[ROWS * WIDTH];

/* Of a bell's shape, spread about 1. */
static float draw(DflashRandom random, int64_t index) {
  double sum = 0;
  for (uint64_t i = 0; i < 4; i++) sum += dflash_random_u32(random, (uint64_t)index * 4 + i) * 0x1p-32 - 0.5;
  return (float)(1.7 * sum);
}

static void fill(void) {
  DflashRandom random = dflash_random_stream(7, "golden");
  for (int i = 0; i < ROWS * WIDTH; i++) {
    golden[i] = draw(random, i);
    sigma[i] = 1e-7F;
    got[i] = golden[i];
  }
}

static DflashComparison compare(int32_t stage, int64_t width) {
  DflashComparison out;
  const DflashCompareCall call = {.geometry = &geometry,
                                  .stage = stage,
                                  .rows = ROWS,
                                  .width = width,
                                  .position = 100,
                                  .got = got,
                                  .golden = golden,
                                  .sigma = sigma};
  dflash_compare_values(&call, &out);
  return out;
}

/* The relation's part of the pattern, and the start of its cause. */
static void expect(int32_t stage, int64_t width, const char *relation, const char *cause) {
  DflashComparison c = compare(stage, width);
  const char *colon = strstr(c.pattern, ": ");
  if (colon == NULL || strcmp(colon + 2, relation) != 0) fail_msg("pattern '%s', expected '%s'", c.pattern, relation);
  if (strncmp(c.cause, cause, strlen(cause)) != 0) fail_msg("cause '%s', expected '%s'", c.cause, cause);
}

static void expect_none(int32_t stage, int64_t width) {
  DflashComparison c = compare(stage, width);
  assert_true(c.bad > 0);
  if (strstr(c.pattern, ": ") != NULL) fail_msg("pattern '%s' of what has none", c.pattern);
}

typedef int64_t (*From)(int64_t row, int64_t col);

/* got takes the golden's value at from(row, col); -1: stays. */
static void plant(From from, int64_t width) {
  fill();
  for (int64_t r = 0; r < ROWS; r++)
    for (int64_t c = 0; c < width; c++) {
      int64_t at = from(r, c);
      if (at >= 0) got[r * width + c] = golden[at];
    }
}

static int64_t row_before(int64_t r, int64_t c) { return (r - 1) * WIDTH + (r > 0 ? c : 0); }
static int64_t row_after(int64_t r, int64_t c) { return r + 1 < ROWS ? (r + 1) * WIDTH + c : -1; }
static int64_t column_before(int64_t r, int64_t c) { return c > 0 ? r * WIDTH + c - 1 : -1; }
static int64_t head_halves(int64_t r, int64_t c) { return r * WIDTH + (c ^ (DIM / 2)); }
static int64_t row_halves(int64_t r, int64_t c) { return r * WIDTH + (c + WIDTH / 2) % WIDTH; }
static int64_t pairs(int64_t r, int64_t c) { return r * WIDTH + (c ^ 1); }
static int64_t as_pairs(int64_t r, int64_t c) { return r * WIDTH + c / DIM * DIM + c % 2 * (DIM / 2) + c % DIM / 2; }
static int64_t flat_transposed(int64_t r, int64_t c) { return (r * WIDTH + c) % ROWS * WIDTH + (r * WIDTH + c) / ROWS; }
static int64_t head_transposed(int64_t r, int64_t c) { return r * WIDTH + c % HEADS * DIM + c / HEADS; }
static int64_t one_row(int64_t r, int64_t c) { return r == 4 ? WIDTH + c : -1; }
static int64_t row_zero(int64_t r, int64_t c) { return r > 0 ? c : -1; }
static int64_t modulo_heads(int64_t r, int64_t c) { return r * WIDTH + c / DIM % KV * 2 * DIM + c % DIM; }
static int64_t kernel_sides(int64_t r, int64_t c) { return r * 16 + (c ^ 8); }
static int64_t kernel_taps(int64_t r, int64_t c) { return r * 16 + (c ^ 4); }
static int64_t kernel_groups(int64_t r, int64_t c) { return r * 16 + c / 8 * 8 + c % 2 * 4 + c % 8 / 2; }

static void places_are_recognised(void **state) {
  (void)state;
  static const struct {
    From from;
    int32_t stage;
    int64_t width;
    const char *relation, *cause;
  } planted[] = {
      {row_before, DFLASH_STAGE_ATTN_CONV_IN, WIDTH, "each row is golden's row before", "the taps of the convolution"},
      {row_after, DFLASH_STAGE_ATTN_NORM, WIDTH, "each row is golden's row after", "rows counted from"},
      {column_before, DFLASH_STAGE_MLP_DOWN, WIDTH, "each column is golden's column before", "a column index"},
      {head_halves, DFLASH_STAGE_ATTN_Q, WIDTH, "halves of each head exchanged", "rotary pairing"},
      {row_halves, DFLASH_STAGE_MLP_GATE, WIDTH, "halves of each row exchanged", "two joined matrices"},
      {pairs, DFLASH_STAGE_MLP_DOWN, WIDTH, "neighbouring columns exchanged", "order within a packed pair"},
      {as_pairs, DFLASH_STAGE_ATTN_Q, WIDTH, "halves of each head stand as pairs", "rotary pairing"},
      {flat_transposed, DFLASH_STAGE_ATTN_NORM, WIDTH, "rows and columns exchanged", "layout"},
      {head_transposed, DFLASH_STAGE_ATTN_Q, WIDTH, "[head][channel] stands as [channel][head]", "layout"},
      {one_row, DFLASH_STAGE_ATTN_NORM, WIDTH, "row 4 holds golden's row 1", "row index"},
      {row_zero, DFLASH_STAGE_ATTN_NORM, WIDTH, "each holds golden's row 0", "row index"},
      {kernel_sides, DFLASH_STAGE_ATTN_KERNEL, 16, "sides exchanged", "layout of the kernel"},
      {kernel_taps, DFLASH_STAGE_ATTN_KERNEL, 16, "taps in reverse", "layout of the kernel"},
      {kernel_groups, DFLASH_STAGE_MLP_KERNEL, 16, "[tap][group] stands as [group][tap]", "layout"},
  };
  for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
    plant(planted[i].from, planted[i].width);
    expect(planted[i].stage, planted[i].width, planted[i].relation, planted[i].cause);
  }
  plant(modulo_heads, WIDTH);
  expect(DFLASH_STAGE_ATTN_MIX, WIDTH, "each head holds another one of golden's (1 holds 2, ...)", "kv head index");
}

typedef float (*Number)(float x);

static void plant_numbers(Number number) {
  fill();
  for (int i = 0; i < ROWS * WIDTH; i++) got[i] = number(golden[i]);
}

static float twice(float x) { return 2 * x; }
static float flipped(float x) { return -x; }
static float int8(float x) { return x * (127.0F / 128); }
static float by_root(float x) { return x * sqrtf(DIM); }
static float odd_factor(float x) { return x * 1.37F; }
static float raised(float x) { return x + 0.125F; }
static float lowered(float x) { return x - 3; }
static float zero(float x) { return 0 * x; }
static float clipped(float x) { return fabsf(x) > 1 ? copysignf(1, x) : x; }
static float overflowed(float x) { return fabsf(x) > 1.5F ? x * x * x : x; }

static void numbers_are_recognised(void **state) {
  (void)state;
  static const struct {
    Number number;
    int32_t stage;
    const char *relation, *cause;
  } planted[] = {
      {twice, DFLASH_STAGE_ATTN_Q_PROJ, "got = 2 * golden", "a scale applied twice or missing"},
      {int8, DFLASH_STAGE_MLP_GATE, "got = 127/128 * golden", "a scale applied"},
      {by_root, DFLASH_STAGE_ATTN_MIX, "got = sqrt(head_dim) * golden", "softmax not normalised"},
      {odd_factor, DFLASH_STAGE_ATTN_NORM, "got = 1.37 * golden", "sum in place of mean"},
      {flipped, DFLASH_STAGE_ATTN_Q, "sign flipped", "sine with the wrong sign"},
      {raised, DFLASH_STAGE_MLP_DOWN, "got = golden + 0.125", "zero point"},
      {lowered, DFLASH_STAGE_MLP_OUT, "got = golden - 3", "something added"},
      {zero, DFLASH_STAGE_MLP_UP, "zeros", "never computed"},
      {clipped, DFLASH_STAGE_MLP_DOWN, "clipped at 1", "saturation"},
  };
  for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
    plant_numbers(planted[i].number);
    expect(planted[i].stage, WIDTH, planted[i].relation, planted[i].cause);
  }
  plant_numbers(overflowed);
  DflashComparison c = compare(DFLASH_STAGE_MLP_DOWN, WIDTH);
  assert_non_null(strstr(c.pattern, "exactly those where |golden| >= 1.5"));
  assert_non_null(strstr(c.cause, "overflow"));
}

/* Of a few elements in one row too; and without a scale, where only bits count. */
static void parts_are_recognised(void **state) {
  (void)state;
  fill();
  for (int c = 20; c < 28; c++) got[3 * WIDTH + c] = 2 * golden[3 * WIDTH + c];
  DflashComparison part = compare(DFLASH_STAGE_MLP_GATE, WIDTH);
  assert_string_equal(part.pattern, "one row (3), columns 20 to 27: got = 2 * golden");
  plant(pairs, WIDTH);
  memset(sigma, 0, sizeof sigma);
  expect(DFLASH_STAGE_MLP_DOWN, WIDTH, "neighbouring columns exchanged", "order within");
}

/* What has no rule must get none: other values, errors near the scale, one element, mixed rules. */
static void noise_is_not_recognised(void **state) {
  (void)state;
  static const int32_t stages[] = {DFLASH_STAGE_ATTN_Q, DFLASH_STAGE_MLP_DOWN, DFLASH_STAGE_CONTEXT_K};
  DflashRandom random = dflash_random_stream(11, "noise");
  for (int i = 0; i < 3; i++) {
    fill();
    for (int at = 0; at < ROWS * WIDTH; at++) got[at] = draw(random, at);
    expect_none(stages[i], WIDTH);
    fill();
    for (int at = 0; at < ROWS * WIDTH; at++) got[at] += draw(random, at) * 1e-5F;
    expect_none(stages[i], WIDTH);
    fill();
    for (int at = 0; at < ROWS * WIDTH; at += 37) got[at] *= 1 + 0.01F * (float)(at % 7);
    expect_none(stages[i], WIDTH);
    fill();
    got[100] *= 1.01F;
    expect_none(stages[i], WIDTH);
  }
  fill();
  for (int at = 0; at < ROWS * WIDTH; at++) got[at] = at % 3 == 0 ? 2 * golden[at] : at % 3 == 1 ? -golden[at] : 0.7F;
  expect_none(DFLASH_STAGE_ATTN_NORM, WIDTH);
  /* a scale as wide as the values lets any rule fit: none may be named */
  fill();
  for (int at = 0; at < ROWS * WIDTH; at++) {
    sigma[at] = 0.3F;
    got[at] += 4 * draw(random, at);
  }
  expect_none(DFLASH_STAGE_ATTN_Q, WIDTH);
}

static void rows_of_the_context_are_positions(void **state) {
  (void)state;
  fill();
  DflashRandom random = dflash_random_stream(12, "noise");
  for (int at = 4 * WIDTH; at < ROWS * WIDTH; at++) got[at] = draw(random, at);
  DflashComparison c = compare(DFLASH_STAGE_CONTEXT_FC, WIDTH);
  assert_string_equal(c.pattern, "position 104 and all after it");
  assert_non_null(strstr(c.cause, "growing buffer"));
}

/* Most of a value, by no rule: what its kind of stage gets wrong as a whole. Little of it: nothing is known. */
static void values_wrong_as_a_whole_have_a_cause(void **state) {
  (void)state;
  fill();
  DflashRandom random = dflash_random_stream(13, "noise");
  for (int at = 0; at < ROWS * WIDTH; at++) got[at] = draw(random, at);
  assert_non_null(strstr(compare(DFLASH_STAGE_MLP_NORM, WIDTH).cause, "eps"));
  assert_non_null(strstr(compare(DFLASH_STAGE_ATTN_MIX, WIDTH).cause, "keys"));
  fill();
  for (int at = 0; at < ROWS * WIDTH; at += 37) got[at] = draw(random, at);
  DflashComparison c = compare(DFLASH_STAGE_MLP_NORM, WIDTH);
  assert_string_equal(c.pattern, "scattered (2.9%)");
  assert_string_equal(c.cause, "");
}

/* A passing value and a class failure have no relation. */
static void only_mismatches_have_a_cause(void **state) {
  (void)state;
  fill();
  DflashComparison c = compare(DFLASH_STAGE_ATTN_NORM, WIDTH);
  assert_string_equal(c.pattern, "");
  assert_string_equal(c.cause, "");
  got[5] = NAN;
  c = compare(DFLASH_STAGE_ATTN_NORM, WIDTH);
  assert_string_equal(c.pattern, "one row (0), one column (5)");
  assert_string_equal(c.cause, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(places_are_recognised),
                                     cmocka_unit_test(numbers_are_recognised),
                                     cmocka_unit_test(parts_are_recognised),
                                     cmocka_unit_test(noise_is_not_recognised),
                                     cmocka_unit_test(rows_of_the_context_are_positions),
                                     cmocka_unit_test(values_wrong_as_a_whole_have_a_cause),
                                     cmocka_unit_test(only_mismatches_have_a_cause)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
