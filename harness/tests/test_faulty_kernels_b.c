/* The attention kernel of the faulty backend against a plain f64 attention: right without knobs, and every knob does
 * what its comment says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/kernels.h"
#include "model/storage.h"
#include "tiny_model.h"

enum { HEADS = 6, KV_HEADS = 2, HEAD_DIM = 10, ROWS = 4, ANCHOR = 30, KV = KV_HEADS * HEAD_DIM };
enum { MIX = ROWS * HEADS * HEAD_DIM, MOST_KEYS = 64 };

static float *scratch[8];
static int64_t scratch_count[8];

float *fault_scratch(FaultCall *call, int slot, int64_t count) {
  (void)call;
  if (count > scratch_count[slot]) {
    free(scratch[slot]);
    scratch[slot] = calloc((size_t)count, sizeof(float));
    scratch_count[slot] = count;
  }
  assert_non_null(scratch[slot]);
  return scratch[slot];
}

/* Orders are tested with the matrix kernel; which one is asked for is kept. */
static int order_asked;
float fault_sum(const float *a, const float *b, int64_t count, int order, bool fused) {
  double sum = 0;
  order_asked = fused ? -order : order;
  for (int64_t i = 0; i < count; i++) sum += (double)a[i] * (double)b[i];
  return (float)sum;
}

typedef struct Attention {
  struct DflashModel model;
  FaultCall call;
  float *q, *k, *v, *held_k, *held_v;
  float got[MIX];
  double expected[MIX];
} Attention;

static Attention *attention_open(int64_t first, int64_t len, int64_t window) {
  Attention *a = calloc(1, sizeof *a);
  assert_non_null(a);
  a->model.geometry = (DflashGeometry){.layers = 2,
                                       .heads = HEADS,
                                       .kv_heads = KV_HEADS,
                                       .head_dim = HEAD_DIM,
                                       .windows = {.count = 2, .at = {3, window}}};
  a->q = tiny_draw("q", MIX);
  a->k = tiny_draw("k", (int64_t)ROWS * KV);
  a->v = tiny_draw("v", (int64_t)ROWS * KV);
  a->held_k = tiny_draw("held k", (len + 1) * KV);
  a->held_v = tiny_draw("held v", (len + 1) * KV);
  for (int i = 0; i < MIX; i++) a->q[i] *= 4;
  a->call = (FaultCall){.model = &a->model,
                        .call = {.stage = DFLASH_STAGE_ATTN_MIX,
                                 .layer = 1,
                                 .rows = ROWS,
                                 .position = ANCHOR,
                                 .context_first = first,
                                 .context_len = len,
                                 .inputs = {a->q, a->k, a->v, len > 0 ? a->held_k : NULL, len > 0 ? a->held_v : NULL},
                                 .output = a->got}};
  return a;
}

static void attention_close(Attention *a) {
  free(a->q);
  free(a->k);
  free(a->v);
  free(a->held_k);
  free(a->held_v);
  free(a);
}

/* What a plain attention is told to do otherwise. */
typedef struct Plain {
  int64_t add_window; /* to the window */
  bool causal, modulo, no_division, null_key, double_first;
  double scale, denominator_add, score_add_even;
} Plain;

static double plain_dot(const float *a, const float *b) {
  double sum = 0;
  for (int i = 0; i < HEAD_DIM; i++) sum += (double)a[i] * (double)b[i];
  return sum;
}

typedef struct PlainKeys {
  const float *k[MOST_KEYS], *v[MOST_KEYS];
  int64_t position[MOST_KEYS];
  int count;
} PlainKeys;

static void plain_add(PlainKeys *keys, const float *k, const float *v, int64_t position) {
  assert_true(keys->count < MOST_KEYS);
  keys->k[keys->count] = k;
  keys->v[keys->count] = v;
  keys->position[keys->count++] = position;
}

static PlainKeys plain_keys(const Attention *a, const Plain *plain, int row, int kv) {
  const DflashStageCall *c = &a->call.call;
  const int64_t window = a->model.geometry.windows.at[1];
  PlainKeys keys = {.count = 0};
  for (int64_t p = c->context_first; p < c->context_first + c->context_len && p < c->position; p++) {
    const int64_t at = (p - c->context_first) * KV + kv * HEAD_DIM;
    if (window == 0 || p >= c->position + row + 1 - window - plain->add_window)
      plain_add(&keys, a->held_k + at, a->held_v + at, p);
  }
  for (int r = 0; r < (plain->causal ? row + 1 : ROWS); r++)
    plain_add(&keys, a->k + r * KV + kv * HEAD_DIM, a->v + r * KV + kv * HEAD_DIM, c->position + r);
  return keys;
}

