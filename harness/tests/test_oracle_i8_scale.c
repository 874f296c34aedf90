/* The error scale of profile i8 against f32 implementations, with golden inputs and with inputs that are off.
 * DFLASH_TABLE=1 prints the table that docs/error-scale.md shows. */
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
#include "compare/compare.h"
#include "dflash/backend.h"
#include "golden/oracle_i8.h"
#include "test_oracle_i8_model.h"
#include "test_oracle_i8_naive.h"

static double spacing(float value) {
  float size = fabsf(value);
  return (double)nextafterf(size, INFINITY) - (double)size;
}

/* ---- error scales ---- */

typedef struct Stats {
  double squares, max, score; /* of z = error / sigma; score as the gate computes it */
  int64_t count;
} Stats;

static double rms(const Stats *s) { return s->count ? sqrt(s->squares / (double)s->count) : 0; }

static void measure(Stats *stats, const float *got, const float *golden, const float *sigma, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    double error = fabs((double)got[i] - (double)golden[i]);
    assert_false(isnan(error) || isnan(sigma[i]));
    double z = sigma[i] > 0 ? error / (double)sigma[i] : error > 0 ? INFINITY : 0;
    double score = error / (DFLASH_LAMBDA * (double)sigma[i] + spacing(golden[i]) / 2 + 0x1p-149);
    stats->squares += z * z;
    stats->max = fmax(stats->max, z);
    stats->score = fmax(stats->score, score);
    stats->count++;
  }
}

static void show(const char *what, const char *way, const Stats *s) {
  if (getenv("DFLASH_TABLE"))
    print_message("| %-30s | %-16s | %5.2f | %5.2f | %5.3f |\n", what, way, rms(s), s->max, s->score);
}

/* Inputs are golden: only products with scale and step, and the sum over groups, round. */
static void test_alone(void **state) {
  (void)state;
  static const int64_t widths[] = {32, 64, 896, 5120};
  for (int i = 0; i < 4; i++) {
    I8Product p;
    char what[32];
    double highest = 0;
    float got[I8_ROWS * I8_OUTPUTS];
    i8_product_open(&p, widths[i], 60);
    i8_run(&p.call);
    snprintf(what, sizeof what, "alone, %d columns", (int)widths[i]);
    for (int way = 0; way < f32_way_count; way++) {
      Stats stats = {0};
      i8_stage(&f32_ways[way], &p.call, got);
      measure(&stats, got, p.value, p.alone, I8_ROWS * I8_OUTPUTS);
      show(what, f32_ways[way].name, &stats);
      if (stats.score > 0.5) fail_msg("%s %s: score %g", what, f32_ways[way].name, stats.score);
      highest = fmax(highest, rms(&stats));
    }
    if (highest < 0.3 || highest > 1.5) fail_msg("%s: highest rms %g", what, highest);
    i8_product_close(&p);
  }
}

/* Inputs off by draws of their sigma, from a share of the step far below a half to all of the activation. */
static Stats measure_moves(int64_t cols, float deviation, int draws) {
  I8Product p;
  Stats stats = {0};
  float got[I8_ROWS * I8_OUTPUTS];
  i8_product_open(&p, cols, 61);
  float *sigma = dflash_alloc((size_t)((I8_ROWS + 1) * cols), sizeof *sigma), *x = p.x;
  float *moved = dflash_alloc((size_t)((I8_ROWS + 1) * cols), sizeof *moved);
  assert_true(sigma && moved);
  for (int64_t k = 0; k < (I8_ROWS + 1) * cols; k++) sigma[k] = deviation;
  p.call.sigmas[0] = sigma, p.call.chain = p.chain;
  i8_run(&p.call);
  for (int draw = 0; draw < draws; draw++) {
    float *error = oracle_draw(100 + (uint64_t)draw, "error", (I8_ROWS + 1) * cols, (double)deviation);
    for (int64_t k = 0; k < (I8_ROWS + 1) * cols; k++) moved[k] = x[k] + error[k];
    p.call.inputs[0] = moved;
    i8_stage(&f32_ways[draw % f32_way_count], &p.call, got);
    measure(&stats, got, p.value, p.chain, I8_ROWS * I8_OUTPUTS);
    free(error);
  }
  free(sigma);
  free(moved);
  i8_product_close(&p);
  return stats;
}

