#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "golden/cases.h"
#include "golden/generate_material.h"
#include "golden/recipe.h"
#include "golden/shapes.h"
#include "model/storage.h"

typedef struct Drawn {
  DflashRecipe recipe;
  cJSON *owner;
  DflashMaterial *material;
  DflashCase c;
} Drawn;

/* The case "main" of the recipe stress-<name>. */
static Drawn draw(const char *name) {
  Drawn d = {0};
  DflashError error = {0};
  char shape[64];
  snprintf(shape, sizeof shape, "stress-%s", name);
  assert_non_null(dflash_shape_recipe(shape));
  DflashStatus status = dflash_recipe_from_json(dflash_shape_recipe(shape), &d.recipe, &d.owner, &error);
  if (status == DFLASH_OK) status = dflash_material_open(&d.recipe, NULL, &d.material, &error);
  if (status == DFLASH_OK) status = dflash_material_case(d.material, "main", NULL, &d.c, &error);
  if (status != DFLASH_OK) fail_msg("%s: %s", name, error.message);
  return d;
}

static void release(Drawn *d) {
  dflash_case_close(&d->c);
  dflash_material_close(d->material);
  cJSON_Delete(d->owner);
}

/* Smallest and largest value, and how many are subnormal. */
typedef struct Range {
  double least, most, root_mean_square;
  int64_t count, subnormal;
} Range;

static Range range_of(const Drawn *d, int32_t stage, int64_t layer) {
  const DflashValue *value = dflash_case_value(&d->c, stage, layer);
  Range range = {.least = INFINITY, .most = -INFINITY, .count = value->rows * value->width};
  for (int64_t i = 0; i < range.count; i++) {
    range.least = fmin(range.least, (double)value->data[i]);
    range.most = fmax(range.most, (double)value->data[i]);
    range.root_mean_square += (double)value->data[i] * (double)value->data[i] / (double)range.count;
    range.subnormal += value->data[i] != 0.0f && fabs((double)value->data[i]) < 0x1p-126;
  }
  range.root_mean_square = sqrt(range.root_mean_square);
  return range;
}

/* Largest and smallest q . k / sqrt(head_dim) among the rows of the block. */
static Range scores_of(const Drawn *d, int64_t layer) {
  const DflashGeometry *g = dflash_material_geometry(d->material);
  const DflashValue *q = dflash_case_value(&d->c, DFLASH_STAGE_ATTN_Q, layer);
  const DflashValue *k = dflash_case_value(&d->c, DFLASH_STAGE_ATTN_K, layer);
  Range range = {.least = INFINITY, .most = -INFINITY};
  for (int64_t row = 0; row < q->rows * k->rows; row++)
    for (int64_t head = 0; head < g->heads; head++) {
      const float *a = q->data + row / k->rows * q->width + head * g->head_dim;
      const float *b = k->data + row % k->rows * k->width + head / dflash_geometry_rep(g) * g->head_dim;
      double sum = 0.0;
      for (int64_t i = 0; i < g->head_dim; i++) sum += (double)a[i] * (double)b[i];
      range.least = fmin(range.least, sum / sqrt((double)g->head_dim));
      range.most = fmax(range.most, sum / sqrt((double)g->head_dim));
    }
  return range;
}

static void sharp_scores_overflow_exp(void **state) {
  (void)state;
  Drawn d = draw("sharp");
  for (int64_t layer = 0; layer < d.c.layers; layer++) {
    Range scores = scores_of(&d, layer);
    assert_true(scores.most > 150.0 && scores.least < -150.0);
  }
  release(&d);
}

static void gates_overflow_exp(void **state) {
  (void)state;
  Drawn d = draw("gates");
  for (int64_t layer = 0; layer < d.c.layers; layer++) {
    Range gate = range_of(&d, DFLASH_STAGE_MLP_GATE, layer);
    assert_true(gate.most > 100.0 && gate.least < -100.0);
  }
  release(&d);
}

static void loud_streams_grow_past_f16(void **state) {
  (void)state;
  Drawn d = draw("loud");
  Range fc = range_of(&d, DFLASH_STAGE_CONTEXT_FC, 0);
  assert_true(fc.root_mean_square > 4e3 && fc.most > 1e4 && fc.most < 1e5);
  double before = 0.0;
  for (int64_t layer = 0; layer < d.c.layers; layer++) {
    Range out = range_of(&d, DFLASH_STAGE_MLP_OUT, layer);
    assert_true(fmax(out.most, -out.least) > 65504.0);
    assert_true(out.root_mean_square > before);
    before = out.root_mean_square;
  }
  release(&d);
}