static void plain_head(Attention *a, const Plain *plain, int row, int head) {
  const int kv = plain->modulo ? head % KV_HEADS : head / (HEADS / KV_HEADS);
  const double scale = plain->scale != 0 ? plain->scale : 1 / sqrt(HEAD_DIM);
  const float *q = a->q + (row * HEADS + head) * HEAD_DIM;
  double *out = a->expected + (row * HEADS + head) * HEAD_DIM;
  const PlainKeys keys = plain_keys(a, plain, row, kv);
  double weights[MOST_KEYS], largest = -INFINITY, total = 0;
  for (int j = 0; j < keys.count; j++) {
    weights[j] = plain_dot(q, keys.k[j]) * scale + (keys.position[j] % 2 == 0 ? plain->score_add_even : 0);
    largest = fmax(largest, weights[j]);
  }
  for (int j = 0; j < keys.count; j++) {
    weights[j] = exp(weights[j] - largest) * (plain->double_first && j == 0 ? 2 : 1);
    total += weights[j];
  }
  total += plain->denominator_add + (plain->null_key ? exp(-largest) : 0);
  for (int i = 0; i < HEAD_DIM; i++) {
    out[i] = 0;
    for (int j = 0; j < keys.count; j++) out[i] += weights[j] * (double)keys.v[j][i];
    if (!plain->no_division) out[i] /= total;
  }
}

/* Largest distance from the plain attention; infinite for what is no number. */
static double distance(Attention *a, const FaultAttention *knobs, const Plain *plain) {
  double most = 0;
  for (int i = 0; i < MIX; i++) a->got[i] = NAN;
  assert_int_equal(fault_kernel_attention(&a->call, knobs), DFLASH_OK);
  for (int row = 0; row < ROWS; row++)
    for (int head = 0; head < HEADS; head++) plain_head(a, plain, row, head);
  for (int i = 0; i < MIX; i++)
    if (!(fabs((double)a->got[i] - a->expected[i]) <= most)) most = fabs((double)a->got[i] - a->expected[i]);
  return isnan(most) ? (double)INFINITY : most;
}

static const double ROUNDING = 2e-6, PLAINLY = 1e-3;
static const FaultAttention RIGHT;
static const Plain PLAIN;

/* Contexts before, across and behind the anchor, with a hole, of one row and of none; windows of all sizes. */
static void test_right(void **state) {
  static const int64_t spans[][2] = {{0, 30}, {10, 20}, {10, 15}, {5, 40}, {29, 1}, {30, 5}, {33, 2}, {0, 0}};
  static const int64_t windows[] = {0, 1, 2, 4, 5, 7, 20, 33, 34, 100};
  (void)state;
  for (size_t s = 0; s < sizeof spans / sizeof *spans; s++)
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
      Attention *a = attention_open(spans[s][0], spans[s][1], windows[w]);
      assert_true(distance(a, &RIGHT, &PLAIN) < ROUNDING);
      attention_close(a);
    }
}

static void test_lawful(void **state) {
  static const FaultAttention ways[] = {{.online = true},
                                        {.splits = 3},
                                        {.splits = 100},
                                        {.exp2 = true},
                                        {.splits = 5, .online = true, .exp2 = true},
                                        {.merge_empty = true, .splits = 3}};
  (void)state;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    Attention *a = attention_open(8, 20, 17);
    assert_true(distance(a, &ways[i], &PLAIN) < ROUNDING);
    attention_close(a);
  }
}

static void test_order_is_passed_on(void **state) {
  (void)state;
  Attention *a = attention_open(8, 20, 17);
  assert_true(distance(a, &(FaultAttention){.order = FAULT_ORDER_SPLIT, .fused = true}, &PLAIN) < ROUNDING);
  assert_int_equal(order_asked, -FAULT_ORDER_SPLIT);
  attention_close(a);
}

/* ---- knobs ---- */

static bool sees_one_more(const FaultCall *call, int64_t row, int64_t position) {
  const int64_t window = dflash_geometry_window(&call->model->geometry, call->call.layer);
  return fault_attention_sees(call, row, position) || position == call->call.position + row - window;
}
static bool sees_causal(const FaultCall *call, int64_t row, int64_t key) { return call->model && key <= row; }
static int64_t kv_modulo(const FaultCall *call, int64_t head) { return head % call->model->geometry.kv_heads; }
static double scale_of_heads(const FaultCall *call) { return 1 / sqrt((double)call->model->geometry.heads); }
static double score_even(const FaultCall *call, int64_t row, int64_t head, int64_t key, double score) {
  return call->model && row >= 0 && head >= 0 && key % 2 == 0 ? score + 1.5 : score;
}
static float weight_double_first(const FaultCall *call, int64_t index, int64_t count, float weight) {
  return call->model && index < count && index == 0 ? 2 * weight : weight;
}

typedef struct Knob {
  FaultAttention knobs;
  Plain plain;
} Knob;

