/* Laws of a block and of single stages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/laws.h"

/* Operations of recomputing a cut block in f64, and of stages alone, that a law may cost. */
#define RECOMPUTE_MOST 2e9
#define LINEAR_MOST 2e10

static double block_operations(const DflashCaseRun *run) {
  const DflashGeometry *g = run->session->geometry;
  double operations = 0;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++)
    if (dflash_stage_row(stage)->rows != DFLASH_ROWS_CONTEXT)
      operations += dflash_stage_operations(g, &run->c.sizes, stage, layer);
  return operations;
}

/* What attention does not reach: rows of the first layer up to its keys are those of the whole block. */
static bool before_attention(int32_t stage, int64_t layer) {
  return layer == 0 && stage >= DFLASH_STAGE_ATTN_NORM && stage <= DFLASH_STAGE_ATTN_K;
}

/* Against the whole block's golden: the first stage that ought to agree and does not, in *label. */
static bool rows_differ(const DflashCaseRun *run, const DflashCaseRun *cut, char label[64]) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++) {
    const float *own = dflash_product_value(&cut->product, stage, layer);
    const DflashValue *golden = dflash_case_value(&run->c, stage, layer);
    if (!before_attention(stage, layer) || own == NULL) continue;
    DflashVerdict value = {.stage = stage};
    dflash_case_judge(run, &value, own, golden->data, golden->chain, cut->c.sizes.rows, golden->width, 0);
    if (!dflash_outcome_is_failure(value.outcome)) continue;
    dflash_stage_label(stage, layer, label);
    return true;
  }
  return false;
}

/* Attention sees the rows that are no longer there: its value must not be the whole block's. Asked where it is not
 * recomputed, in models of many heads: in a small one a softmax can be so sharp that a row does not count. */
static bool mix_is_whole(const DflashCaseRun *run, const DflashCaseRun *cut) {
  const float *own = dflash_product_value(&cut->product, DFLASH_STAGE_ATTN_MIX, 0);
  const DflashValue *golden = dflash_case_value(&run->c, DFLASH_STAGE_ATTN_MIX, 0);
  if (own == NULL) return false;
  DflashVerdict value = {.stage = DFLASH_STAGE_ATTN_MIX};
  dflash_case_judge(run, &value, own, golden->data, golden->chain, cut->c.sizes.rows, golden->width, 0);
  return !dflash_outcome_is_failure(value.outcome);
}

static void judge_cut(const DflashCaseRun *run, DflashCaseRun *cut, DflashVerdict *verdict) {
  char label[64], message[300];
  int64_t damage = dflash_product_damage(cut, &cut->product, label);
  long long rows = (long long)cut->c.sizes.rows, whole = (long long)run->c.sizes.rows;
  if (damage != 0) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_OVERRUN, "%lld of %lld rows: %s: wrote outside its output", rows, whole,
                        label);
    return;
  }
  if (rows_differ(run, cut, label)) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_MISMATCH, "%lld of %lld rows: %s is not that of the whole block's rows",
                        rows, whole, label);
    return;
  }
  bool recomputed = block_operations(cut) <= RECOMPUTE_MOST;
  if (recomputed) dflash_verify_local(cut);
  const DflashVerdict *first = dflash_verdicts_first(&cut->verdicts);
  if (first != NULL) {
    dflash_verdict_message(first, message, sizeof message);
    dflash_verdict_note(verdict, first->outcome, "%lld of %lld rows: %s", rows, whole, message);
  } else if (!recomputed && mix_is_whole(run, cut)) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_MISMATCH,
                        "%lld of %lld rows: attn.mix/0 is that of the whole block, though every row sees every row",
                        rows, whole);
  } else {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_PASS, "%lld of %lld rows", rows, whole);
  }
}

void dflash_law_cut(DflashCaseRun *run) {
  int64_t rows = (run->c.sizes.rows + 1) / 2 > 2 ? (run->c.sizes.rows + 1) / 2 : 2;
  if (rows >= run->c.sizes.rows) return;
  DflashVerdict *verdict = dflash_law_begin(run, DFLASH_MODE_CHAIN, "cut");
  DflashCaseRun cut = *run; /* borrows everything but the product and the verdicts */
  DflashError error = {0};
  cut.c.sizes.rows = rows;
  if (cut.c.sizes.n_draft > rows - 1) cut.c.sizes.n_draft = rows - 1;
  cut.product = (DflashProduct){0};
  cut.verdicts = (DflashVerdicts){0};
  cut.send = NULL;
  DflashStatus status = dflash_product_open(&cut, &cut.product, &error);
  if (status == DFLASH_OK) status = dflash_product_run(&cut, run->sequence, &cut.product, DFLASH_POISON_BITS, &error);
  if (status == DFLASH_OK)
    judge_cut(run, &cut, verdict);
  else
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "%lld of %lld rows: %s", (long long)rows,
                        (long long)run->c.sizes.rows, error.message);
  dflash_product_close(&cut.product);
  dflash_verdicts_close(&cut.verdicts);
}

/* ---- linearity ---- */

