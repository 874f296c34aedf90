/* The error scale against arithmetic: f32 implementations with several orders of summation, on data of several
 * kinds, must show errors of about one sigma and never come near the gate. DFLASH_TABLE=1 prints the table that
 * docs/error-scale.md shows. */
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
#include "test_oracle_f32.h"
#include "test_oracle_model.h"

typedef struct Stats {
  double squares, max, score; /* of z = error / sigma; score as the gate computes it */
  int64_t count;
} Stats;

static double rms(const Stats *s) { return s->count ? sqrt(s->squares / (double)s->count) : 0; }

static double floor_of(float golden) {
  double size = fabs((double)golden);
  return ((double)nextafterf((float)size, INFINITY) - size) / 2 + 0x1p-149;
}

static void measure(Stats *stats, const float *got, const float *golden, const float *sigma, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    double error = fabs((double)got[i] - (double)golden[i]);
    assert_false(isnan(error) || isnan(sigma[i]));
    double z = sigma[i] > 0 ? error / sigma[i] : error > 0 ? INFINITY : 0;
    double score = error / (DFLASH_LAMBDA * sigma[i] + floor_of(golden[i]));
    stats->squares += z * z;
    stats->max = fmax(stats->max, z);
    stats->score = fmax(stats->score, score);
    stats->count++;
  }
}

static void show(const char *what, const char *way, const Stats *s) {
  if (getenv("DFLASH_TABLE"))
    print_message("| %-34s | %-16s | %5.2f | %5.2f | %5.3f |\n", what, way, rms(s), s->max, s->score);
}

