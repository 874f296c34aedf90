/* Every stage of the blas backend against f64, from its own inputs, over drawn models, forms and kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "blas_fixture.h"
#include "blas_naive.h"
#include "model/storage.h"

enum {
  F32 = DFLASH_STORAGE_F32,
  F16 = DFLASH_STORAGE_F16,
  BF16 = DFLASH_STORAGE_BF16,
  Q8 = DFLASH_STORAGE_Q8_2F,
  Q4 = DFLASH_STORAGE_Q4TP,
  MIXED = -1
};

/* Widths that are no multiple of a tile, a group or a block of columns; more than one block of 512 columns. */
static const ModelPlan PLANS[] = {
    {"q4 window 24, head_dim 80", 96, 224, 2, 4, 2, 80, 997, 16, 16, 2, 48, 16, 2, 24, Q4},
    {"mixed, one kv head, conv group 1", 54, 333, 3, 3, 1, 10, 251, 8, 1, 4, 7, 5, 3, 9, MIXED},
    {"q8, kv heads = heads, conv group hidden", 51, 77, 2, 3, 3, 16, 127, 5, 51, 3, 33, 1, 1, 3, Q8},
    {"q4, two blocks of columns", 1056, 1088, 1, 2, 1, 32, 257, 9, 33, 2, 64, 16, 1, 0, Q4},
    {"f16, two blocks of columns", 520, 1030, 1, 5, 5, 6, 131, 12, 8, 1, 16, 131, 1, 40, F16},
    {"bf16", 72, 130, 2, 6, 2, 18, 509, 3, 12, 4, 20, 4, 2, 1, BF16},
    {"f32", 17, 19, 2, 4, 1, 2, 23, 2, 17, 2, 3, 2, 1, 300, F32},
};
enum { PLAN_COUNT = sizeof PLANS / sizeof PLANS[0] };

/* One sequence that captures, one that does not, on a model of a plan. */
typedef struct Bench {
  const DflashBackend *blas;
  TestModel test;
  DflashModel *model;
  DflashSequence *sequence, *plain;
  int64_t rows, anchor, first, len, pushed, push_position;
  float *h, *taps, *k[MODEL_LAYERS_MAX], *v[MODEL_LAYERS_MAX];
  BlockOutput output;
} Bench;

static float *floats(int64_t count) {
  float *data = dflash_alloc((size_t)count, sizeof(float));
  assert_non_null(data);
  return data;
}

static void push_rows(Bench *b, int64_t position, int64_t rows) {
  draw_taps(&b->test, position, rows, 7, b->taps);
  assert_int_equal(b->blas->push(b->sequence, position, b->taps, rows, NULL), DFLASH_OK);
  assert_int_equal(b->blas->push(b->plain, position, b->taps, rows, NULL), DFLASH_OK);
  b->pushed = rows;
  b->push_position = position;
}

static void read_held(Bench *b) {
  const DflashGeometry *g = &b->test.geometry;
  int64_t kept;
  for (int64_t layer = 0; layer < g->layers; layer++) {
    assert_int_equal(b->blas->span(b->sequence, layer, &b->first, &b->len, &kept, NULL), DFLASH_OK);
    assert_int_equal(kept, b->first);
    b->k[layer] = floats(b->len * g->kv_heads * g->head_dim);
    b->v[layer] = floats(b->len * g->kv_heads * g->head_dim);
    assert_int_equal(b->blas->read_context(b->sequence, layer, b->first, b->len, b->k[layer], b->v[layer], NULL),
                     DFLASH_OK);
  }
}

static void open_bench(Bench *b, const ModelPlan *plan, const char *const *options) {
  *b = (Bench){.blas = load_blas()};
  draw_model(&b->test, plan, 11);
  b->model = open_model(b->blas, &b->test, options);
  b->sequence = open_sequence(b->blas, b->model, DFLASH_SEQUENCE_CAPTURE);
  b->plain = open_sequence(b->blas, b->model, 0);
  const DflashGeometry *g = &b->test.geometry;
  b->rows = g->block;
  b->taps = floats(64 * dflash_geometry_tap_width(g));
  b->h = floats(b->rows * g->hidden);
  draw_floats(b->h, b->rows * g->hidden, 3);
  open_output(&b->output, g);
  push_rows(b, 1000, 37);
  push_rows(b, 1033, 30);
  b->anchor = 1061; /* the last two rows held are not read */
  read_held(b);
}

