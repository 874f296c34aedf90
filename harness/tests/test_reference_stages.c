/* The reference backend, stage by stage: alone and in the block, decoding, visibility, selection. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny_model.h"

static const DflashBackend *backend;
static DflashError error;

static int load_backend(void **state) {
  (void)state;
  backend = tiny_backend(DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so");
  return backend == NULL;
}

/* ---- alone is in the block ---- */

typedef struct Row {
  int scope, rows, width, inputs[DFLASH_STAGE_INPUTS];
} Row;

#define ROW(id, name, scope, group, rows, width, a, b, c, d, e) \
  {DFLASH_SCOPE_##scope,                                        \
   DFLASH_ROWS_##rows,                                          \
   DFLASH_WIDTH_##width,                                        \
   {DFLASH_STAGE_##a, DFLASH_STAGE_##b, DFLASH_STAGE_##c, DFLASH_STAGE_##d, DFLASH_STAGE_##e}},
static const Row table[DFLASH_STAGE_COUNT] = {DFLASH_STAGES(ROW)};

enum { PUSH_POS = 6, PUSH_ROWS = 21, ANCHOR = 29, BLOCK_ROWS = 4, DRAFTS = 2, HEAD_WIDTH = 50, ANCHOR_TOKEN = 9 };

typedef struct Run {
  DflashGeometry geometry;
  DflashModel *model;
  DflashSequence *sequence;
  float *taps, *h;
} Run;

static int64_t count_of(const DflashGeometry *g, int stage) {
  const int64_t rows[] = {PUSH_ROWS, BLOCK_ROWS, DRAFTS};
  const int64_t widths[] = {g->hidden,
                            g->heads * g->head_dim,
                            g->kv_heads * g->head_dim,
                            2 * g->conv_kernel * g->hidden / g->conv_group,
                            g->intermediate,
                            HEAD_WIDTH,
                            g->selector_rank,
                            g->selector_top};
  return rows[table[stage].rows] * widths[table[stage].width];
}

/* A capturing sequence after a push (of positions 6 to 26, the anchor at 29) and a cut block. */
static void run_open(Run *run) {
  run->geometry = tiny_geometry();
  const DflashGeometry *g = &run->geometry;
  run->model = tiny_model(backend, *g, NULL);
  run->sequence = tiny_sequence(backend, run->model, DFLASH_SEQUENCE_CAPTURE);
  run->taps = tiny_draw("taps", PUSH_ROWS * dflash_geometry_tap_width(g));
  run->h = tiny_draw("h", BLOCK_ROWS * g->hidden);
  assert_int_equal(backend->push(run->sequence, PUSH_POS, run->taps, PUSH_ROWS, &error), DFLASH_OK);
  int32_t chosen[DRAFTS], plain[DRAFTS];
  DflashTokens tokens = {sizeof tokens, chosen, plain, NULL, NULL};
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .flags = DFLASH_BLOCK_STAMP,
                                .anchor_pos = ANCHOR,
                                .anchor_token = ANCHOR_TOKEN,
                                .rows = BLOCK_ROWS,
                                .n_draft = DRAFTS,
                                .head_width = HEAD_WIDTH,
                                .h = run->h,
                                .tokens = &tokens};
  assert_int_equal(backend->block(run->sequence, &call, &error), DFLASH_OK);
}

static void run_close(Run *run) {
  free(run->taps);
  free(run->h);
  backend->sequence_close(run->sequence);
  backend->model_close(run->model);
}

static float *copy_of(const float *values, int64_t count) {
  float *copy = malloc((size_t)count * sizeof *copy);
  assert_non_null(copy);
  memcpy(copy, values, (size_t)count * sizeof *copy);
  return copy;
}

static float *captured(const Run *run, int stage, int64_t layer) {
  const int64_t count = count_of(&run->geometry, stage);
  float *values = malloc((size_t)count * sizeof *values);
  assert_non_null(values);
  if (backend->read_stage(run->sequence, stage, layer, values, (uint64_t)count, &error) != DFLASH_OK)
    fail_msg("%s", error.message);
  return values;
}

static float *held(const Run *run, int64_t layer, bool want_k) {
  const int64_t count = PUSH_ROWS * run->geometry.kv_heads * run->geometry.head_dim;
  float *k = malloc((size_t)count * sizeof *k), *v = malloc((size_t)count * sizeof *v);
  assert_int_equal(backend->read_context(run->sequence, layer, PUSH_POS, PUSH_ROWS, k, v, &error), DFLASH_OK);
  free(want_k ? v : k);
  return want_k ? k : v;
}

static float *input_of(const Run *run, int source, int64_t layer) {
  const DflashGeometry *g = &run->geometry;
  switch (source) {
  case DFLASH_STAGE_NONE:
    return NULL;
  case DFLASH_STAGE_TAPS:
    return copy_of(run->taps, PUSH_ROWS * dflash_geometry_tap_width(g));
  case DFLASH_STAGE_RESIDUAL:
    return layer == 0 ? copy_of(run->h, BLOCK_ROWS * g->hidden) : captured(run, DFLASH_STAGE_MLP_OUT, layer - 1);
  case DFLASH_STAGE_LAST:
    return captured(run, DFLASH_STAGE_MLP_OUT, g->layers - 1);
  case DFLASH_STAGE_HELD_K:
  case DFLASH_STAGE_HELD_V:
    return held(run, layer, source == DFLASH_STAGE_HELD_K);
  default:
    return captured(run, source, table[source].scope == DFLASH_SCOPE_LAYER ? layer : 0);
  }
}

static void check_stage(const Run *run, int stage, int64_t layer) {
  const bool context = table[stage].rows == DFLASH_ROWS_CONTEXT;
  const int64_t count = count_of(&run->geometry, stage);
  float *expected = captured(run, stage, layer), *got = tiny_draw("other", count);
  int32_t chosen[DRAFTS], plain[DRAFTS];
  DflashTokens tokens = {sizeof tokens, chosen, plain, NULL, got};
  DflashStageCall call = {.struct_size = sizeof call,
                          .stage = stage,
                          .layer = layer,
                          .rows = context ? PUSH_ROWS : BLOCK_ROWS,
                          .position = context ? PUSH_POS : ANCHOR,
                          .n_draft = DRAFTS,
                          .head_width = HEAD_WIDTH,
                          .anchor_token = ANCHOR_TOKEN,
                          .context_first = PUSH_POS,
                          .context_len = PUSH_ROWS,
                          .output = stage == DFLASH_STAGE_SELECT ? NULL : got,
                          .tokens = stage == DFLASH_STAGE_SELECT ? &tokens : NULL};
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) call.inputs[i] = input_of(run, table[stage].inputs[i], layer);
  if (backend->stage(run->sequence, &call, &error) != DFLASH_OK) fail_msg("%s", error.message);
  if (memcmp(got, expected, (size_t)count * sizeof *got) != 0) fail_msg("stage %d of layer %d", stage, (int)layer);
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) free((void *)call.inputs[i]);
  free(expected);
  free(got);
}

