/* Every materialised stage again in f64 from the backend's own read-back inputs. An input that the backend does not
 * materialise is recomputed from the nearest ones that it does, and its rounding joins the scale. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "run/case_run.h"
#include "run/dump.h"

typedef struct Recomputed {
  float *value, *sigma;
} Recomputed;

typedef struct Local {
  DflashCaseRun *run;
  Recomputed *made; /* [DFLASH_STAGE_COUNT * layers], of stages that are not materialised */
  DflashError error;
} Local;

static int64_t value_size(const DflashCaseRun *run, int32_t stage) {
  const DflashGeometry *g = run->session->geometry;
  return dflash_stage_rows(g, &run->c.sizes, stage) * dflash_stage_width(g, &run->c.sizes, stage);
}

static bool source_value(Local *local, int32_t source, int64_t layer, const float **value, const float **sigma);

/* The oracle's value and scale of a stage from the backend's own inputs, which come back in `inputs` (may be NULL). */
static bool recompute(Local *local, int32_t stage, int64_t layer, float *value, float *sigma,
                      const float *inputs[DFLASH_STAGE_INPUTS]) {
  DflashCaseRun *run = local->run;
  DflashSession *s = run->session;
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
  const DflashStageRow *row = dflash_stage_row(stage);
  for (int i = 0; i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++) {
    int64_t from = 0;
    int32_t source = dflash_stage_source(s->geometry, stage, layer, i, &from);
    if (!source_value(local, source, from, &call.inputs[i], &call.sigmas[i])) return false;
  }
  if (inputs != NULL) memcpy(inputs, call.inputs, sizeof call.inputs);
  return dflash_oracle_stage(&call, &local->error) == DFLASH_OK;
}

static bool source_value(Local *local, int32_t source, int64_t layer, const float **value, const float **sigma) {
  DflashCaseRun *run = local->run;
  *sigma = NULL;
  if (source == DFLASH_STAGE_TAPS || source == DFLASH_STAGE_RESIDUAL) {
    *value = dflash_case_golden(run, source, layer);
  } else if (source == DFLASH_STAGE_HELD_K) {
    *value = run->product.k[layer].data;
  } else if (source == DFLASH_STAGE_HELD_V) {
    *value = run->product.v[layer].data;
  } else if ((*value = dflash_product_value(&run->product, source, layer)) == NULL) {
    Recomputed *made = &local->made[(int64_t)source * run->product.layers + layer];
    if (made->value == NULL) {
      size_t count = (size_t)value_size(run, source);
      made->value = dflash_alloc(count, sizeof(float));
      made->sigma = dflash_alloc(count, sizeof(float));
      if (made->value == NULL || made->sigma == NULL) {
        dflash_error_set(&local->error, DFLASH_OUT_OF_MEMORY, "no memory for recomputed values");
        return false;
      }
      if (!recompute(local, source, layer, made->value, made->sigma, NULL)) return false;
    }
    *value = made->value;
    *sigma = made->sigma;
  }
  return *value != NULL;
}

static void local_judge(DflashCaseRun *run, DflashVerdict *verdict, const DflashGuarded *own, const float *value,
                        const float *sigma, const float *const inputs[DFLASH_STAGE_INPUTS]) {
  const DflashGeometry *g = run->session->geometry;
  DflashDumpValues values = {.stage = verdict->stage,
                             .rows = dflash_stage_rows(g, &run->c.sizes, verdict->stage),
                             .width = dflash_stage_width(g, &run->c.sizes, verdict->stage),
                             .damage = dflash_guarded_damage(own),
                             .got = own->data,
                             .expected = value,
                             .sigma = sigma};
  memcpy(values.inputs, inputs, sizeof values.inputs);
  dflash_case_judge(run, verdict, own->data, value, sigma, values.rows, values.width, values.damage);
  dflash_dump_verdict(run, verdict, &values);
}