typedef struct Linear {
  DflashCaseRun *run;
  DflashSequence *sequence;
  DflashVerdict *verdict;
  double operations;
  int64_t stages; /* judged */
} Linear;

static float largest(const float *values, int64_t count) {
  float most = 0;
  for (int64_t i = 0; i < count; i++) most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
  return most;
}

/* Neither overflow nor a result that may be flushed comes near: every piece of `width` values is zero or has a largest
 * one well inside f32. */
static bool has_room(const float *values, int64_t count, int64_t width) {
  for (int64_t at = 0; at < count; at += width) {
    float most = largest(values + at, count - at < width ? count - at : width);
    if (most != 0 && !(most > 1e-20f && most < 1e20f)) return false;
  }
  return true;
}

/* values * 2^power, a copy; NULL when memory is out. */
static float *scaled(const float *values, int64_t count, int power) {
  float *copy = dflash_alloc((size_t)count, sizeof *copy);
  for (int64_t i = 0; copy != NULL && i < count; i++) copy[i] = ldexpf(values[i], power);
  return copy;
}

static void linear_judge(Linear *l, const DflashStageCall *call, const DflashValue *golden, DflashGuarded *output,
                         int power) {
  int64_t count = golden->rows * golden->width;
  float *sigma = scaled(golden->alone, count, power), *expected = scaled(golden->data, count, power);
  DflashVerdict value = {.stage = call->stage};
  char label[64];
  if (sigma != NULL && expected != NULL)
    dflash_case_judge(l->run, &value, output->data, expected, sigma, golden->rows, golden->width,
                      dflash_guarded_damage(output));
  if (dflash_outcome_is_failure(value.outcome))
    dflash_verdict_note(l->verdict, value.outcome, "inputs of %s times 2^%d: %s, score %.3g, %s",
                        dflash_stage_label(call->stage, call->layer, label), power, value.comparison.place,
                        value.comparison.score, value.comparison.pattern);
  free(sigma);
  free(expected);
}

static void linear_stage(Linear *l, int32_t stage, int64_t layer, int power) {
  DflashCaseRun *run = l->run;
  const DflashGeometry *g = run->session->geometry;
  const DflashValue *golden = dflash_case_value(&run->c, stage, layer);
  DflashStageCall call;
  DflashError error = {0};
  DflashGuarded output;
  if (!dflash_alone_call(run, stage, layer, &call) || golden->alone == NULL) return;
  int64_t layer_in = 0;
  int32_t source = dflash_stage_source(g, stage, layer, 0, &layer_in);
  int64_t width = dflash_stage_width(g, &run->c.sizes, source), inputs = dflash_stage_rows(g, &run->c.sizes, source);
  inputs *= width;
  /* in i8 a group of 32 counts as zero below 2^-100 */
  int64_t piece = run->session->options->profile == DFLASH_PROFILE_I8 ? 32 : width;
  if (!has_room(call.inputs[0], inputs, piece) || !has_room(golden->data, golden->rows * golden->width, golden->width))
    return;
  float *input = scaled(call.inputs[0], inputs, power);
  if (input == NULL || !dflash_guarded_open(&output, (size_t)(golden->rows * golden->width))) {
    free(input);
    return;
  }
  dflash_guarded_poison(&output);
  call.inputs[0] = input;
  call.output = output.data;
  DflashStatus status = run->session->backend->stage(l->sequence, &call, &error);
  if (status == DFLASH_OK)
    linear_judge(l, &call, golden, &output, power);
  else if (status != DFLASH_UNSUPPORTED)
    dflash_verdict_note(l->verdict, DFLASH_OUTCOME_ERROR, "%s", error.message);
  l->stages++;
  dflash_guarded_close(&output);
  free(input);
}

void dflash_law_linear(DflashCaseRun *run, DflashSequence *sequence) {
  static const int powers[] = {14, -14};
  const DflashGeometry *g = run->session->geometry;
  Linear l = {.run = run, .sequence = sequence};
  int32_t stage;
  int64_t layer;
  l.verdict = dflash_law_begin(run, DFLASH_MODE_ALONE, "linear");
  for (int64_t i = 0; dflash_stage_walk(g, i, &stage, &layer); i++) {
    bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
    if (!dflash_stage_is_matrix(stage) || !dflash_case_has(run, stage, layer)) continue;
    if (!dflash_case_info(run, stage, layer)->alone || (context && run->session->options->load_context)) continue;
    double cost = 2 * dflash_stage_operations(g, &run->c.sizes, stage, layer);
    if (l.operations + cost > LINEAR_MOST) continue;
    l.operations += cost;
    for (int p = 0; p < 2 && !dflash_outcome_is_failure(l.verdict->outcome); p++)
      linear_stage(&l, stage, layer, powers[p]);
  }
  if (!dflash_outcome_is_failure(l.verdict->outcome))
    dflash_verdict_note(l.verdict, l.stages > 0 ? DFLASH_OUTCOME_PASS : DFLASH_OUTCOME_NOT_RUN,
                        l.stages > 0 ? "matrix stages at 2^14 and 2^-14 times their inputs"
                                     : "no matrix stage can be entered alone");
}