static void test_moves(void **state) {
  (void)state;
  static const int64_t widths[] = {64, 896, 5120};
  for (int i = 0; i < 3; i++)
    for (int power = -7; power <= 0; power++) {
      char what[40];
      float deviation = (float)pow(10, power);
      Stats stats = measure_moves(widths[i], deviation, widths[i] > 1000 ? 2 : 14);
      snprintf(what, sizeof what, "%d columns, off by 1e%d", (int)widths[i], power);
      show(what, "all", &stats);
      if (stats.score > 0.7) fail_msg("%s: score %g", what, stats.score);
    }
}

/* ---- expected moves ---- */

enum { COUNT_GROUPS = 40, DRAWS = 250 };

typedef struct Counted {
  double expected, found, expected_squares, found_squares; /* sums over groups of moves, in steps */
} Counted;

static void count_group(Counted *sums, const float *x, float deviation, uint64_t seed) {
  int16_t codes[I8_GROUP], movable[I8_GROUP] = {0};
  double moves, step, sway = 0;
  float counts[I8_GROUP] = {0}, squares[I8_GROUP] = {0}, reach[I8_GROUP] = {0}, sigma[I8_GROUP], moved[I8_GROUP];
  step = dflash_i8_quantise(x, codes);
  DflashI8 i8 = {1, I8_GROUP, 1, codes, &step, &moves, counts, squares, reach, movable, &sway};
  for (int k = 0; k < I8_GROUP; k++) sigma[k] = deviation;
  dflash_i8_moves(&i8, 0, 0, x, sigma);
  float *errors = oracle_draw(seed, "moves", DRAWS * I8_GROUP, (double)deviation);
  for (int draw = 0; draw < DRAWS; draw++) {
    for (int k = 0; k < I8_GROUP; k++) moved[k] = x[k] + errors[draw * I8_GROUP + k];
    I8Group group = i8_group(moved);
    for (int k = 0; k < I8_GROUP; k++) {
      double by = fabs(group.codes[k] - (double)codes[k]);
      sums->found += by / DRAWS, sums->found_squares += by * by / DRAWS;
    }
  }
  free(errors);
  for (int k = 0; k < I8_GROUP; k++) sums->expected += (double)counts[k], sums->expected_squares += (double)squares[k];
}

/* The expected number of codes that change is the number that do, within what the draws can tell. */
static void test_expected_moves(void **state) {
  (void)state;
  static const float deviations[] = {1e-4f, 3e-4f, 1e-3f, 3e-3f, 1e-2f};
  float *x = oracle_draw(80, "groups", COUNT_GROUPS * I8_GROUP, 1);
  for (int i = 0; i < 5; i++) {
    Counted sums = {0, 0, 0, 0};
    for (int g = 0; g < COUNT_GROUPS; g++) count_group(&sums, x + g * I8_GROUP, deviations[i], 81 + (uint64_t)g);
    double ratio = sums.expected / sums.found, squares = sums.expected_squares / sums.found_squares;
    if (getenv("DFLASH_TABLE"))
      print_message("| %g | %.4g | %.4g | %.3f | %.3f |\n", (double)deviations[i], sums.expected, sums.found, ratio,
                    squares);
    if (ratio < 0.9 || ratio > 1.25 || squares < 0.9 || squares > 1.25)
      fail_msg("off by %g: %g moves expected, %g found, squares %g", (double)deviations[i], sums.expected, sums.found,
               squares);
  }
  free(x);
}

static void test_lambda(void **state) {
  (void)state;
  assert_true(DFLASH_I8_LAMBDA == DFLASH_LAMBDA);
}

/* On a half step a code changes every second time; six sigmas away it does not. */
static void test_half_steps(void **state) {
  (void)state;
  int16_t codes[I8_GROUP], movable[I8_GROUP] = {0};
  double moves, step, sway = 0;
  float counts[I8_GROUP] = {0}, squares[I8_GROUP] = {0}, reach[I8_GROUP] = {0}, sigma[I8_GROUP] = {0};
  float x[I8_GROUP] = {127, 3.5f, -3.5f, 3.4f, 0};
  step = dflash_i8_quantise(x, codes);
  DflashI8 i8 = {1, I8_GROUP, 1, codes, &step, &moves, counts, squares, reach, movable, &sway};
  for (int k = 1; k < 5; k++) sigma[k] = 0.01f;
  dflash_i8_moves(&i8, 0, 0, x, sigma);
  assert_float_equal(counts[1], 0.5f, 1e-3f);
  assert_float_equal(counts[2], 0.5f, 1e-3f);
  assert_true(counts[3] < 1e-20f && reach[3] == 1 && movable[3] == -1); /* ten sigmas away */
  assert_true(counts[4] == 0 && reach[4] == 0 && movable[4] == 0);
  assert_true(counts[0] == 0 && reach[0] == 0 && sway == 0);
  assert_true(moves == 1);
}

