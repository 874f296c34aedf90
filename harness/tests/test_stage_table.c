#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/geometry.h"
#include "model/stage_table.h"

static const DflashGeometry *preset(const char *name) {
  for (size_t i = 0; i < dflash_preset_count(); i++)
    if (strcmp(dflash_preset(i)->name, name) == 0) return &dflash_preset(i)->geometry;
  fail();
  return NULL;
}

static const DflashRunSizes sizes_27b = {
    .rows = 8, .n_draft = 7, .head_width = 248320, .push_rows = 5, .context_len = 2048};

static void names_are_found(void **state) {
  (void)state;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    const DflashStageRow *row = dflash_stage_row(stage);
    assert_int_equal(dflash_stage_find(row->name), stage);
    assert_non_null(dflash_group_label(row->group));
  }
  assert_int_equal(dflash_stage_find("attn"), DFLASH_STAGE_NONE);
  assert_int_equal(dflash_stage_find(""), DFLASH_STAGE_NONE);
  assert_null(dflash_stage_row(-1));
  assert_null(dflash_stage_row(DFLASH_STAGE_COUNT));
  assert_null(dflash_stage_row(DFLASH_STAGE_TAPS));
  assert_null(dflash_group_label(DFLASH_GROUP_COUNT));
  assert_string_equal(dflash_group_label(DFLASH_GROUP_O_CONV), "o+conv");
}

static void inputs_stand_before_their_stage(void **state) {
  (void)state;
  for (int32_t stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    int ended = 0;
    for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
      int32_t input = dflash_stage_row(stage)->inputs[i];
      assert_true(!ended || input == DFLASH_STAGE_NONE);
      ended |= input == DFLASH_STAGE_NONE;
      assert_true(input < stage || input >= DFLASH_STAGE_TAPS);
    }
    assert_true(dflash_stage_row(stage)->inputs[0] != DFLASH_STAGE_NONE);
  }
}

static void shapes_follow_the_geometry(void **state) {
  (void)state;
  static const struct {
    int32_t stage;
    int rank;
    int64_t shape[3];
  } expected[] = {{DFLASH_STAGE_CONTEXT_FC, 2, {5, 5120, 1}},     {DFLASH_STAGE_CONTEXT_K_PROJ, 3, {5, 8, 128}},
                  {DFLASH_STAGE_CONTEXT_V_PROJ, 3, {5, 8, 128}},  {DFLASH_STAGE_CONTEXT_K, 3, {5, 8, 128}},
                  {DFLASH_STAGE_ATTN_KERNEL, 2, {8, 1280, 1}},    {DFLASH_STAGE_ATTN_Q_PROJ, 2, {8, 4096, 1}},
                  {DFLASH_STAGE_ATTN_K_PROJ, 2, {8, 1024, 1}},    {DFLASH_STAGE_ATTN_Q, 3, {8, 32, 128}},
                  {DFLASH_STAGE_ATTN_K, 3, {8, 8, 128}},          {DFLASH_STAGE_ATTN_MIX, 2, {8, 4096, 1}},
                  {DFLASH_STAGE_MLP_ACT, 2, {8, 17408, 1}},       {DFLASH_STAGE_HEAD_LOGITS, 2, {7, 248320, 1}},
                  {DFLASH_STAGE_SELECTOR_HIDDEN, 2, {7, 256, 1}}, {DFLASH_STAGE_SELECT, 2, {7, 16, 1}},
                  {DFLASH_STAGE_TAPS, 2, {5, 25600, 1}},          {DFLASH_STAGE_RESIDUAL, 2, {8, 5120, 1}},
                  {DFLASH_STAGE_LAST, 2, {8, 5120, 1}},           {DFLASH_STAGE_HELD_K, 3, {2048, 8, 128}},
                  {DFLASH_STAGE_HELD_V, 3, {2048, 8, 128}}};
  const DflashGeometry *g = preset("qwen3.8-27b");
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    int64_t shape[3];
    assert_int_equal(dflash_stage_shape(g, &sizes_27b, expected[i].stage, shape), expected[i].rank);
    for (int d = 0; d < 3; d++) assert_true(shape[d] == expected[i].shape[d]);
    assert_true(dflash_stage_rows(g, &sizes_27b, expected[i].stage) == shape[0]);
    assert_true(dflash_stage_width(g, &sizes_27b, expected[i].stage) == shape[1] * shape[2]);
  }
  assert_true(dflash_stage_rows(g, &sizes_27b, DFLASH_STAGE_NONE) == 0);
  assert_true(dflash_stage_width(g, &sizes_27b, 63) == 0);
}

