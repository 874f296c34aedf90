/* The reference backend against the committed goldens: every stage alone on golden inputs, then the chain from taps to
 * tokens. The bounds are coarse, relative to a value's largest element; the harness itself judges by error scales. */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/golden.h"
#include "tiny_model.h"

#define ALONE_BOUND 2e-6
#define CHAIN_BOUND 2e-5

static const DflashBackend *backend;
static DflashError error;

static int load_backend(void **state) {
  (void)state;
  backend = tiny_backend(DFLASH_BACKEND_FOLDER "/dflash-backend-reference.so");
  return backend == NULL;
}

typedef struct Run {
  const DflashGeometry *geometry;
  DflashModel *model;
  DflashSequence *sequence;
  DflashCase c;
  int64_t push_pos, push_row; /* of the last push; row -1 when it had none */
} Run;

static void require(DflashStatus status) {
  if (status != DFLASH_OK) fail_msg("%s", error.message);
}

static void replay(Run *run) {
  const int64_t width = dflash_geometry_tap_width(run->geometry);
  for (const DflashContextOp *op = run->c.ops; op < run->c.ops + run->c.op_count; op++) {
    if (op->op == DFLASH_OP_RESET) require(backend->reset(run->sequence, &error));
    if (op->op == DFLASH_OP_TRUNCATE) require(backend->truncate(run->sequence, op->pos, &error));
    if (op->op != DFLASH_OP_PUSH) continue;
    require(backend->push(run->sequence, op->pos, run->c.taps + op->first_row * width, op->n_rows, &error));
    run->push_pos = op->pos;
    run->push_row = op->n_rows > 0 ? op->first_row : -1;
  }
}

static void compare(const char *how, const char *label, const float *got, const float *golden, int64_t count,
                    double bound) {
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < count; i++) {
    if (!isfinite(got[i])) fail_msg("%s %s: element %d is not finite", how, label, (int)i);
    largest = fmax(largest, fabs((double)golden[i]));
    worst = fmax(worst, fabs((double)got[i] - golden[i]));
  }
  if (worst > bound * largest) fail_msg("%s %s: off by %g of %g", how, label, worst, largest);
}

static const float *source_of(const Run *run, int32_t stage, int64_t layer, int index) {
  int64_t from = 0;
  const int32_t source = dflash_stage_source(run->geometry, stage, layer, index, &from);
  switch (source) {
  case DFLASH_STAGE_NONE:
    return NULL;
  case DFLASH_STAGE_TAPS:
    return run->c.taps + run->push_row * dflash_geometry_tap_width(run->geometry);
  case DFLASH_STAGE_RESIDUAL:
    return run->c.h;
  case DFLASH_STAGE_HELD_K:
    return run->c.held_k[layer].data;
  case DFLASH_STAGE_HELD_V:
    return run->c.held_v[layer].data;
  default:
    return dflash_case_value(&run->c, source, from)->data;
  }
}

static void check_tokens(const Run *run, const DflashTokens *tokens) {
  const DflashTokensValue *golden = &run->c.tokens;
  const size_t n = (size_t)run->c.sizes.n_draft, top = (size_t)run->geometry->selector_top;
  assert_memory_equal(tokens->chosen, golden->chosen, n * sizeof(int32_t));
  assert_memory_equal(tokens->plain, golden->plain, n * sizeof(int32_t));
  assert_memory_equal(tokens->candidates, golden->candidates, n * top * sizeof(int32_t));
  for (size_t i = 0; i < n * top; i++)
    assert_true(fabs(tokens->scores[i] - golden->scores[i]) <= CHAIN_BOUND * fmax(1, fabs(golden->scores[i])));
}

static DflashTokens open_tokens(const Run *run) {
  const size_t n = (size_t)run->c.sizes.n_draft, top = (size_t)run->geometry->selector_top;
  return (DflashTokens){sizeof(DflashTokens), calloc(n, 4), calloc(n, 4), calloc(n * top, 4), calloc(n * top, 4)};
}

static void close_tokens(const DflashTokens *tokens) {
  free(tokens->chosen);
  free(tokens->plain);
  free(tokens->candidates);
  free(tokens->scores);
}