/* ---- a whole block ---- */

typedef struct Chain {
  OracleModel model;
  DflashCase golden, own; /* own: the values of one f32 way, which flow from stage to stage */
  Stats alone[DFLASH_STAGE_COUNT], chain[DFLASH_STAGE_COUNT], nudged[DFLASH_STAGE_COUNT];
} Chain;

static DflashGeometry chain_geometry(void) {
  DflashGeometry g = oracle_geometry();
  g.hidden = 256, g.intermediate = 512, g.heads = 8, g.kv_heads = 2, g.head_dim = 64, g.conv_group = 16;
  g.conv_kernel = 2, g.vocab = 600, g.mask_token = 599, g.selector_rank = 32, g.selector_top = 8, g.layers = 2;
  g.block = 8, g.windows.count = g.no_rope.count = 0;
  return g;
}

static void chain_open(Chain *chain, const DflashGeometry *g, int32_t storage, int64_t context, uint64_t seed) {
  *chain = (Chain){0};
  oracle_model_open(&chain->model, g, storage, seed);
  oracle_case_open(&chain->golden, g, 1000, context, 1000 + context, seed);
  oracle_case_open(&chain->own, g, 1000, context, 1000 + context, seed);
  i8_turn(&chain->golden, g);
  i8_evaluate(&chain->model, DFLASH_PROFILE_I8, &chain->golden);
}

static void chain_close(Chain *chain) {
  dflash_case_close(&chain->own);
  dflash_case_close(&chain->golden);
  oracle_model_close(&chain->model);
}

/* One push that is all of the context: the held K and V are the last stages over context rows. */
static const float *input_of(const DflashCase *c, int32_t source, int64_t layer) {
  switch (source) {
  case DFLASH_STAGE_TAPS:
    return c->taps;
  case DFLASH_STAGE_RESIDUAL:
    return c->h;
  case DFLASH_STAGE_HELD_K:
    return dflash_case_value(c, DFLASH_STAGE_CONTEXT_K, layer)->data;
  case DFLASH_STAGE_HELD_V:
    return dflash_case_value(c, DFLASH_STAGE_CONTEXT_V_PROJ, layer)->data;
  default:
    return dflash_case_value(c, source, layer)->data;
  }
}

static void run_way(Chain *chain, const F32Way *way, const DflashCase *from, int32_t stage, int64_t layer, float *out) {
  const DflashGeometry *g = &chain->model.geometry;
  bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  DflashOracleCall call = {.geometry = g,
                           .weights = &chain->model.set.weights,
                           .stage = stage,
                           .layer = layer,
                           .sizes = chain->golden.sizes,
                           .position = context ? chain->golden.ops[0].pos : chain->golden.anchor_pos,
                           .context_first = chain->golden.context_first};
  for (int i = 0; i < DFLASH_STAGE_INPUTS && dflash_stage_row(stage)->inputs[i] != DFLASH_STAGE_NONE; i++) {
    int64_t source_layer;
    int32_t source = dflash_stage_source(g, stage, layer, i, &source_layer);
    call.inputs[i] = input_of(from, source, source_layer);
  }
  i8_stage(way, &call, out);
}

/* The first layer's output off by draws of its sigma: as if codes had been rounded the other way before it. */
static void nudge(const DflashValue *golden, float *own, uint64_t seed) {
  int64_t count = golden->rows * golden->width;
  float *draws = oracle_draw(seed, "nudge", count, 1);
  for (int64_t i = 0; i < count; i++) own[i] = golden->data[i] + draws[i] * golden->chain[i];
  free(draws);
}

/* seed 0: as the way computes; otherwise attn.out/0 is nudged. */
static void measure_way(Chain *chain, const F32Way *way, uint64_t seed) {
  int32_t stage;
  int64_t layer;
  bool nudged = false;
  for (int64_t i = 0; dflash_stage_walk(&chain->model.geometry, i, &stage, &layer); i++) {
    if (stage == DFLASH_STAGE_SELECT) continue;
    const DflashValue *golden = dflash_case_value(&chain->golden, stage, layer);
    DflashValue *own = dflash_case_value(&chain->own, stage, layer);
    int64_t count = golden->rows * golden->width;
    if (!own->data) own->data = dflash_alloc((size_t)count, sizeof *own->data);
    own->data_owned = true;
    run_way(chain, way, &chain->golden, stage, layer, own->data);
    measure(&chain->alone[stage], own->data, golden->data, golden->alone, count);
    run_way(chain, way, &chain->own, stage, layer, own->data);
    measure(nudged ? &chain->nudged[stage] : &chain->chain[stage], own->data, golden->data, golden->chain, count);
    if (seed == 0 || stage != DFLASH_STAGE_ATTN_OUT || layer != 0) continue;
    nudge(golden, own->data, seed);
    nudged = true;
  }
}

