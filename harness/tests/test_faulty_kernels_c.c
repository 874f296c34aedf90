/* The convolution, activation and selection kernels of the faulty backend against plain f64 ones: right without knobs,
 * and every knob does what its comment says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the headers above
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/kernels.h"
#include "tiny_model.h"

enum { HIDDEN = 12, GROUP = 3, TAPS = 3, BLOCK_ROWS = 5, GROUPS = HIDDEN / GROUP, KERNEL = 2 * TAPS * GROUPS };
enum { STREAM = BLOCK_ROWS * HIDDEN, WIDTH = 40, VOCAB = 50, TOP = 5, RANK = 6, DRAFTS = 4, ANCHOR = 17 };

/* ---- what the executor gives ---- */

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
static bool fused_asked;
float fault_sum(const float *a, const float *b, int64_t count, int order, bool fused) {
  double sum = 0;
  order_asked = order;
  fused_asked = fused;
  for (int64_t i = 0; i < count; i++) sum += (double)a[i] * (double)b[i];
  return (float)sum;
}

void fault_decode_row(const DflashTensor *tensor, int64_t row, float *out) {
  assert_true(row >= 0 && row < tensor->shape[0]);
  memcpy(out, (const float *)tensor->data + row * tensor->shape[1], (size_t)tensor->shape[1] * sizeof *out);
}

static DflashTensor base_kernels[2];
const DflashTensor *fault_weight(const DflashModel *model, int32_t stage, int64_t layer) {
  assert_int_equal(layer, 1);
  return model->geometry.layers == 2 && stage < DFLASH_STAGE_MLP_NORM ? &base_kernels[0] : &base_kernels[1];
}

int64_t fault_rows(const FaultCall *call) { return call->call.rows; }
int64_t fault_width(const FaultCall *call) { return call->model->geometry.intermediate; }

/* ---- convolution ---- */

static const float NO_NUMBER = NAN;
static const double ROUNDING = 1e-6, PLAINLY = 1e-2;

typedef struct Conv {
  struct DflashModel model;
  FaultCall call;
  float *x, *h, *dynamic, *base[2];
  float got[STREAM];
} Conv;

static Conv *conv_open(int32_t stage) {
  const bool after = stage == DFLASH_STAGE_ATTN_OUT || stage == DFLASH_STAGE_MLP_OUT;
  Conv *c = calloc(1, sizeof *c);
  assert_non_null(c);
  c->model.geometry = (DflashGeometry){.layers = 2, .hidden = HIDDEN, .conv_group = GROUP, .conv_kernel = TAPS};
  c->x = tiny_draw("x", STREAM);
  c->h = tiny_draw("h", STREAM);
  c->dynamic = tiny_draw("dynamic", (int64_t)BLOCK_ROWS * KERNEL);
  c->base[0] = tiny_draw("base of attention", (int64_t)2 * TAPS * HIDDEN);
  c->base[1] = tiny_draw("base of mlp", (int64_t)2 * TAPS * HIDDEN);
  for (int i = 0; i < 2; i++) base_kernels[i].data = c->base[i];
  c->call = (FaultCall){.model = &c->model, .call = {.stage = stage, .layer = 1, .rows = BLOCK_ROWS, .output = c->got}};
  const float *inputs[] = {after ? c->h : c->x, after ? c->x : c->dynamic, after ? c->dynamic : NULL};
  memcpy(c->call.call.inputs, inputs, sizeof inputs);
  return c;
}

static void conv_close(Conv *c) {
  free(c->x);
  free(c->h);
  free(c->dynamic);
  free(c->base[0]);
  free(c->base[1]);
  free(c);
}

/* What a plain convolution is told to do otherwise. */
typedef struct PlainConv {
  int taps; /* 0: TAPS */
  bool no_base, no_dynamic, clamped, inside, negative_residual;
  int residuals; /* 1 when right */
} PlainConv;

