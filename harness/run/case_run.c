#include "run/case_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "run/lend.h"

static size_t value_count(const DflashCaseRun *run) {
  return (size_t)(DFLASH_STAGE_COUNT * run->session->geometry->layers);
}

static size_t value_index(int64_t layers, int32_t stage, int64_t layer) {
  return (size_t)((int64_t)stage * layers + layer);
}

/* Which stages the backend materialises and runs alone. */
static DflashStatus ask_infos(DflashCaseRun *run, DflashError *error) {
  DflashSession *s = run->session;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(s->geometry, i, &stage, &layer); i++) {
    DflashStageInfo *info = &run->infos[value_index(s->geometry->layers, stage, layer)];
    info->struct_size = sizeof *info;
    int context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
    int64_t rows = context ? run->c.sizes.push_rows : run->c.sizes.rows;
    DflashStatus status = s->backend->stage_info(s->model, stage, layer, rows > 0 ? rows : 1, info, error);
    if (status != DFLASH_OK)
      return dflash_error_set(error, DFLASH_INTERNAL, "%s tells nothing of a stage: %s", s->backend->name,
                              error->message);
  }
  return DFLASH_OK;
}

/* A stage that is not materialised is covered by a materialised one. */
static DflashStatus check_covers(const DflashCaseRun *run, DflashError *error) {
  const DflashSession *s = run->session;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(s->geometry, i, &stage, &layer); i++) {
    const DflashStageInfo *info = dflash_case_info(run, stage, layer);
    bool known = info->covered_by >= 0 && info->covered_by < DFLASH_STAGE_COUNT;
    if (info->materialised) continue;
    int64_t cover_layer = known && dflash_stage_row(info->covered_by)->scope == DFLASH_SCOPE_LAYER ? layer : 0;
    if (known && info->covered_by != stage && dflash_case_info(run, info->covered_by, cover_layer)->materialised)
      continue;
    char label[64];
    return dflash_error_set(error, DFLASH_INTERNAL,
                            "%s: stage_info of %s: not materialised, and covered_by %d is no materialised stage",
                            s->backend->name, dflash_stage_label(stage, layer, label), info->covered_by);
  }
  return DFLASH_OK;
}

/* Modes when the user named none: what ships runs fused, or every stage can be entered alone. */
static unsigned default_modes(const DflashCaseRun *run) {
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++)
    if (!dflash_case_info(run, stage, layer)->alone) return 1u << DFLASH_MODE_CHAIN | 1u << DFLASH_MODE_LOCAL;
  return 1u << DFLASH_MODE_ALONE | 1u << DFLASH_MODE_CHAIN;
}

/* Scales that the file lacks are computed from its weights and values; those of other profiles than exact always, and
 * with them the values of profile i8 that the file does not have. */
static DflashStatus complete_scales(DflashCaseRun *run, DflashError *error) {
  DflashSession *s = run->session;
  bool exact = s->options->profile == DFLASH_PROFILE_EXACT;
  /* The law of the loaded context judges a block as a chain, whatever the modes. */
  bool chain = (run->modes & 1u << DFLASH_MODE_CHAIN) != 0 || (s->options->stages == NULL && s->options->layer < 0);
  if (run->borrowed) return DFLASH_OK;
  if (!exact) {
    DflashStatus status = dflash_case_to_profile(&run->c, s->geometry, s->options->profile, error);
    if (status != DFLASH_OK) return status;
  }
  if (dflash_session_attribute(s, "scales_hash")[0] == '\0') dflash_case_forget_scales(&run->c);
  DflashEvaluate evaluate = {.geometry = s->geometry,
                             .weights = s->weights,
                             .pool = s->pool,
                             .profile = s->options->profile,
                             .values = s->options->profile == DFLASH_PROFILE_I8,
                             .scales_alone = (run->modes & 1u << DFLASH_MODE_ALONE) != 0,
                             .scales_chain = chain};
  if (exact && !evaluate.scales_alone && !evaluate.scales_chain) return DFLASH_OK;
  dflash_session_progress(s, exact ? "error scales" : "values and error scales of the profile");
  return dflash_evaluate_case(&evaluate, &run->c, error);
}