static void close_bench(Bench *b) {
  b->blas->sequence_close(b->sequence);
  b->blas->sequence_close(b->plain);
  b->blas->model_close(b->model);
  for (int layer = 0; layer < MODEL_LAYERS_MAX; layer++) {
    free(b->k[layer]);
    free(b->v[layer]);
  }
  free(b->h);
  free(b->taps);
  close_output(&b->output);
  free_model(&b->test);
}

static NaiveRun run_of(const Bench *b, int32_t stage, int64_t layer) {
  const int context = stage <= DFLASH_STAGE_CONTEXT_K;
  return (NaiveRun){.model = &b->test,
                    .stage = stage,
                    .layer = layer,
                    .rows = context ? b->pushed : b->rows,
                    .position = context ? b->push_position : b->anchor,
                    .n_draft = b->rows - 1,
                    .head_width = b->test.geometry.vocab,
                    .context_first = b->first,
                    .context_len = b->len};
}

static float *read_value(const Bench *b, int32_t stage, int64_t layer) {
  const NaiveRun run = run_of(b, stage, layer);
  const int64_t count = naive_count(&run);
  float *value = floats(count);
  DflashError error;
  if (b->blas->read_stage(b->sequence, stage, layer, value, (uint64_t)count, &error)) fail_msg("%s", error.message);
  return value;
}

/* What a stage read: a copy, or NULL. */
static float *read_input(const Bench *b, int32_t source, int64_t layer) {
  const DflashGeometry *g = &b->test.geometry;
  const int64_t held = b->len * g->kv_heads * g->head_dim;
  int64_t count;
  const float *from;
  switch (source) {
  case DFLASH_STAGE_NONE:
    return NULL;
  case DFLASH_STAGE_TAPS:
    from = b->taps, count = b->pushed * dflash_geometry_tap_width(g);
    break;
  case DFLASH_STAGE_HELD_K:
    from = b->k[layer], count = held;
    break;
  case DFLASH_STAGE_HELD_V:
    from = b->v[layer], count = held;
    break;
  case DFLASH_STAGE_LAST:
    return read_value(b, DFLASH_STAGE_MLP_OUT, g->layers - 1);
  case DFLASH_STAGE_RESIDUAL:
    if (layer > 0) return read_value(b, DFLASH_STAGE_MLP_OUT, layer - 1);
    from = b->h, count = b->rows * g->hidden;
    break;
  default:
    return read_value(b, source, naive_is_layered(source) ? layer : 0);
  }
  float *copy = floats(count);
  memcpy(copy, from, (size_t)count * sizeof *copy);
  return copy;
}

static void assert_bound(const NaiveRun *run, const ModelPlan *plan, const float *got, const double *value,
                         const double *bound) {
  for (int64_t i = 0; i < naive_count(run); i++)
    if (!(fabs(got[i] - value[i]) <= bound[i]))
      fail_msg("%s: %s/%d element %lld: got %.9g, expected %.9g within %.3g", plan->name, naive_name(run->stage),
               (int)run->layer, (long long)i, (double)got[i], value[i], bound[i]);
}

static void assert_alone(const Bench *b, const NaiveRun *run, const float *const *in, const float *got) {
  const int64_t count = naive_count(run);
  DflashGuarded guarded;
  assert_true(dflash_guarded_open(&guarded, (size_t)count));
  DflashStageCall call = {.struct_size = sizeof call,
                          .stage = run->stage,
                          .layer = run->layer,
                          .rows = run->rows,
                          .position = run->position,
                          .n_draft = run->n_draft,
                          .head_width = run->head_width,
                          .context_first = run->context_first,
                          .context_len = run->context_len,
                          .output = guarded.data};
  memcpy(call.inputs, in, sizeof call.inputs);
  DflashError error;
  if (b->blas->stage(b->plain, &call, &error)) fail_msg("%s", error.message);
  assert_int_equal(dflash_guarded_damage(&guarded), 0);
  assert_memory_equal(guarded.data, got, (size_t)count * sizeof *got);
  dflash_guarded_close(&guarded);
}

static void check_stage(const Bench *b, const ModelPlan *plan, int32_t stage, int64_t layer) {
  const NaiveRun run = run_of(b, stage, layer);
  const int64_t count = naive_count(&run);
  float *in[DFLASH_STAGE_INPUTS];
  const float *given[DFLASH_STAGE_INPUTS];
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) given[i] = in[i] = read_input(b, naive_inputs(stage)[i], layer);
  double *value = dflash_alloc((size_t)count, 2 * sizeof *value);
  float *got = read_value(b, stage, layer);
  naive_stage(&run, given, value, value + count);
  assert_bound(&run, plan, got, value, value + count);
  assert_alone(b, &run, given, got);
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) free(in[i]);
  free(value);
  free(got);
}