static double plain_conv(const Conv *c, const PlainConv *plain, int row, int channel) {
  const int32_t stage = c->call.call.stage;
  const int mlp = stage == DFLASH_STAGE_MLP_CONV_IN || stage == DFLASH_STAGE_MLP_OUT;
  const int after = stage == DFLASH_STAGE_ATTN_OUT || stage == DFLASH_STAGE_MLP_OUT;
  const double residual = plain->inside ? 0 : after * plain->residuals * (double)c->h[row * HIDDEN + channel];
  double sum = plain->negative_residual ? -residual : residual;
  for (int o = 0; o < (plain->taps ? plain->taps : TAPS); o++) {
    const int from = row - o < 0 && plain->clamped ? 0 : row - o;
    if (from < 0) continue;
    const double base = c->base[mlp][(after * TAPS + o) * HIDDEN + channel];
    const double dynamic = c->dynamic[row * KERNEL + (after * TAPS + o) * GROUPS + channel / GROUP];
    const double x = c->x[from * HIDDEN + channel] + (plain->inside ? c->h[from * HIDDEN + channel] : 0);
    sum += ((plain->no_base ? 0 : base) + (plain->no_dynamic ? 0 : dynamic)) * x;
  }
  return sum;
}

/* Largest distance from the plain convolution; infinite for what is no number. */
static double conv_distance(Conv *c, const FaultConv *knobs, const PlainConv *plain) {
  double most = 0;
  for (int i = 0; i < STREAM; i++) c->got[i] = NO_NUMBER;
  assert_int_equal(fault_kernel_conv(&c->call, knobs), DFLASH_OK);
  for (int i = 0; i < STREAM; i++) {
    const double off = fabs((double)c->got[i] - plain_conv(c, plain, i / HIDDEN, i % HIDDEN));
    if (!(off <= most)) most = off;
  }
  return isnan(most) ? (double)INFINITY : most;
}

static const int32_t CONV_STAGES[] = {DFLASH_STAGE_ATTN_CONV_IN, DFLASH_STAGE_ATTN_OUT, DFLASH_STAGE_MLP_CONV_IN,
                                      DFLASH_STAGE_MLP_OUT};
static const PlainConv PLAIN_CONV = {.residuals = 1};

static void test_conv_right(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    Conv *c = conv_open(CONV_STAGES[i]);
    assert_true(conv_distance(c, &(FaultConv){0}, &PLAIN_CONV) < ROUNDING);
    conv_close(c);
  }
}

/* Other bits, no other values. */
static void test_conv_lawful(void **state) {
  static const FaultConv ways[] = {
      {.taps_backwards = true}, {.apart = true}, {.residual_first = true}, {.fused = true}};
  (void)state;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    Conv *c = conv_open(DFLASH_STAGE_ATTN_OUT);
    float right[STREAM];
    assert_int_equal(fault_kernel_conv(&c->call, &(FaultConv){0}), DFLASH_OK);
    memcpy(right, c->got, sizeof right);
    assert_true(conv_distance(c, &ways[i], &PLAIN_CONV) < ROUNDING);
    assert_memory_not_equal(right, c->got, sizeof right);
    conv_close(c);
  }
}

/* Hooks check what they are given. */
static float no_base(const FaultCall *call, const float *base, int64_t row, int64_t side, int64_t tap,
                     int64_t channel) {
  assert_ptr_equal(base, base_kernels[0].data);
  assert_true(call->call.rows == BLOCK_ROWS && row < BLOCK_ROWS && side == 1 && tap < TAPS && channel < HIDDEN);
  return 0;
}
static float no_dynamic(const FaultCall *call, const float *dynamic, int64_t row, int64_t side, int64_t tap,
                        int64_t channel) {
  assert_ptr_equal(dynamic, call->call.inputs[2]);
  assert_true(row < BLOCK_ROWS && side == 1 && tap < TAPS && channel < HIDDEN);
  return 0;
}
static const float *clamped(const FaultCall *call, const float *x, int64_t row, int64_t tap, int64_t channel) {
  assert_ptr_equal(x, call->call.inputs[1]);
  return x + (row < tap ? 0 : row - tap) * HIDDEN + channel;
}
static float negative(const FaultCall *call, const float *h, int64_t row, int64_t channel) {
  assert_ptr_equal(h, call->call.inputs[0]);
  return -h[row * HIDDEN + channel];
}

