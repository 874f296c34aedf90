/* A case from its inputs: every stage in data-flow order, each from the f32 values of those before it. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "evaluate_internal.h"

DflashStatus dflash_evaluation_fresh(const DflashEvaluation *e, int32_t stage, int64_t layer, const DflashValue *stored,
                                     DflashValue *fresh, DflashError *error) {
  const DflashEvaluate *o = e->options;
  char label[64];
  dflash_stage_label(stage, layer, label);
  if (!stored->data && !o->values)
    return dflash_error_set(error, DFLASH_INVALID_DATA, "case %s: %s is absent", e->c->name, label);
  *fresh = (DflashValue){.rows = dflash_stage_rows(o->geometry, &e->c->sizes, stage),
                         .width = dflash_stage_width(o->geometry, &e->c->sizes, stage)};
  size_t rows = (size_t)fresh->rows, bytes = (size_t)fresh->width * sizeof(float);
  bool data = !stored->data || o->recompute, failed = false;
  bool alone = o->scales_alone && !stored->alone, chain = o->scales_chain && !stored->chain;
  if (data) failed |= !(fresh->data = dflash_alloc(rows, bytes));
  if (alone) failed |= !(fresh->alone = dflash_alloc(rows, bytes));
  if (chain) failed |= !(fresh->chain = dflash_alloc(rows, bytes));
  if (!failed) return DFLASH_OK;
  dflash_evaluation_free(fresh);
  return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "case %s: no memory for %s", e->c->name, label);
}

void dflash_evaluation_free(DflashValue *fresh) {
  free(fresh->data);
  free(fresh->alone);
  free(fresh->chain);
  *fresh = (DflashValue){0};
}

static void adopt(float **place, bool *owned, float **fresh) {
  if (*place || !*fresh) return;
  *place = *fresh;
  *owned = true;
  *fresh = NULL;
}

void dflash_evaluation_settle(const DflashEvaluation *e, int32_t stage, int64_t layer, DflashValue *stored,
                              DflashValue *fresh) {
  const DflashEvaluate *o = e->options;
  char label[64];
  dflash_stage_label(stage, layer, label);
  if (o->visit) o->visit(o->visit_context, stage, layer, label, stored->data, fresh->data, fresh->rows * fresh->width);
  stored->rows = fresh->rows;
  stored->width = fresh->width;
  adopt(&stored->data, &stored->data_owned, &fresh->data);
  adopt(&stored->alone, &stored->alone_owned, &fresh->alone);
  adopt(&stored->chain, &stored->chain_owned, &fresh->chain);
  dflash_evaluation_free(fresh);
}

DflashOracleCall dflash_evaluation_call(const DflashEvaluation *e, int32_t stage, int64_t layer, int64_t position) {
  const DflashEvaluate *o = e->options;
  return (DflashOracleCall){.geometry = o->geometry,
                            .weights = o->weights,
                            .pool = o->pool,
                            .profile = o->profile,
                            .stage = stage,
                            .layer = layer,
                            .sizes = e->c->sizes,
                            .position = position,
                            .context_first = e->c->context_first,
                            .exact = e->c->exact};
}

static DflashValue source_value(const DflashEvaluation *e, int32_t source, int64_t layer) {
  const DflashCase *c = e->c;
  int64_t tap_width = dflash_geometry_tap_width(e->options->geometry);
  switch (source) {
  case DFLASH_STAGE_TAPS:
    return (DflashValue){.data = c->taps + c->ops[e->last_push].first_row * tap_width};
  case DFLASH_STAGE_RESIDUAL:
    return (DflashValue){.data = c->h};
  case DFLASH_STAGE_HELD_K:
    return c->held_k[layer];
  case DFLASH_STAGE_HELD_V:
    return c->held_v[layer];
  default:
    return *dflash_case_value(c, source, layer);
  }
}

static DflashStatus run_stage(const DflashEvaluation *e, int32_t stage, int64_t layer, DflashError *error) {
  DflashValue *stored = dflash_case_value(e->c, stage, layer), fresh = {0};
  DflashStatus status = dflash_evaluation_fresh(e, stage, layer, stored, &fresh, error);
  if (status != DFLASH_OK) return status;
  const DflashStageRow *row = dflash_stage_row(stage);
  bool context = row->rows == DFLASH_ROWS_CONTEXT;
  int64_t position = context ? e->c->ops[e->last_push].pos : e->c->anchor_pos;
  DflashOracleCall call = dflash_evaluation_call(e, stage, layer, position);
  for (int i = 0; i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++) {
    int64_t source_layer;
    int32_t source = dflash_stage_source(e->options->geometry, stage, layer, i, &source_layer);
    DflashValue value = source_value(e, source, source_layer);
    call.inputs[i] = value.data;
    call.sigmas[i] = value.chain;
  }
  call.value = fresh.data, call.alone = fresh.alone, call.chain = fresh.chain;
  if (fresh.data || fresh.alone || fresh.chain) status = dflash_oracle_stage(&call, error);
  if (status == DFLASH_OK) dflash_evaluation_settle(e, stage, layer, stored, &fresh);
  dflash_evaluation_free(&fresh);
  return status;
}

/* The stages over context rows, or all others but select. */
static DflashStatus run_stages(const DflashEvaluation *e, bool context, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; status == DFLASH_OK && dflash_stage_walk(e->options->geometry, i, &stage, &layer); i++)
    if (stage != DFLASH_STAGE_SELECT && (dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT) == context)
      status = run_stage(e, stage, layer, error);
  return status;
}

/* What the operations leave, unless the case says it already; then it is checked. */
static DflashStatus replay(DflashEvaluation *e, DflashError *error) {
  DflashCase *c = e->c;
  int64_t first, len;
  DflashStatus status = dflash_context_replay(c->ops, c->op_count, &first, &len, &e->tap_row, &e->last_push, error);
  if (status != DFLASH_OK) return status;
  if (e->options->values && !e->options->recompute && !e->options->skip_context && !c->held_k[0].data) {
    c->context_first = first;
    c->sizes.context_len = len;
    c->sizes.push_rows = e->last_push < 0 ? 0 : c->ops[e->last_push].n_rows;
  }
  return dflash_case_check(c, e->options->geometry, error);
}

static DflashStatus run_all(const DflashEvaluation *e, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  if (!e->options->skip_context) {
    if (e->last_push >= 0) status = run_stages(e, true, error);
    if (status == DFLASH_OK && e->c->sizes.context_len > 0) status = dflash_evaluation_context_state(e, error);
  }
  if (status == DFLASH_OK) status = run_stages(e, false, error);
  if (status == DFLASH_OK) status = dflash_evaluation_select(e, error);
  return status;
}

static DflashStatus check_profile(const DflashEvaluation *e, DflashError *error) {
  if (e->c->profile == e->options->profile) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                          "case %s holds values of profile %" PRId32 ", not of profile %" PRId32, e->c->name,
                          e->c->profile, e->options->profile);
}

DflashStatus dflash_evaluate_case(const DflashEvaluate *options, DflashCase *c, DflashError *error) {
  DflashEvaluation e = {.options = options, .c = c, .last_push = -1};
  DflashStatus status = check_profile(&e, error);
  if (status == DFLASH_OK) status = replay(&e, error);
  if (status == DFLASH_OK) status = run_all(&e, error);
  free(e.tap_row);
  return status;
}
