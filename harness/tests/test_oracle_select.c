/* Candidates, the walk, scores and their scales. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/oracle.h"
#include "model/storage.h"
#include "test_oracle_model.h"

enum { ROWS = 3, WIDTH = 12, TOP = 4, RANK = 5, VOCAB = 20 };

typedef struct Fixture {
  DflashGeometry geometry;
  DflashWeights weights;
  float predecessor[VOCAB * RANK], successor[VOCAB * RANK];
  float logits[ROWS * WIDTH], hidden[ROWS * RANK];
  int32_t chosen[ROWS], plain[ROWS], candidates[ROWS * TOP];
  double scores[ROWS * TOP];
  float alone[ROWS * TOP], chain[ROWS * TOP];
  DflashTokensValue out;
  DflashOracleSelect call;
} Fixture;

static void draw(float *out, int64_t count, const char *name) {
  float *values = oracle_draw(21, name, count, 1);
  memcpy(out, values, (size_t)count * sizeof *out);
  free(values);
}

static DflashTensor codebook(const float *data) {
  return (DflashTensor){DFLASH_STORAGE_F32, 2, {VOCAB, RANK}, VOCAB * RANK * sizeof *data, data};
}

static int open_fixture(void **state) {
  Fixture *f = calloc(1, sizeof *f);
  f->geometry = (DflashGeometry){.vocab = VOCAB, .selector_rank = RANK, .selector_top = TOP};
  draw(f->predecessor, VOCAB * RANK, "p");
  draw(f->successor, VOCAB * RANK, "c");
  draw(f->logits, ROWS * WIDTH, "logits");
  draw(f->hidden, ROWS * RANK, "hidden");
  f->weights.predecessor = codebook(f->predecessor);
  f->weights.successor = codebook(f->successor);
  f->out = (DflashTokensValue){f->chosen, f->plain, f->candidates, f->scores, f->alone, f->chain};
  f->call = (DflashOracleSelect){.geometry = &f->geometry,
                                 .weights = &f->weights,
                                 .sizes = {.rows = ROWS + 1, .n_draft = ROWS, .head_width = WIDTH},
                                 .anchor_token = 17,
                                 .logits = f->logits,
                                 .hidden = f->hidden,
                                 .out = &f->out};
  *state = f;
  return 0;
}

static int close_fixture(void **state) {
  free(*state);
  return 0;
}

static void run(Fixture *f) {
  DflashError error = {0};
  if (dflash_oracle_select(&f->call, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static void refuse(Fixture *f, DflashStatus status, const char *words) {
  DflashError error = {0};
  assert_int_equal(dflash_oracle_select(&f->call, &error), status);
  if (!strstr(error.message, words)) fail_msg("%s", error.message);
}

static long double naive_score(const Fixture *f, int row, int32_t previous, int32_t candidate) {
  long double score = f->logits[row * WIDTH + candidate];
  for (int i = 0; i < RANK; i++)
    score += (long double)f->predecessor[previous * RANK + i] * f->hidden[row * RANK + i] *
             f->successor[candidate * RANK + i];
  return score;
}

static void test_walk(void **state) {
  Fixture *f = *state;
  run(f);
  int32_t previous = 17;
  for (int row = 0; row < ROWS; row++) {
    int best = 0;
    for (int i = 0; i < TOP; i++) {
      int at = row * TOP + i;
      assert_true(fabsl(naive_score(f, row, previous, f->candidates[at]) - f->scores[at]) < 1e-12L);
      if (f->scores[at] > f->scores[row * TOP + best]) best = i;
      assert_true(i == 0 ||
                  f->logits[row * WIDTH + f->candidates[at - 1]] > f->logits[row * WIDTH + f->candidates[at]]);
      assert_true(f->alone[at] > 0 && f->chain[at] == f->alone[at]);
    }
    assert_int_equal(f->plain[row], f->candidates[row * TOP]);
    assert_int_equal(f->chosen[row], f->candidates[row * TOP + best]);
    previous = f->chosen[row];
  }
}

static void test_ties(void **state) {
  Fixture *f = *state;
  for (int i = 0; i < WIDTH; i++) f->logits[i] = i == 9 || i == 3 ? 2 : i == 5 ? 0.0f : i == 4 ? -0.0f : -1;
  memset(f->successor, 0, sizeof f->successor);
  run(f);
  static const int32_t expected[TOP] = {3, 9, 4, 5};
  assert_memory_equal(f->candidates, expected, sizeof expected);
  assert_int_equal(f->chosen[0], 3); /* equal scores: the first candidate */
}