static void test_conv_knobs(void **state) {
  static const struct {
    FaultConv knobs;
    PlainConv plain;
  } cases[] = {{{.base = no_base}, {.no_base = true, .residuals = 1}},
               {{.dynamic = no_dynamic}, {.no_dynamic = true, .residuals = 1}},
               {{.source = clamped}, {.clamped = true, .residuals = 1}},
               {{.residual = negative}, {.negative_residual = true, .residuals = 1}},
               {{.taps = 2}, {.taps = 2, .residuals = 1}},
               {{.residual_inside = true}, {.inside = true, .residuals = 1}},
               {{.residual_inside = true, .source = clamped}, {.inside = true, .clamped = true, .residuals = 1}},
               {{.residual_twice = true}, {.residuals = 2}},
               {{.residual_twice = true, .residual_first = true}, {.residuals = 2}},
               {{.no_residual = true}, {.residuals = 0}}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Conv *c = conv_open(DFLASH_STAGE_ATTN_OUT);
    assert_true(conv_distance(c, &cases[i].knobs, &cases[i].plain) < ROUNDING);
    assert_true(conv_distance(c, &cases[i].knobs, &PLAIN_CONV) > PLAINLY);
    conv_close(c);
  }
}

/* ---- activation ---- */

static float up_alone(float gate, float up) { return gate != gate ? gate : up; }

static void test_act(void **state) {
  enum { COUNT = 60 };
  struct DflashModel model = {.geometry = {.intermediate = COUNT / 2}};
  float *gate = tiny_draw("gate", COUNT), *up = tiny_draw("up", COUNT), got[COUNT];
  FaultCall call = {.model = &model, .call = {.rows = 2, .inputs = {gate, up}, .output = got}};
  (void)state;
  gate[0] = 100, gate[1] = -100, gate[COUNT - 1] = 30;
  assert_int_equal(fault_kernel_act(&call, &(FaultAct){0}), DFLASH_OK);
  for (int i = 0; i < COUNT; i++) {
    const double expected = (double)gate[i] * (double)up[i] / (1 + exp(-(double)gate[i]));
    assert_true(fabs((double)got[i] - expected) <= 1e-7 * fabs(expected) + 0x1p-149);
  }
  assert_int_equal(fault_kernel_act(&call, &(FaultAct){.act = up_alone}), DFLASH_OK);
  assert_memory_equal(got, up, sizeof got);
  free(gate);
  free(up);
}

/* ---- selection ---- */

typedef struct Select {
  struct DflashModel model;
  FaultCall call;
  DflashError error;
  DflashTokens tokens;
  float *logits, *hidden, *predecessor, *successor;
  int32_t chosen[DRAFTS], plain[DRAFTS], candidates[DRAFTS * TOP];
  float scores[DRAFTS * TOP];
} Select;

/* Logits of few values, so that many are equal; in two rows all are below zero. */
static void select_fill(const Select *s) {
  for (int i = 0; i < DRAFTS * WIDTH; i++)
    s->logits[i] = roundf(s->logits[i] * 8) / 4 - (i / WIDTH % 2 == 1 ? 4.0F : 0.0F);
  for (int i = 0; i < DRAFTS * RANK; i++) s->hidden[i] *= 4;
}

static Select *select_open(void) {
  Select *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->model.geometry = (DflashGeometry){.vocab = VOCAB, .selector_rank = RANK, .selector_top = TOP};
  s->logits = tiny_draw("logits", (int64_t)DRAFTS * WIDTH);
  s->hidden = tiny_draw("hidden", (int64_t)DRAFTS * RANK);
  s->predecessor = tiny_draw("predecessor", (int64_t)VOCAB * RANK);
  s->successor = tiny_draw("successor", (int64_t)VOCAB * RANK);
  select_fill(s);
  s->model.kept.predecessor = (DflashTensor){.shape = {VOCAB, RANK}, .data = s->predecessor};
  s->model.kept.successor = (DflashTensor){.shape = {VOCAB, RANK}, .data = s->successor};
  s->tokens = (DflashTokens){.struct_size = sizeof s->tokens,
                             .chosen = s->chosen,
                             .plain = s->plain,
                             .candidates = s->candidates,
                             .scores = s->scores};
  s->call = (FaultCall){.model = &s->model,
                        .call = {.stage = DFLASH_STAGE_SELECT,
                                 .n_draft = DRAFTS,
                                 .head_width = WIDTH,
                                 .anchor_token = ANCHOR,
                                 .inputs = {s->logits, s->hidden},
                                 .tokens = &s->tokens},
                        .error = &s->error};
  return s;
}