static DflashStatus check_value(const DflashCaseRun *run, const DflashValue *value, const char *label,
                                DflashError *error) {
  for (int64_t i = 0; value->data != NULL && i < value->rows * value->width; i++)
    if (!isfinite(value->data[i]))
      return dflash_error_set(error, DFLASH_INVALID_DATA, "%s: case %s: golden value %lld of %s is %g; valid: finite",
                              run->session->file, run->c.name, (long long)i, label, (double)value->data[i]);
  return DFLASH_OK;
}

/* Nothing can agree with a value that is none. */
static DflashStatus check_values(const DflashCaseRun *run, DflashError *error) {
  DflashStatus status = DFLASH_OK;
  int32_t stage;
  int64_t layer;
  char label[64];
  for (int64_t i = 0; status == DFLASH_OK && dflash_stage_walk(run->session->geometry, i, &stage, &layer); i++)
    if (stage != DFLASH_STAGE_SELECT)
      status =
          check_value(run, dflash_case_value(&run->c, stage, layer), dflash_stage_label(stage, layer, label), error);
  for (int64_t l = 0; status == DFLASH_OK && l < run->c.layers; l++) {
    status = check_value(run, &run->c.held_k[l], "context_state/k", error);
    if (status == DFLASH_OK) status = check_value(run, &run->c.held_v[l], "context_state/v", error);
  }
  return status;
}

static DflashStatus take_case(DflashCaseRun *run, int64_t index, DflashError *error) {
  const DflashSession *s = run->session;
  run->borrowed = s->cases != NULL;
  if (!run->borrowed) return dflash_golden_case(s->golden, index, &run->c, error);
  run->c = *s->cases[index];
  return DFLASH_OK;
}

static DflashStatus read_case(DflashCaseRun *run, int64_t index, DflashError *error) {
  int64_t first = 0, len = 0, *tap_row = NULL;
  DflashStatus status = take_case(run, index, error);
  if (status == DFLASH_OK) status = check_values(run, error);
  if (status == DFLASH_OK)
    status = dflash_context_replay(run->c.ops, run->c.op_count, &first, &len, &tap_row, &run->last_push, error);
  free(tap_row);
  if (status != DFLASH_OK) return status;
  if (run->last_push >= 0) {
    run->push_pos = run->c.ops[run->last_push].pos;
    run->push_row = run->c.ops[run->last_push].first_row;
  }
  return DFLASH_OK;
}

/* From here on the backend is at work. */
static DflashStatus choose_modes(DflashCaseRun *run, const char *modes_name, DflashError *error) {
  char modes[32];
  dflash_session_case(run->session, "");
  DflashStatus status = ask_infos(run, error);
  if (status == DFLASH_OK) status = check_covers(run, error);
  if (status != DFLASH_OK) return status;
  run->modes = run->session->options->modes != 0 ? run->session->options->modes : default_modes(run);
  if (modes_name == NULL) modes_name = dflash_modes_text(run->modes, modes);
  dflash_session_case(run->session, modes_name);
  run->resumed = dflash_session_resumed(run->session, run->c.name, modes_name) != 0;
  return DFLASH_OK;
}

DflashStatus dflash_case_run_open(DflashCaseRun *run, DflashSession *session, int64_t index, const char *modes_name,
                                  DflashError *error) {
  memset(run, 0, sizeof *run);
  run->session = session;
  DflashStatus status = read_case(run, index, error);
  if (status != DFLASH_OK) return status;
  run->infos = dflash_alloc(value_count(run), sizeof *run->infos);
  if (run->infos == NULL) return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a case");
  status = choose_modes(run, modes_name, error);
  if (status != DFLASH_OK || run->resumed) return status;
  status = complete_scales(run, error);
  return status == DFLASH_OK ? dflash_product_open(run, &run->product, error) : status;
}

void dflash_case_run_close(DflashCaseRun *run) {
  if (run->session == NULL) return;
  run->session->backend->sequence_close(run->sequence);
  dflash_product_close(&run->product);
  dflash_verdicts_close(&run->verdicts);
  free(run->infos);
  if (!run->borrowed) dflash_case_close(&run->c);
  memset(run, 0, sizeof *run);
}

