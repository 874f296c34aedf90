/* The reference backend's options order, fma and terms: other bits, the same values within what f32 allows. */
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

enum { ROWS = 5, LEN = 200, SIZE_MAX_OUT = 512 };

/* A stage on drawn inputs, in the default way and with one option. */
typedef struct Case {
  int stage;
  const char *key, *value;
} Case;

static void run(const Case *c, const char *key, float *out) {
  const DflashGeometry g = tiny_geometry();
  DflashModel *model = tiny_model_as(backend, g, DFLASH_PROFILE_EXACT, key, c->value);
  DflashSequence *sequence = tiny_sequence(backend, model, 0);
  float *inputs[DFLASH_STAGE_INPUTS];
  int32_t chosen[ROWS - 1], plain[ROWS - 1];
  DflashTokens tokens = {sizeof tokens, chosen, plain, NULL, out};
  DflashStageCall call = {.struct_size = sizeof call,
                          .stage = c->stage,
                          .rows = ROWS,
                          .position = LEN,
                          .n_draft = ROWS - 1,
                          .head_width = g.vocab,
                          .context_len = LEN,
                          .output = out,
                          .tokens = &tokens};
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
    const char *names[] = {"in 0", "in 1", "in 2", "in 3", "in 4"};
    call.inputs[i] = inputs[i] = tiny_draw(names[i], LEN * 64);
  }
  /* The selector's part of a score, against which the logit must not drown its rounding. */
  for (int i = 0; c->stage == DFLASH_STAGE_SELECT && i < LEN; i++) inputs[1][i] *= 64;
  memset(out, 0, SIZE_MAX_OUT * sizeof *out);
  if (backend->stage(sequence, &call, &error) != DFLASH_OK) fail_msg("%s", error.message);
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) free(inputs[i]);
  backend->sequence_close(sequence);
  backend->model_close(model);
}

/* Every kind of sum that is long enough for the option to matter; values are of order 1. */
static void test_every_sum_follows_the_options(void **state) {
  (void)state;
  const Case cases[] = {
      {DFLASH_STAGE_CONTEXT_FC, "order", "backward"}, {DFLASH_STAGE_CONTEXT_FC, "order", "pairwise"},
      {DFLASH_STAGE_CONTEXT_FC, "order", "lanes16"},  {DFLASH_STAGE_CONTEXT_FC, "order", "blocks128"},
      {DFLASH_STAGE_CONTEXT_FC, "order", "split3"},   {DFLASH_STAGE_CONTEXT_FC, "fma", "1"},
      {DFLASH_STAGE_FINAL_NORM, "order", "backward"}, {DFLASH_STAGE_ATTN_Q, "fma", "1"},
      {DFLASH_STAGE_ATTN_Q, "order", "pairwise"},     {DFLASH_STAGE_ATTN_MIX, "order", "backward"},
      {DFLASH_STAGE_ATTN_MIX, "order", "blocks128"},  {DFLASH_STAGE_ATTN_MIX, "fma", "1"},
      {DFLASH_STAGE_ATTN_MIX, "terms", "apart"},      {DFLASH_STAGE_ATTN_CONV_IN, "order", "backward"},
      {DFLASH_STAGE_ATTN_CONV_IN, "terms", "apart"},  {DFLASH_STAGE_ATTN_CONV_IN, "fma", "1"},
      {DFLASH_STAGE_MLP_OUT, "terms", "apart"},       {DFLASH_STAGE_SELECTOR_HIDDEN, "order", "split3"},
      {DFLASH_STAGE_SELECT, "order", "backward"},     {DFLASH_STAGE_SELECT, "fma", "1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float usual[SIZE_MAX_OUT], other[SIZE_MAX_OUT];
    run(&cases[i], NULL, usual);
    run(&cases[i], cases[i].key, other);
    double worst = 0, largest = 0;
    for (int n = 0; n < SIZE_MAX_OUT; n++) {
      worst = fmax(worst, fabs((double)usual[n] - other[n]));
      largest = fmax(largest, fabs((double)usual[n]));
    }
    if (!(worst > 0)) fail_msg("case %d: %s=%s changes nothing", (int)i, cases[i].key, cases[i].value);
    if (!(worst < 2e-6 * largest)) fail_msg("case %d: off by %g of %g", (int)i, worst, largest);
  }
}

/* Options change nothing that is not a sum, and "terms" no product of a matrix. */
static void test_other_stages_do_not_follow(void **state) {
  (void)state;
  const Case cases[] = {{DFLASH_STAGE_MLP_ACT, "order", "backward"},
                        {DFLASH_STAGE_MLP_ACT, "fma", "1"},
                        {DFLASH_STAGE_CONTEXT_FC, "terms", "apart"},
                        {DFLASH_STAGE_FINAL_NORM, "terms", "apart"},
                        {DFLASH_STAGE_CONTEXT_FC, "order", "forward"},
                        {DFLASH_STAGE_ATTN_MIX, "terms", "plain"},
                        {DFLASH_STAGE_ATTN_MIX, "fma", "0"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float usual[SIZE_MAX_OUT], other[SIZE_MAX_OUT];
    run(&cases[i], NULL, usual);
    run(&cases[i], cases[i].key, other);
    assert_memory_equal(usual, other, sizeof usual);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_sum_follows_the_options),
      cmocka_unit_test(test_other_stages_do_not_follow),
  };
  return cmocka_run_group_tests(tests, load_backend, NULL);
}