static void select_close(Select *s) {
  free(s->logits);
  free(s->hidden);
  free(s->predecessor);
  free(s->successor);
  free(s);
}

/* What a plain selection is told to do otherwise. */
typedef struct PlainSelect {
  int top, rank, width; /* 0: all */
  bool higher_id, later, no_logit, no_term, always_anchor, half_logit, second, backwards;
} PlainSelect;

typedef struct PlainTokens {
  int32_t chosen[DRAFTS], plain[DRAFTS], candidates[DRAFTS * TOP];
  double scores[DRAFTS * TOP];
} PlainTokens;

static bool plain_before(const PlainSelect *plain, const float *logits, int a, int b) {
  if (logits[a] != logits[b]) return logits[a] > logits[b];
  return plain->higher_id ? a > b : a < b;
}

/* The place of every token by how many stand before it. */
static void plain_rank(const Select *s, const PlainSelect *plain, int row, int32_t *ids) {
  const float *logits = s->logits + row * WIDTH;
  const int width = plain->width ? plain->width : WIDTH;
  for (int id = 0; id < width; id++) {
    int place = 0;
    for (int other = 0; other < width; other++) place += plain_before(plain, logits, other, id);
    if (place < TOP) ids[plain->backwards ? TOP - 1 - place : place] = id;
  }
}

static double plain_score(const Select *s, const PlainSelect *plain, int row, int previous, int id) {
  double term = 0;
  for (int i = 0; i < (plain->rank ? plain->rank : RANK); i++)
    term += (double)s->predecessor[previous * RANK + i] * (double)s->hidden[row * RANK + i] *
            (double)s->successor[id * RANK + i];
  const double logit = (double)s->logits[row * WIDTH + id] / (plain->half_logit ? 2 : 1);
  return (plain->no_logit ? 0 : logit) + (plain->no_term ? 0 : term);
}

static void plain_select(const Select *s, const PlainSelect *plain, PlainTokens *t) {
  int previous = ANCHOR;
  for (int row = 0; row < DRAFTS; row++) {
    int32_t *ids = t->candidates + row * TOP;
    double *scores = t->scores + row * TOP;
    int best = 0;
    plain_rank(s, plain, row, ids);
    for (int c = 0; c < TOP; c++) scores[c] = plain_score(s, plain, row, previous, ids[c]);
    for (int c = 1; c < (plain->top ? plain->top : TOP); c++)
      if (scores[c] > scores[best] || (plain->later && scores[c] == scores[best])) best = c;
    t->plain[row] = ids[0];
    t->chosen[row] = ids[plain->second ? 1 : best];
    if (!plain->always_anchor) previous = t->chosen[row];
  }
}

static bool select_agrees(Select *s, const FaultSelect *knobs, const PlainSelect *plain) {
  PlainTokens expected;
  double most = 0;
  memset(s->chosen, 0xff, sizeof s->chosen);
  memset(s->plain, 0xff, sizeof s->plain);
  memset(s->candidates, 0xff, sizeof s->candidates);
  for (int i = 0; i < DRAFTS * TOP; i++) s->scores[i] = NO_NUMBER;
  assert_int_equal(fault_kernel_select(&s->call, knobs), DFLASH_OK);
  plain_select(s, plain, &expected);
  if (memcmp(s->chosen, expected.chosen, sizeof s->chosen) != 0) return false;
  if (memcmp(s->plain, expected.plain, sizeof s->plain) != 0) return false;
  if (s->tokens.candidates == NULL) return true;
  for (int i = 0; i < DRAFTS * TOP; i++) most = fmax(most, fabs((double)s->scores[i] - expected.scores[i]));
  return memcmp(s->candidates, expected.candidates, sizeof s->candidates) == 0 && most < ROUNDING;
}

static void test_select_right(void **state) {
  static const PlainSelect right;
  Select *s = select_open();
  (void)state;
  assert_true(select_agrees(s, &(FaultSelect){0}, &right));
  assert_true(select_agrees(s, &(FaultSelect){.order = FAULT_ORDER_LANES, .fused = true}, &right));
  assert_int_equal(order_asked, FAULT_ORDER_LANES);
  assert_true(fused_asked);
  s->tokens.candidates = NULL;
  s->tokens.scores = NULL;
  assert_true(select_agrees(s, &(FaultSelect){0}, &right));
  select_close(s);
}

