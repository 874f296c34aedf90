/* Every stage in 16 bits, alone and in the chain of a drawn block, against the error scales of profiles f16 and bf16.
 * DFLASH_TABLE=1 prints the table that docs/error-scale.md shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "test_oracle_half_rows.h"
#include "test_oracle_half_ways.h"
#include "test_oracle_model.h"

static const char *const profile_names[] = {"exact", "i8", "f16", "bf16"};

typedef struct Chain {
  OracleModel model;
  DflashCase golden, own; /* own: the values of one way, which flow from stage to stage */
  int32_t profile;
  Stats alone[DFLASH_STAGE_COUNT], chain[DFLASH_STAGE_COUNT];
} Chain;

typedef struct Drawn {
  const char *name;
  DflashGeometry geometry;
  int32_t storage;
  int64_t context;
  float gain;     /* of the queries' norm: larger ones make attention sharper */
  float outliers; /* factor of every 61st channel of taps and embeddings */
  float common;   /* what all rows of taps have in common: added to one channel of each tap */
} Drawn;

static DflashGeometry drawn_geometry(void) {
  DflashGeometry g = oracle_geometry();
  g.hidden = 128, g.intermediate = 256, g.heads = 4, g.kv_heads = 2, g.head_dim = 32, g.conv_group = 16;
  g.conv_kernel = 2, g.vocab = 300, g.mask_token = 299, g.selector_rank = 32, g.selector_top = 8, g.layers = 3;
  g.block = 8, g.windows.count = g.no_rope.count = 0;
  return g;
}

static void put_outliers(DflashCase *c, const DflashGeometry *g, float factor) {
  for (int64_t i = 0; i < c->sizes.rows * g->hidden; i += 61) c->h[i] *= factor;
  for (int64_t i = 0; i < c->tap_rows * dflash_geometry_tap_width(g); i += 61) c->taps[i] *= factor;
}

static void put_common(DflashCase *c, const DflashGeometry *g, float value) {
  for (int64_t i = 0; i < c->tap_rows * dflash_geometry_tap_width(g); i += g->hidden) c->taps[i] += value;
}

static void open_case(DflashCase *c, const Drawn *drawn) {
  oracle_case_open(c, &drawn->geometry, 1000, drawn->context, 1000 + drawn->context, 3);
  put_outliers(c, &drawn->geometry, drawn->outliers);
  put_common(c, &drawn->geometry, drawn->common);
}

static void chain_open(Chain *chain, const Drawn *drawn, int32_t profile) {
  const DflashGeometry *g = &drawn->geometry;
  *chain = (Chain){.profile = profile};
  oracle_model_open(&chain->model, g, drawn->storage, 3);
  for (int64_t l = 0; l < g->layers; l++)
    for (int64_t i = 0; i < g->head_dim; i++)
      ((float *)(uintptr_t)chain->model.set.layers[l].q_norm.data)[i] *= drawn->gain;
  open_case(&chain->golden, drawn);
  open_case(&chain->own, drawn);
  chain->golden.profile = profile;
  DflashEvaluate options = {.geometry = &chain->model.geometry,
                            .weights = &chain->model.set.weights,
                            .profile = profile,
                            .values = true,
                            .scales_alone = true,
                            .scales_chain = true};
  DflashError error = {0};
  if (dflash_evaluate_case(&options, &chain->golden, &error) != DFLASH_OK) fail_msg("%s", error.message);
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

static void run_way(Chain *chain, const HalfWay *way, const DflashCase *from, int32_t stage, int64_t layer,
                    float *out) {
  const DflashGeometry *g = &chain->model.geometry;
  bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  DflashOracleCall call = {.geometry = g,
                           .weights = &chain->model.set.weights,
                           .profile = chain->profile,
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
  half_stage(way, &call, out);
}

/* Scores of the golden's own candidates, after the golden's own tokens. */
static void measure_scores(Chain *chain, const HalfWay *way, const DflashCase *from, const float *sigma, Stats *stats) {
  const DflashGeometry *g = &chain->model.geometry;
  const DflashTokensValue *tokens = &chain->golden.tokens;
  const float *logits = dflash_case_value(from, DFLASH_STAGE_HEAD_LOGITS, 0)->data;
  const float *hidden = dflash_case_value(from, DFLASH_STAGE_SELECTOR_HIDDEN, 0)->data;
  for (int64_t at = 0; at < chain->golden.sizes.n_draft * g->selector_top; at++) {
    int64_t row = at / g->selector_top;
    int32_t candidate = tokens->candidates[at];
    int32_t previous = row > 0 ? tokens->chosen[row - 1] : (int32_t)chain->golden.anchor_token;
    float golden = (float)tokens->scores[at];
    float got = half_score(way, &chain->model.set.weights, logits[row * chain->golden.sizes.head_width + candidate],
                           hidden + row * g->selector_rank, g->selector_rank, previous, candidate);
    stats_measure(stats, &got, &golden, &sigma[at], 1);
  }
}

static void measure_way(Chain *chain, const HalfWay *way) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(&chain->model.geometry, i, &stage, &layer); i++) {
    if (stage == DFLASH_STAGE_SELECT) continue;
    const DflashValue *golden = dflash_case_value(&chain->golden, stage, layer);
    DflashValue *own = dflash_case_value(&chain->own, stage, layer);
    int64_t count = golden->rows * golden->width;
    if (!own->data) own->data = dflash_alloc((size_t)count, sizeof *own->data);
    own->data_owned = true;
    run_way(chain, way, &chain->golden, stage, layer, own->data);
    stats_measure(&chain->alone[stage], own->data, golden->data, golden->alone, count);
    run_way(chain, way, &chain->own, stage, layer, own->data);
    stats_measure(&chain->chain[stage], own->data, golden->data, golden->chain, count);
  }
  measure_scores(chain, way, &chain->golden, chain->golden.tokens.alone, &chain->alone[DFLASH_STAGE_SELECT]);
  measure_scores(chain, way, &chain->own, chain->golden.tokens.chain, &chain->chain[DFLASH_STAGE_SELECT]);
}