static void test_a_stage_alone_is_the_block_s(void **state) {
  (void)state;
  Run run;
  run_open(&run);
  for (int stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
    const int64_t layers = table[stage].scope == DFLASH_SCOPE_LAYER ? run.geometry.layers : 1;
    for (int64_t layer = 0; layer < layers; layer++) check_stage(&run, stage, layer);
  }
  run_close(&run);
}

static void test_every_stage_is_stamped_once_in_order(void **state) {
  (void)state;
  Run run;
  run_open(&run);
  enum { SPANS = 3 * 19 + 4 };
  DflashSpan spans[SPANS + 1];
  uint32_t count = 0;
  assert_int_equal(backend->block_spans(run.sequence, NULL, 0, &count, &error), DFLASH_OK);
  assert_int_equal(count, SPANS);
  assert_int_equal(backend->block_spans(run.sequence, spans, SPANS + 1, &count, &error), DFLASH_OK);
  DflashBlockTime time = {.struct_size = sizeof time};
  assert_int_equal(backend->block_time(run.sequence, &time, &error), DFLASH_OK);
  for (int i = 0; i < SPANS; i++) {
    assert_true(spans[i].begin_ns <= spans[i].end_ns && spans[i].end_ns <= time.device_ns);
    assert_true(i == 0 || spans[i - 1].end_ns <= spans[i].begin_ns);
    assert_int_equal(spans[i].stage, i < 57 ? DFLASH_STAGE_ATTN_NORM + i % 19 : DFLASH_STAGE_FINAL_NORM + i - 57);
    assert_int_equal(spans[i].layer, i < 57 ? i / 19 : 0);
  }
  assert_int_equal(time.clock, DFLASH_CLOCK_HOST);
  assert_true(time.resolution_ns >= 1 && time.context_ns == 0);
  run_close(&run);
}