static void check_every_stage(const Bench *b, const ModelPlan *plan) {
  for (int32_t stage = 0; stage < DFLASH_STAGE_SELECT; stage++)
    for (int64_t layer = 0; layer < (naive_is_layered(stage) ? b->test.geometry.layers : 1); layer++)
      check_stage(b, plan, stage, layer);
}

/* The tokens that follow from the block's own logits and selector rows. */
static void check_tokens(const Bench *b) {
  const DflashGeometry *g = &b->test.geometry;
  int64_t previous = b->anchor % g->vocab;
  for (int64_t j = 0; j < b->rows - 1; j++) {
    const float *logits = b->output.logits + j * g->vocab, *hp = b->output.selector_hidden + j * g->selector_rank;
    double best = -INFINITY;
    int32_t chosen = -1;
    for (int64_t c = 0; c < g->selector_top; c++) {
      const int32_t token = b->output.candidates[j * g->selector_top + c];
      double score = logits[token];
      for (int64_t i = 0; i < g->selector_rank; i++)
        score += dflash_tensor_at(&b->test.weights.predecessor, previous, i) * hp[i] *
                 dflash_tensor_at(&b->test.weights.successor, token, i);
      assert_true(fabs(score - b->output.scores[j * g->selector_top + c]) <= 0x1p-22 * (fabs(score) + 1));
      if (score > best) best = score, chosen = token;
      int64_t better = 0; /* a candidate's place is the number of tokens before it */
      for (int64_t t = 0; t < g->vocab; t++)
        better += logits[t] > logits[token] || (logits[t] == logits[token] && t < token);
      assert_int_equal(better, c);
    }
    assert_int_equal(b->output.chosen[j], chosen);
    assert_int_equal(b->output.plain[j], b->output.candidates[j * g->selector_top]);
    previous = chosen;
  }
}

/* A sequence that does not capture gives the same bits, also after its scratch was filled with NaN. */
static void check_plain(Bench *b) {
  const DflashGeometry *g = &b->test.geometry;
  BlockOutput other;
  open_output(&other, g);
  assert_int_equal(b->blas->poison(b->plain, DFLASH_POISON_BITS, NULL), DFLASH_OK);
  DflashBlockCall call = block_call(g, b->anchor, b->rows, b->h, &other);
  assert_int_equal(b->blas->block(b->plain, &call, NULL), DFLASH_OK);
  assert_memory_equal(other.logits, b->output.logits, (size_t)((b->rows - 1) * g->vocab) * sizeof(float));
  assert_memory_equal(other.selector_hidden, b->output.selector_hidden,
                      (size_t)((b->rows - 1) * g->selector_rank) * sizeof(float));
  assert_memory_equal(other.chosen, b->output.chosen, sizeof other.chosen);
  assert_memory_equal(other.scores, b->output.scores, sizeof other.scores);
  close_output(&other);
}

static void check_plan(const ModelPlan *plan, const char *const *options) {
  Bench b;
  DflashError error;
  open_bench(&b, plan, options);
  DflashBlockCall call = block_call(&b.test.geometry, b.anchor, b.rows, b.h, &b.output);
  if (b.blas->block(b.sequence, &call, &error)) fail_msg("%s", error.message);
  check_every_stage(&b, plan);
  check_tokens(&b);
  check_plain(&b);
  close_bench(&b);
}

/* A kernel that this processor lacks is refused by name. */
static int runs_kernel(const char *kernel) {
  const DflashBackend *blas = load_blas();
  TestModel test;
  draw_model(&test, &PLANS[PLAN_COUNT - 1], 1);
  const DflashOption option = {"kernel", kernel};
  const DflashModelDesc desc = {
      .struct_size = sizeof desc, .geometry = &test.geometry, .options = &option, .option_count = 1};
  const DflashStatus status = blas->supports(&desc, NULL);
  free_model(&test);
  assert_true(status == DFLASH_OK || status == DFLASH_INVALID_ARGUMENT);
  return status == DFLASH_OK;
}

static void check_kernel(const char *kernel) {
  if (!runs_kernel(kernel)) {
    print_message("this processor does not run the %s kernel\n", kernel);
    skip();
  }
  for (int i = 0; i < PLAN_COUNT; i++) {
    check_plan(&PLANS[i], (const char *const[]){"kernel", kernel, "form", "stored", NULL});
    check_plan(&PLANS[i], (const char *const[]){"kernel", kernel, "form", "f32", "threads", "3", NULL});
  }
}

