/* The reference backend: candidates, ties, the walk, NaN. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ties_go_to_the_lower_token),
      cmocka_unit_test(test_all_candidates_are_kept_when_the_head_is_that_short),
      cmocka_unit_test(test_nan_anywhere_is_an_error),
      cmocka_unit_test(test_scores_follow_the_walk),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