static void local_stage(Local *local, int32_t stage, int64_t layer) {
  DflashCaseRun *run = local->run;
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_LOCAL, stage, layer, NULL);
  const DflashGuarded *own = dflash_product_judged(run, verdict);
  if (own == NULL) return;
  dflash_session_stage(run->session, DFLASH_MODE_LOCAL, stage, layer);
  size_t count = (size_t)value_size(run, stage);
  float *value = dflash_alloc(count, sizeof *value), *sigma = dflash_alloc(count, sizeof *sigma);
  const float *inputs[DFLASH_STAGE_INPUTS] = {NULL};
  memset(&local->error, 0, sizeof local->error);
  if (value == NULL || sigma == NULL)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory to recompute it");
  else if (!recompute(local, stage, layer, value, sigma, inputs))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "cannot be recomputed: %s",
                        local->error.message[0] != '\0' ? local->error.message : "an input was not computed");
  else
    local_judge(run, verdict, own, value, sigma, inputs);
  free(value);
  free(sigma);
}

static bool tokens_open(DflashTokensValue *t, const DflashGeometry *g, int64_t n_draft) {
  size_t rows = (size_t)n_draft, all = rows * (size_t)g->selector_top;
  *t = (DflashTokensValue){.chosen = calloc(rows, sizeof *t->chosen),
                           .plain = calloc(rows, sizeof *t->plain),
                           .candidates = calloc(all, sizeof *t->candidates),
                           .scores = calloc(all, sizeof *t->scores),
                           .alone = calloc(all, sizeof *t->alone),
                           .chain = calloc(all, sizeof *t->chain)};
  return t->chosen && t->plain && t->candidates && t->scores && t->alone && t->chain;
}

static void tokens_close(DflashTokensValue *t) {
  free(t->chosen);
  free(t->plain);
  free(t->candidates);
  free(t->scores);
  free(t->alone);
  free(t->chain);
}

static void local_tokens(Local *local) {
  DflashCaseRun *run = local->run;
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_LOCAL, DFLASH_STAGE_SELECT, 0, NULL);
  if (run->block_error.status != DFLASH_OK) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NONFINITE, "%s", run->block_error.message);
    return;
  }
  DflashTokensValue golden;
  DflashOracleSelect select = {.geometry = run->session->geometry,
                               .weights = run->session->weights,
                               .sizes = run->c.sizes,
                               .anchor_token = run->c.anchor_token,
                               .logits = run->product.logits.data,
                               .hidden = run->product.selector.data,
                               .out = &golden,
                               .profile = run->session->options->profile};
  DflashError error = {0};
  if (!tokens_open(&golden, run->session->geometry, run->c.sizes.n_draft))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory for tokens");
  else if (dflash_oracle_select(&select, &error) != DFLASH_OK)
    dflash_verdict_note(verdict, error.status == DFLASH_NONFINITE ? DFLASH_OUTCOME_NONFINITE : DFLASH_OUTCOME_ERROR,
                        "%s", error.message);
  else
    dflash_case_judge_tokens(run, verdict, &run->product.tokens, &golden, select.logits, NULL, select.hidden, false);
  tokens_close(&golden);
}

void dflash_verify_local(DflashCaseRun *run) {
  size_t count = (size_t)(DFLASH_STAGE_COUNT * run->product.layers);
  Local local = {.run = run, .made = dflash_alloc(count, sizeof *local.made)};
  if (local.made == NULL) {
    DflashVerdict *v = dflash_verdict_add(&run->verdicts, DFLASH_MODE_LOCAL, DFLASH_STAGE_NONE, -1, "block");
    dflash_verdict_note(v, DFLASH_OUTCOME_ERROR, "no memory to recompute stages");
    return;
  }
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++) {
    if (!dflash_case_selects(run, stage, layer) || !dflash_case_has(run, stage, layer)) continue;
    if (stage == DFLASH_STAGE_SELECT)
      local_tokens(&local);
    else
      local_stage(&local, stage, layer);
  }
  for (size_t i = 0; i < count; i++) {
    free(local.made[i].value);
    free(local.made[i].sigma);
  }
  free(local.made);
}
