#include "golden_copy.h"

static void expect_stage(const DflashValue *value, int64_t rows, int64_t width) {
  assert_int_equal(value->rows, rows);
  assert_int_equal(value->width, width);
  assert_non_null(value->data);
  assert_null(value->alone);
  assert_null(value->chain);
}

static void every_stage_has_its_shape(void **state) {
  (void)state;
  for (int f = 0; f < 6; f++) {
    DflashGolden *golden = open_golden(all_fixtures[f]);
    const DflashGeometry *g = dflash_golden_geometry(golden);
    DflashCase c;
    int32_t stage;
    int64_t layer, seen = 0;
    load_case(golden, &c);
    for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++) {
      if (stage == DFLASH_STAGE_SELECT) continue;
      const DflashValue *value = dflash_case_value(&c, stage, layer);
      int64_t rows = dflash_stage_rows(g, &c.sizes, stage);
      if (rows == 0 && !value->data) continue; /* no push */
      expect_stage(value, rows, dflash_stage_width(g, &c.sizes, stage));
      seen++;
    }
    assert_true(seen >= 3 + 19 * g->layers);
    for (layer = 0; layer < g->layers; layer++) {
      expect_stage(&c.held_k[layer], c.sizes.context_len, g->kv_heads * g->head_dim);
      expect_stage(&c.held_v[layer], c.sizes.context_len, g->kv_heads * g->head_dim);
    }
    dflash_case_close(&c);
    dflash_golden_close(golden);
  }
}

static void geometry_comes_from_the_attributes(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  const DflashGeometry *g = dflash_golden_geometry(golden);
  assert_int_equal(g->layers, 3);
  assert_int_equal(g->windows.count, 3);
  assert_int_equal(g->windows.at[2], 9);
  assert_int_equal(g->no_rope.count, 1);
  assert_int_equal(g->no_rope.at[0], 1);
  assert_true(g->eps == 1e-6);
  const float *inv_freq = dflash_golden_weights(golden)->inv_freq;
  assert_true(inv_freq[0] == 1.0f);
  dflash_golden_close(golden);
}

static void texts_are_there_or_empty(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("far-bf16"));
  assert_non_null(strstr(dflash_golden_attribute(golden, "note"), "bf16 storage"));
  assert_string_equal(dflash_golden_attribute(golden, "recipe"), "");
  assert_string_equal(dflash_golden_attribute(golden, "nothing"), "");
  assert_int_equal(dflash_golden_case_count(golden), 1);
  assert_string_equal(dflash_golden_case_name(golden, 0), "main");
  assert_null(dflash_golden_case_name(golden, 1));
  assert_null(dflash_golden_case_name(golden, -1));
  dflash_golden_close(golden);
}

static void storages_are_read_as_stored(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("sidecar-rewind"));
  const DflashWeights *weights = dflash_golden_weights(golden);
  assert_int_equal(weights->fc.storage, DFLASH_STORAGE_Q8_2F);
  assert_int_equal(weights->fc.bytes, 264704);
  assert_int_equal(weights->layers[1].down_proj.storage, DFLASH_STORAGE_Q4TP);
  assert_int_equal(weights->successor.storage, DFLASH_STORAGE_F16);
  assert_int_equal(weights->head.storage, DFLASH_STORAGE_Q8_2F);
  assert_int_equal(weights->norm.storage, DFLASH_STORAGE_F32);
  dflash_golden_release_weights(golden);
  assert_true(((const signed char *)weights->fc.data)[0] >= -128);
  dflash_golden_close(golden);
}

/* In odd-groups some tensors start at offsets that are no multiple of 4. */
static void every_tensor_is_aligned(void **state) {
  (void)state;
  for (int f = 0; f < 6; f++) {
    DflashGolden *golden = open_golden(all_fixtures[f]);
    const DflashGeometry *g = dflash_golden_geometry(golden);
    const DflashWeights *weights = dflash_golden_weights(golden);
    DflashWeightSet set = {.weights = *weights, .layers = (DflashLayerWeights *)weights->layers};
    for (int64_t i = 0; i < dflash_weight_count(g); i++)
      assert_int_equal((uintptr_t)dflash_weight_at(g, &set, i)->data % 4, 0);
    assert_int_equal((uintptr_t)weights->head.data % 4, 0);
    dflash_golden_close(golden);
  }
}

