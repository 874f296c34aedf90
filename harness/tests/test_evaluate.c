/* A case evaluated: against goldens that an independent implementation made, and against itself. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "golden/oracle.h"
#include "load/golden.h"
#include "test_oracle_model.h"

static const char *const files[] = {"tiny-f32",       "odd-groups", "operations",
                                    "sidecar-rewind", "far-bf16",   "kernel4-empty"};
enum { FILE_COUNT = sizeof files / sizeof *files };

static DflashGolden *open_file(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s.h5", DFLASH_GOLDEN_FOLDER, name);
  DflashGolden *golden;
  DflashError error = {0};
  if (dflash_golden_open(path, 1, &golden, &error) != DFLASH_OK) fail_msg("%s", error.message);
  return golden;
}

static void open_case(DflashGolden *golden, DflashCase *c) {
  DflashError error = {0};
  if (dflash_golden_case(golden, 0, c, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static DflashEvaluate options_for(DflashGolden *golden) {
  return (DflashEvaluate){.geometry = dflash_golden_geometry(golden), .weights = dflash_golden_weights(golden)};
}

static void evaluate(const DflashEvaluate *options, DflashCase *c) {
  DflashError error = {0};
  if (dflash_evaluate_case(options, c, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static double spacing(float value) {
  float size = fabsf(value);
  return (double)nextafterf(size, INFINITY) - (double)size;
}

typedef struct Tally {
  const char *file;
  int64_t values, stages, states, apart, tokens;
} Tally;

static void tally_stage(void *context, int32_t stage, int64_t layer, const char *label, const float *stored,
                        const float *computed, int64_t count) {
  Tally *tally = context;
  (void)layer;
  if (stage == DFLASH_STAGE_SELECT) return;
  assert_non_null(stored);
  assert_non_null(computed);
  for (int64_t i = 0; i < count; i++) {
    double difference = fabs((double)stored[i] - (double)computed[i]);
    if (!(difference <= spacing(stored[i])))
      fail_msg("%s %s element %lld: %.9g stored, %.9g computed", tally->file, label, (long long)i, (double)stored[i],
               (double)computed[i]);
    tally->apart += difference != 0;
  }
  tally->values += count;
  if (stage == DFLASH_STAGE_HELD_K || stage == DFLASH_STAGE_HELD_V)
    tally->states++;
  else
    tally->stages++;
}

typedef struct TokenTally {
  Tally tally; /* first: visits share the context */
  int64_t rows, top;
} TokenTally;

static void tally_tokens(void *context, const DflashTokensValue *stored, const DflashTokensValue *computed) {
  TokenTally *tally = context;
  assert_non_null(stored);
  size_t rows = (size_t)tally->rows, candidates = (size_t)(tally->rows * tally->top);
  assert_memory_equal(stored->chosen, computed->chosen, rows * sizeof(int32_t));
  assert_memory_equal(stored->plain, computed->plain, rows * sizeof(int32_t));
  assert_memory_equal(stored->candidates, computed->candidates, candidates * sizeof(int32_t));
  for (size_t i = 0; i < candidates; i++) assert_true(fabs(stored->scores[i] - computed->scores[i]) <= 1e-9);
  tally->tally.tokens += tally->rows;
}

static void test_fixtures(void **state) {
  (void)state;
  for (int i = 0; i < FILE_COUNT; i++) {
    DflashGolden *golden = open_file(files[i]);
    DflashCase c;
    open_case(golden, &c);
    DflashEvaluate options = options_for(golden);
    TokenTally tally = {.tally.file = files[i], .rows = c.sizes.n_draft, .top = options.geometry->selector_top};
    options.recompute = true;
    options.visit = tally_stage, options.visit_tokens = tally_tokens, options.visit_context = &tally;
    evaluate(&options, &c);
    int64_t layers = options.geometry->layers;
    assert_int_equal(tally.tally.stages, 19 * layers + 3 + (c.sizes.push_rows > 0 ? 2 + 3 * layers : 0));
    assert_int_equal(tally.tally.states, c.sizes.context_len > 0 ? 2 * layers : 0);
    assert_int_equal(tally.tally.tokens, c.sizes.n_draft);
    print_message("%s: %lld values, %lld not bit equal\n", files[i], (long long)tally.tally.values,
                  (long long)tally.tally.apart);
    dflash_case_close(&c);
    dflash_golden_close(golden);
  }
}