const DflashStageInfo *dflash_case_info(const DflashCaseRun *run, int32_t stage, int64_t layer) {
  return &run->infos[value_index(run->session->geometry->layers, stage, layer)];
}

int dflash_case_selects(const DflashCaseRun *run, int32_t stage, int64_t layer) {
  const DflashRunOptions *o = run->session->options;
  const DflashStageRow *row = dflash_stage_row(stage);
  if (o->layer >= 0 && (row->scope != DFLASH_SCOPE_LAYER || layer != o->layer)) return 0;
  char label[64];
  return dflash_glob_match(o->stages, row->name) ||
         dflash_glob_match(o->stages, dflash_stage_label(stage, layer, label));
}

const float *dflash_case_golden(const DflashCaseRun *run, int32_t source, int64_t layer) {
  const DflashCase *c = &run->c;
  switch (source) {
  case DFLASH_STAGE_TAPS:
    if (run->last_push < 0) return NULL;
    return c->taps + run->push_row * dflash_geometry_tap_width(run->session->geometry);
  case DFLASH_STAGE_RESIDUAL:
    return c->h;
  case DFLASH_STAGE_HELD_K:
    return c->held_k[layer].data;
  case DFLASH_STAGE_HELD_V:
    return c->held_v[layer].data;
  default:
    return dflash_case_value(c, source, layer)->data;
  }
}

int64_t dflash_case_position(const DflashCaseRun *run, int32_t stage) {
  return dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT ? run->push_pos : run->c.anchor_pos;
}

int dflash_case_has(const DflashCaseRun *run, int32_t stage, int64_t layer) {
  if (dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT && run->last_push < 0) return 0;
  return stage == DFLASH_STAGE_SELECT || dflash_case_value(&run->c, stage, layer)->data != NULL;
}

/* The rows are lent: a push that writes into them fails. */
static DflashStatus push_rows(const DflashCaseRun *run, DflashSequence *sequence, const DflashContextOp *op,
                              DflashError *error) {
  int64_t width = dflash_geometry_tap_width(run->session->geometry);
  DflashLoan taps;
  if (!dflash_lend(&taps, op->n_rows > 0 ? run->c.taps + op->first_row * width : NULL, (size_t)(op->n_rows * width)))
    return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for the rows of a push");
  DflashStatus status = run->session->backend->push(sequence, op->pos, taps.copy, op->n_rows, error);
  if (dflash_loan_return(&taps) < 0) return status;
  return dflash_error_set(error, DFLASH_INTERNAL, "push wrote into the rows that it was given");
}

static DflashStatus apply(const DflashCaseRun *run, DflashSequence *sequence, const DflashContextOp *op,
                          DflashError *error) {
  const DflashBackend *b = run->session->backend;
  switch (op->op) {
  case DFLASH_OP_PUSH:
    return push_rows(run, sequence, op, error);
  case DFLASH_OP_TRUNCATE:
    return b->truncate(sequence, op->pos, error);
  default:
    return b->reset(sequence, error);
  }
}

static DflashStatus load_state(const DflashCaseRun *run, DflashSequence *sequence, DflashError *error) {
  const DflashCase *c = &run->c;
  const float *k[DFLASH_LIST_MAX], *v[DFLASH_LIST_MAX];
  for (int64_t l = 0; l < c->layers; l++) {
    k[l] = c->held_k[l].data;
    v[l] = c->held_v[l].data;
  }
  return run->session->backend->load(sequence, c->context_first, c->sizes.context_len, k, v, error);
}