static void run_oracle(const DflashOracleCall *call) {
  DflashError error = {0};
  if (dflash_oracle_stage(call, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

/* ---- sums of products ---- */

enum { NORMAL, ONE_SIGNED, CANCELLING, OUTLIERS, RAMP, COARSE, EQUAL, KINDS };
static const char *const kind_names[] = {"normal", "one sign", "halves cancel", "outliers",
                                         "sorted", "8 bits",   "equal"};
enum { ROWS = 4, OUTPUTS = 48 };

static int by_value(const void *a, const void *b) {
  float left = *(const float *)a, right = *(const float *)b;
  return (left > right) - (left < right);
}

static float coarse(float value) { return ldexpf(roundf(ldexpf(value, 4)), -4); }

/* x [ROWS, n] or w [OUTPUTS, n]. */
static void shape_data(int kind, float *x, int64_t rows, int64_t n, bool weights) {
  for (int64_t r = 0; r < rows; r++) {
    float *row = x + r * n;
    for (int64_t i = 0; i < n; i++) {
      if (kind == ONE_SIGNED || kind == CANCELLING) row[i] = fabsf(row[i]);
      if (kind == CANCELLING && weights && i >= n / 2) row[i] = -row[i];
      if (kind == OUTLIERS && !weights && (i * 7919 + r * 31) % 97 == 0) row[i] *= 1e4f;
      if (kind == COARSE) row[i] = coarse(row[i]);
      if (kind == EQUAL) row[i] = row[0];
    }
    if (kind == RAMP && !weights) qsort(row, (size_t)n, sizeof *row, by_value);
    for (int64_t i = 0; kind == RAMP && weights && i < n; i++) row[i] = 1 + 0.1f * row[i];
  }
}

typedef struct Product {
  DflashGeometry geometry;
  DflashWeights weights; /* only selector_hidden */
  float *x;
  DflashOracleCall call;
  float golden[ROWS * OUTPUTS], sigma[ROWS * OUTPUTS];
} Product;

static void product_open(Product *p, int64_t n, int kind, int32_t storage) {
  *p = (Product){.geometry = {.hidden = n, .selector_rank = OUTPUTS, .vocab = 5},
                 .weights.selector_hidden = {.rank = 2, .shape = {OUTPUTS, n}}};
  float *w = oracle_draw(5, "w", OUTPUTS * n, 1);
  p->x = oracle_draw(6, "x", (ROWS + 1) * n, 1);
  shape_data(kind, w, OUTPUTS, n, true);
  shape_data(kind, p->x, ROWS + 1, n, false);
  oracle_tensor_set(&p->weights.selector_hidden, storage, w);
  free(w);
  p->call = (DflashOracleCall){.geometry = &p->geometry,
                               .weights = &p->weights,
                               .stage = DFLASH_STAGE_SELECTOR_HIDDEN,
                               .sizes = {.rows = ROWS + 1, .n_draft = ROWS, .head_width = 5},
                               .inputs = {p->x},
                               .value = p->golden,
                               .alone = p->sigma};
  run_oracle(&p->call);
}

static void product_close(Product *p) {
  free(p->x);
  free((void *)(uintptr_t)p->weights.selector_hidden.data);
}

/* Largest and smallest rms over the ways, for one kind of data. */
static void check_products(int64_t n, int kind, int32_t storage, const char *storage_name) {
  Product p;
  char what[64];
  double highest = 0;
  float *got = dflash_alloc(ROWS * OUTPUTS, sizeof *got);
  product_open(&p, n, kind, storage);
  snprintf(what, sizeof what, "%s, %lld columns, %s", kind_names[kind], (long long)n, storage_name);
  for (int way = 0; way < f32_way_count; way++) {
    Stats stats = {0};
    f32_stage(&f32_ways[way], &p.call, got);
    measure(&stats, got, p.golden, p.sigma, ROWS * OUTPUTS);
    show(what, f32_ways[way].name, &stats);
    if (stats.max > 5 || stats.score > 0.5)
      fail_msg("%s %s: z %g score %g", what, f32_ways[way].name, stats.max, stats.score);
    highest = fmax(highest, rms(&stats));
  }
  if (kind != EQUAL && kind != COARSE && (highest < 0.3 || highest > 1.5))
    fail_msg("%s: highest rms %g", what, highest);
  free(got);
  product_close(&p);
}

static void test_products(void **state) {
  (void)state;
  static const int64_t sizes[] = {5, 64, 896, 5120, 17408};
  for (int s = 0; s < 5; s++)
    for (int kind = 0; kind < KINDS; kind++) check_products(sizes[s], kind, DFLASH_STORAGE_F32, "f32");
  for (int kind = 0; kind < KINDS; kind++) {
    check_products(896, kind, DFLASH_STORAGE_Q8_2F, "q8_2f");
    check_products(896, kind, DFLASH_STORAGE_Q4TP, "q4tp");
    check_products(64, kind, DFLASH_STORAGE_Q8_2F, "q8_2f");
  }
}

/* ---- every stage, alone and in the chain ---- */

typedef struct Chain {
  OracleModel model;
  DflashCase golden, own; /* own: the values of one f32 way, which flow from stage to stage */
  Stats alone[DFLASH_STAGE_COUNT], chain[DFLASH_STAGE_COUNT];
} Chain;

static DflashGeometry chain_geometry(void) {
  DflashGeometry g = oracle_geometry();
  g.hidden = 256, g.intermediate = 512, g.heads = 8, g.kv_heads = 2, g.head_dim = 64, g.conv_group = 16;
  g.conv_kernel = 2, g.vocab = 600, g.mask_token = 599, g.selector_rank = 32, g.selector_top = 8, g.layers = 3;
  g.block = 8, g.windows.count = g.no_rope.count = 0;
  return g;
}

/* gain: of the queries' norm; larger ones make attention sharper. */
static void chain_open(Chain *chain, const DflashGeometry *g, int32_t storage, int64_t context, float gain) {
  const uint64_t seed = 3;
  *chain = (Chain){0};
  oracle_model_open(&chain->model, g, storage, seed);
  for (int64_t l = 0; l < g->layers; l++)
    for (int64_t i = 0; i < g->head_dim; i++) ((float *)(uintptr_t)chain->model.set.layers[l].q_norm.data)[i] *= gain;
  oracle_case_open(&chain->golden, g, 1000, context, 1000 + context, seed);
  oracle_case_open(&chain->own, g, 1000, context, 1000 + context, seed);
  DflashEvaluate options = {.geometry = &chain->model.geometry,
                            .weights = &chain->model.set.weights,
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
  f32_stage(way, &call, out);
}

static void measure_way(Chain *chain, const F32Way *way) {
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
    measure(&chain->alone[stage], own->data, golden->data, golden->alone, count);
    run_way(chain, way, &chain->own, stage, layer, own->data);
    measure(&chain->chain[stage], own->data, golden->data, golden->chain, count);
  }
}

static void check_stage(const char *mode, int32_t stage, const F32Way *way, const Stats *stats) {
  char what[64];
  snprintf(what, sizeof what, "%s, %s", dflash_stage_row(stage)->name, mode);
  show(what, way->name, stats);
  if (stats->max > 6 || stats->score > 0.6 || rms(stats) > 1.5)
    fail_msg("%s %s: rms %g max %g score %g", what, way->name, rms(stats), stats->max, stats->score);
}

static void check_chain(const DflashGeometry *g, int32_t storage, int64_t context, float gain) {
  double highest_alone[DFLASH_STAGE_COUNT] = {0}, highest_chain[DFLASH_STAGE_COUNT] = {0};
  Chain chain;
  chain_open(&chain, g, storage, context, gain);
  for (int way = 0; way < f32_way_count; way++) {
    memset(chain.alone, 0, sizeof chain.alone);
    memset(chain.chain, 0, sizeof chain.chain);
    measure_way(&chain, &f32_ways[way]);
    for (int32_t stage = 0; stage < DFLASH_STAGE_SELECT; stage++) {
      check_stage("alone", stage, &f32_ways[way], &chain.alone[stage]);
      check_stage("chain", stage, &f32_ways[way], &chain.chain[stage]);
      highest_alone[stage] = fmax(highest_alone[stage], rms(&chain.alone[stage]));
      highest_chain[stage] = fmax(highest_chain[stage], rms(&chain.chain[stage]));
    }
  }
  for (int32_t stage = 0; stage < DFLASH_STAGE_SELECT; stage++)
    if (highest_alone[stage] < 0.3 || highest_chain[stage] < 0.3)
      fail_msg("%s: highest rms %g alone, %g in the chain", dflash_stage_row(stage)->name, highest_alone[stage],
               highest_chain[stage]);
  chain_close(&chain);
}

static void test_stages(void **state) {
  (void)state;
  DflashGeometry g = chain_geometry();
  check_chain(&g, ORACLE_MIXED, 90, 1);
}

static void test_sharp_attention(void **state) {
  (void)state;
  DflashGeometry g = chain_geometry();
  g.layers = 1, g.vocab = 300, g.mask_token = 0, g.heads = 3, g.kv_heads = 3, g.head_dim = 32, g.conv_kernel = 4,
  g.hidden = 96;
  check_chain(&g, DFLASH_STORAGE_BF16, 400, 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_stages),
                                     cmocka_unit_test(test_sharp_attention)};
  return cmocka_run_group_tests_name("oracle_scale", tests, NULL, NULL);
}