/* ---- scales of a file that carries none ---- */

static void test_fixture_scales(void **state) {
  (void)state;
  DflashGolden *golden = open_file("sidecar-rewind");
  DflashCase c;
  open_case(golden, &c);
  DflashEvaluate options = options_for(golden);
  const float *data = dflash_case_value(&c, DFLASH_STAGE_ATTN_MIX, 1)->data;
  options.scales_alone = options.scales_chain = true;
  evaluate(&options, &c);
  assert_ptr_equal(dflash_case_value(&c, DFLASH_STAGE_ATTN_MIX, 1)->data, data);
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(options.geometry, i, &stage, &layer); i++) {
    const DflashValue *value = dflash_case_value(&c, stage, layer);
    if (stage == DFLASH_STAGE_SELECT) continue;
    assert_non_null(value->alone);
    assert_non_null(value->chain);
    for (int64_t k = 0; k < value->rows * value->width; k++) {
      assert_true(isfinite(value->chain[k]) && value->alone[k] > 0);
      assert_true(value->chain[k] >= value->alone[k] * 0.999f);
    }
  }
  for (int64_t k = 0; k < c.sizes.context_len * 2 * 64; k++) assert_true(c.held_k[1].chain[k] > 0);
  assert_true(c.tokens.chain[0] > c.tokens.alone[0]);
  dflash_case_close(&c);
  dflash_golden_close(golden);
}

/* ---- drawn cases ---- */

typedef struct Drawn {
  OracleModel model;
  DflashEvaluate options;
} Drawn;

static int open_drawn(void **state) {
  Drawn *d = calloc(1, sizeof *d);
  DflashGeometry g = oracle_geometry();
  oracle_model_open(&d->model, &g, ORACLE_MIXED, 31);
  d->options = (DflashEvaluate){.geometry = &d->model.geometry,
                                .weights = &d->model.set.weights,
                                .values = true,
                                .scales_alone = true,
                                .scales_chain = true};
  *state = d;
  return 0;
}

static int close_drawn(void **state) {
  Drawn *d = *state;
  oracle_model_close(&d->model);
  free(d);
  return 0;
}

static void set_ops(DflashCase *c, const DflashContextOp *ops, int64_t count) {
  free(c->ops);
  c->ops = dflash_alloc((size_t)count, sizeof *ops);
  assert_non_null(c->ops);
  memcpy(c->ops, ops, (size_t)count * sizeof *ops);
  c->op_count = count;
}

static void same_values(const DflashValue *a, const DflashValue *b, int64_t count) {
  assert_memory_equal(a->data, b->data, (size_t)count * sizeof(float));
  assert_memory_equal(a->alone, b->alone, (size_t)count * sizeof(float));
  assert_memory_equal(a->chain, b->chain, (size_t)count * sizeof(float));
}