static void stages_by_avx512(void **state) { (void)state, check_kernel("avx512"); }
static void stages_by_avx2(void **state) { (void)state, check_kernel("avx2"); }
static void stages_by_plain_vectors(void **state) { (void)state, check_kernel("plain"); }

static void stages_by_default(void **state) {
  (void)state;
  for (int i = 0; i < PLAN_COUNT; i++) check_plan(&PLANS[i], NULL);
}

/* ---- rows and threads do not change a bit ---- */

static void product_alone(const DflashBackend *blas, DflashSequence *s, int32_t stage, int64_t rows, const float *x,
                          float *out) {
  DflashStageCall call = {.struct_size = sizeof call, .stage = stage, .rows = rows, .output = out, .inputs = {x}};
  DflashError error;
  if (blas->stage(s, &call, &error)) fail_msg("%s", error.message);
}

static void rows_one_by_one(const ModelPlan *plan, const char *form) {
  enum { ROWS = 600 };
  const DflashBackend *blas = load_blas();
  TestModel test;
  draw_model(&test, plan, 5);
  DflashModel *many = open_model(blas, &test, (const char *const[]){"form", form, "threads", "4", NULL});
  DflashModel *one = open_model(blas, &test, (const char *const[]){"form", form, "threads", "1", NULL});
  DflashSequence *a = open_sequence(blas, many, 0), *b = open_sequence(blas, one, 0);
  const int64_t width = dflash_geometry_tap_width(&test.geometry), hidden = test.geometry.hidden;
  float *x = floats(ROWS * width), *whole = floats(ROWS * hidden), *pieces = floats(ROWS * hidden);
  draw_floats(x, ROWS * width, 21);
  product_alone(blas, a, DFLASH_STAGE_CONTEXT_FC, ROWS, x, whole);
  for (int64_t row = 0, rows = 1; row < ROWS; row += rows, rows = rows % 17 + 1) {
    if (rows > ROWS - row) rows = ROWS - row;
    product_alone(blas, b, DFLASH_STAGE_CONTEXT_FC, rows, x + row * width, pieces + row * hidden);
  }
  assert_memory_equal(whole, pieces, (size_t)(ROWS * hidden) * sizeof(float));
  free(x);
  free(whole);
  free(pieces);
  blas->sequence_close(a);
  blas->sequence_close(b);
  blas->model_close(many);
  blas->model_close(one);
  free_model(&test);
}

static void rows_and_threads_change_no_bit(void **state) {
  (void)state;
  for (int i = 0; i < PLAN_COUNT; i++) {
    rows_one_by_one(&PLANS[i], "stored");
    rows_one_by_one(&PLANS[i], "f32");
  }
}

/* ---- silu at its edges ---- */

static void silu_at_the_edges(void **state) {
  (void)state;
  static const float EDGES[] = {0,     -0.0f,  100,     -100,   88.8f,   -88.8f, -103.5f, -150, -1e5f, -3e38f,
                                3e38f, 1e-40f, -1e-40f, -87.3f, -104.2f, 17,     -17,     0.5f, -0.5f};
  enum { COUNT = sizeof EDGES / sizeof EDGES[0] };
  Bench b;
  open_bench(&b, &PLANS[6], NULL);
  const NaiveRun run = run_of(&b, DFLASH_STAGE_MLP_ACT, 0);
  assert_int_equal(naive_count(&run), 2 * COUNT);
  float gate[2 * COUNT], up[2 * COUNT], out[2 * COUNT];
  for (int i = 0; i < 2 * COUNT; i++) gate[i] = EDGES[i % COUNT], up[i] = i < COUNT ? 1 : -3;
  DflashStageCall call = {
      .struct_size = sizeof call, .stage = DFLASH_STAGE_MLP_ACT, .rows = 2, .inputs = {gate, up}, .output = out};
  assert_int_equal(b.blas->stage(b.plain, &call, NULL), DFLASH_OK);
  for (int i = 0; i < 2 * COUNT; i++) {
    const double silu = gate[i] / (1 + exp(-(double)gate[i])) * up[i];
    const float size = (float)fabs(silu);
    const double ulp = isinf(size) ? INFINITY : fmax(nextafterf(size, INFINITY) - (double)size, 0x1p-149);
    if (fabs(out[i] - silu) > 5 * ulp) fail_msg("silu(%g) * %g is %g", (double)gate[i], (double)up[i], (double)out[i]);
  }
  gate[0] = NAN;
  assert_int_equal(b.blas->stage(b.plain, &call, NULL), DFLASH_OK);
  assert_true(isnan(out[0]));
  close_bench(&b);
}

