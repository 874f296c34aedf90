#include <string.h>

#include "base/error.h"
#include "run/dump.h"
#include "run/laws.h"
#include "run/lend.h"

/* Golden inputs of a stage into the call; false when the case lacks one. */
static bool give_inputs(const DflashCaseRun *run, DflashStageCall *call) {
  const DflashStageRow *row = dflash_stage_row(call->stage);
  for (int i = 0; i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++) {
    int64_t layer = 0;
    int32_t source = dflash_stage_source(run->session->geometry, call->stage, call->layer, i, &layer);
    call->inputs[i] = dflash_case_golden(run, source, layer);
    bool held = source == DFLASH_STAGE_HELD_K || source == DFLASH_STAGE_HELD_V;
    if (call->inputs[i] == NULL && !(held && run->c.sizes.context_len == 0)) return false;
  }
  return true;
}

static DflashStageCall stage_call(const DflashCaseRun *run, int32_t stage, int64_t layer) {
  const DflashCase *c = &run->c;
  bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  return (DflashStageCall){.struct_size = sizeof(DflashStageCall),
                           .stage = stage,
                           .layer = layer,
                           .rows = context ? c->sizes.push_rows : c->sizes.rows,
                           .position = dflash_case_position(run, stage),
                           .n_draft = c->sizes.n_draft,
                           .head_width = c->sizes.head_width,
                           .anchor_token = c->anchor_token,
                           .context_first = c->context_first,
                           .context_len = c->sizes.context_len};
}

bool dflash_alone_call(const DflashCaseRun *run, int32_t stage, int64_t layer, DflashStageCall *call) {
  *call = stage_call(run, stage, layer);
  return give_inputs(run, call);
}

static void run_failed(DflashVerdict *verdict, const DflashError *error) {
  int outcome = error->status == DFLASH_UNSUPPORTED ? DFLASH_OUTCOME_UNSUPPORTED : DFLASH_OUTCOME_ERROR;
  dflash_verdict_note(verdict, outcome, "%s", error->message);
}

/* Elements of input `index` of the call. */
static size_t input_size(const DflashCaseRun *run, const DflashStageCall *call, int index) {
  const DflashGeometry *g = run->session->geometry;
  int64_t layer = 0;
  int32_t source = dflash_stage_source(g, call->stage, call->layer, index, &layer);
  return (size_t)(dflash_stage_rows(g, &run->c.sizes, source) * dflash_stage_width(g, &run->c.sizes, source));
}

/* The stage on copies of its inputs. *written: the first input that it wrote into, -1: none. */
static DflashStatus run_lent(const DflashCaseRun *run, DflashSequence *sequence, DflashStageCall *call, int *written,
                             DflashError *error) {
  const DflashStageRow *row = dflash_stage_row(call->stage);
  DflashLoan loans[DFLASH_STAGE_INPUTS] = {{0}};
  DflashStatus status = DFLASH_OK;
  int count = 0;
  for (; status == DFLASH_OK && count < DFLASH_STAGE_INPUTS && row->inputs[count] != DFLASH_STAGE_NONE; count++) {
    if (!dflash_lend(&loans[count], call->inputs[count], input_size(run, call, count)))
      status = dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "no memory for a stage's inputs");
    call->inputs[count] = loans[count].copy;
  }
  if (status == DFLASH_OK) status = run->session->backend->stage(sequence, call, error);
  *written = -1;
  for (int i = count - 1; i >= 0; i--) {
    call->inputs[i] = loans[i].own;
    if (dflash_loan_return(&loans[i]) >= 0) *written = i;
  }
  return status;
}

static void judge_written(const DflashCaseRun *run, DflashVerdict *verdict, const DflashStageCall *call, int written) {
  char label[64];
  int64_t layer = 0;
  if (written < 0) return;
  int32_t source = dflash_stage_source(run->session->geometry, call->stage, call->layer, written, &layer);
  dflash_verdict_note(verdict, DFLASH_OUTCOME_OVERRUN, "wrote into its input %d%s%s", written,
                      source < DFLASH_STAGE_COUNT ? ", " : "",
                      source < DFLASH_STAGE_COUNT ? dflash_stage_label(source, layer, label) : "");
}