/* One push, and ways to arrive at the same rows. */
static void test_pieces(void **state) {
  Drawn *d = *state;
  const DflashContextOp ways[][5] = {
      {{DFLASH_OP_PUSH, 40, 0, 5}, {DFLASH_OP_PUSH, 45, 5, 8}},
      {{DFLASH_OP_PUSH, 40, 0, 13}, {DFLASH_OP_TRUNCATE, 49, 0, 0}, {DFLASH_OP_PUSH, 47, 7, 6}},
      {{DFLASH_OP_PUSH, 3, 0, 4},
       {DFLASH_OP_PUSH, 40, 0, 10},
       {DFLASH_OP_PUSH, 48, 8, 5},
       {DFLASH_OP_TRUNCATE, 99, 0, 0}},
      {{DFLASH_OP_PUSH, 40, 0, 13}, {DFLASH_OP_PUSH, 53, 0, 0}},
      {{DFLASH_OP_PUSH, 40, 0, 9},
       {DFLASH_OP_PUSH, 49, 9, 4},
       {DFLASH_OP_PUSH, 53, 2, 3},
       {DFLASH_OP_TRUNCATE, 53, 0, 0}}};
  static const int64_t counts[] = {2, 3, 4, 2, 4}, last_rows[] = {8, 6, 5, 0, 3};
  const DflashGeometry *g = d->options.geometry;
  DflashCase whole, c;
  oracle_case_open(&whole, g, 40, 13, 53, 5);
  evaluate(&d->options, &whole);
  for (int way = 0; way < 5; way++) {
    oracle_case_open(&c, g, 40, 13, 53, 5);
    set_ops(&c, ways[way], counts[way]);
    evaluate(&d->options, &c);
    assert_int_equal(c.context_first, 40);
    assert_int_equal(c.sizes.context_len, 13);
    assert_int_equal(c.sizes.push_rows, last_rows[way]);
    assert_int_equal(dflash_case_value(&c, DFLASH_STAGE_CONTEXT_FC, 0)->rows, last_rows[way]);
    for (int64_t l = 0; l < g->layers; l++) {
      same_values(&c.held_k[l], &whole.held_k[l], 13 * g->kv_heads * g->head_dim);
      same_values(&c.held_v[l], &whole.held_v[l], 13 * g->kv_heads * g->head_dim);
    }
    const DflashValue *logits = dflash_case_value(&c, DFLASH_STAGE_HEAD_LOGITS, 0);
    same_values(logits, dflash_case_value(&whole, DFLASH_STAGE_HEAD_LOGITS, 0), logits->rows * logits->width);
    dflash_case_close(&c);
  }
  dflash_case_close(&whole);
}

static void refuse(const DflashEvaluate *options, DflashCase *c, DflashStatus status, const char *words) {
  DflashError error = {0};
  assert_int_equal(dflash_evaluate_case(options, c, &error), status);
  if (!strstr(error.message, words)) fail_msg("%s", error.message);
}

static void test_absent(void **state) {
  Drawn *d = *state;
  DflashCase c;
  oracle_case_open(&c, d->options.geometry, 40, 13, 53, 5);
  evaluate(&d->options, &c);
  d->options.values = false;
  evaluate(&d->options, &c); /* nothing is missing */
  DflashValue *up = dflash_case_value(&c, DFLASH_STAGE_MLP_UP, 1);
  float *kept = up->data;
  up->data = NULL;
  refuse(&d->options, &c, DFLASH_INVALID_DATA, "mlp.up/1 is absent");
  up->data = kept;
  kept = c.held_v[1].data;
  c.held_v[1].data = NULL;
  refuse(&d->options, &c, DFLASH_INVALID_DATA, "context_state.v/1 is absent");
  c.held_v[1].data = kept;
  free(c.tokens.scores);
  c.tokens.scores = NULL;
  refuse(&d->options, &c, DFLASH_INVALID_DATA, "output is absent");
  c.sizes.context_len = 12;
  refuse(&d->options, &c, DFLASH_INVALID_DATA, "len is 12");
  dflash_case_close(&c);
}

/* Values that are there are inputs, whatever they hold; recompute tells both. */
typedef struct Seen {
  int visits, kept, told, tokens;
} Seen;

static void see(void *context, int32_t stage, int64_t layer, const char *label, const float *stored,
                const float *computed, int64_t count) {
  Seen *seen = context;
  (void)layer;
  (void)label;
  (void)count;
  seen->visits++;
  seen->kept += stored != NULL && computed == NULL;
  seen->told += stored != NULL && computed != NULL;
  if (stage == DFLASH_STAGE_MLP_DOWN && computed) assert_true(stored == NULL || computed[0] != stored[0]);
}