static void quiet_rows_vanish_when_squared(void **state) {
  (void)state;
  Drawn d = draw("quiet");
  const DflashGeometry *g = dflash_material_geometry(d.material);
  for (int64_t i = 0; i < d.c.sizes.rows * g->hidden; i++) {
    assert_true(d.c.h[i] * d.c.h[i] == 0.0f);
    assert_true(fabs((double)d.c.h[i]) >= 0x1p-126);
  }
  assert_true(range_of(&d, DFLASH_STAGE_MLP_ACT, 0).subnormal > 100);
  DflashTensor head = dflash_material_weights(d.material)->head;
  const uint16_t *scales = (const void *)((const char *)head.data + dflash_tensor_rows(&head) * g->hidden);
  assert_true(scales[3] > 0 && scales[3] < 0x400 && scales[2] >= 0x400); /* below 0x400 an f16 is subnormal */
  release(&d);
}

static void negative_logits_stay_below_zero(void **state) {
  (void)state;
  Drawn d = draw("negative");
  assert_true(range_of(&d, DFLASH_STAGE_HEAD_LOGITS, 0).most < 0.0);
  release(&d);
}

static void clustered_logits_share_f16_values(void **state) {
  (void)state;
  Drawn d = draw("clustered");
  const DflashValue *logits = dflash_case_value(&d.c, DFLASH_STAGE_HEAD_LOGITS, 0);
  for (int64_t row = 0; row < logits->rows; row++) {
    int64_t distinct = 0;
    unsigned char seen[65536] = {0};
    for (int64_t i = 0; i < logits->width; i++) {
      uint16_t half = dflash_f16_round(logits->data[row * logits->width + i]);
      distinct += !seen[half];
      seen[half] = 1;
    }
    assert_true(distinct > 1 && distinct * 20 < logits->width);
  }
  release(&d);
}

static int64_t zero_groups(const float *data, int64_t groups) {
  int64_t zeros = 0;
  for (int64_t group = 0; group < groups; group++) {
    int zero = 1;
    for (int64_t i = 0; i < 32; i++) zero &= data[group * 32 + i] == 0.0f;
    zeros += zero;
  }
  return zeros;
}

static void zeros_fill_groups_and_masks(void **state) {
  (void)state;
  Drawn d = draw("zeros");
  const DflashGeometry *g = dflash_material_geometry(d.material);
  assert_int_equal(zero_groups(d.c.h + g->hidden, (d.c.sizes.rows - 1) * g->hidden / 32),
                   (d.c.sizes.rows - 1) * g->hidden / 32);
  assert_int_equal(zero_groups(d.c.taps, 1), 1);
  assert_int_equal(zero_groups(d.c.h, 1), 0);
  const DflashTensor *q = &dflash_material_weights(d.material)->layers[0].q_proj;
  assert_int_equal(q->storage, DFLASH_STORAGE_Q4TP);
  int64_t groups = dflash_tensor_rows(q) * g->hidden / 32, eights = 0;
  for (int64_t group = 0; group < groups; group++) {
    const unsigned char *nibbles = (const unsigned char *)q->data + group * 16;
    int all = 1;
    for (int i = 0; i < 16; i++) all &= nibbles[i] == 0x88;
    eights += all;
  }
  assert_true(eights * 10 > groups && eights * 6 < groups);
  release(&d);
}

static void mean_activations_have_one(void **state) {
  (void)state;
  Drawn d = draw("mean");
  const DflashGeometry *g = dflash_material_geometry(d.material);
  double sum = 0.0, weights = 0.0;
  for (int64_t i = 0; i < d.c.sizes.rows * g->hidden; i++) sum += (double)d.c.h[i];
  assert_true(sum / (double)(d.c.sizes.rows * g->hidden) > 0.5);
  const DflashTensor *q = &dflash_material_weights(d.material)->layers[1].q_proj;
  for (int64_t i = 0; i < 1024; i++) weights += dflash_tensor_at(q, i / g->hidden, i % g->hidden) / 1024.0;
  assert_true(weights < -0.3 / (double)g->hidden);
  release(&d);
}