static void sources_cross_layers(void **state) {
  (void)state;
  const DflashGeometry *g = preset("small");
  int64_t layer;
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_ATTN_NORM, 0, 0, &layer), DFLASH_STAGE_RESIDUAL);
  assert_int_equal(layer, 0);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_ATTN_NORM, 2, 0, &layer), DFLASH_STAGE_MLP_OUT);
  assert_int_equal(layer, 1);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_ATTN_OUT, 1, 0, &layer), DFLASH_STAGE_MLP_OUT);
  assert_int_equal(layer, 0);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_FINAL_NORM, 0, 0, &layer), DFLASH_STAGE_MLP_OUT);
  assert_int_equal(layer, 2);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_CONTEXT_V_PROJ, 2, 0, &layer), DFLASH_STAGE_CONTEXT_NORM);
  assert_int_equal(layer, 0);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_ATTN_MIX, 2, 3, &layer), DFLASH_STAGE_HELD_K);
  assert_int_equal(layer, 2);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_ATTN_MIX, 2, 2, &layer), DFLASH_STAGE_ATTN_V_PROJ);
  assert_int_equal(layer, 2);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_CONTEXT_FC, 0, 0, &layer), DFLASH_STAGE_TAPS);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_SELECT, 0, 1, &layer), DFLASH_STAGE_SELECTOR_HIDDEN);
  assert_int_equal(dflash_stage_source(g, DFLASH_STAGE_SELECT, 0, 2, &layer), DFLASH_STAGE_NONE);
}

/* Each value once, and never before a value that it is made from. */
static void the_walk_visits_every_value_in_order(void **state) {
  (void)state;
  const DflashGeometry *g = preset("small");
  int seen[DFLASH_STAGE_COUNT][3] = {{0}};
  int32_t stage;
  int64_t layer, count = 0, source_layer;
  for (; dflash_stage_walk(g, count, &stage, &layer); count++) {
    assert_true(layer >= 0 && layer < dflash_stage_layers(g, stage));
    assert_int_equal(seen[stage][layer]++, 0);
    for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
      int32_t source = dflash_stage_source(g, stage, layer, i, &source_layer);
      if (source >= 0 && source < DFLASH_STAGE_COUNT) assert_int_equal(seen[source][source_layer], 1);
    }
  }
  int64_t expected = 0;
  for (stage = 0; stage < DFLASH_STAGE_COUNT; stage++) expected += dflash_stage_layers(g, stage);
  assert_true(count == expected);
  assert_false(dflash_stage_walk(g, -1, &stage, &layer));
  assert_false(dflash_stage_walk(g, INT64_MAX, &stage, &layer));
}

static void the_walk_goes_layer_by_layer(void **state) {
  (void)state;
  static const char *const expected[] = {"context.fc",  "context.norm",     "context.k_proj/0", "context.v_proj/0",
                                         "context.k/0", "context.k_proj/1", "context.v_proj/1", "context.k/1",
                                         "attn.norm/0", "attn.kernel/0"};
  const DflashGeometry *g = preset("tiny");
  int32_t stage;
  int64_t layer;
  char text[64];
  for (int i = 0; i < 10; i++) {
    assert_true(dflash_stage_walk(g, i, &stage, &layer));
    assert_string_equal(dflash_stage_label(stage, layer, text), expected[i]);
  }
  assert_true(dflash_stage_walk(g, 8 + 2 * 19, &stage, &layer));
  assert_string_equal(dflash_stage_label(stage, layer, text), "final.norm");
}

static void labels_carry_the_layer(void **state) {
  (void)state;
  char text[64];
  assert_string_equal(dflash_stage_label(DFLASH_STAGE_ATTN_NORM, 3, text), "attn.norm/3");
  assert_string_equal(dflash_stage_label(DFLASH_STAGE_SELECT, 0, text), "select");
  assert_string_equal(dflash_stage_label(DFLASH_STAGE_HELD_V, 1, text), "context_state.v/1");
  assert_string_equal(dflash_stage_label(DFLASH_STAGE_TAPS, 0, text), "taps");
  dflash_stage_label(DFLASH_STAGE_MLP_CONV_IN, INT64_MIN, text);
  assert_true(strlen(text) < 64);
}

