#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/exact.h"
#include "golden/generate.h"
#include "model/storage.h"

typedef struct Made {
  DflashMaterial *material;
  DflashCase c;
} Made;

static Made make(const char *kind, const char *storage, const char *field, const char *value) {
  Made made;
  DflashRecipe recipe;
  DflashError error = {0};
  assert_int_equal(dflash_recipe_open("tiny", &recipe, &error), DFLASH_OK);
  snprintf(recipe.storage, sizeof recipe.storage, "%s", storage);
  if (field) assert_int_equal(dflash_geometry_set(&recipe.geometry, field, value, &error), DFLASH_OK);
  recipe.cases = kind;
  if (dflash_material_open(&recipe, NULL, &made.material, &error) != DFLASH_OK) fail_msg("%s", error.message);
  if (dflash_material_case(made.material, kind, NULL, &made.c, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return made;
}

static void release(Made *made) {
  dflash_case_close(&made->c);
  dflash_material_close(made->material);
}

static void four_squares_are_found(void **state) {
  (void)state;
  for (uint64_t n = 0; n < 3000; n++) {
    uint64_t s[4];
    dflash_exact_four_squares(n, s);
    assert_true(s[0] * s[0] + s[1] * s[1] + s[2] * s[2] + s[3] * s[3] == n);
  }
  uint64_t s[4], n = 123456789;
  dflash_exact_four_squares(n, s);
  assert_true(s[0] * s[0] + s[1] * s[1] + s[2] * s[2] + s[3] * s[3] == n);
}

static int is_linear(int32_t stage) {
  return dflash_stage_is_matrix(stage) || stage == DFLASH_STAGE_ATTN_CONV_IN || stage == DFLASH_STAGE_MLP_CONV_IN;
}

/* Every linear stage of an exact case has scale 0 everywhere, and no other stage has. */
static void expect_exact(const Made *made, int convolution) {
  const DflashGeometry *g = dflash_material_geometry(made->material);
  int32_t stage;
  int64_t layer;
  assert_true(made->c.exact);
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++) {
    const DflashValue *value = dflash_case_value(&made->c, stage, layer);
    if (!value->data || !is_linear(stage)) continue;
    if (!convolution && !dflash_stage_is_matrix(stage)) continue;
    for (int64_t k = 0; k < value->rows * value->width; k++)
      if (value->alone[k] != 0.0f) fail_msg("stage %d layer %d element %d", (int)stage, (int)layer, (int)k);
  }
  assert_true(dflash_case_value(&made->c, DFLASH_STAGE_ATTN_MIX, 0)->alone[0] > 0.0f);
}

static void integer_goldens_do_not_round(void **state) {
  (void)state;
  static const char *const storages[] = {"sidecar", "f32", "f16", "bf16", "q8_2f"};
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
    Made made = make("exact-integer", storages[i], NULL, NULL);
    expect_exact(&made, 1);
    release(&made);
  }
}

static void integer_goldens_exist_for_other_shapes(void **state) {
  (void)state;
  static const char *const changes[][2] = {{"conv_kernel", "1"}, {"conv_kernel", "4"}, {"conv_group", "1"},
                                           {"conv_group", "64"}, {"kv_heads", "1"},    {"taps", "3"},
                                           {"layers", "4"},      {"hidden", "416"}};
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    Made made = make("exact-integer", "sidecar", changes[i][0], changes[i][1]);
    expect_exact(&made, 1);
    release(&made);
  }
}

/* The residual stream passes unchanged, so that every layer's norm gives short values. */
static void the_residual_of_integer_goldens_stays(void **state) {
  (void)state;
  Made made = make("exact-integer", "f32", NULL, NULL);
  const DflashGeometry *g = dflash_material_geometry(made.material);
  size_t bytes = (size_t)(made.c.sizes.rows * g->hidden) * sizeof(float);
  for (int64_t layer = 0; layer < g->layers; layer++) {
    assert_memory_equal(dflash_case_value(&made.c, DFLASH_STAGE_ATTN_OUT, layer)->data, made.c.h, bytes);
    assert_memory_equal(dflash_case_value(&made.c, DFLASH_STAGE_MLP_OUT, layer)->data, made.c.h, bytes);
    const DflashValue *norm = dflash_case_value(&made.c, DFLASH_STAGE_MLP_NORM, layer);
    for (int64_t i = 0; i < norm->rows * norm->width; i++) assert_true(norm->data[i] * 4 == rintf(norm->data[i] * 4));
  }
  release(&made);
}

static void full_mantissas_pass_every_matrix(void **state) {
  (void)state;
  static const char *const storages[] = {"sidecar", "f32", "bf16"};
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
    Made made = make("exact-24bit", storages[i], NULL, NULL);
    expect_exact(&made, 0);
    uint32_t bits;
    for (int64_t k = 0; k < made.c.sizes.rows * 64; k++) {
      memcpy(&bits, &made.c.h[k], sizeof bits);
      assert_true(bits & 1);
    }
    release(&made);
  }
}

/* One nonzero, a power of two, a row; every column is met. */
static void the_column_walks_over_the_whole_width(void **state) {
  (void)state;
  Made made = make("exact-24bit", "sidecar", NULL, NULL);
  const DflashTensor *gate = &dflash_material_weights(made.material)->layers[1].gate_proj;
  int seen[64] = {0};
  for (int64_t row = 0; row < dflash_tensor_rows(gate); row++) {
    int count = 0;
    for (int64_t col = 0; col < 64; col++) {
      double value = fabs(dflash_tensor_at(gate, row, col));
      int exponent;
      if (value == 0.0) continue;
      assert_true(frexp(value, &exponent) == 0.5);
      count++, seen[col]++;
    }
    assert_int_equal(count, 1);
  }
  for (int col = 0; col < 64; col++) assert_true(seen[col] >= 2);
  release(&made);
}

static void unfit_geometries_are_refused(void **state) {
  (void)state;
  DflashGeometry g = {.hidden = 8, .eps = 1e-6};
  DflashError error = {0};
  assert_int_equal(dflash_exact_check(DFLASH_EXACT_INTEGER, &g, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "hidden is 8"));
  assert_int_equal(dflash_exact_check(DFLASH_EXACT_24BIT, &g, &error), DFLASH_OK);
  g = (DflashGeometry){.hidden = 64, .eps = 1e-2};
  assert_int_equal(dflash_exact_check(DFLASH_EXACT_INTEGER, &g, &error), DFLASH_OK);
  g.eps = 1.001e-2;
  assert_int_equal(dflash_exact_check(DFLASH_EXACT_INTEGER, &g, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "eps"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(four_squares_are_found),
      cmocka_unit_test(integer_goldens_do_not_round),
      cmocka_unit_test(integer_goldens_exist_for_other_shapes),
      cmocka_unit_test(the_residual_of_integer_goldens_stays),
      cmocka_unit_test(full_mantissas_pass_every_matrix),
      cmocka_unit_test(the_column_walks_over_the_whole_width),
      cmocka_unit_test(unfit_geometries_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
