#include "test_oracle_i8_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "dflash/backend.h"
#include "model/storage.h"

void i8_run(const DflashOracleCall *call) {
  DflashError error = {0};
  if (dflash_oracle_stage(call, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

/* Random nibbles, -8 among them, and random rungs of ladders around 2^-5. */
static void draw_q4tp(I8Product *p, int64_t cols, uint64_t seed) {
  DflashTensor *tensor = &p->weights.selector_hidden;
  DflashError error = {0};
  *tensor = (DflashTensor){.rank = 2, .shape = {I8_OUTPUTS, cols}, .storage = DFLASH_STORAGE_Q4TP};
  assert_int_equal(dflash_storage_bytes(DFLASH_STORAGE_Q4TP, I8_OUTPUTS, cols, &tensor->bytes, &error), DFLASH_OK);
  tensor->data = p->data = dflash_alloc((size_t)tensor->bytes, 1);
  assert_non_null(p->data);
  DflashRandom random = dflash_random_stream(seed, "q4tp");
  for (uint64_t i = 0; i < tensor->bytes; i++) p->data[i] = (unsigned char)dflash_random_below(random, i, 256);
  for (int64_t row = 0; row < I8_OUTPUTS; row++) {
    uint16_t ladder[2] = {dflash_f16_round(-6), dflash_f16_round(0.0625f)};
    memcpy(p->data + I8_OUTPUTS * cols / 2 + row * 4, ladder, sizeof ladder);
  }
  memset(p->data, 0, (size_t)cols / 2); /* a row of -8 */
}

void i8_product_open(I8Product *p, int64_t cols, uint64_t seed) {
  *p = (I8Product){.geometry = {.hidden = cols, .selector_rank = I8_OUTPUTS, .vocab = 5}};
  draw_q4tp(p, cols, seed);
  p->x = oracle_draw(seed, "x", (I8_ROWS + 1) * cols, 1);
  p->call = (DflashOracleCall){.geometry = &p->geometry,
                               .weights = &p->weights,
                               .profile = DFLASH_PROFILE_I8,
                               .stage = DFLASH_STAGE_SELECTOR_HIDDEN,
                               .sizes = {.rows = I8_ROWS + 1, .n_draft = I8_ROWS, .head_width = 5},
                               .inputs = {p->x},
                               .value = p->value,
                               .alone = p->alone};
}

void i8_product_close(I8Product *p) {
  free(p->x);
  free(p->data);
}

void i8_turn(DflashCase *c, const DflashGeometry *geometry) {
  DflashError error = {0};
  if (dflash_case_to_profile(c, geometry, DFLASH_PROFILE_I8, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

void i8_evaluate(const OracleModel *model, int32_t profile, DflashCase *c) {
  DflashError error = {0};
  DflashEvaluate options = {.geometry = &model->geometry,
                            .weights = &model->set.weights,
                            .profile = profile,
                            .values = true,
                            .scales_alone = true,
                            .scales_chain = true};
  if (dflash_evaluate_case(&options, c, &error) != DFLASH_OK) fail_msg("%s", error.message);
}