static int64_t bytes_of(int32_t stage, int64_t len, int64_t window) {
  DflashGeometry g = *preset("qwen3.8-27b");
  DflashRunSizes sizes = sizes_27b;
  sizes.context_len = len;
  g.window = window;
  return dflash_stage_activation_bytes(&g, &sizes, stage, 0);
}

static void attention_reads_what_a_window_shows(void **state) {
  (void)state;
  const int64_t own = 4 * 8 * (4096 + 1024 + 1024 + 4096), row = 4 * 2 * 1024;
  assert_true(bytes_of(DFLASH_STAGE_ATTN_MIX, 0, 2048) == own);
  assert_true(bytes_of(DFLASH_STAGE_ATTN_MIX, 100, 2048) == own + 100 * row);
  assert_true(bytes_of(DFLASH_STAGE_ATTN_MIX, 2047, 2048) == own + 2047 * row);
  assert_true(bytes_of(DFLASH_STAGE_ATTN_MIX, 9000, 2048) == own + 2047 * row);
  assert_true(bytes_of(DFLASH_STAGE_ATTN_MIX, 9000, 0) == own + 9000 * row);
  assert_true(bytes_of(DFLASH_STAGE_ATTN_MIX, 9000, 1) == own);
}

/* Keys counted one by one, straight from the rule of visibility. */
static double keys_one_by_one(const DflashRunSizes *sizes, int64_t window) {
  double keys = 0;
  int64_t anchor = sizes->context_len;
  for (int64_t r = 0; r < sizes->rows; r++) {
    for (int64_t p = 0; p < anchor; p++) keys += window == 0 || p >= anchor + r + 1 - window;
    keys += (double)sizes->rows;
  }
  return keys;
}

static void attention_counts_visible_keys(void **state) {
  (void)state;
  const int64_t windows[] = {0, 1, 2, 7, 8, 9, 20, 21, 100};
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
    for (int64_t len = 0; len < 40; len += 13) {
      DflashGeometry g = *preset("tiny");
      DflashRunSizes sizes = {.rows = 8, .n_draft = 7, .head_width = 100, .context_len = len};
      g.window = windows[i];
      double expected = 4 * keys_one_by_one(&sizes, windows[i]) * 64;
      assert_true(dflash_stage_operations(&g, &sizes, DFLASH_STAGE_ATTN_MIX, 0) == expected);
    }
}

static void matrices_count_their_products(void **state) {
  (void)state;
  const DflashGeometry *g = preset("qwen3.8-27b");
  assert_true(dflash_stage_weight_elements(g, &sizes_27b, DFLASH_STAGE_CONTEXT_FC) == 5120 * 25600);
  assert_true(dflash_stage_weight_elements(g, &sizes_27b, DFLASH_STAGE_ATTN_O_PROJ) == 5120 * 4096);
  assert_true(dflash_stage_weight_elements(g, &sizes_27b, DFLASH_STAGE_MLP_DOWN) == 5120 * 17408);
  assert_true(dflash_stage_weight_elements(g, &sizes_27b, DFLASH_STAGE_HEAD_LOGITS) == (int64_t)248320 * 5120);
  assert_true(dflash_stage_weight_elements(g, &sizes_27b, DFLASH_STAGE_ATTN_MIX) == 0);
  assert_true(dflash_stage_weight_elements(g, &sizes_27b, DFLASH_STAGE_ATTN_CONV_IN) == 2 * 5120);
  assert_true(dflash_stage_weight_elements(g, &sizes_27b, DFLASH_STAGE_ATTN_K) == 128);
  assert_true(dflash_stage_weight_elements(g, &sizes_27b, DFLASH_STAGE_SELECT) == 7 * 17 * 256);
  assert_true(dflash_stage_operations(g, &sizes_27b, DFLASH_STAGE_MLP_GATE, 0) == 2.0 * 8 * 17408 * 5120);
  assert_true(dflash_stage_operations(g, &sizes_27b, DFLASH_STAGE_HEAD_LOGITS, 0) == 2.0 * 7 * 248320 * 5120);
  assert_true(dflash_stage_activation_bytes(g, &sizes_27b, DFLASH_STAGE_HEAD_LOGITS, 0) == 4 * 7 * (5120 + 248320));
  assert_true(dflash_stage_activation_bytes(g, &sizes_27b, DFLASH_STAGE_MLP_ACT, 0) == 4 * 8 * 3 * 17408);
  assert_true(dflash_stage_activation_bytes(g, &sizes_27b, DFLASH_STAGE_SELECT, 0) ==
              4 * 7 * (248320 + 256 + 2 + 2 * 16));
}

