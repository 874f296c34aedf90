/* Every stage whose inputs are all in the file, again in f64 from them. An input stored in a narrow type has been
 * rounded: that joins the scale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compare/score.h"
#include "run/compare_parts.h"

bool dflash_compare_whole(const DflashCandidateValue *value) { return value->data != NULL && value->rows == NULL; }

typedef struct Inputs {
  const float *values[DFLASH_STAGE_INPUTS];
  float *sigmas[DFLASH_STAGE_INPUTS]; /* owned; NULL: exact */
  char missing[64];                   /* the first that is not in the file */
  bool failed;                        /* memory was out */
} Inputs;

static void inputs_close(Inputs *inputs) {
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) free(inputs->sigmas[i]);
}

/* Standard deviation of one rounding: spacing / sqrt(12). */
static float *rounding_of(const DflashCandidateValue *value, int64_t count) {
  int storage = value->storage == DFLASH_KEPT_BF16 ? DFLASH_STORED_BF16 : DFLASH_STORED_F16;
  float *sigma = malloc((size_t)count * sizeof *sigma);
  for (int64_t i = 0; sigma != NULL && i < count; i++)
    sigma[i] = (float)(dflash_storage_spacing(value->data[i], storage) / sqrt(12));
  return sigma;
}

static void name_source(int32_t source, int64_t layer, char text[64]) {
  if (source < DFLASH_STAGE_COUNT)
    dflash_stage_label(source, layer, text);
  else
    snprintf(text, 64, "context_state/%s/%lld", source == DFLASH_STAGE_HELD_K ? "k" : "v", (long long)layer);
}

static bool take_input(const DflashCompareRun *compare, int32_t source, int64_t layer, int index, Inputs *inputs) {
  const DflashCaseRun *run = &compare->run;
  bool held = source == DFLASH_STAGE_HELD_K || source == DFLASH_STAGE_HELD_V;
  bool given = source == DFLASH_STAGE_TAPS || source == DFLASH_STAGE_RESIDUAL;
  if (given || (held && run->c.sizes.context_len == 0)) { /* what the engine was given */
    inputs->values[index] = dflash_case_golden(run, source, layer);
    return true;
  }
  const DflashCandidateValue *value = dflash_compare_value(compare, source, layer);
  if (!dflash_compare_whole(value)) {
    name_source(source, layer, inputs->missing);
    return false;
  }
  inputs->values[index] = value->data;
  if (value->storage == DFLASH_KEPT_F32) return true;
  const DflashGeometry *g = run->session->geometry;
  int64_t count = value->count * dflash_stage_width(g, &run->c.sizes, source);
  inputs->sigmas[index] = rounding_of(value, count);
  inputs->failed |= inputs->sigmas[index] == NULL;
  return !inputs->failed;
}

static bool take_inputs(const DflashCompareRun *compare, int32_t stage, int64_t layer, Inputs *inputs) {
  const DflashStageRow *row = dflash_stage_row(stage);
  for (int i = 0; i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++) {
    int64_t from = 0;
    int32_t source = dflash_stage_source(compare->run.session->geometry, stage, layer, i, &from);
    if (!take_input(compare, source, from, i, inputs)) return false;
  }
  return true;
}

static DflashStatus recompute(const DflashCompareRun *compare, int32_t stage, int64_t layer, const Inputs *inputs,
                              float *value, float *sigma, DflashError *error) {
  const DflashCaseRun *run = &compare->run;
  const DflashSession *s = run->session;
  DflashOracleCall call = {.geometry = s->geometry,
                           .weights = s->weights,
                           .pool = s->pool,
                           .profile = s->options->profile,
                           .stage = stage,
                           .layer = layer,
                           .sizes = run->c.sizes,
                           .position = dflash_case_position(run, stage),
                           .context_first = run->c.context_first,
                           .exact = run->c.exact,
                           .value = value,
                           .chain = sigma};
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) {
    call.inputs[i] = inputs->values[i];
    call.sigmas[i] = inputs->sigmas[i];
  }
  return dflash_oracle_stage(&call, error);
}