static void test_forced(void **state) {
  Fixture *f = *state;
  run(f);
  int32_t forced[ROWS] = {-1, 11, -1}, first = f->chosen[0];
  f->call.forced_previous = forced;
  run(f);
  assert_int_equal(f->chosen[0], first);
  assert_true(fabsl(naive_score(f, 1, 11, f->candidates[TOP]) - f->scores[TOP]) < 1e-12L);
  assert_true(fabsl(naive_score(f, 2, f->chosen[1], f->candidates[2 * TOP]) - f->scores[2 * TOP]) < 1e-12L);
  float alone, chain;
  double score = dflash_oracle_score(&f->call, 1, 11, f->candidates[TOP], &alone, &chain);
  assert_true(score == f->scores[TOP] && alone == f->alone[TOP] && chain == f->chain[TOP]);
  forced[1] = VOCAB;
  refuse(f, DFLASH_INVALID_ARGUMENT, "token 20");
}

static void test_scales(void **state) {
  Fixture *f = *state;
  float logits_sigma[ROWS * WIDTH] = {0}, hidden_sigma[ROWS * RANK] = {0};
  for (int i = 0; i < ROWS * WIDTH; i++) logits_sigma[i] = 0.5f;
  for (int i = 0; i < ROWS * RANK; i++) hidden_sigma[i] = 0.25f;
  f->call.logits_sigma = logits_sigma, f->call.hidden_sigma = hidden_sigma;
  run(f);
  for (int i = 0; i < TOP; i++) {
    double variance = 0.25;
    for (int k = 0; k < RANK; k++) {
      double slope = (double)f->predecessor[17 * RANK + k] * f->successor[f->candidates[i] * RANK + k];
      variance += slope * slope / 16;
    }
    assert_true(fabs(f->chain[i] / sqrt(variance) - 1) < 1e-5);
  }
}

static void test_nonfinite(void **state) {
  Fixture *f = *state;
  f->logits[WIDTH + 7] = -INFINITY; /* no number to choose, but a number to compare */
  run(f);
  f->logits[2 * WIDTH + 3] = NAN;
  refuse(f, DFLASH_NONFINITE, "head.logits is NaN in row 2, column 3");
  f->logits[2 * WIDTH + 3] = 0;
  f->hidden[RANK + 4] = NAN;
  refuse(f, DFLASH_NONFINITE, "selector.hidden is NaN in row 1, column 4");
  f->hidden[RANK + 4] = INFINITY;
  memset(f->successor, 0, sizeof f->successor);
  refuse(f, DFLASH_NONFINITE, "the score");
}

static void test_refusals(void **state) {
  Fixture *f = *state;
  f->call.sizes.head_width = TOP - 1;
  refuse(f, DFLASH_INVALID_ARGUMENT, "head_width is 3, valid: 4 .. 20");
  f->call.sizes.head_width = VOCAB + 1;
  refuse(f, DFLASH_INVALID_ARGUMENT, "head_width");
  f->call.sizes.head_width = WIDTH;
  f->call.anchor_token = -1;
  refuse(f, DFLASH_INVALID_ARGUMENT, "token -1");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_walk, open_fixture, close_fixture),
                                     cmocka_unit_test_setup_teardown(test_ties, open_fixture, close_fixture),
                                     cmocka_unit_test_setup_teardown(test_forced, open_fixture, close_fixture),
                                     cmocka_unit_test_setup_teardown(test_scales, open_fixture, close_fixture),
                                     cmocka_unit_test_setup_teardown(test_nonfinite, open_fixture, close_fixture),
                                     cmocka_unit_test_setup_teardown(test_refusals, open_fixture, close_fixture)};
  return cmocka_run_group_tests_name("oracle_select", tests, NULL, NULL);
}