/* The published totals of a block of 8 rows: 46 GFLOP with the head over the whole vocabulary. */
static void a_published_block_has_the_published_operations(void **state) {
  (void)state;
  const DflashGeometry *g = preset("qwen3.8-27b");
  double total = 0;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++)
    if (dflash_stage_row(stage)->group != DFLASH_GROUP_CONTEXT)
      total += dflash_stage_operations(g, &sizes_27b, stage, layer);
  assert_true(total > 45e9 && total < 47e9);
}

static void convolutions_count_existing_taps(void **state) {
  (void)state;
  DflashGeometry g = *preset("tiny");
  for (g.conv_kernel = 1; g.conv_kernel < 12; g.conv_kernel++) {
    DflashRunSizes sizes = {.rows = 8, .n_draft = 7, .head_width = 100};
    double taps = 0;
    for (int64_t r = 0; r < 8; r++)
      for (int64_t o = 0; o < g.conv_kernel && o <= r; o++) taps++;
    assert_true(dflash_stage_operations(&g, &sizes, DFLASH_STAGE_ATTN_CONV_IN, 0) == 3 * taps * 64);
    assert_true(dflash_stage_operations(&g, &sizes, DFLASH_STAGE_MLP_OUT, 0) == 3 * taps * 64 + 8 * 64);
  }
}

static void rotation_costs_only_where_it_happens(void **state) {
  (void)state;
  const DflashGeometry *g = preset("small");
  DflashRunSizes sizes = {.rows = 8, .n_draft = 7, .head_width = 100};
  assert_true(dflash_stage_operations(g, &sizes, DFLASH_STAGE_ATTN_Q, 0) == 7.0 * 8 * 512);
  assert_true(dflash_stage_operations(g, &sizes, DFLASH_STAGE_ATTN_Q, 1) == 4.0 * 8 * 512);
}

static void a_stage_without_rows_moves_nothing(void **state) {
  (void)state;
  const DflashGeometry *g = preset("tiny");
  DflashRunSizes sizes = {.rows = 8, .n_draft = 7, .head_width = 100};
  for (int32_t stage = DFLASH_STAGE_CONTEXT_FC; stage <= DFLASH_STAGE_CONTEXT_K; stage++) {
    assert_true(dflash_stage_activation_bytes(g, &sizes, stage, 0) == 0);
    assert_true(dflash_stage_weight_elements(g, &sizes, stage) == 0);
    assert_true(dflash_stage_operations(g, &sizes, stage, 0) == 0);
  }
}

static void huge_contexts_saturate(void **state) {
  (void)state;
  DflashGeometry g = *preset("qwen3.8-27b");
  g.window = 0;
  DflashRunSizes sizes = sizes_27b;
  sizes.context_len = sizes.push_rows = INT64_MAX;
  assert_true(dflash_stage_activation_bytes(&g, &sizes, DFLASH_STAGE_ATTN_MIX, 0) == INT64_MAX);
  assert_true(dflash_stage_activation_bytes(&g, &sizes, DFLASH_STAGE_CONTEXT_FC, 0) == INT64_MAX);
  assert_true(dflash_stage_operations(&g, &sizes, DFLASH_STAGE_ATTN_MIX, 0) > 1e20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_found),
      cmocka_unit_test(inputs_stand_before_their_stage),
      cmocka_unit_test(shapes_follow_the_geometry),
      cmocka_unit_test(sources_cross_layers),
      cmocka_unit_test(the_walk_visits_every_value_in_order),
      cmocka_unit_test(the_walk_goes_layer_by_layer),
      cmocka_unit_test(labels_carry_the_layer),
      cmocka_unit_test(attention_reads_what_a_window_shows),
      cmocka_unit_test(attention_counts_visible_keys),
      cmocka_unit_test(matrices_count_their_products),
      cmocka_unit_test(a_published_block_has_the_published_operations),
      cmocka_unit_test(convolutions_count_existing_taps),
      cmocka_unit_test(rotation_costs_only_where_it_happens),
      cmocka_unit_test(a_stage_without_rows_moves_nothing),
      cmocka_unit_test(huge_contexts_saturate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