static bool higher_id(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b) {
  assert_true(call->call.head_width == WIDTH && id_a != id_b);
  return logit_a > logit_b || (logit_a == logit_b && id_a > id_b);
}
static void backwards(FaultCall *call, int64_t row, int32_t *candidates) {
  assert_true(call->call.n_draft > row);
  for (int64_t c = 0; c < TOP / 2; c++) {
    int32_t *front = candidates + row * TOP + c, *back = candidates + row * TOP + TOP - 1 - c;
    const int32_t id = *front;
    *front = *back;
    *back = id;
  }
}
static int32_t always_anchor(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  assert_ptr_equal(chosen, call->call.tokens->chosen);
  assert_ptr_equal(candidates, call->call.tokens->candidates);
  assert_true(row < DRAFTS);
  return (int32_t)call->call.anchor_token;
}
static float no_term(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  assert_ptr_equal(hidden, call->call.inputs[1] + row * RANK);
  assert_int_equal(previous, row > 0 ? call->call.tokens->chosen[row - 1] : ANCHOR);
  assert_in_range(candidate, 0, WIDTH - 1);
  return 0;
}
static float half_logit(const FaultCall *call, int64_t row, int32_t id, float logit) {
  assert_true(logit == call->call.inputs[0][row * WIDTH + id]);
  return logit / 2;
}
static int64_t second(const FaultCall *call, int64_t row, const float *scores, int64_t count) {
  assert_ptr_equal(scores, call->call.tokens->scores + row * TOP);
  assert_int_equal(count, TOP);
  return 1;
}

static void test_select_knobs(void **state) {
  static const struct {
    FaultSelect knobs;
    PlainSelect plain;
  } cases[] = {{{.before = higher_id}, {.higher_id = true}},
               {{.listed = backwards}, {.backwards = true}},
               {{.previous = always_anchor}, {.always_anchor = true}},
               {{.term = no_term}, {.no_term = true}},
               {{.term = no_term, .last_best = true}, {.no_term = true, .later = true}},
               {{.logit = half_logit}, {.half_logit = true}},
               {{.best = second}, {.second = true}},
               {{.top = 2}, {.top = 2}},
               {{.rank = 2}, {.rank = 2}},
               {{.width = 20}, {.width = 20}},
               {{.no_logit = true}, {.no_logit = true}}};
  static const PlainSelect right;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Select *s = select_open();
    assert_true(select_agrees(s, &cases[i].knobs, &cases[i].plain));
    assert_false(select_agrees(s, &cases[i].knobs, &right));
    select_close(s);
  }
}

/* Without the selector's term equal logits are equal scores: last_best alone makes the difference. */
static void test_select_last_best(void **state) {
  Select *s = select_open();
  (void)state;
  assert_true(select_agrees(s, &(FaultSelect){.term = no_term}, &(PlainSelect){.no_term = true}));
  assert_false(select_agrees(s, &(FaultSelect){.term = no_term, .last_best = true}, &(PlainSelect){.no_term = true}));
  select_close(s);
}

static void test_select_not_finite(void **state) {
  Select *s = select_open();
  (void)state;
  s->logits[2 * WIDTH + 7] = NO_NUMBER;
  assert_int_equal(fault_kernel_select(&s->call, &(FaultSelect){0}), DFLASH_NONFINITE);
  assert_non_null(strstr(s->error.message, "logit 7 of row 2"));
  s->logits[2 * WIDTH + 7] = 0;
  s->hidden[3 * RANK] = NO_NUMBER;
  assert_int_equal(fault_kernel_select(&s->call, &(FaultSelect){0}), DFLASH_NONFINITE);
  assert_non_null(strstr(s->error.message, "in row 3"));
  select_close(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_conv_right),       cmocka_unit_test(test_conv_lawful),
      cmocka_unit_test(test_conv_knobs),       cmocka_unit_test(test_act),
      cmocka_unit_test(test_select_right),     cmocka_unit_test(test_select_knobs),
      cmocka_unit_test(test_select_last_best), cmocka_unit_test(test_select_not_finite),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  for (int i = 0; i < 8; i++) free(scratch[i]);
  return failed;
}