static void alone_value(DflashCaseRun *run, DflashSequence *sequence, DflashStageCall *call, DflashVerdict *verdict) {
  const DflashGeometry *g = run->session->geometry;
  int64_t rows = dflash_stage_rows(g, &run->c.sizes, call->stage);
  int64_t width = dflash_stage_width(g, &run->c.sizes, call->stage);
  DflashGuarded output;
  DflashError error = {0};
  int written;
  if (!dflash_guarded_open(&output, (size_t)(rows * width))) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory for the stage's output");
    return;
  }
  dflash_guarded_poison(&output);
  call->output = output.data;
  if (run_lent(run, sequence, call, &written, &error) != DFLASH_OK) {
    run_failed(verdict, &error);
  } else {
    const DflashValue *golden = dflash_case_value(&run->c, call->stage, call->layer);
    DflashDumpValues values = {.stage = call->stage,
                               .rows = rows,
                               .width = width,
                               .damage = dflash_guarded_damage(&output),
                               .got = output.data,
                               .expected = golden->data,
                               .sigma = golden->alone};
    memcpy(values.inputs, call->inputs, sizeof values.inputs);
    dflash_case_judge(run, verdict, output.data, golden->data, golden->alone, rows, width, values.damage);
    dflash_dump_verdict(run, verdict, &values);
  }
  judge_written(run, verdict, call, written);
  dflash_guarded_close(&output);
}

static void alone_tokens(DflashCaseRun *run, DflashSequence *sequence, DflashStageCall *call, DflashVerdict *verdict) {
  DflashTokenBuffers buffers;
  DflashError error = {0};
  int written;
  if (!dflash_token_buffers_open(&buffers, run->session->geometry, run->c.sizes.n_draft)) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_ERROR, "no memory for tokens");
    return;
  }
  dflash_token_buffers_poison(&buffers);
  call->tokens = &buffers.tokens;
  if (run_lent(run, sequence, call, &written, &error) != DFLASH_OK)
    run_failed(verdict, &error);
  else
    dflash_case_judge_tokens(run, verdict, &buffers, &run->c.tokens, call->inputs[0], NULL, call->inputs[1], false);
  judge_written(run, verdict, call, written);
  call->tokens = NULL;
  dflash_token_buffers_close(&buffers);
}

static void alone_stage(DflashCaseRun *run, DflashSequence *sequence, int32_t stage, int64_t layer) {
  DflashVerdict *verdict = dflash_verdict_add(&run->verdicts, DFLASH_MODE_ALONE, stage, layer, NULL);
  if (!dflash_case_info(run, stage, layer)->alone) {
    bool elsewhere = (run->modes & ~(1u << DFLASH_MODE_ALONE)) != 0;
    dflash_verdict_note(verdict, elsewhere ? DFLASH_OUTCOME_NOT_RUN : DFLASH_OUTCOME_UNSUPPORTED,
                        "the backend cannot enter it alone%s", elsewhere ? "; see the other modes" : "");
    return;
  }
  if (run->session->options->load_context && dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT) {
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "the context is loaded, not computed");
    return;
  }
  DflashStageCall call;
  dflash_session_stage(run->session, DFLASH_MODE_ALONE, stage, layer);
  if (!dflash_alone_call(run, stage, layer, &call))
    dflash_verdict_note(verdict, DFLASH_OUTCOME_NOT_RUN, "the golden lacks an input of it");
  else if (stage == DFLASH_STAGE_SELECT)
    alone_tokens(run, sequence, &call, verdict);
  else
    alone_value(run, sequence, &call, verdict);
}

void dflash_verify_alone(DflashCaseRun *run) {
  DflashSession *s = run->session;
  DflashSequence *sequence = NULL;
  DflashSequenceDesc desc = {.struct_size = sizeof desc};
  DflashError error = {0};
  if (s->backend->sequence_open(s->model, &desc, &sequence, &error) != DFLASH_OK) {
    run_failed(dflash_verdict_add(&run->verdicts, DFLASH_MODE_ALONE, DFLASH_STAGE_NONE, -1, "sequence"), &error);
    return;
  }
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; dflash_stage_walk(s->geometry, i, &stage, &layer); i++)
    if (dflash_case_selects(run, stage, layer) && dflash_case_has(run, stage, layer)) {
      alone_stage(run, sequence, stage, layer);
      if (run->send != NULL) run->send(run);
    }
  if (s->options->stages == NULL && s->options->layer < 0) dflash_law_linear(run, sequence);
  s->backend->sequence_close(sequence);
}