/* exp to 4 units in the last place, wherever the result is normal or not. */
static void silu_everywhere(void **state) {
  (void)state;
  enum { COUNT = 8 * 333 };
  static float gate[COUNT], up[COUNT], out[COUNT];
  Bench b;
  open_bench(&b, &PLANS[1], NULL);
  DflashStageCall call = {
      .struct_size = sizeof call, .stage = DFLASH_STAGE_MLP_ACT, .rows = 8, .inputs = {gate, up}, .output = out};
  for (uint64_t round = 0; round < 40; round++) {
    draw_floats(gate, COUNT, round);
    for (int i = 0; i < COUNT; i++) gate[i] *= round % 2 ? 4 : 72, up[i] = 1;
    assert_int_equal(b.blas->stage(b.plain, &call, NULL), DFLASH_OK);
    for (int i = 0; i < COUNT; i++) {
      const double silu = gate[i] / (1 + exp(-(double)gate[i]));
      const float size = (float)fabs(silu);
      const double ulp = fmax(nextafterf(size, INFINITY) - (double)size, 0x1p-149);
      if (!(fabs(out[i] - silu) <= 4 * ulp)) fail_msg("silu(%.9g) is %.9g", (double)gate[i], (double)out[i]);
    }
  }
  close_bench(&b);
}

/* ---- attention over several blocks of 512 keys, in windows that cut them ---- */

static void attention_over(const ModelPlan *plan, int64_t len, int64_t anchor) {
  const DflashBackend *blas = load_blas();
  TestModel test;
  draw_model(&test, plan, 8);
  const DflashGeometry *g = &test.geometry;
  const int64_t kv = g->kv_heads * g->head_dim, q = g->heads * g->head_dim, rows = g->block;
  DflashModel *model = open_model(blas, &test, NULL);
  DflashSequence *s = open_sequence(blas, model, 0);
  const int64_t counts[] = {rows * q, rows * kv, rows * kv, len * kv, len * kv};
  float *in[5], *out = floats(rows * q);
  const float *given[5];
  for (int i = 0; i < 5; i++) {
    given[i] = in[i] = floats(counts[i]);
    draw_floats(in[i], counts[i], (uint64_t)i);
  }
  const NaiveRun run = {.model = &test,
                        .stage = DFLASH_STAGE_ATTN_MIX,
                        .rows = rows,
                        .position = anchor,
                        .context_first = 3,
                        .context_len = len};
  DflashStageCall call = {.struct_size = sizeof call,
                          .stage = run.stage,
                          .rows = rows,
                          .position = anchor,
                          .context_first = 3,
                          .context_len = len,
                          .output = out};
  memcpy(call.inputs, given, sizeof given);
  double *value = dflash_alloc((size_t)(rows * q), 2 * sizeof *value);
  naive_stage(&run, given, value, value + rows * q);
  assert_int_equal(blas->stage(s, &call, NULL), DFLASH_OK);
  assert_bound(&run, plan, out, value, value + rows * q);
  for (int i = 0; i < 5; i++) free(in[i]);
  free(out);
  free(value);
  blas->sequence_close(s);
  blas->model_close(model);
  free_model(&test);
}

static void attention_over_many_keys(void **state) {
  (void)state;
  static const int64_t WINDOWS[] = {0, 1, 15, 513, 1021, 1100, 5000};
  for (size_t i = 0; i < sizeof WINDOWS / sizeof WINDOWS[0]; i++) {
    ModelPlan plan = {"many keys", 32, 32, 1, 6, 2, 20, 31, 11, 8, 1, 4, 2, 1, WINDOWS[i], Q4};
    attention_over(&plan, 1100, 1103);
    attention_over(&plan, 1100, 1110);
    attention_over(&plan, 1100, 517);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stages_by_default),
      cmocka_unit_test(stages_by_avx512),
      cmocka_unit_test(stages_by_avx2),
      cmocka_unit_test(stages_by_plain_vectors),
      cmocka_unit_test(rows_and_threads_change_no_bit),
      cmocka_unit_test(silu_at_the_edges),
      cmocka_unit_test(silu_everywhere),
      cmocka_unit_test(attention_over_many_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
