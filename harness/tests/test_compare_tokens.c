#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compare/compare.h"

enum { DRAFT = 2, WIDTH = 6, TOP = 3, ANCHOR = 5 };

static const DflashGeometry geometry = {.vocab = WIDTH, .selector_top = TOP, .selector_rank = 1, .block = 4};

/* score(row, previous, candidate) = logit + bonus[previous][candidate] */
typedef struct World {
  float logits[DRAFT * WIDTH], sigma[DRAFT * WIDTH];
  double bonus[WIDTH][WIDTH], score_sigma;
  int32_t golden_chosen[DRAFT], golden_plain[DRAFT], golden_candidates[DRAFT * TOP];
  int32_t chosen[DRAFT], plain[DRAFT], candidates[DRAFT * TOP];
  bool bare; /* the backend gives no candidates */
} World;

static double score(void *context, int64_t row, int32_t previous, int32_t candidate, double *sigma) {
  const World *w = context;
  *sigma = w->score_sigma;
  return (double)w->logits[row * WIDTH + candidate] + w->bonus[previous][candidate];
}

static World world(void) {
  World w = {.logits = {1, 5, 3, 4, 0, 2, 7, 1, 6, 0, 5, 2},
             .golden_chosen = {3, 6 % WIDTH},
             .golden_plain = {1, 0},
             .golden_candidates = {1, 3, 2, 0, 2, 4},
             .score_sigma = 1e-6};
  w.bonus[ANCHOR][3] = 2; /* row 0: 3 beats 1 */
  w.golden_chosen[1] = 0;
  memcpy(w.chosen, w.golden_chosen, sizeof w.chosen);
  memcpy(w.plain, w.golden_plain, sizeof w.plain);
  memcpy(w.candidates, w.golden_candidates, sizeof w.candidates);
  for (int i = 0; i < DRAFT * WIDTH; i++) w.sigma[i] = 1e-6f;
  return w;
}

static DflashTokenVerdict judge(World *w, bool exact) {
  DflashTokensValue golden = {.chosen = w->golden_chosen, .plain = w->golden_plain, .candidates = w->golden_candidates};
  DflashTokenCall call = {.geometry = &geometry,
                          .sizes = {.n_draft = DRAFT, .head_width = WIDTH},
                          .anchor_token = ANCHOR,
                          .golden_logits = w->logits,
                          .logits_sigma = exact ? NULL : w->sigma,
                          .golden = &golden,
                          .chosen = w->chosen,
                          .plain = w->plain,
                          .candidates = w->bare ? NULL : w->candidates,
                          .score = score,
                          .score_context = w};
  DflashTokenVerdict out;
  dflash_compare_tokens(&call, &out);
  return out;
}

static void the_same_tokens_pass(void **state) {
  (void)state;
  World w = world();
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_PASS);
}

static void a_wrong_choice_is_named_by_row(void **state) {
  (void)state;
  World w = world();
  w.chosen[0] = 1;
  DflashTokenVerdict v = judge(&w, false);
  assert_int_equal(v.outcome, DFLASH_OUTCOME_MISMATCH);
  assert_int_equal(v.row, 0);
  assert_non_null(strstr(v.message, "chosen 1, golden 3"));
}

/* A close decision may fall the other way; the next row is then judged from the backend's token. */
static void a_near_tie_continues_from_the_backend_s_token(void **state) {
  (void)state;
  World w = world();
  w.bonus[ANCHOR][3] = 1.000001; /* 3 leads 1 by 1e-6 only */
  w.bonus[1][2] = 5;             /* after 1, row 1 goes to 2 */
  w.chosen[0] = 1;
  w.chosen[1] = 2;
  DflashTokenVerdict v = judge(&w, false);
  assert_int_equal(v.outcome, DFLASH_OUTCOME_NEAR_TIE);
  assert_int_equal(v.near_ties, 1);
  w.chosen[1] = 0; /* what the golden chose after 3 is wrong after 1 */
  v = judge(&w, false);
  assert_int_equal(v.outcome, DFLASH_OUTCOME_MISMATCH);
  assert_int_equal(v.row, 1);
}

static void candidates_are_judged_at_the_cut(void **state) {
  (void)state;
  World w = world();
  w.candidates[2] = 5; /* logit 2 in place of logit 3 */
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_MISMATCH);
  w.logits[5] = 3.0f - 4e-6f; /* now within the error of the cut */
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_NEAR_TIE);
  assert_int_equal(judge(&w, true).outcome, DFLASH_OUTCOME_MISMATCH);
}

static void candidate_lists_are_ordered_and_without_repeats(void **state) {
  (void)state;
  World w = world();
  w.candidates[0] = 3;
  w.candidates[1] = 1;
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_MISMATCH);
  w = world();
  w.candidates[2] = 3;
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_MISMATCH);
}

