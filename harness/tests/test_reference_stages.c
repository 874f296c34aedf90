/* The reference backend, stage by stage: alone and in the block, and where each is easy to get wrong. */
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
static void run_open(Run *run, int32_t profile) {
  run->geometry = tiny_geometry();
  const DflashGeometry *g = &run->geometry;
  run->model = tiny_model_as(backend, *g, profile, NULL, NULL);
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
  for (int32_t profile = 0; profile < DFLASH_PROFILE_COUNT; profile++) {
    Run run;
    run_open(&run, profile);
    for (int stage = 0; stage < DFLASH_STAGE_COUNT; stage++) {
      const int64_t layers = table[stage].scope == DFLASH_SCOPE_LAYER ? run.geometry.layers : 1;
      for (int64_t layer = 0; layer < layers; layer++) check_stage(&run, stage, layer);
    }
    run_close(&run);
  }
}

static void test_every_stage_is_stamped_once_in_order(void **state) {
  (void)state;
  Run run;
  run_open(&run, DFLASH_PROFILE_EXACT);
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

/* ---- norm ---- */

static void test_eps_stands_under_the_root(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  TinyModel tiny;
  tiny_open(&tiny, g, 1);
  DflashModel *model = tiny_model_open(backend, &tiny, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  float x[2 * 64] = {0}, out[2 * 64]; /* row 0 is zero; row 1 so small that eps is most of the root */
  for (int i = 0; i < 64; i++) x[64 + i] = 1e-3f * (float)(i % 7 - 3);
  const DflashStageCall call = {
      .struct_size = sizeof call, .stage = DFLASH_STAGE_FINAL_NORM, .rows = 2, .inputs = {x}, .output = out};
  assert_int_equal(backend->stage(sequence, &call, &error), DFLASH_OK);
  double mean = 0;
  for (int i = 0; i < 64; i++) mean += (double)x[64 + i] * (double)x[64 + i] / 64;
  for (int i = 0; i < 64; i++) {
    const double gain = (double)((const float *)tiny.weights.norm.data)[i];
    assert_true(out[i] == 0);
    assert_true(fabs((double)out[64 + i] - (double)x[64 + i] / sqrt(mean + g.eps) * gain) < 1e-6);
  }
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

/* Scores of thousands, of both signs: the best key takes everything. */
static void test_softmax_holds_at_large_scores(void **state) {
  (void)state;
  const DflashGeometry g = tiny_geometry();
  DflashModel *model = tiny_model(backend, g, NULL);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  const float sizes[] = {100, 1000, 10000};
  for (int n = 0; n < 3; n++) {
    const float size = sizes[n];
    float q[2 * 60], k[2 * 20], *v = tiny_draw("v", 2 * 20), out[2 * 60];
    for (int i = 0; i < 60; i++) q[i] = size, q[60 + i] = -size;
    for (int i = 0; i < 20; i++) k[i] = 1, k[20 + i] = 2; /* row 0 prefers key 1; row 1, all scores negative, key 0 */
    const DflashStageCall call = {
        .struct_size = sizeof call, .stage = DFLASH_STAGE_ATTN_MIX, .rows = 2, .inputs = {q, k, v}, .output = out};
    assert_int_equal(backend->stage(sequence, &call, &error), DFLASH_OK);
    for (int head = 0; head < 6; head++)
      for (int i = 0; i < 10; i++) {
        assert_true(out[head * 10 + i] == v[20 + head / 3 * 10 + i]);
        assert_true(out[60 + head * 10 + i] == v[head / 3 * 10 + i]);
      }
    free(v);
  }
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
      cmocka_unit_test(test_eps_stands_under_the_root),
      cmocka_unit_test(test_rows_see_their_window_before_the_anchor),
      cmocka_unit_test(test_softmax_holds_at_large_scores),
      cmocka_unit_test(test_rotation_counts_positions_in_f32),
      cmocka_unit_test(test_silu_holds_at_large_inputs),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