static const Knob KNOBS[] = {
    {{.sees = sees_one_more}, {.add_window = 1}},
    {{.sees_block = sees_causal}, {.causal = true}},
    {{.kv_head = kv_modulo}, {.modulo = true}},
    {{.scale = scale_of_heads}, {.scale = 0.4082482904638631}},
    {{.score = score_even}, {.score_add_even = 1.5}},
    {{.weight = weight_double_first}, {.double_first = true}},
    {{.no_division = true}, {.no_division = true}},
    {{.denominator_add = 1}, {.denominator_add = 1}},
    {{.null_key = true}, {.null_key = true}},
    {{.null_key = true, .no_max = true}, {.null_key = true}},
    {{.denominator_add = 0.5, .splits = 3}, {.denominator_add = 0.5}},
};

static void test_knobs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof KNOBS / sizeof *KNOBS; i++) {
    Attention *a = attention_open(8, 20, 17);
    assert_true(distance(a, &KNOBS[i].knobs, &KNOBS[i].plain) < ROUNDING);
    assert_true(distance(a, &KNOBS[i].knobs, &PLAIN) > PLAINLY);
    attention_close(a);
  }
}

static const float *key_before(const FaultCall *call, int64_t kv_head, int64_t position, const float *k) {
  assert_true(kv_head < KV_HEADS);
  return position > call->call.context_first ? k - KV : k;
}

/* A key or value hook gets what is right there, and what it returns is used. */
static void test_key_and_value(void **state) {
  (void)state;
  Attention *a = attention_open(8, 20, 17);
  assert_true(distance(a, &(FaultAttention){.key = key_before}, &PLAIN) > PLAINLY);
  assert_true(distance(a, &(FaultAttention){.value = key_before}, &PLAIN) > PLAINLY);
  memmove(a->held_v + KV, a->held_v, (size_t)(19 * KV) * sizeof(float));
  assert_true(distance(a, &RIGHT, &PLAIN) < ROUNDING);
  float *shifted = malloc((size_t)MIX * sizeof *shifted);
  assert_non_null(shifted);
  memcpy(shifted, a->got, sizeof a->got);
  attention_close(a);
  a = attention_open(8, 20, 17);
  distance(a, &(FaultAttention){.value = key_before}, &PLAIN);
  assert_memory_equal(shifted, a->got, sizeof a->got);
  free(shifted);
  attention_close(a);
}

static void test_no_max(void **state) {
  static const FaultAttention knobs = {.no_max = true};
  (void)state;
  Attention *a = attention_open(8, 20, 17);
  assert_true(distance(a, &knobs, &PLAIN) < ROUNDING);
  for (int i = 0; i < MIX; i++) a->q[i] *= 100;
  assert_true(distance(a, &RIGHT, &PLAIN) < 1e-4);
  assert_true(isinf(distance(a, &knobs, &PLAIN)));
  attention_close(a);
}

static void test_half_precision(void **state) {
  (void)state;
  Attention *a = attention_open(8, 20, 17);
  const double f16 = distance(a, &(FaultAttention){.f16_exp = true}, &PLAIN);
  const double bf16 = distance(a, &(FaultAttention){.bf16_weights = true}, &PLAIN);
  assert_true(f16 > 1e-5 && f16 < 5e-3);
  assert_true(bf16 > 1e-4 && bf16 < 2e-2);
  attention_close(a);
}

static void test_merges(void **state) {
  (void)state;
  Attention *a = attention_open(8, 20, 17);
  assert_true(distance(a, &(FaultAttention){.merge_unscaled = true}, &PLAIN) < ROUNDING);
  assert_true(distance(a, &(FaultAttention){.merge_unscaled = true, .splits = 3}, &PLAIN) > PLAINLY);
  assert_true(isinf(distance(a, &(FaultAttention){.merge_empty = true, .splits = 100}, &PLAIN)));
  attention_close(a);
}

/* Slots are right while they are all written anew, and merge what a longer call left. */
static void test_slots(void **state) {
  static const FaultAttention knobs = {.slots = 4};
  (void)state;
  memset(scratch_count, 0, sizeof scratch_count); /* as if new, and zeroed */
  Attention *a = attention_open(8, 10, 0);
  assert_true(distance(a, &knobs, &PLAIN) < ROUNDING);
  attention_close(a);
  a = attention_open(8, 22, 0);
  assert_true(distance(a, &knobs, &PLAIN) < ROUNDING);
  attention_close(a);
  a = attention_open(8, 10, 0);
  assert_true(distance(a, &knobs, &PLAIN) > PLAINLY);
  attention_close(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_right),          cmocka_unit_test(test_lawful), cmocka_unit_test(test_order_is_passed_on),
      cmocka_unit_test(test_knobs),          cmocka_unit_test(test_no_max), cmocka_unit_test(test_key_and_value),
      cmocka_unit_test(test_half_precision), cmocka_unit_test(test_merges), cmocka_unit_test(test_slots),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  for (int i = 0; i < 8; i++) free(scratch[i]);
  return failed;
}
