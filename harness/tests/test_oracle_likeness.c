/* Errors of rows that are alike add up linearly, those of others as squares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "golden/oracle.h"
#include "golden/oracle_likeness.h"

enum { HIDDEN = 4, ROWS = 4, TAPS = 3, WIDTH = 2 * TAPS };

static void rows_are_alike_or_not(void **state) {
  (void)state;
  const float equal[] = {1, 2, 1, 2, 2, 4}, across[] = {1, 0, 0, 1}, against[] = {1, 0, 1, 0, -3, 0};
  const float one[] = {1, 1, 0, 0};
  double out[3];
  dflash_likeness(equal, 3, 2, out);
  for (int r = 0; r < 3; r++) assert_true(fabs(out[r] - 1) < 1e-12);
  dflash_likeness(across, 2, 2, out);
  for (int r = 0; r < 2; r++) assert_true(fabs(out[r] - sqrt(0.5)) < 1e-12);
  dflash_likeness(against, 3, 2, out);
  assert_true(fabs(out[0] - 1) < 1e-12 && out[2] == 0);
  dflash_likeness(one, 2, 2, out);
  assert_true(fabs(out[0] - 1) < 1e-12 && out[1] == 0);
}

/* sigma of conv_in's last row for taps of coefficient 1 on rows that carry sigma 1. */
static float conv_sigma(const float *x) {
  float base[2 * TAPS * HIDDEN], kernel[ROWS * WIDTH] = {0}, ones[ROWS * HIDDEN], value[ROWS * HIDDEN],
                                               chain[ROWS * HIDDEN];
  for (int i = 0; i < 2 * TAPS * HIDDEN; i++) base[i] = 1;
  for (int i = 0; i < ROWS * HIDDEN; i++) ones[i] = 1;
  DflashGeometry g = {.hidden = HIDDEN, .layers = 1, .conv_group = HIDDEN, .conv_kernel = TAPS, .block = ROWS};
  DflashLayerWeights layer = {.attention_conv_base = {.rank = 3, .shape = {2, TAPS, HIDDEN}, .data = base}};
  DflashWeights weights = {.layers = &layer};
  DflashOracleCall call = {.geometry = &g,
                           .weights = &weights,
                           .stage = DFLASH_STAGE_ATTN_CONV_IN,
                           .sizes = {.rows = ROWS},
                           .inputs = {x, kernel},
                           .sigmas = {ones},
                           .value = value,
                           .chain = chain};
  DflashError error;
  assert_int_equal(dflash_oracle_stage(&call, &error), DFLASH_OK);
  return chain[(ROWS - 1) * HIDDEN];
}

static void a_convolution_of_equal_rows_adds_their_errors(void **state) {
  (void)state;
  float equal[ROWS * HIDDEN], apart[ROWS * HIDDEN] = {0};
  for (int i = 0; i < ROWS * HIDDEN; i++) equal[i] = (float)(1 + i % HIDDEN);
  for (int r = 0; r < ROWS; r++) apart[r * HIDDEN + r] = r % 2 ? 1.0f : -1.0f;
  assert_true(fabs((double)conv_sigma(equal) - 3) < 1e-5);
  float independent = conv_sigma(apart); /* rows at right angles still share a mean direction */
  assert_true(independent >= sqrtf(3) - 1e-5f && independent < 2.3f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_alike_or_not),
                                     cmocka_unit_test(a_convolution_of_equal_rows_adds_their_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