static void check_rows(const Drawn *drawn, int32_t profile, const char *mode, const Row *rows) {
  char what[96];
  for (int32_t stage = 0; stage <= DFLASH_STAGE_SELECT; stage++) {
    snprintf(what, sizeof what, "%s%s, %s: %s", profile_names[profile], drawn->name, mode,
             dflash_stage_row(stage)->name);
    /* sharp attention has few sources of error, which count more than what a single run shows */
    row_check(what, &rows[stage], strstr(drawn->name, "sharp") != NULL ? 0.05 : 0.2);
  }
}

static void check_chain(const Drawn *drawn, int32_t profile) {
  Row alone[DFLASH_STAGE_COUNT] = {0}, inside[DFLASH_STAGE_COUNT] = {0};
  Chain chain;
  chain_open(&chain, drawn, profile);
  for (int way = 0; way < half_way_count; way++) {
    if (half_ways[way].profile != profile) continue;
    memset(chain.alone, 0, sizeof chain.alone);
    memset(chain.chain, 0, sizeof chain.chain);
    measure_way(&chain, &half_ways[way]);
    for (int32_t stage = 0; stage <= DFLASH_STAGE_SELECT; stage++) {
      row_add(&alone[stage], &chain.alone[stage]);
      row_add(&inside[stage], &chain.chain[stage]);
    }
  }
  check_rows(drawn, profile, "alone", alone);
  check_rows(drawn, profile, "chain", inside);
  chain_close(&chain);
}

static void check_both(const Drawn *drawn) {
  check_chain(drawn, DFLASH_PROFILE_F16);
  check_chain(drawn, DFLASH_PROFILE_BF16);
}

static void test_stages(void **state) {
  (void)state;
  check_both(&(Drawn){"", drawn_geometry(), ORACLE_MIXED, 60, 1, 1, 0});
}

static void test_outliers(void **state) {
  (void)state;
  check_both(&(Drawn){" outliers", drawn_geometry(), DFLASH_STORAGE_Q8_2F, 60, 1, 300, 0});
}

static void test_sharp_attention(void **state) {
  (void)state;
  Drawn drawn = {" sharp", drawn_geometry(), DFLASH_STORAGE_BF16, 200, 6, 1, 0};
  drawn.geometry.layers = 2;
  check_both(&drawn);
}

/* Many keys, seen alike: of the errors of their V only what they share is left, here that of rounding the gains. */
static void test_shared_gains(void **state) {
  (void)state;
  Drawn drawn = {" shared", drawn_geometry(), DFLASH_STORAGE_BF16, 400, 0.125F, 1, 16};
  drawn.geometry.layers = 1;
  check_chain(&drawn, DFLASH_PROFILE_BF16);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stages), cmocka_unit_test(test_outliers),
                                     cmocka_unit_test(test_sharp_attention), cmocka_unit_test(test_shared_gains)};
  return cmocka_run_group_tests_name("oracle_half_chain", tests, NULL, NULL);
}
