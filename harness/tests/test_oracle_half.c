/* Sums of products in 16 bits against the error scales of profiles f16 and bf16: several lawful ways, on data of
 * several kinds. DFLASH_TABLE=1 prints the table that docs/error-scale.md shows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/oracle_half.h"
#include "model/storage.h"
#include "test_oracle_half_rows.h"
#include "test_oracle_half_ways.h"
#include "test_oracle_model.h"

static void run_oracle(const DflashOracleCall *call) {
  DflashError error = {0};
  if (dflash_oracle_stage(call, &error) != DFLASH_OK) fail_msg("%s", error.message);
}

static const char *const profile_names[] = {"exact", "i8", "f16", "bf16"};

enum { NORMAL, ONE_SIGNED, CANCELLING, OUTLIERS, FLOOR, SMALL_WEIGHTS, EQUAL_X, EQUAL, TWO_VALUES, KINDS };
static const char *const kind_names[] = {"normal",        "one sign", "halves cancel", "outliers",  "few far larger",
                                         "small weights", "equal x",  "equal",         "two values"};
enum { ROWS = 4, OUTPUTS = 48 };

/* x [ROWS + 1, n] or w [OUTPUTS, n]. */
static void shape_data(int kind, float *x, int64_t rows, int64_t n, bool weights) {
  for (int64_t at = 0; at < rows * n; at++) {
    int64_t i = at % n, r = at / n;
    bool far = !weights && (i * 7919 + r * 31) % 97 == 0, signs = kind == ONE_SIGNED || kind == CANCELLING;
    if (signs || kind == EQUAL_X || kind == TWO_VALUES) x[at] = fabsf(x[at]);
    if (kind == CANCELLING && weights && i >= n / 2) x[at] = -x[at];
    if (kind == OUTLIERS && far) x[at] *= 1e3f;
    if (kind == FLOOR && r == 0 && !weights) x[at] *= 1e9f;
    if (kind == SMALL_WEIGHTS && weights) x[at] *= 1e-5f;
    if (kind == EQUAL || (kind == EQUAL_X && !weights)) x[at] = x[r * n];
    if (kind == TWO_VALUES && !weights) x[at] = i < n / 2 ? 0.3f : 0.7f;
    if (kind == TWO_VALUES && weights && i >= n / 2) x[at] = -x[at];
  }
}

typedef struct Product {
  DflashGeometry geometry;
  DflashWeights weights; /* only selector_hidden */
  float *x;
  DflashOracleCall call;
  float golden[ROWS * OUTPUTS], sigma[ROWS * OUTPUTS];
} Product;