static void order_overturns_the_logits(void **state) {
  (void)state;
  Drawn d = draw("order");
  for (int64_t row = 0; row < d.c.sizes.n_draft; row++) {
    const double *scores = d.c.tokens.scores + row * d.recipe.geometry.selector_top;
    assert_int_not_equal(d.c.tokens.chosen[row], d.c.tokens.plain[row]);
    double least = scores[0], most = scores[0];
    for (int64_t i = 0; i < d.recipe.geometry.selector_top; i++)
      least = fmin(least, scores[i]), most = fmax(most, scores[i]);
    assert_true(most - least > 20.0); /* logits of candidates lie within a few units */
  }
  release(&d);
}

/* Any stress with any storage, and some together, pass the generator's own check and stay finite. */
static void storages_take_every_stress(void **state) {
  (void)state;
  static const char *const storages[] = {"sidecar", "f32", "f16", "bf16", "q8_2f"};
  for (size_t i = 0; i < 5 * (dflash_stress_count() + 1); i++) {
    DflashRecipe recipe;
    DflashCase c;
    DflashError error = {0};
    assert_int_equal(dflash_recipe_open("tiny", &recipe, &error), DFLASH_OK);
    const DflashStress *stress = dflash_stress(i / 5);
    recipe.stress = stress ? stress->flag : DFLASH_STRESS_SHARP | DFLASH_STRESS_GATES | DFLASH_STRESS_LOUD;
    recipe.geometry.layers = 1;
    recipe.geometry.vocab = 64;
    recipe.geometry.mask_token = 63;
    recipe.context = 3;
    recipe.seed = i;
    snprintf(recipe.storage, sizeof recipe.storage, "%s", storages[i % 5]);
    if (dflash_case_draw(&recipe, "main", &c, &error) != DFLASH_OK)
      fail_msg("%s, %s: %s", stress ? stress->name : "three", recipe.storage, error.message);
    const DflashValue *logits = dflash_case_value(&c, DFLASH_STAGE_HEAD_LOGITS, 0);
    for (int64_t at = 0; at < logits->rows * logits->width; at++) {
      assert_true(isfinite(logits->data[at]));
      if (recipe.stress == DFLASH_STRESS_NEGATIVE) assert_true(logits->data[at] < 0.0f);
    }
    dflash_case_close(&c);
  }
}

static void expect_refusal(const DflashRecipe *recipe, const char *part) {
  DflashMaterial *material = NULL;
  DflashError error = {0};
  assert_int_equal(dflash_material_open(recipe, NULL, &material, &error), DFLASH_INVALID_ARGUMENT);
  if (!strstr(error.message, part)) fail_msg("'%s' does not say '%s'", error.message, part);
}

static void what_cannot_be_stressed_is_refused(void **state) {
  (void)state;
  DflashRecipe recipe;
  DflashError error = {0};
  int flags;
  assert_int_equal(dflash_recipe_open("tiny", &recipe, &error), DFLASH_OK);
  recipe.stress = DFLASH_STRESS_CLUSTERED;
  recipe.cases = "exact-integer";
  expect_refusal(&recipe, "data of its own");
  assert_int_equal(dflash_stress_parse("sharp,shrp", &flags, &error), DFLASH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'shrp'; known are sharp,gates,loud"));
  assert_int_equal(dflash_stress_parse("order,sharp", &flags, &error), DFLASH_OK);
  assert_int_equal(flags, DFLASH_STRESS_ORDER | DFLASH_STRESS_SHARP);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sharp_scores_overflow_exp),          cmocka_unit_test(gates_overflow_exp),
      cmocka_unit_test(loud_streams_grow_past_f16),         cmocka_unit_test(quiet_rows_vanish_when_squared),
      cmocka_unit_test(negative_logits_stay_below_zero),    cmocka_unit_test(clustered_logits_share_f16_values),
      cmocka_unit_test(zeros_fill_groups_and_masks),        cmocka_unit_test(mean_activations_have_one),
      cmocka_unit_test(order_overturns_the_logits),         cmocka_unit_test(storages_take_every_stress),
      cmocka_unit_test(what_cannot_be_stressed_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
