#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/memory.h"
#include "model/case.h"
#include "model/geometry.h"

enum { TAP_ROWS = 12 };

static const DflashGeometry *tiny(void) {
  for (size_t i = 0; i < dflash_preset_count(); i++)
    if (strcmp(dflash_preset(i)->name, "tiny") == 0) return &dflash_preset(i)->geometry;
  fail();
  return NULL;
}

static float *floats(int64_t count) {
  float *values = dflash_alloc((size_t)count, sizeof *values);
  assert_non_null(values);
  return values;
}

static void fill_value(const DflashCase *c, DflashValue *value, int32_t stage) {
  value->rows = dflash_stage_rows(tiny(), &c->sizes, stage);
  value->width = dflash_stage_width(tiny(), &c->sizes, stage);
  value->data = floats(value->rows * value->width);
  value->alone = floats(value->rows * value->width);
  value->chain = floats(value->rows * value->width);
  value->data_owned = value->alone_owned = value->chain_owned = true;
}

static void fill_tokens(DflashCase *c) {
  size_t drafts = (size_t)c->sizes.n_draft, candidates = drafts * (size_t)tiny()->selector_top;
  c->tokens = (DflashTokensValue){.chosen = dflash_alloc(drafts, sizeof(int32_t)),
                                  .plain = dflash_alloc(drafts, sizeof(int32_t)),
                                  .candidates = dflash_alloc(candidates, sizeof(int32_t)),
                                  .scores = dflash_alloc(candidates, sizeof(double)),
                                  .alone = floats((int64_t)candidates),
                                  .chain = floats((int64_t)candidates)};
}

/* A whole valid case: two pushes, the second over part of the first. */
static DflashCase valid(void) {
  const DflashGeometry *g = tiny();
  DflashCase c;
  assert_int_equal(dflash_case_open(&c, g, "main", NULL), DFLASH_OK);
  c.anchor_pos = 40;
  c.anchor_token = 508;
  c.sizes = (DflashRunSizes){.rows = 8, .n_draft = 7, .head_width = 509, .push_rows = 5, .context_len = 9};
  c.context_first = 10;
  c.op_count = 2;
  c.ops = dflash_alloc(2, sizeof *c.ops);
  c.ops[0] = (DflashContextOp){DFLASH_OP_PUSH, 10, 0, 7};
  c.ops[1] = (DflashContextOp){DFLASH_OP_PUSH, 14, 7, 5};
  c.tap_rows = TAP_ROWS;
  c.taps = floats(TAP_ROWS * dflash_geometry_tap_width(g));
  c.h = floats(8 * g->hidden);
  c.taps_owned = c.h_owned = true;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++)
    fill_value(&c, dflash_case_value(&c, stage, layer), stage);
  for (layer = 0; layer < g->layers; layer++) fill_value(&c, &c.held_k[layer], DFLASH_STAGE_HELD_K);
  for (layer = 0; layer < g->layers; layer++) fill_value(&c, &c.held_v[layer], DFLASH_STAGE_HELD_V);
  fill_tokens(&c);
  return c;
}

static void a_whole_case_passes(void **state) {
  (void)state;
  DflashCase c = valid();
  DflashError error = {0};
  if (dflash_case_check(&c, tiny(), &error) != DFLASH_OK) fail_msg("%s", error.message);
  dflash_case_close(&c);
  dflash_case_close(&c);
}

static void a_bare_case_passes(void **state) {
  (void)state;
  DflashCase c;
  assert_int_equal(dflash_case_open(&c, tiny(), "bare", NULL), DFLASH_OK);
  c.sizes = (DflashRunSizes){.rows = 2, .n_draft = 1, .head_width = 4};
  assert_int_equal(dflash_case_check(&c, tiny(), NULL), DFLASH_OK);
  dflash_case_close(&c);
}