static void check_chain(const DflashGeometry *g, int32_t storage, int64_t context, uint64_t seed) {
  Chain chain;
  chain_open(&chain, g, storage, context, seed);
  for (int way = 0; way < f32_way_count; way += 3) {
    measure_way(&chain, &f32_ways[way], 0);
    measure_way(&chain, &f32_ways[way], 70 + (uint64_t)way);
  }
  for (int32_t stage = 0; stage < DFLASH_STAGE_SELECT; stage++) {
    const char *what = dflash_stage_row(stage)->name;
    const Stats *alone = &chain.alone[stage], *flow = &chain.chain[stage], *nudged = &chain.nudged[stage];
    show(what, "alone", alone);
    show(what, "chain", flow);
    show(what, "nudged", nudged);
    if (alone->score > 0.6 || flow->score > 0.7 || nudged->score > 0.7)
      fail_msg("%s: score %g alone, %g in the chain, %g nudged", what, alone->score, flow->score, nudged->score);
    if (rms(alone) < 0.2 || (nudged->count > 0 && rms(nudged) < 0.2))
      fail_msg("%s: rms %g alone, %g nudged", what, rms(alone), rms(nudged));
  }
  chain_close(&chain);
}

static void test_chain(void **state) {
  (void)state;
  DflashGeometry g = chain_geometry();
  check_chain(&g, DFLASH_STORAGE_Q4TP, 20, 3);
  check_chain(&g, ORACLE_MIXED, 20, 4);
}

/* ---- heads ---- */

enum { HEAD_WIDTH = 2 * 16 };

/* attn.k of one row at position 0, whose angles are 0: both layers give the same values, turned or not. */
static void head_scales(const OracleModel *m, int64_t layer, const float *x, const float *sigma, float *chain) {
  float value[HEAD_WIDTH], alone[HEAD_WIDTH];
  DflashOracleCall call = {.geometry = &m->geometry,
                           .weights = &m->set.weights,
                           .profile = DFLASH_PROFILE_I8,
                           .stage = DFLASH_STAGE_ATTN_K,
                           .layer = layer,
                           .sizes = {.rows = 1, .n_draft = 1, .head_width = 5},
                           .inputs = {x},
                           .sigmas = {sigma},
                           .value = value,
                           .alone = alone,
                           .chain = chain};
  i8_run(&call);
}

/* A code that moves takes all channels of a head along, whether its layer rotates or not. */
static void test_heads_without_rotation(void **state) {
  (void)state;
  OracleModel m;
  DflashGeometry g = oracle_geometry();
  float turned[HEAD_WIDTH], plain[HEAD_WIDTH], *sigma;
  g.heads = g.kv_heads = 2, g.head_dim = 16, g.layers = 2;
  assert_true(g.no_rope.count == 1 && g.no_rope.at[0] == 1);
  oracle_model_open(&m, &g, DFLASH_STORAGE_Q4TP, 5);
  memcpy((void *)(uintptr_t)m.set.layers[1].k_norm.data, m.set.layers[0].k_norm.data, 16 * sizeof(float));
  float *x = oracle_draw(5, "k", HEAD_WIDTH, 1);
  sigma = oracle_draw(5, "sigma", HEAD_WIDTH, 0.01);
  for (int i = 0; i < HEAD_WIDTH; i++) sigma[i] = fabsf(sigma[i]);
  head_scales(&m, 0, x, sigma, turned);
  head_scales(&m, 1, x, sigma, plain);
  for (int i = 0; i < HEAD_WIDTH; i++) assert_float_equal(plain[i], turned[i], turned[i] * 1e-3f);
  free(x);
  free(sigma);
  oracle_model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alone),      cmocka_unit_test(test_moves),  cmocka_unit_test(test_expected_moves),
      cmocka_unit_test(test_half_steps), cmocka_unit_test(test_lambda), cmocka_unit_test(test_heads_without_rotation),
      cmocka_unit_test(test_chain)};
  return cmocka_run_group_tests_name("oracle_i8_scale", tests, NULL, NULL);
}