static void product_open(Product *p, int32_t profile, int64_t n, int kind, int32_t storage) {
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
                               .profile = profile,
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

static void check_products(int32_t profile, int64_t n, int kind, int32_t storage, const char *storage_name) {
  Product p;
  char what[96];
  Row row = {0};
  float got[ROWS * OUTPUTS];
  product_open(&p, profile, n, kind, storage);
  for (int way = 0; way < half_way_count; way++) {
    Stats stats = {0};
    if (half_ways[way].profile != profile) continue;
    half_stage(&half_ways[way], &p.call, got);
    stats_measure(&stats, got, p.golden, p.sigma, ROWS * OUTPUTS);
    row_add(&row, &stats);
  }
  snprintf(what, sizeof what, "%s: %s, %lld columns, %s", profile_names[profile], kind_names[kind], (long long)n,
           storage_name);
  row_check(what, &row, kind < EQUAL_X ? 0.2 : 0);
  product_close(&p);
}

static void test_products(void **state) {
  (void)state;
  for (int32_t profile = DFLASH_PROFILE_F16; profile <= DFLASH_PROFILE_BF16; profile++)
    for (int kind = 0; kind < KINDS; kind++) {
      check_products(profile, 64, kind, DFLASH_STORAGE_F32, "f32");
      check_products(profile, 5120, kind, DFLASH_STORAGE_F32, "f32");
      check_products(profile, 896, kind, DFLASH_STORAGE_BF16, "bf16");
      check_products(profile, 896, kind, DFLASH_STORAGE_F16, "f16");
      check_products(profile, 896, kind, DFLASH_STORAGE_Q8_2F, "q8_2f");
      check_products(profile, 896, kind, DFLASH_STORAGE_Q4TP, "q4tp");
    }
}

/* ---- what the scales are made of ---- */

static void test_rounding(void **state) {
  (void)state;
  static const float special[] = {0,          1,        65504,      0x1p-14f,   0x1p-24f,
                                  0x1.8p-25f, 0x1p-25f, 0x1.002p0f, 0x1.006p0f, 0x1p-140f};
  float *drawn = oracle_draw(9, "values", 4000, 1);
  for (int i = 0; i < 4000; i++) {
    float value = i < 20 ? (i % 2 ? -special[i / 2] : special[i / 2]) : ldexpf(drawn[i], i % 40 - 26);
    if (fabsf(value) <= 65504)
      assert_true(dflash_half_round(DFLASH_PROFILE_F16, value) == dflash_f16_value(dflash_f16_round(value)));
    assert_true(dflash_half_round(DFLASH_PROFILE_BF16, value) == dflash_bf16_value(dflash_bf16_round(value)));
  }
  free(drawn);
}

/* The largest power of two that leaves the largest magnitude at 2^14 or below. */
static void test_shift(void **state) {
  (void)state;
  const float at[] = {0.1f, -1}, above[] = {1.0001f, 0}, below[] = {-0.9999f, 0.5f}, none[] = {0, 0};
  assert_true(dflash_half_shift(DFLASH_PROFILE_F16, at, 2) == 0x1p14);
  assert_true(dflash_half_shift(DFLASH_PROFILE_F16, above, 2) == 0x1p13);
  assert_true(dflash_half_shift(DFLASH_PROFILE_F16, below, 2) == 0x1p14);
  assert_true(dflash_half_shift(DFLASH_PROFILE_F16, none, 2) == 1);
  assert_true(dflash_half_shift(DFLASH_PROFILE_BF16, at, 2) == 1);
}

static void test_operand(void **state) {
  (void)state;
  assert_true(dflash_half_operand(DFLASH_PROFILE_F16, 0x1.ffcp3f, 1) == 0);
  assert_true(dflash_half_operand(DFLASH_PROFILE_BF16, 0x1.fep3f, 1) == 0);
  assert_true(dflash_half_operand(DFLASH_PROFILE_F16, 0x1.001p0f, 1) > 0);
  /* a spacing of 2^-24 below 2^-14, and no more than the value itself is lost */
  assert_float_equal(dflash_half_operand(DFLASH_PROFILE_F16, 0x1.01p-20f, 1) / (0x1p-48 / 12), 1, 1e-6);
  assert_float_equal(dflash_half_operand(DFLASH_PROFILE_F16, 0x1.0008p-20f, 0x1p10) / (0x1p-22 / 3 * 0x1p-40), 1, 1e-3);
  assert_float_equal(dflash_half_operand(DFLASH_PROFILE_F16, 0x1p-40f, 1) / 0x1p-80, 1, 1e-6);
}

static void test_logits(void **state) {
  (void)state;
  const float logits[] = {1, 1.001f, -300.7f};
  float *sigma = NULL;
  DflashError error = {0};
  assert_int_equal(dflash_oracle_logits_rounded(DFLASH_PROFILE_F16, logits, 3, &sigma, &error), DFLASH_OK);
  assert_null(sigma);
  assert_int_equal(dflash_oracle_logits_rounded(DFLASH_PROFILE_BF16, logits, 3, &sigma, &error), DFLASH_OK);
  assert_true(sigma[0] == 0 && sigma[1] > 0.002f && sigma[2] > 0.6f);
  free(sigma);
}

/* One product of 64 equal small integers, as an exact case. */
static void exact_product(int32_t profile, float x, float w, float alone[2], float chain[2]) {
  float data[2 * 64], weights[2 * 64], values[2], sigma[2 * 64] = {0};
  DflashGeometry geometry = {.hidden = 64, .selector_rank = 2, .vocab = 5};
  DflashWeights model = {
      .selector_hidden = {.rank = 2, .shape = {2, 64}, .storage = DFLASH_STORAGE_F32, .data = weights}};
  for (int i = 0; i < 2 * 64; i++) data[i] = x, weights[i] = w;
  run_oracle(&(DflashOracleCall){.geometry = &geometry,
                                 .weights = &model,
                                 .profile = profile,
                                 .stage = DFLASH_STAGE_SELECTOR_HIDDEN,
                                 .sizes = {.rows = 2, .n_draft = 1, .head_width = 5},
                                 .exact = true,
                                 .inputs = {data},
                                 .sigmas = {sigma},
                                 .value = values,
                                 .alone = alone,
                                 .chain = chain});
}

static void test_exact(void **state) {
  (void)state;
  float alone[2], chain[2];
  exact_product(DFLASH_PROFILE_F16, 3, 5, alone, chain); /* 960: exact everywhere */
  assert_true(alone[0] == 0 && chain[0] == 0);
  exact_product(DFLASH_PROFILE_F16, 1025, 3, alone, chain); /* a sum of more than 11 bits stays in f32 */
  assert_true(alone[0] == 0 && chain[0] == 0);
  exact_product(DFLASH_PROFILE_F16, 2049, 1, alone, chain); /* x is no f16 */
  assert_true(alone[0] > 0 && chain[0] > 0);
  exact_product(DFLASH_PROFILE_F16, 1, 2049, alone, chain); /* nor is w */
  assert_true(alone[0] > 0);
  exact_product(DFLASH_PROFILE_BF16, 1, 2, alone, chain);
  assert_true(alone[0] == 0 && chain[0] == 0);
  exact_product(DFLASH_PROFILE_BF16, 3, 89, alone, chain); /* 17088 is no bf16, its spacing is 128 */
  assert_true(alone[0] >= 128 / sqrtf(12) && chain[0] == alone[0]);
  exact_product(DFLASH_PROFILE_BF16, 257, 1, alone, chain); /* x is no bf16, but what varies was rounded before */
  assert_true(alone[0] > 64 && chain[0] < alone[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounding), cmocka_unit_test(test_shift),
                                     cmocka_unit_test(test_operand),  cmocka_unit_test(test_logits),
                                     cmocka_unit_test(test_exact),    cmocka_unit_test(test_products)};
  return cmocka_run_group_tests_name("oracle_half", tests, NULL, NULL);
}
