/* Which verdict comes first, what is inherited, what a case comes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include <cjson/cJSON.h>

#include "run/verdict.h"

static DflashVerdict *add(DflashVerdicts *list, int mode, int32_t stage, int64_t layer, int outcome) {
  DflashVerdict *v = dflash_verdict_add(list, mode, stage, layer, NULL);
  v->outcome = outcome;
  return v;
}

static void expect_first(DflashVerdicts *list, int mode, const char *label) {
  char text[64];
  const DflashVerdict *first = dflash_verdicts_first(list);
  assert_non_null(first);
  assert_int_equal(first->mode, mode);
  assert_string_equal(dflash_verdict_label(first, text), label);
}

/* Added from the end of the data flow to its beginning: each one becomes the first. */
static void test_the_first_in_data_flow(void **state) {
  (void)state;
  enum { BAD = DFLASH_OUTCOME_MISMATCH, CHAIN = DFLASH_MODE_CHAIN };
  DflashVerdicts list = {0};
  assert_null(dflash_verdicts_first(&list));
  add(&list, DFLASH_MODE_ALONE, DFLASH_STAGE_CONTEXT_FC, 0, DFLASH_OUTCOME_PASS);
  assert_null(dflash_verdicts_first(&list));
  dflash_verdict_add(&list, CHAIN, DFLASH_STAGE_NONE, -1, "repeat")->outcome = DFLASH_OUTCOME_UNREPEATABLE;
  expect_first(&list, CHAIN, "repeat");
  add(&list, CHAIN, DFLASH_STAGE_SELECT, 0, BAD);
  expect_first(&list, CHAIN, "select");
  add(&list, CHAIN, DFLASH_STAGE_FINAL_NORM, 0, BAD);
  expect_first(&list, CHAIN, "final.norm");
  add(&list, CHAIN, DFLASH_STAGE_ATTN_NORM, 1, BAD);
  expect_first(&list, CHAIN, "attn.norm/1");
  add(&list, CHAIN, DFLASH_STAGE_MLP_OUT, 0, BAD);
  expect_first(&list, CHAIN, "mlp.out/0");
  add(&list, CHAIN, DFLASH_STAGE_ATTN_MIX, 0, BAD);
  add(&list, DFLASH_MODE_LOCAL, DFLASH_STAGE_ATTN_MIX, 0, BAD);
  expect_first(&list, DFLASH_MODE_LOCAL, "attn.mix/0");
  dflash_verdict_add(&list, CHAIN, DFLASH_STAGE_NONE, 1, "context_state.k")->outcome = BAD;
  expect_first(&list, CHAIN, "context_state.k/1");
  add(&list, CHAIN, DFLASH_STAGE_CONTEXT_K, 1, DFLASH_OUTCOME_NONFINITE);
  expect_first(&list, CHAIN, "context.k/1");
  assert_int_equal(dflash_verdicts_outcome(&list, 0), DFLASH_OUTCOME_NONFINITE);
  dflash_verdicts_close(&list);
}

static void test_what_passes_alone_inherits(void **state) {
  (void)state;
  DflashVerdicts list = {0};
  add(&list, DFLASH_MODE_ALONE, DFLASH_STAGE_ATTN_Q, 0, DFLASH_OUTCOME_MISMATCH);
  add(&list, DFLASH_MODE_ALONE, DFLASH_STAGE_ATTN_MIX, 0, DFLASH_OUTCOME_PASS);
  add(&list, DFLASH_MODE_CHAIN, DFLASH_STAGE_ATTN_Q, 0, DFLASH_OUTCOME_MISMATCH);
  add(&list, DFLASH_MODE_CHAIN, DFLASH_STAGE_ATTN_MIX, 0, DFLASH_OUTCOME_MISMATCH);
  add(&list, DFLASH_MODE_CHAIN, DFLASH_STAGE_ATTN_OUT, 0, DFLASH_OUTCOME_MISMATCH);
  dflash_verdicts_inherit(&list);
  assert_false(list.at[0].inherited);
  assert_false(list.at[2].inherited); /* wrong on its own inputs as well */
  assert_true(list.at[3].inherited);
  assert_non_null(strstr(list.at[3].note, "first divergence is at attn.q/0"));
  assert_false(list.at[4].inherited); /* nothing is known of it alone */
  dflash_verdicts_close(&list);
}