static void judge_recomputed(DflashCompareRun *compare, DflashVerdict *verdict, const DflashCandidateValue *own,
                             const Inputs *inputs) {
  const DflashGeometry *g = compare->run.session->geometry;
  DflashValue value = {.rows = dflash_stage_rows(g, &compare->run.c.sizes, verdict->stage),
                       .width = dflash_stage_width(g, &compare->run.c.sizes, verdict->stage)};
  size_t count = (size_t)(value.rows * value.width);
  DflashError error = {0};
  value.data = dflash_alloc(count, sizeof *value.data);
  value.chain = dflash_alloc(count, sizeof *value.chain);
  if (value.data == NULL || value.chain == NULL)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory to recompute it");
  else if (recompute(compare, verdict->stage, verdict->layer, inputs, value.data, value.chain, &error) != DFLASH_OK)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "cannot be recomputed: %s", error.message);
  else
    dflash_compare_judge(compare, verdict, verdict->stage, own, &value, value.chain);
  free(value.data);
  free(value.chain);
}

static void local_stage(DflashCompareRun *compare, DflashVerdict *verdict) {
  const DflashCandidateValue *own = dflash_compare_value(compare, verdict->stage, verdict->layer);
  Inputs inputs = {.failed = false};
  char label[64];
  if (own->data == NULL || own->count == 0)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "not in the file");
  else if (take_inputs(compare, verdict->stage, verdict->layer, &inputs))
    judge_recomputed(compare, verdict, own, &inputs);
  else if (inputs.failed)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory for its inputs");
  else
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "its input %s is not in the file with all rows",
                        inputs.missing);
  dflash_offline_progress(compare->offline, dflash_stage_label(verdict->stage, verdict->layer, label));
  inputs_close(&inputs);
}

static bool tokens_open(DflashTokensValue *t, const DflashGeometry *g, int64_t n_draft) {
  size_t rows = (size_t)n_draft, all = rows * (size_t)g->selector_top;
  *t = (DflashTokensValue){.chosen = calloc(rows, sizeof *t->chosen),
                           .plain = calloc(rows, sizeof *t->plain),
                           .candidates = calloc(all, sizeof *t->candidates),
                           .scores = calloc(all, sizeof *t->scores)};
  return t->chosen && t->plain && t->candidates && t->scores;
}

static void tokens_close(DflashTokensValue *t) {
  free(t->chosen);
  free(t->plain);
  free(t->candidates);
  free(t->scores);
}

static void judge_tokens(DflashCompareRun *compare, DflashVerdict *verdict, const float *logits, const float *hidden) {
  DflashCaseRun *run = &compare->run;
  DflashTokensValue golden;
  DflashTokenBuffers buffers = {0};
  DflashError error = {0};
  const DflashOracleSelect select = {.geometry = run->session->geometry,
                                     .weights = run->session->weights,
                                     .sizes = run->c.sizes,
                                     .anchor_token = run->c.anchor_token,
                                     .logits = logits,
                                     .hidden = hidden,
                                     .out = &golden};
  if (!tokens_open(&golden, run->session->geometry, run->c.sizes.n_draft) ||
      !dflash_compare_tokens_open(compare, &buffers))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory for tokens");
  else if (dflash_oracle_select(&select, &error) != DFLASH_OK)
    dflash_verdict_note(verdict, error.status == DFLASH_NONFINITE ? DFLASH_OUTCOME_NONFINITE : DFLASH_OUTCOME_ERROR,
                        "%s", error.message);
  else
    dflash_case_judge_tokens(run, verdict, &buffers, &golden, logits, NULL, hidden, false);
  dflash_token_buffers_close(&buffers);
  tokens_close(&golden);
}

/* A decision over rounded logits is another one: those stored in a narrow type cannot tell. */
static void local_tokens(DflashCompareRun *compare, DflashVerdict *verdict) {
  const DflashCandidateValue *logits = dflash_compare_value(compare, DFLASH_STAGE_HEAD_LOGITS, 0);
  const DflashCandidateValue *hidden = dflash_compare_value(compare, DFLASH_STAGE_SELECTOR_HIDDEN, 0);
  if (compare->values.chosen == NULL || compare->values.plain == NULL)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "chosen and plain are not both in the file");
  else if (!dflash_compare_whole(logits) || !dflash_compare_whole(hidden))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN,
                        "head.logits and selector.hidden are not both in the file with all rows");
  else if (logits->storage != DFLASH_KEPT_F32 || hidden->storage != DFLASH_KEPT_F32)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "head.logits and selector.hidden are not stored in f32");
  else
    judge_tokens(compare, verdict, logits->data, hidden->data);
}

void dflash_compare_local(DflashCompareRun *compare) {
  DflashCaseRun *run = &compare->run;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++) {
    if (!dflash_case_selects(run, stage, layer) || !dflash_case_has(run, stage, layer)) continue;
    DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_LOCAL, stage, layer, NULL);
    if (stage == DFLASH_STAGE_SELECT)
      local_tokens(compare, verdict);
    else
      local_stage(compare, verdict);
  }
}