static void router_stands_beside_its_rows(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("tiny-f32"));
  const DflashRouter *router = dflash_golden_router(golden);
  int64_t count;
  float *rows;
  double *margins;
  assert_non_null(router);
  assert_int_equal(router->block.rank, 3);
  assert_int_equal(router->chain.rank, 5);
  assert_int_equal(dflash_golden_router_rows(golden, &count, &rows, &margins, NULL), DFLASH_OK);
  assert_int_equal(count, 6);
  for (int64_t i = 0; i < count; i++) {
    double margin = dflash_router_margin(router, rows + i * router->hidden);
    assert_true(margin - margins[i] < 1e-9 && margins[i] - margin < 1e-9);
  }
  free(rows);
  free(margins);
  dflash_golden_close(golden);
}

static void no_router_means_no_rows(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("far-bf16"));
  int64_t count = -1;
  float *rows = (float *)&count;
  double *margins = (double *)&count;
  assert_null(dflash_golden_router(golden));
  assert_int_equal(dflash_golden_router_rows(golden, &count, &rows, &margins, NULL), DFLASH_OK);
  assert_int_equal(count, 0);
  assert_null(rows);
  assert_null(margins);
  dflash_golden_close(golden);
}

static void the_last_push_may_have_no_rows(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("operations"));
  DflashCase c;
  load_case(golden, &c);
  assert_int_equal(c.op_count, 10);
  assert_int_equal(c.ops[2].pos, 50);
  assert_int_equal(c.ops[2].first_row, 12);
  assert_int_equal(c.ops[2].n_rows, 30);
  assert_int_equal(c.sizes.push_rows, 0);
  assert_int_equal(c.sizes.context_len, 16);
  assert_int_equal(c.context_first, 20);
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

static void without_a_push_context_stages_are_absent(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("kernel4-empty"));
  DflashCase c;
  load_case(golden, &c);
  assert_int_equal(c.op_count, 0);
  assert_int_equal(c.tap_rows, 0);
  assert_null(dflash_case_value(&c, DFLASH_STAGE_CONTEXT_FC, 0)->data);
  assert_null(dflash_case_value(&c, DFLASH_STAGE_CONTEXT_K, 1)->data);
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

static void fixtures_carry_no_hashes(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("operations"));
  int inputs = 7, values = 7, scales = 7;
  assert_int_equal(dflash_golden_check_hashes(golden, &inputs, &values, NULL), DFLASH_OK);
  assert_int_equal(inputs, -1);
  assert_int_equal(values, -1);
  assert_int_equal(dflash_golden_check_scales_hash(golden, &scales, NULL), DFLASH_OK);
  assert_int_equal(scales, -1);
  dflash_golden_close(golden);
}

static void cases_are_asked_for_by_index(void **state) {
  (void)state;
  DflashGolden *golden = open_golden(FIXTURE("operations"));
  DflashCase c;
  assert_int_equal(dflash_golden_case(golden, 1, &c, NULL), DFLASH_INVALID_ARGUMENT);
  assert_int_equal(dflash_golden_case(golden, -1, &c, NULL), DFLASH_INVALID_ARGUMENT);
  dflash_golden_close(golden);
}

static void nothing_stays_open(void **state) {
  (void)state;
  for (int f = 0; f < 6; f++) assert_int_equal(read_everything(all_fixtures[f], NULL), DFLASH_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_stage_has_its_shape),
      cmocka_unit_test(geometry_comes_from_the_attributes),
      cmocka_unit_test(texts_are_there_or_empty),
      cmocka_unit_test(storages_are_read_as_stored),
      cmocka_unit_test(every_tensor_is_aligned),
      cmocka_unit_test(router_stands_beside_its_rows),
      cmocka_unit_test(no_router_means_no_rows),
      cmocka_unit_test(the_last_push_may_have_no_rows),
      cmocka_unit_test(without_a_push_context_stages_are_absent),
      cmocka_unit_test(fixtures_carry_no_hashes),
      cmocka_unit_test(cases_are_asked_for_by_index),
      cmocka_unit_test(nothing_stays_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