static void values_have_places_of_their_own(void **state) {
  (void)state;
  DflashCase c;
  assert_int_equal(dflash_case_open(&c, tiny(), "places", NULL), DFLASH_OK);
  assert_string_equal(c.name, "places");
  int32_t stage;
  int64_t layer, count = 0;
  for (; dflash_stage_walk(tiny(), count, &stage, &layer); count++) dflash_case_value(&c, stage, layer)->rows++;
  for (int64_t i = 0; dflash_stage_walk(tiny(), i, &stage, &layer); i++)
    assert_true(dflash_case_value(&c, stage, layer)->rows == 1);
  assert_null(dflash_case_value(&c, DFLASH_STAGE_ATTN_MIX, 2));
  assert_null(dflash_case_value(&c, DFLASH_STAGE_ATTN_MIX, -1));
  assert_null(dflash_case_value(&c, DFLASH_STAGE_FINAL_NORM, 1));
  assert_null(dflash_case_value(&c, DFLASH_STAGE_TAPS, 0));
  assert_null(dflash_case_value(&c, DFLASH_STAGE_NONE, 0));
  dflash_case_close(&c);
}

static void borrowed_values_are_left_alone(void **state) {
  (void)state;
  static float mapped[64];
  DflashCase c;
  assert_int_equal(dflash_case_open(&c, tiny(), "mapped", NULL), DFLASH_OK);
  c.taps = c.h = mapped;
  c.held_k[0].data = mapped;
  *dflash_case_value(&c, DFLASH_STAGE_MLP_OUT, 1) = (DflashValue){.data = mapped, .alone = mapped, .chain = mapped};
  dflash_case_close(&c); /* a free of `mapped` would end the test */
  DflashCase none = {0};
  dflash_case_close(&none);
}

static void expect_refusal(DflashCase *c, const char *part) {
  DflashError error = {0};
  assert_int_equal(dflash_case_check(c, tiny(), &error), DFLASH_INVALID_DATA);
  if (!strstr(error.message, part) || strncmp(error.message, "case main: ", 11) != 0) fail_msg("%s", error.message);
  dflash_case_close(c);
}

/* A case with one number changed, which the check must name. */
#define REFUSED(member, value, part) \
  do {                               \
    DflashCase changed = valid();    \
    changed.member = (value);        \
    expect_refusal(&changed, part);  \
  } while (0)

static void sizes_are_checked(void **state) {
  (void)state;
  REFUSED(sizes.rows, 1, "rows is 1; valid: 2 to 8");
  REFUSED(sizes.rows, 9, "rows is 9");
  REFUSED(sizes.rows, INT64_MIN, "rows is -9223372036854775808");
  REFUSED(sizes.n_draft, 0, "n_draft is 0; valid: 1 to 7");
  REFUSED(sizes.n_draft, 8, "n_draft is 8");
  REFUSED(sizes.head_width, 3, "head_width is 3; valid: 4 to 509");
  REFUSED(sizes.head_width, 510, "head_width is 510");
  REFUSED(anchor_token, -1, "anchor_token is -1");
  REFUSED(anchor_token, 509, "anchor_token is 509; valid: 0 to 508");
  REFUSED(anchor_pos, -1, "anchor_pos is -1");
  REFUSED(anchor_pos, INT64_MAX, "anchor_pos is 9223372036854775807");
}

static void the_context_must_match_its_operations(void **state) {
  (void)state;
  REFUSED(context_first, 9, "context_state first is 9; the operations give 10");
  REFUSED(sizes.context_len, 10, "context_state len is 10; the operations give 9");
  REFUSED(sizes.push_rows, 7, "rows of the last push is 7; the operations give 5");
  REFUSED(tap_rows, -1, "rows of context/taps is -1");
  REFUSED(tap_rows, INT64_MAX, "overflow 63 bits");
  REFUSED(tap_rows, 11, "within the 11 rows");
  REFUSED(ops[1].first_row, 8, "within the 12 rows");
  REFUSED(ops[1].n_rows, INT64_MAX / 2, "n_rows is 4611686018427387903");
  REFUSED(ops[1].n_rows, INT64_MAX / 2 - 14, "within the 12 rows");
  REFUSED(ops[0].op, 9, "op is 9");
  REFUSED(ops[0].pos, -3, "pos is -3");
  REFUSED(op_count, -1, "-1 operations");
}

