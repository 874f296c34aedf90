/* Attention's scale in 16 bits on data that random draws do not show: equal keys and values, whose rounding errors add
 * up, and inputs that vary so much that the first order of the softmax says little. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_oracle_half_rows.h"
#include "test_oracle_half_ways.h"
#include "test_oracle_model.h"

enum { BLOCK = 4, HEADS = 2, DIM = 32, CONTEXT = 120, WIDTH = HEADS * DIM, COUNT = BLOCK * WIDTH };
enum { INPUTS = 5 }; /* q, k, v of the block, K and V of the context */
static const int64_t input_rows[INPUTS] = {BLOCK, BLOCK, BLOCK, CONTEXT, CONTEXT};

typedef struct Fixture {
  DflashGeometry geometry;
  DflashWeights weights;
  DflashLayerWeights layer;
  float *inputs[INPUTS], *sigmas[INPUTS];
  DflashOracleCall call;
  float golden[COUNT], alone[COUNT], chain[COUNT];
} Fixture;

static void fixture_open(Fixture *f, int32_t profile, uint64_t seed, double sharpness) {
  static const char *const names[INPUTS] = {"q", "k", "v", "K", "V"};
  *f = (Fixture){.geometry = oracle_geometry()};
  f->geometry.heads = f->geometry.kv_heads = HEADS, f->geometry.head_dim = DIM, f->geometry.layers = 1;
  f->geometry.windows.count = f->geometry.no_rope.count = 0;
  f->weights.layers = &f->layer;
  f->call = (DflashOracleCall){.geometry = &f->geometry,
                               .weights = &f->weights,
                               .profile = profile,
                               .stage = DFLASH_STAGE_ATTN_MIX,
                               .sizes = {.rows = BLOCK, .context_len = CONTEXT, .n_draft = 1, .head_width = 5},
                               .position = CONTEXT,
                               .value = f->golden,
                               .alone = f->alone};
  for (int i = 0; i < INPUTS; i++) {
    f->inputs[i] = oracle_draw(seed, names[i], input_rows[i] * WIDTH, i == 0 ? sharpness : 1);
    f->call.inputs[i] = f->inputs[i];
  }
}

static void fixture_close(Fixture *f) {
  for (int i = 0; i < INPUTS; i++) {
    free(f->inputs[i]);
    free(f->sigmas[i]);
  }
}

static void run_oracle(const DflashOracleCall *call) {
  DflashError error = {0};
  if (dflash_oracle_stage(call, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

/* ---- equal rows ---- */

enum { EQUAL_VALUES, EQUAL_KEYS, TWO_KEYS, NO_QUERY, KINDS };
static const char *const kind_names[KINDS] = {"equal values", "equal keys", "two kinds of keys", "zero queries"};

/* Row j of an input becomes row j % period of the context's. */
static void repeat_rows(Fixture *f, int block, int context, int64_t period) {
  for (int64_t j = 0; j < BLOCK + CONTEXT; j++) {
    float *row = j < CONTEXT ? f->inputs[context] + j * WIDTH : f->inputs[block] + (j - CONTEXT) * WIDTH;
    if (row != f->inputs[context] + j % period * WIDTH)
      memcpy(row, f->inputs[context] + j % period * WIDTH, WIDTH * sizeof *row);
  }
}

static void shape(Fixture *f, int kind) {
  for (int i = 2; i < INPUTS; i += 2)
    for (int64_t at = 0; at < input_rows[i] * WIDTH; at++) f->inputs[i][at] = fabsf(f->inputs[i][at]);
  if (kind == EQUAL_VALUES) repeat_rows(f, 2, 4, 1);
  if (kind == EQUAL_KEYS) repeat_rows(f, 1, 3, 1);
  if (kind == TWO_KEYS) repeat_rows(f, 1, 3, 2);
  if (kind == TWO_KEYS) repeat_rows(f, 2, 4, 2);
  if (kind == NO_QUERY) memset(f->inputs[0], 0, COUNT * sizeof(float));
}

static void check_equal(int32_t profile, int kind) {
  Fixture f;
  Row row = {0};
  float got[COUNT];
  fixture_open(&f, profile, 5, 1);
  shape(&f, kind);
  run_oracle(&f.call);
  for (int way = 0; way < half_way_count; way++) {
    Stats stats = {0};
    if (half_ways[way].profile != profile) continue;
    half_stage(&half_ways[way], &f.call, got);
    stats_measure(&stats, got, f.golden, f.alone, COUNT);
    row_add(&row, &stats);
  }
  row_check(kind_names[kind], &row, 0.2);
  fixture_close(&f);
}

static void test_equal_rows(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    check_equal(DFLASH_PROFILE_F16, kind);
    check_equal(DFLASH_PROFILE_BF16, kind);
  }
}

/* ---- inputs that vary ---- */

static void vary(const Fixture *f, uint64_t seed, double deviation, float *varied[INPUTS]) {
  static const char *const names[INPUTS] = {"dq", "dk", "dv", "dK", "dV"};
  for (int i = 0; i < INPUTS; i++) {
    varied[i] = oracle_draw(seed, names[i], input_rows[i] * WIDTH, deviation);
    for (int64_t at = 0; at < input_rows[i] * WIDTH; at++) varied[i][at] = f->inputs[i][at] * (1 + varied[i][at]);
  }
}

/* Relative deviations of q, k and v against the chain's scale, computed exactly. */
static void check_varied(double sharpness, double deviation) {
  Fixture f;
  Row row = {0};
  Stats stats = {0};
  float got[COUNT], *varied[INPUTS];
  char what[64];
  fixture_open(&f, DFLASH_PROFILE_BF16, 7, sharpness);
  for (int i = 0; i < INPUTS; i++) {
    f.sigmas[i] = oracle_draw(0, "sigma", input_rows[i] * WIDTH, 1);
    for (int64_t at = 0; at < input_rows[i] * WIDTH; at++)
      f.sigmas[i][at] = (float)(fabsf(f.inputs[i][at]) * deviation);
    f.call.sigmas[i] = f.sigmas[i];
  }
  f.call.chain = f.chain;
  run_oracle(&f.call);
  for (uint64_t seed = 0; seed < 6; seed++) {
    DflashOracleCall other = f.call;
    other.profile = DFLASH_PROFILE_EXACT, other.alone = other.chain = NULL, other.value = got;
    vary(&f, seed, deviation, varied);
    for (int i = 0; i < INPUTS; i++) other.inputs[i] = varied[i];
    run_oracle(&other);
    stats_measure(&stats, got, f.golden, f.chain, COUNT);
    for (int i = 0; i < INPUTS; i++) free(varied[i]);
  }
  row_add(&row, &stats);
  snprintf(what, sizeof what, "scores of %g, deviations of %g", sharpness, deviation);
  row_check(what, &row, 0.05);
  fixture_close(&f);
}

static void test_varied_inputs(void **state) {
  (void)state;
  static const double deviations[] = {0.003, 0.03, 0.1, 0.3};
  for (int i = 0; i < 4; i++) {
    check_varied(1, deviations[i]);
    check_varied(6, deviations[i]);
    check_varied(30, deviations[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal_rows), cmocka_unit_test(test_varied_inputs)};
  return cmocka_run_group_tests_name("oracle_half_attention", tests, NULL, NULL);
}