/* ---- decoding ---- */

/* Unit vectors pick columns out of a matrix: one stage call reads it whole, in the very value that arithmetic sees. */
static void check_matrix(DflashSequence *sequence, int stage, int64_t layer, const DflashTensor *matrix, int64_t step) {
  const int64_t rows = matrix->shape[0], cols = matrix->shape[1];
  float *x = calloc((size_t)(step * cols), sizeof *x), *out = calloc((size_t)(step * rows), sizeof *out);
  for (int64_t begin = 0; begin < cols; begin += step) {
    memset(x, 0, (size_t)(step * cols) * sizeof *x);
    for (int64_t r = 0; r < step; r++) x[r * cols + (begin + r) % cols] = 1;
    const DflashStageCall call = {
        .struct_size = sizeof call, .stage = stage, .layer = layer, .rows = step, .inputs = {x}, .output = out};
    if (backend->stage(sequence, &call, &error) != DFLASH_OK) fail_msg("%s", error.message);
    for (int64_t r = 0; r < step; r++)
      for (int64_t o = 0; o < rows; o++)
        assert_true(out[r * rows + o] == (float)tiny_at(matrix, o, (begin + r) % cols));
  }
  free(x);
  free(out);
}

static void test_every_storage_decodes_to_its_value(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  DflashModel *model = tiny_model_open(backend, &tiny, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  unsigned seen = 0;
  check_matrix(sequence, DFLASH_STAGE_CONTEXT_FC, 0, &tiny.weights.fc, 50);
  for (int64_t l = 0; l < tiny.geometry.layers; l++) {
    const DflashLayerWeights *w = &tiny.layers[l];
    const struct {
      int stage;
      const DflashTensor *matrix;
    } all[] = {{DFLASH_STAGE_ATTN_Q_PROJ, &w->q_proj},        {DFLASH_STAGE_ATTN_K_PROJ, &w->k_proj},
               {DFLASH_STAGE_ATTN_V_PROJ, &w->v_proj},        {DFLASH_STAGE_ATTN_O_PROJ, &w->o_proj},
               {DFLASH_STAGE_MLP_GATE, &w->gate_proj},        {DFLASH_STAGE_MLP_UP, &w->up_proj},
               {DFLASH_STAGE_MLP_DOWN, &w->down_proj},        {DFLASH_STAGE_ATTN_KERNEL, &w->attention_conv_kernel},
               {DFLASH_STAGE_MLP_KERNEL, &w->mlp_conv_kernel}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
      seen |= 1u << all[i].matrix->storage;
      check_matrix(sequence, all[i].stage, l, all[i].matrix, tiny.geometry.block);
    }
  }
  assert_int_equal(seen, 1u << DFLASH_STORAGE_F32 | 1u << DFLASH_STORAGE_F16 | 1u << DFLASH_STORAGE_BF16 |
                             1u << DFLASH_STORAGE_Q8_2F | 1u << DFLASH_STORAGE_Q4TP);
  backend->sequence_close(sequence);
  backend->model_close(model);
  tiny_close(&tiny);
}

/* ---- attention: who sees what ---- */

enum { SEEN_LEN = 20, SEEN_FIRST = 3 };

static void attend(DflashSequence *sequence, const DflashGeometry *g, int64_t layer, int64_t anchor, const float *v,
                   float *out) {
  const int64_t q = g->heads * g->head_dim, kv = g->kv_heads * g->head_dim;
  float *query = tiny_draw("query", g->block * q), *key = tiny_draw("key", g->block * kv);
  float *value = tiny_draw("value", g->block * kv), *k = tiny_draw("held", SEEN_LEN * kv);
  const DflashStageCall call = {.struct_size = sizeof call,
                                .stage = DFLASH_STAGE_ATTN_MIX,
                                .layer = layer,
                                .rows = g->block,
                                .position = anchor,
                                .context_first = SEEN_FIRST,
                                .context_len = SEEN_LEN,
                                .inputs = {query, key, value, k, v},
                                .output = out};
  assert_int_equal(backend->stage(sequence, &call, &error), DFLASH_OK);
  free(query);
  free(key);
  free(value);
  free(k);
}

/* Changes one held value row; a row of the block changes exactly when it sees that position. */
static void check_position(DflashSequence *sequence, const DflashGeometry *g, int64_t layer, int64_t anchor,
                           int64_t i) {
  const int64_t q = g->heads * g->head_dim, kv = g->kv_heads * g->head_dim, window = g->windows.at[layer];
  float *v = tiny_draw("v", SEEN_LEN * kv), *before = calloc((size_t)(g->block * q), sizeof *before);
  float *after = calloc((size_t)(g->block * q), sizeof *after);
  attend(sequence, g, layer, anchor, v, before);
  for (int64_t c = 0; c < kv; c++) v[i * kv + c] += 100;
  attend(sequence, g, layer, anchor, v, after);
  for (int64_t r = 0; r < g->block; r++) {
    const int64_t p = SEEN_FIRST + i;
    const bool sees = p < anchor && (window == 0 || p >= anchor + r + 1 - window);
    for (int64_t c = 0; c < q; c++) assert_int_equal(before[r * q + c] != after[r * q + c], sees);
  }
  free(v);
  free(before);
  free(after);
}

static void test_rows_see_their_window_before_the_anchor(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  DflashModel *model = tiny_model(backend, g, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  for (int64_t layer = 0; layer < g.layers; layer++)
    for (int64_t anchor = 0; anchor < SEEN_FIRST + SEEN_LEN + 12; anchor++)
      for (int64_t i = 0; i < SEEN_LEN; i++) check_position(sequence, &g, layer, anchor, i);
  backend->sequence_close(sequence);
  backend->model_close(model);
}

/* ---- rotation ---- */

static void rotate(DflashSequence *sequence, int64_t layer, int64_t position, const float *x, float *out) {
  const DflashStageCall call = {.struct_size = sizeof call,
                                .stage = DFLASH_STAGE_ATTN_K,
                                .layer = layer,
                                .rows = 2,
                                .position = position,
                                .inputs = {x},
                                .output = out};
  assert_int_equal(backend->stage(sequence, &call, &error), DFLASH_OK);
}

static void test_rotation_counts_positions_in_f32(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  const int64_t width = g.kv_heads * g.head_dim;
  DflashModel *model = tiny_model(backend, g, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  float *row = tiny_draw("row", width), *x = malloc(2 * (size_t)width * sizeof *x), out[2 * 64];
  memcpy(x, row, (size_t)width * sizeof *x);
  memcpy(x + width, row, (size_t)width * sizeof *x);
  rotate(sequence, 0, (INT64_C(1) << 24) - 1, x, out);
  assert_memory_not_equal(out, out + width, (size_t)width * sizeof *out);
  rotate(sequence, 0, INT64_C(1) << 24, x, out); /* 2^24 + 1 rounds to 2^24 */
  assert_memory_equal(out, out + width, (size_t)width * sizeof *out);
  rotate(sequence, 1, 5, x, out); /* no rotation on layer 1 */
  assert_memory_equal(out, out + width, (size_t)width * sizeof *out);
  free(row);
  free(x);
  backend->sequence_close(sequence);
  backend->model_close(model);
}

/* ---- selection ---- */

typedef struct Selection {
  DflashGeometry geometry;
  DflashModel *model;
  DflashSequence *sequence;
  float logits[2 * 97], hidden[2 * 13];
  int32_t chosen[2], plain[2], candidates[2 * 5];
  float scores[2 * 5];
} Selection;

static void selection_open(Selection *s) {
  memset(s, 0, sizeof *s);
  s->geometry = tiny_geometry();
  s->model = tiny_model(backend, s->geometry, NULL);
  s->sequence = tiny_sequence(backend, s->model, 0);
}

static void selection_close(Selection *s) {
  backend->sequence_close(s->sequence);
  backend->model_close(s->model);
}

static DflashStatus choose(Selection *s, int64_t n_draft, int64_t head_width) {
  DflashTokens tokens = {sizeof tokens, s->chosen, s->plain, s->candidates, s->scores};
  const DflashStageCall call = {.struct_size = sizeof call,
                                .stage = DFLASH_STAGE_SELECT,
                                .n_draft = n_draft,
                                .head_width = head_width,
                                .anchor_token = 1,
                                .inputs = {s->logits, s->hidden},
                                .tokens = &tokens};
  return backend->stage(s->sequence, &call, &error);
}

static void expect_candidates(const Selection *s, int32_t a, int32_t b, int32_t c, int32_t d, int32_t e) {
  const int32_t expected[] = {a, b, c, d, e};
  for (int i = 0; i < 5; i++) assert_int_equal(s->candidates[i], expected[i]);
}

static void test_ties_go_to_the_lower_token(void **state) {
  (void)state;
  Selection s;
  selection_open(&s);
  assert_int_equal(choose(&s, 1, 97), DFLASH_OK); /* all equal */
  expect_candidates(&s, 0, 1, 2, 3, 4);
  assert_int_equal(s.chosen[0], 0); /* scores are equal too: selector rows are zero */
  s.logits[96] = s.logits[40] = 2;
  s.logits[7] = 1;
  s.logits[0] = -0.0f; /* equals +0 */
  assert_int_equal(choose(&s, 1, 97), DFLASH_OK);
  expect_candidates(&s, 40, 96, 7, 0, 1);
  assert_int_equal(choose(&s, 1, 96), DFLASH_OK); /* the shortlist ends before 96 */
  expect_candidates(&s, 40, 7, 0, 1, 2);
  selection_close(&s);
}

static void test_all_candidates_are_kept_when_the_head_is_that_short(void **state) {
  (void)state;
  Selection s;
  selection_open(&s);
  for (int i = 0; i < 5; i++) s.logits[i] = (float)-i;
  s.logits[2] = -INFINITY;
  assert_int_equal(choose(&s, 1, 5), DFLASH_OK);
  expect_candidates(&s, 0, 1, 3, 4, 2);
  selection_close(&s);
}

static void expect_nonfinite(Selection *s) {
  error = (DflashError){0};
  assert_int_equal(choose(s, 2, 97), DFLASH_NONFINITE);
  assert_int_equal(error.status, DFLASH_NONFINITE);
  assert_non_null(strstr(error.message, "NaN"));
}

static void test_nan_anywhere_is_an_error(void **state) {
  (void)state;
  Selection s;
  selection_open(&s);
  for (int sign = 0; sign < 2; sign++) {
    const float bad = sign ? -NAN : NAN;
    for (int i = 0; i < 2 * 97; i += 24) {
      s.logits[i] = bad;
      expect_nonfinite(&s);
      s.logits[i] = 0;
    }
    s.hidden[13 + 12] = bad;
    expect_nonfinite(&s);
    s.hidden[13 + 12] = 0;
  }
  assert_int_equal(choose(&s, 2, 97), DFLASH_OK);
  selection_close(&s);
}

/* Scores worked out in f64 along the walk; logits close together, so that the selector decides. */
static void test_scores_follow_the_walk(void **state) {
  (void)state;
  TinyModel tiny;
  tiny_open(&tiny, tiny_geometry(), 1);
  Selection s;
  selection_open(&s);
  float *logits = tiny_draw("logits", 2 * 97), *hidden = tiny_draw("hidden", 2 * 13);
  for (int i = 0; i < 2 * 97; i++) s.logits[i] = logits[i] * 0.01f;
  for (int i = 0; i < 2 * 13; i++) s.hidden[i] = hidden[i] * 8;
  assert_int_equal(choose(&s, 2, 97), DFLASH_OK);
  int64_t previous = 1;
  int overturned = 0;
  for (int row = 0; row < 2; row++) {
    int best = 0;
    for (int c = 0; c < 5; c++) {
      const int32_t token = s.candidates[row * 5 + c];
      double score = s.logits[row * 97 + token];
      for (int i = 0; i < 13; i++)
        score += tiny_at(&tiny.weights.predecessor, previous, i) * s.hidden[row * 13 + i] *
                 tiny_at(&tiny.weights.successor, token, i);
      assert_true(fabs(score - s.scores[row * 5 + c]) < 1e-5);
      if (s.scores[row * 5 + c] > s.scores[row * 5 + best]) best = c;
    }
    assert_int_equal(s.chosen[row], s.candidates[row * 5 + best]);
    assert_int_equal(s.plain[row], s.candidates[row * 5]);
    overturned += best != 0;
    previous = s.chosen[row];
  }
  assert_true(overturned > 0);
  free(logits);
  free(hidden);
  selection_close(&s);
  tiny_close(&tiny);
}

/* ---- activation ---- */

static void test_silu_holds_at_large_inputs(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  DflashModel *model = tiny_model(backend, g, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  float gate[2 * 96] = {100, -100, 0, 1000, -1000, 3}, up[2 * 96] = {2, 5, 7, 1, 1, -2}, out[2 * 96];
  const DflashStageCall call = {
      .struct_size = sizeof call, .stage = DFLASH_STAGE_MLP_ACT, .rows = 2, .inputs = {gate, up}, .output = out};
  assert_int_equal(backend->stage(sequence, &call, &error), DFLASH_OK);
  assert_true(out[0] == 200 && out[3] == 1000 && out[2] == 0 && out[4] == 0);
  assert_true(out[1] == (float)(-500 * exp(-100) / (1 + exp(-100))) && out[1] != 0);
  assert_true(fabs(out[5] + 6 / (1 + exp(-3))) < 1e-6);
  backend->sequence_close(sequence);
  backend->model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_stage_alone_is_the_block_s),
      cmocka_unit_test(test_every_stage_is_stamped_once_in_order),
      cmocka_unit_test(test_every_storage_decodes_to_its_value),
      cmocka_unit_test(test_rows_see_their_window_before_the_anchor),
      cmocka_unit_test(test_rotation_counts_positions_in_f32),
      cmocka_unit_test(test_ties_go_to_the_lower_token),
      cmocka_unit_test(test_all_candidates_are_kept_when_the_head_is_that_short),
      cmocka_unit_test(test_nan_anywhere_is_an_error),
      cmocka_unit_test(test_scores_follow_the_walk),
      cmocka_unit_test(test_silu_holds_at_large_inputs),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