static void inputs_and_scales_must_be_finite(void **state) {
  (void)state;
  REFUSED(h[65], NAN, "input/h[1, 1] is");
  REFUSED(taps[0], -INFINITY, "context/taps[0, 0] is -inf");
  REFUSED(held_k[1].alone[3], INFINITY, "context_state.k/1: error scale 'alone' of element 3 is inf");
  REFUSED(held_v[1].chain[0], -1.0f, "context_state.v/1");
  REFUSED(stages[DFLASH_STAGE_ATTN_MIX * 2 + 1].chain[5], NAN, "attn.mix/1: error scale 'chain' of element 5");
  REFUSED(tokens.alone[2], INFINITY, "output/scores: error scale 'alone'");
  REFUSED(tokens.scores[27], NAN, "output/scores: entry 27");
}

static void golden_values_may_hold_anything(void **state) {
  (void)state;
  DflashCase c = valid();
  dflash_case_value(&c, DFLASH_STAGE_ATTN_MIX, 1)->data[0] = NAN; /* a verdict's affair */
  assert_int_equal(dflash_case_check(&c, tiny(), NULL), DFLASH_OK);
  dflash_case_close(&c);
}

static void shapes_of_values_are_checked(void **state) {
  (void)state;
  REFUSED(stages[DFLASH_STAGE_HEAD_LOGITS * 2].width, 508, "head.logits is 7 x 508; valid: 7 x 509");
  REFUSED(stages[DFLASH_STAGE_CONTEXT_K * 2 + 1].rows, 9, "context.k/1 is 9 x 32; valid: 5 x 32");
  REFUSED(held_v[0].rows, 8, "context_state.v/0 is 8 x 32; valid: 9 x 32");
}

static void i8_values_are_checked_too(void **state) {
  (void)state;
  DflashCase c = valid();
  c.stages_i8 = dflash_alloc((size_t)DFLASH_STAGE_COUNT * 2, sizeof *c.stages_i8);
  DflashValue *value = &c.stages_i8[DFLASH_STAGE_MLP_UP * 2 + 1];
  fill_value(&c, value, DFLASH_STAGE_MLP_UP);
  assert_int_equal(dflash_case_check(&c, tiny(), NULL), DFLASH_OK);
  value->rows = 7;
  expect_refusal(&c, "mlp.up/1 is 7 x 160");
}

static void tokens_are_checked(void **state) {
  (void)state;
  REFUSED(tokens.chosen[6], 509, "output/chosen: entry 6 is token 509");
  REFUSED(tokens.plain[0], -1, "output/plain: entry 0 is token -1");
  REFUSED(tokens.candidates[27], INT32_MAX, "output/candidates: entry 27");
  DflashCase c = valid();
  c.tokens.chosen[0] = 300; /* below vocab, beyond a shortlist of 200 */
  c.sizes.head_width = 200;
  dflash_case_value(&c, DFLASH_STAGE_HEAD_LOGITS, 0)->width = 200;
  expect_refusal(&c, "below head_width (200)");
}

static void another_geometry_is_refused(void **state) {
  (void)state;
  DflashCase c = valid();
  DflashGeometry g = *tiny();
  g.layers = 3;
  assert_int_equal(dflash_case_check(&c, &g, NULL), DFLASH_INVALID_DATA);
  dflash_case_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_whole_case_passes),
      cmocka_unit_test(a_bare_case_passes),
      cmocka_unit_test(values_have_places_of_their_own),
      cmocka_unit_test(borrowed_values_are_left_alone),
      cmocka_unit_test(sizes_are_checked),
      cmocka_unit_test(the_context_must_match_its_operations),
      cmocka_unit_test(inputs_and_scales_must_be_finite),
      cmocka_unit_test(golden_values_may_hold_anything),
      cmocka_unit_test(shapes_of_values_are_checked),
      cmocka_unit_test(i8_values_are_checked_too),
      cmocka_unit_test(tokens_are_checked),
      cmocka_unit_test(another_geometry_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