/* Token 0 is near the cut, so 2 may be missing; 1 and 3, which lead by far, may not. */
static void a_missing_candidate_must_be_near_the_cut(void **state) {
  (void)state;
  World w = world();
  w.logits[0] = 3.0f - 4e-6f;
  w.candidates[2] = 0;
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_NEAR_TIE);
  w.candidates[1] = 2; /* 1, 2, 0: 3 is not there */
  w.chosen[0] = 1;
  DflashTokenVerdict v = judge(&w, false);
  assert_int_equal(v.outcome, DFLASH_OUTCOME_MISMATCH);
  assert_int_equal(v.row, 0);
  assert_non_null(strstr(v.message, "candidate 3 is missing"));
}

/* The best of the golden's candidates stands at the cut, and another token near it: a backend that tells no candidates
 * may have lost it, and chosen what is best without it. */
static void a_choice_without_what_the_cut_may_lose_is_a_near_tie(void **state) {
  (void)state;
  World w = world();
  w.bare = true;
  w.bonus[ANCHOR][2] = 50; /* row 0: 2, at the cut, beats all by far */
  w.golden_chosen[0] = 2;
  w.chosen[0] = 3; /* the best but for 2 */
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_MISMATCH);
  w.logits[5] = 3.0f - 4e-6f;
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_NEAR_TIE);
  w.bonus[ANCHOR][5] = 40;
  w.chosen[0] = 5; /* or what came in its place */
  w.chosen[1] = 2; /* the best after 5 */
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_NEAR_TIE);
  w.chosen[0] = 1; /* 3, which cannot be lost, is better */
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_MISMATCH);
  w.chosen[0] = 3;
  assert_int_equal(judge(&w, true).outcome, DFLASH_OUTCOME_MISMATCH);
  w.bare = false; /* the backend says that it had 2 */
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_MISMATCH);
}

/* Two leaders at the cut are lost to two others, not to one. */
static void one_token_displaces_one_candidate(void **state) {
  (void)state;
  World w = world();
  w.bare = true;
  w.logits[3] = 3.0f + 4e-6f;
  w.logits[5] = 3.0f - 4e-6f;
  w.bonus[ANCHOR][2] = w.bonus[ANCHOR][3] = 50;
  w.golden_chosen[0] = 3;
  w.chosen[0] = 1;
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_MISMATCH);
  w.logits[0] = 3.0f - 4e-6f;
  assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_NEAR_TIE);
}

/* Equal logits without error go to the lower id. */
static void exact_ties_go_to_the_lower_id(void **state) {
  (void)state;
  World w = world();
  w.logits[5] = 3; /* token 5 ties with token 2 at the cut */
  assert_int_equal(judge(&w, true).outcome, DFLASH_OUTCOME_PASS);
  w.candidates[2] = 5;
  assert_int_equal(judge(&w, true).outcome, DFLASH_OUTCOME_MISMATCH);
  w = world();
  w.logits[3] = 5; /* token 3 ties with token 1 for the top */
  w.plain[0] = 3;
  assert_int_equal(judge(&w, true).outcome, DFLASH_OUTCOME_MISMATCH);
}

static void ids_out_of_range_are_unwritten(void **state) {
  (void)state;
  const int32_t ids[] = {-1, WIDTH, 0x7fc0dea1};
  for (int i = 0; i < 3; i++) {
    World w = world();
    w.plain[1] = ids[i];
    assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_UNWRITTEN);
    w = world();
    w.candidates[4] = ids[i];
    assert_int_equal(judge(&w, false).outcome, DFLASH_OUTCOME_UNWRITTEN);
  }
}

static void outcomes_have_names_that_read_back(void **state) {
  (void)state;
  for (int i = 0; i < DFLASH_OUTCOME_COUNT; i++) assert_int_equal(dflash_outcome_find(dflash_outcome_name(i)), i);
  assert_int_equal(dflash_outcome_find("fine"), -1);
  assert_true(dflash_outcome_is_failure(-1));
  assert_false(dflash_outcome_is_failure(DFLASH_OUTCOME_NOT_RUN));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_tokens_pass),
      cmocka_unit_test(a_wrong_choice_is_named_by_row),
      cmocka_unit_test(a_near_tie_continues_from_the_backend_s_token),
      cmocka_unit_test(candidates_are_judged_at_the_cut),
      cmocka_unit_test(candidate_lists_are_ordered_and_without_repeats),
      cmocka_unit_test(a_missing_candidate_must_be_near_the_cut),
      cmocka_unit_test(a_choice_without_what_the_cut_may_lose_is_a_near_tie),
      cmocka_unit_test(one_token_displaces_one_candidate),
      cmocka_unit_test(exact_ties_go_to_the_lower_id),
      cmocka_unit_test(ids_out_of_range_are_unwritten),
      cmocka_unit_test(outcomes_have_names_that_read_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