static void see_tokens(void *context, const DflashTokensValue *stored, const DflashTokensValue *computed) {
  Seen *seen = context;
  (void)stored;
  seen->tokens += computed != NULL;
}

static void test_stored_values(void **state) {
  Drawn *d = *state;
  const DflashGeometry *g = d->options.geometry;
  DflashCase c, same;
  Seen seen = {0};
  oracle_case_open(&c, g, 40, 13, 53, 5);
  oracle_case_open(&same, g, 40, 13, 53, 5);
  evaluate(&d->options, &same);
  for (int64_t l = 0; l < g->layers; l++) { /* as if another implementation had put them there */
    DflashValue *down = dflash_case_value(&c, DFLASH_STAGE_MLP_DOWN, l);
    *down =
        (DflashValue){.data = oracle_draw(1, "down", g->block * g->hidden, 1), .rows = g->block, .width = g->hidden};
    down->data_owned = true;
  }
  d->options.visit = see, d->options.visit_tokens = see_tokens, d->options.visit_context = &seen;
  evaluate(&d->options, &c);
  assert_int_equal(seen.visits, 2 + 3 * 2 + 2 * 2 + 19 * 2 + 3 + 1);
  assert_int_equal(seen.kept, 2);
  assert_int_equal(seen.tokens, 1);
  const DflashValue *a = dflash_case_value(&c, DFLASH_STAGE_MLP_OUT, 0);
  assert_memory_not_equal(a->data, dflash_case_value(&same, DFLASH_STAGE_MLP_OUT, 0)->data, 64);
  d->options.recompute = true;
  seen = (Seen){0};
  evaluate(&d->options, &c);
  assert_int_equal(seen.told, seen.visits - 1);
  dflash_case_close(&c);
  dflash_case_close(&same);
}

static void test_skip_context(void **state) {
  Drawn *d = *state;
  const DflashGeometry *g = d->options.geometry;
  DflashCase whole, c;
  oracle_case_open(&whole, g, 40, 13, 53, 5);
  evaluate(&d->options, &whole);
  oracle_case_open(&c, g, 40, 13, 53, 5);
  c.context_first = 40, c.sizes.context_len = c.sizes.push_rows = 13;
  d->options.skip_context = 1;
  refuse(&d->options, &c, DFLASH_INVALID_ARGUMENT, "attn.mix/0: an input is missing");
  for (int64_t l = 0; l < g->layers; l++) {
    c.held_k[l] = whole.held_k[l], c.held_v[l] = whole.held_v[l];
    c.held_k[l].data_owned = c.held_k[l].alone_owned = c.held_k[l].chain_owned = false;
    c.held_v[l].data_owned = c.held_v[l].alone_owned = c.held_v[l].chain_owned = false;
  }
  evaluate(&d->options, &c);
  assert_null(dflash_case_value(&c, DFLASH_STAGE_CONTEXT_FC, 0)->data);
  const DflashValue *logits = dflash_case_value(&c, DFLASH_STAGE_HEAD_LOGITS, 0);
  same_values(logits, dflash_case_value(&whole, DFLASH_STAGE_HEAD_LOGITS, 0), logits->rows * logits->width);
  dflash_case_close(&c);
  dflash_case_close(&whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fixtures),
                                     cmocka_unit_test(test_fixture_scales),
                                     cmocka_unit_test_setup_teardown(test_pieces, open_drawn, close_drawn),
                                     cmocka_unit_test_setup_teardown(test_absent, open_drawn, close_drawn),
                                     cmocka_unit_test_setup_teardown(test_stored_values, open_drawn, close_drawn),
                                     cmocka_unit_test_setup_teardown(test_skip_context, open_drawn, close_drawn)};
  return cmocka_run_group_tests_name("evaluate", tests, NULL, NULL);
}
