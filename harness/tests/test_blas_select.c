/* The selection alone: order, ties, NaN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "blas_fixture.h"
#include "model/storage.h"

enum { VOCAB = 4999, ROWS = 4, RANK = 5 };

typedef struct Bench {
  const DflashBackend *blas;
  TestModel test;
  DflashModel *model;
  DflashSequence *sequence;
  float *logits;
  float hidden[ROWS * RANK];
  BlockOutput output;
} Bench;

static void open_bench(Bench *b, int64_t top) {
  const ModelPlan plan = {"select", 16, 16, 1, 1, 1, 2, VOCAB, ROWS + 1, 16, 1, RANK, top, 1, 0, DFLASH_STORAGE_F16};
  *b = (Bench){.blas = load_blas()};
  draw_model(&b->test, &plan, 3);
  b->model = open_model(b->blas, &b->test, NULL);
  b->sequence = open_sequence(b->blas, b->model, 0);
  b->logits = dflash_alloc((size_t)ROWS * VOCAB, sizeof(float));
  assert_non_null(b->logits);
  b->output.tokens =
      (DflashTokens){.struct_size = sizeof b->output.tokens, .chosen = b->output.chosen, .plain = b->output.plain};
}

static void close_bench(Bench *b) {
  b->blas->sequence_close(b->sequence);
  b->blas->model_close(b->model);
  free(b->logits);
  free_model(&b->test);
}

static DflashStatus run(Bench *b, int64_t width, DflashError *error) {
  const DflashStageCall call = {.struct_size = sizeof call,
                                .stage = DFLASH_STAGE_SELECT,
                                .n_draft = ROWS,
                                .head_width = width,
                                .anchor_token = 17,
                                .inputs = {b->logits, b->hidden},
                                .tokens = &b->output.tokens};
  return b->blas->stage(b->sequence, &call, error);
}

static const float *sorted_logits;

static int by_rank(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  if (sorted_logits[a] != sorted_logits[b]) return sorted_logits[a] > sorted_logits[b] ? -1 : 1;
  return a < b ? -1 : a > b;
}

static void assert_order(const Bench *b, int64_t width, int64_t top, const int32_t *candidates) {
  int32_t order[VOCAB];
  for (int row = 0; row < ROWS; row++) {
    for (int32_t i = 0; i < width; i++) order[i] = i;
    sorted_logits = b->logits + row * width;
    qsort(order, (size_t)width, sizeof *order, by_rank);
    assert_memory_equal(candidates + row * top, order, (size_t)top * sizeof *order);
    assert_int_equal(b->output.plain[row], order[0]);
  }
}

/* Few distinct values (ties everywhere, at the cut too), rising and falling rows, +0 beside -0, infinities. */
static void fill(Bench *b, int64_t width, int kind) {
  const DflashRandom random = dflash_random_stream(9, "logits");
  for (int64_t i = 0; i < ROWS * width; i++) {
    const int32_t draw = (int32_t)(dflash_random_u32(random, (uint64_t)i) >> 1);
    switch (kind) {
    case 0:
      b->logits[i] = (float)(draw % 7) - 3;
      break;
    case 1:
      b->logits[i] = (float)(i % width);
      break;
    case 2:
      b->logits[i] = -(float)(i % width);
      break;
    case 3:
      b->logits[i] = draw % 2 ? 0.0f : -0.0f;
      break;
    case 4:
      b->logits[i] = draw % 5 ? -INFINITY : (float)draw;
      break;
    default:
      b->logits[i] = (float)draw * 1e-6f - 3000;
      break;
    }
  }
}

static void order_of_candidates(void **state) {
  (void)state;
  static const int64_t TOPS[] = {1, 16, 129, VOCAB};
  for (size_t t = 0; t < sizeof TOPS / sizeof TOPS[0]; t++) {
    Bench b;
    open_bench(&b, TOPS[t]);
    int32_t *candidates = dflash_alloc((size_t)(ROWS * TOPS[t]), sizeof *candidates);
    b.output.tokens.candidates = candidates;
    const int64_t widths[] = {TOPS[t], TOPS[t] < VOCAB - 131 ? TOPS[t] + 130 : VOCAB, VOCAB};
    for (int w = 0; w < 3; w++)
      for (int kind = 0; kind < 6; kind++) {
        fill(&b, widths[w], kind);
        assert_int_equal(run(&b, widths[w], NULL), DFLASH_OK);
        assert_order(&b, widths[w], TOPS[t], candidates);
      }
    free(candidates);
    close_bench(&b);
  }
}

/* Each row's score depends on the token chosen before it; a large selector term overturns the order of logits. */
static void walk_depends_on_the_token_before(void **state) {
  (void)state;
  Bench b;
  float scores[ROWS * 16];
  open_bench(&b, 16);
  fill(&b, VOCAB, 5);
  for (int i = 0; i < ROWS * RANK; i++) b.hidden[i] = (float)(i % 3 - 1) * 4000;
  b.output.tokens.candidates = b.output.candidates;
  b.output.tokens.scores = scores;
  assert_int_equal(run(&b, VOCAB, NULL), DFLASH_OK);
  int64_t previous = 17;
  int overturned = 0;
  for (int row = 0; row < ROWS; row++) {
    int best = 0;
    for (int c = 0; c < 16; c++) {
      const int32_t token = b.output.candidates[row * 16 + c];
      double score = b.logits[row * VOCAB + token];
      for (int i = 0; i < RANK; i++)
        score += dflash_tensor_at(&b.test.weights.predecessor, previous, i) * b.hidden[row * RANK + i] *
                 dflash_tensor_at(&b.test.weights.successor, token, i);
      assert_true(fabs(score - scores[row * 16 + c]) <= 1e-6 * fabs(score));
      if (scores[row * 16 + c] > scores[row * 16 + best]) best = c;
    }
    previous = b.output.candidates[row * 16 + best];
    assert_int_equal(b.output.chosen[row], previous);
    overturned += best != 0;
  }
  assert_true(overturned > 0);
  close_bench(&b);
}

static void nan_is_an_error_and_writes_nothing(void **state) {
  (void)state;
  static const int64_t PLACES[] = {0, 15, 16, 143, 2500, VOCAB - 1};
  Bench b;
  DflashError error;
  open_bench(&b, 16);
  for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0]; i++)
    for (int sign = 0; sign < 2; sign++) {
      fill(&b, VOCAB, 5);
      b.logits[2 * VOCAB + PLACES[i]] = sign ? -NAN : NAN;
      b.output.chosen[0] = b.output.plain[0] = -77;
      assert_int_equal(run(&b, VOCAB, &error), DFLASH_NONFINITE);
      assert_int_equal(b.output.chosen[0], -77);
      assert_int_equal(b.output.plain[0], -77);
    }
  fill(&b, VOCAB, 5);
  b.hidden[3 * RANK + 1] = NAN;
  assert_int_equal(run(&b, VOCAB, &error), DFLASH_NONFINITE);
  assert_non_null(strstr(error.message, "row 3"));
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_of_candidates),
      cmocka_unit_test(walk_depends_on_the_token_before),
      cmocka_unit_test(nan_is_an_error_and_writes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
