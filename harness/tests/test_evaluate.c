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

#include "golden/oracle.h"
#include "load/golden.h"

static const char *const files[] = {"tiny-f32", "odd-groups", "operations", "sidecar-rewind", "far-bf16",
                                    "kernel4-empty"};
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fixtures)};
  return cmocka_run_group_tests_name("evaluate", tests, NULL, NULL);
}