/* What the backend says that it holds, against the bookkeeping. */
static DflashStatus check_span(const DflashCaseRun *run, DflashSequence *sequence, int64_t first, int64_t len,
                               DflashError *error) {
  const DflashSession *s = run->session;
  for (int64_t layer = 0; layer < s->geometry->layers; layer++) {
    int64_t own_first = 0, own_len = 0, kept = 0;
    DflashStatus status = s->backend->span(sequence, layer, &own_first, &own_len, &kept, error);
    if (status != DFLASH_OK) return dflash_error_prefix(error, "span of layer %lld", (long long)layer);
    if (own_first == first && own_len == len && kept >= first && kept <= first + len) continue;
    return dflash_error_set(
        error, DFLASH_INTERNAL,
        "layer %lld says that it holds %lld rows from %lld on (kept from %lld); right: %lld from %lld",
        (long long)layer, (long long)own_len, (long long)own_first, (long long)kept, (long long)len, (long long)first);
  }
  return DFLASH_OK;
}

/* The span is looked at after every operation; of very long lists, after the last. */
static DflashStatus check_operation(const DflashCaseRun *run, DflashSequence *sequence, int64_t done,
                                    DflashError *error) {
  enum { MANY = 512 };
  int64_t first = 0, len = 0;
  if (run->c.op_count > MANY && done < run->c.op_count) return DFLASH_OK;
  DflashStatus status = dflash_context_replay(run->c.ops, done, &first, &len, NULL, NULL, error);
  return status == DFLASH_OK ? check_span(run, sequence, first, len, error) : status;
}

DflashStatus dflash_case_apply(const DflashCaseRun *run, DflashSequence *sequence, int64_t index, DflashError *error) {
  DflashStatus status = apply(run, sequence, &run->c.ops[index], error);
  if (status == DFLASH_OK) status = check_operation(run, sequence, index + 1, error);
  return status == DFLASH_OK ? status : dflash_error_prefix(error, "context operation %lld", (long long)index);
}

DflashStatus dflash_case_load(DflashCaseRun *run, DflashSequence *sequence, DflashError *error) {
  DflashStatus status = load_state(run, sequence, error);
  if (status == DFLASH_OK) status = check_span(run, sequence, run->c.context_first, run->c.sizes.context_len, error);
  return status == DFLASH_OK ? status : dflash_error_prefix(error, "loading the context");
}

DflashStatus dflash_case_feed(DflashCaseRun *run, DflashSequence *sequence, DflashError *error) {
  if (run->session->options->load_context) return dflash_case_load(run, sequence, error);
  DflashStatus status = DFLASH_OK;
  for (int64_t i = 0; status == DFLASH_OK && i < run->c.op_count; i++)
    status = dflash_case_apply(run, sequence, i, error);
  return status;
}

DflashStatus dflash_case_sequence(DflashCaseRun *run, uint32_t flags, DflashSequence **sequence, DflashError *error) {
  DflashSession *s = run->session;
  DflashSequenceDesc desc = {.struct_size = sizeof desc, .flags = flags, .reserve_rows = run->c.sizes.context_len};
  DflashStatus status = s->backend->sequence_open(s->model, &desc, sequence, error);
  if (status != DFLASH_OK) return status;
  return dflash_case_feed(run, *sequence, error);
}

void dflash_case_judge(const DflashCaseRun *run, DflashVerdict *verdict, const float *got, const float *golden,
                       const float *sigma, int64_t rows, int64_t width, int64_t damage) {
  bool held = verdict->check != NULL && strncmp(verdict->check, "context_state", 13) == 0;
  DflashCompareCall call = {.geometry = run->session->geometry,
                            .stage = verdict->stage,
                            .rows = rows,
                            .width = width,
                            .position = held ? run->c.context_first : dflash_case_position(run, verdict->stage),
                            .got = got,
                            .golden = golden,
                            .sigma = sigma};
  dflash_compare_values(&call, &verdict->comparison);
  verdict->compared = true;
  verdict->outcome = verdict->comparison.outcome;
  const char *why = NULL;
  if (damage != 0)
    dflash_verdict_note(verdict, DFLASH_OUTCOME_OVERRUN, "wrote outside its output: element %lld %s",
                        (long long)(damage < 0 ? -damage : damage), damage < 0 ? "before its start" : "past its end");
  else if (verdict->outcome == DFLASH_OUTCOME_PASS && !dflash_value_trusted(golden, rows * width, &why))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_TRUSTED, "agrees, but the golden proves little: %s", why);
}
