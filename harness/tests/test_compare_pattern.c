#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compare/pattern.h"

enum { ROWS = 6, WIDTH = 64 };

static const DflashGeometry geometry = {
    .hidden = WIDTH, .heads = 8, .kv_heads = 8, .head_dim = 8, .conv_group = 16, .conv_kernel = 2, .block = 8};

typedef bool (*Bad)(int64_t row, int64_t col);

static void pattern(int32_t stage, Bad bad, char text[160]) {
  DflashBadMap map;
  assert_true(dflash_bad_map_open(&map, ROWS, WIDTH));
  for (int64_t r = 0; r < ROWS; r++)
    for (int64_t c = 0; c < WIDTH; c++)
      if (bad(r, c)) {
        map.by_row[r]++;
        map.by_col[c]++;
        map.total++;
      }
  DflashShape shape;
  dflash_pattern_name(&geometry, stage, &map, &shape, text, 160);
  dflash_bad_map_close(&map);
}

static bool all(int64_t r, int64_t c) { return r >= 0 && c >= 0; }
static bool one_row(int64_t r, int64_t c) { return r == 3 && c >= 0; }
static bool rows_after(int64_t r, int64_t c) { return r >= 2 && c >= 0; }
static bool second_rows(int64_t r, int64_t c) { return r % 2 == 1 && c >= 0; }
static bool tail(int64_t r, int64_t c) { return r >= 0 && c >= 61; }
static bool one_head(int64_t r, int64_t c) { return r >= 0 && c / 8 == 5; }
static bool third_heads(int64_t r, int64_t c) { return r >= 0 && c / 8 % 3 == 1; }
static bool one_element(int64_t r, int64_t c) { return r == 1 && c == 17; }
static bool two_heads(int64_t r, int64_t c) { return r >= 0 && (c / 8 == 2 || c / 8 == 5); }
static bool last_heads(int64_t r, int64_t c) { return r >= 0 && c / 8 >= 6; }
static bool upper_halves(int64_t r, int64_t c) { return r >= 0 && c % 8 >= 4; }
static bool one_channel(int64_t r, int64_t c) { return r >= 0 && c % 8 == 3; }
static bool second_columns(int64_t r, int64_t c) { return r >= 0 && c % 2 == 0; }
static bool first_rows(int64_t r, int64_t c) { return r < 2 && c >= 0; }
static bool three_rows(int64_t r, int64_t c) { return (r == 0 || r == 1 || r == 4) && c >= 0; }
static bool most(int64_t r, int64_t c) { return (r * 29 + c * 7) % 11 != 0; }
static bool scattered(int64_t r, int64_t c) { return (r * 29 + c * 7) % 11 == 0; }

static void shapes_have_names(void **state) {
  (void)state;
  const struct {
    int32_t stage;
    Bad bad;
    const char *text;
  } expected[] = {
      {DFLASH_STAGE_ATTN_NORM, all, "every element"},
      {DFLASH_STAGE_ATTN_NORM, one_row, "one row (3)"},
      {DFLASH_STAGE_ATTN_NORM, rows_after, "row 2 and all after it"},
      {DFLASH_STAGE_ATTN_NORM, second_rows, "every 2nd row from 1 to 5"},
      {DFLASH_STAGE_MLP_GATE, tail, "last 3 of 64 columns"},
      {DFLASH_STAGE_ATTN_Q, one_head, "one head (5)"},
      {DFLASH_STAGE_ATTN_Q, third_heads, "every 3rd head from 1 to 7"},
      {DFLASH_STAGE_ATTN_Q, one_element, "one row (1), one column (17)"},
      {DFLASH_STAGE_ATTN_Q, two_heads, "2 heads (2, 5)"},
      {DFLASH_STAGE_ATTN_Q, last_heads, "last 2 of 8 heads"},
      {DFLASH_STAGE_ATTN_K, upper_halves, "last 4 of 8 channels of every kv head"},
      {DFLASH_STAGE_ATTN_Q, one_channel, "one channel (3) of every head"},
      {DFLASH_STAGE_ATTN_Q, second_columns, "every 2nd column from 0 to 62"},
      {DFLASH_STAGE_ATTN_NORM, first_rows, "rows 0 to 1"},
      {DFLASH_STAGE_ATTN_NORM, three_rows, "3 rows (0, 1, 4)"},
      {DFLASH_STAGE_ATTN_NORM, most, "most elements (91.1%)"},
      {DFLASH_STAGE_ATTN_NORM, scattered, "scattered (8.9%)"},
  };
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    char text[160];
    pattern(expected[i].stage, expected[i].bad, text);
    assert_string_equal(text, expected[i].text);
  }
}

static void places_use_the_stage_s_terms(void **state) {
  (void)state;
  char text[128];
  dflash_place_name(&geometry, DFLASH_STAGE_ATTN_Q, 3, 43, text, sizeof text);
  assert_string_equal(text, "row 3, head 5, channel 3");
  dflash_place_name(&geometry, DFLASH_STAGE_ATTN_KERNEL, 0, 9, text, sizeof text); /* 4 groups: side 1, tap 0 */
  assert_string_equal(text, "row 0, side 1, tap 0, group 1");
  dflash_place_name(&geometry, DFLASH_STAGE_HEAD_LOGITS, 2, 777, text, sizeof text);
  assert_string_equal(text, "draft row 2, token 777");
  dflash_place_name(&geometry, DFLASH_STAGE_ATTN_OUT, 1, 33, text, sizeof text);
  assert_string_equal(text, "row 1, channel 33 (group 2)");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_have_names),
                                     cmocka_unit_test(places_use_the_stage_s_terms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