static void check_alone(const Run *run, int32_t stage, int64_t layer) {
  const bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  const DflashCase *c = &run->c;
  if (context && run->push_row < 0) return;
  const int64_t count =
      dflash_stage_rows(run->geometry, &c->sizes, stage) * dflash_stage_width(run->geometry, &c->sizes, stage);
  float *got = calloc((size_t)count, sizeof *got);
  DflashTokens tokens = open_tokens(run);
  DflashStageCall call = {.struct_size = sizeof call,
                          .stage = stage,
                          .layer = layer,
                          .rows = context ? c->sizes.push_rows : c->sizes.rows,
                          .position = context ? run->push_pos : c->anchor_pos,
                          .n_draft = c->sizes.n_draft,
                          .head_width = c->sizes.head_width,
                          .anchor_token = c->anchor_token,
                          .context_first = c->context_first,
                          .context_len = c->sizes.context_len,
                          .output = got,
                          .tokens = &tokens};
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++)
    if (dflash_stage_row(stage)->inputs[i] != DFLASH_STAGE_NONE) call.inputs[i] = source_of(run, stage, layer, i);
  require(backend->stage(run->sequence, &call, &error));
  char label[64];
  if (stage == DFLASH_STAGE_SELECT)
    check_tokens(run, &tokens);
  else
    compare("alone", dflash_stage_label(stage, layer, label), got, dflash_case_value(c, stage, layer)->data, count,
            ALONE_BOUND);
  close_tokens(&tokens);
  free(got);
}

static void check_chain(const Run *run, int32_t stage, int64_t layer) {
  const DflashValue *golden = dflash_case_value(&run->c, stage, layer);
  if (stage == DFLASH_STAGE_SELECT || golden->rows == 0) return;
  const int64_t count = golden->rows * golden->width;
  float *got = calloc((size_t)count, sizeof *got);
  char label[64];
  require(backend->read_stage(run->sequence, stage, layer, got, (uint64_t)count, &error));
  compare("chain", dflash_stage_label(stage, layer, label), got, golden->data, count, CHAIN_BOUND);
  free(got);
}

static void check_context(const Run *run) {
  const DflashGeometry *g = run->geometry;
  const int64_t len = run->c.sizes.context_len, count = len * g->kv_heads * g->head_dim;
  float *k = calloc((size_t)count + 1, sizeof *k), *v = calloc((size_t)count + 1, sizeof *v);
  for (int64_t layer = 0; layer < g->layers; layer++) {
    int64_t first, held, kept;
    require(backend->span(run->sequence, layer, &first, &held, &kept, &error));
    assert_true(first == run->c.context_first && held == len);
    require(backend->read_context(run->sequence, layer, first, len, k, v, &error));
    if (len == 0) continue;
    compare("chain", "held k", k, run->c.held_k[layer].data, count, CHAIN_BOUND);
    compare("chain", "held v", v, run->c.held_v[layer].data, count, CHAIN_BOUND);
  }
  free(k);
  free(v);
}

static void run_block(const Run *run) {
  DflashTokens tokens = open_tokens(run);
  const DflashBlockCall call = {.struct_size = sizeof call,
                                .anchor_pos = run->c.anchor_pos,
                                .anchor_token = run->c.anchor_token,
                                .rows = run->c.sizes.rows,
                                .n_draft = run->c.sizes.n_draft,
                                .head_width = run->c.sizes.head_width,
                                .h = run->c.h,
                                .tokens = &tokens};
  require(backend->block(run->sequence, &call, &error));
  check_tokens(run, &tokens);
  close_tokens(&tokens);
}

static void check_case(DflashGolden *golden, DflashModel *model, int64_t index) {
  Run run = {.geometry = dflash_golden_geometry(golden), .model = model, .push_row = -1};
  require(dflash_golden_case(golden, index, &run.c, &error));
  run.sequence = tiny_sequence(backend, model, DFLASH_SEQUENCE_CAPTURE);
  replay(&run);
  check_context(&run);
  run_block(&run);
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(run.geometry, i, &stage, &layer); i++) {
    check_chain(&run, stage, layer);
    check_alone(&run, stage, layer);
  }
  backend->sequence_close(run.sequence);
  dflash_case_close(&run.c);
}

static int64_t check_file(const char *path) {
  DflashGolden *golden = NULL;
  require(dflash_golden_open(path, 1, &golden, &error));
  const TinyModel loaded = {.geometry = *dflash_golden_geometry(golden), .weights = *dflash_golden_weights(golden)};
  DflashModel *model = tiny_model_open(backend, &loaded, NULL);
  const int64_t cases = dflash_golden_case_count(golden);
  for (int64_t i = 0; i < cases; i++) {
    print_message("%s: %s\n", path, dflash_golden_case_name(golden, i));
    check_case(golden, model, i);
  }
  backend->model_close(model);
  dflash_golden_close(golden);
  return cases;
}

static void test_every_golden(void **state) {
  (void)state;
  glob_t files;
  assert_int_equal(glob(DFLASH_GOLDEN_FOLDER "/*.h5", 0, NULL, &files), 0);
  int64_t cases = 0;
  for (size_t i = 0; i < files.gl_pathc; i++) cases += check_file(files.gl_pathv[i]);
  assert_true(files.gl_pathc >= 6 && cases >= 6);
  globfree(&files);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_golden)};
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