static int outcome_with(const int *outcomes, int count, int allow_missing) {
  DflashVerdicts list = {0};
  for (int i = 0; i < count; i++) add(&list, DFLASH_MODE_CHAIN, DFLASH_STAGE_ATTN_Q, i, outcomes[i]);
  int outcome = dflash_verdicts_outcome(&list, allow_missing);
  dflash_verdicts_close(&list);
  return outcome;
}

static int outcome_of(const int *outcomes, int count) { return outcome_with(outcomes, count, 0); }

static void test_the_outcome_of_a_case(void **state) {
  (void)state;
  assert_int_equal(outcome_of(NULL, 0), DFLASH_OUTCOME_NOT_RUN);
  assert_int_equal(outcome_of((int[]){DFLASH_OUTCOME_COVERED}, 1), DFLASH_OUTCOME_NOT_RUN);
  assert_int_equal(outcome_of((int[]){DFLASH_OUTCOME_NOT_RUN, DFLASH_OUTCOME_UNSUPPORTED}, 2),
                   DFLASH_OUTCOME_UNSUPPORTED);
  assert_int_equal(outcome_of((int[]){DFLASH_OUTCOME_UNSUPPORTED, DFLASH_OUTCOME_NOT_TRUSTED}, 2),
                   DFLASH_OUTCOME_UNSUPPORTED);
  int some[] = {DFLASH_OUTCOME_PASS, DFLASH_OUTCOME_UNSUPPORTED};
  assert_int_equal(outcome_with(some, 2, 0), DFLASH_OUTCOME_UNSUPPORTED); /* not all that was selected ran */
  assert_int_equal(outcome_with(some, 2, 1), DFLASH_OUTCOME_PASS);
  assert_int_equal(outcome_with(some + 1, 1, 1), DFLASH_OUTCOME_UNSUPPORTED);
  assert_int_equal(outcome_of((int[]){DFLASH_OUTCOME_NOT_TRUSTED, DFLASH_OUTCOME_NEAR_TIE}, 2), DFLASH_OUTCOME_PASS);
  assert_int_equal(outcome_of((int[]){DFLASH_OUTCOME_PASS, DFLASH_OUTCOME_OVERRUN}, 2), DFLASH_OUTCOME_OVERRUN);
}

static void test_messages(void **state) {
  (void)state;
  DflashVerdict v = {.mode = DFLASH_MODE_ALONE,
                     .stage = DFLASH_STAGE_ATTN_MIX,
                     .layer = 2,
                     .outcome = DFLASH_OUTCOME_MISMATCH,
                     .compared = true,
                     .comparison = {.place = "row 3", .pattern = "one row (3)", .bad = 2, .elements = 8, .score = 4}};
  char text[900];
  dflash_verdict_message(&v, text, sizeof text);
  assert_string_equal(text,
                      "attn.mix/2 (alone): mismatch at row 3: got 0, expected 0, score 4; 2 of 8 elements off, one "
                      "row (3)");
  snprintf(v.comparison.cause, sizeof v.comparison.cause, "a race");
  dflash_verdict_message(&v, text, sizeof text);
  assert_non_null(strstr(text, "one row (3) (usually: a race)"));
  cJSON *record = dflash_verdict_record(&v);
  assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(record, "cause")), "a race");
  cJSON_Delete(record);
  v.comparison.bad = 0;
  dflash_verdict_note(&v, DFLASH_OUTCOME_OVERRUN, "wrote outside its output: element %d past its end", 1);
  dflash_verdict_message(&v, text, sizeof text);
  assert_string_equal(text, "attn.mix/2 (alone): overrun: wrote outside its output: element 1 past its end");
}

static void test_records_hold_what_is_not_finite(void **state) {
  (void)state;
  cJSON *object = cJSON_CreateObject();
  dflash_record_number(object, "a", NAN);
  dflash_record_number(object, "b", INFINITY);
  dflash_record_number(object, "c", -INFINITY);
  dflash_record_number(object, "d", 0.25);
  char *text = cJSON_PrintUnformatted(object);
  assert_string_equal(text, "{\"a\":\"nan\",\"b\":\"inf\",\"c\":\"-inf\",\"d\":0.25}");
  free(text);
  cJSON_Delete(object);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_first_in_data_flow),          cmocka_unit_test(test_what_passes_alone_inherits),
      cmocka_unit_test(test_the_outcome_of_a_case),           cmocka_unit_test(test_messages),
      cmocka_unit_test(test_records_hold_what_is_not_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
