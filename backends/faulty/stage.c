/* A stage: the fault's, or the base's. */
#include <stdlib.h>
#include <string.h>

#include "backends/faulty/executor.h"
#include "base/error.h"
#include "base/memory.h"

DflashStatus fault_base(FaultCall *call) {
  return call->model->base->stage(call->model->worker, &call->call, call->error);
}

DflashStatus fault_stage_run(FaultCall *call) {
  const Fault *fault = call->model->fault;
  return fault->stage != NULL ? fault->stage(call) : fault_base(call);
}

static DflashRunSizes sizes_of(const FaultCall *call) {
  const DflashStageCall *c = &call->call;
  return (DflashRunSizes){.rows = c->rows,
                          .n_draft = c->n_draft,
                          .head_width = c->head_width,
                          .push_rows = c->rows,
                          .context_len = c->context_len};
}

int64_t fault_rows(const FaultCall *call) {
  const DflashRunSizes sizes = sizes_of(call);
  return dflash_stage_rows(&call->model->geometry, &sizes, call->call.stage);
}

int64_t fault_width(const FaultCall *call) {
  const DflashRunSizes sizes = sizes_of(call);
  return dflash_stage_width(&call->model->geometry, &sizes, call->call.stage);
}

int64_t fault_input_rows(const FaultCall *call, int input) {
  const DflashRunSizes sizes = sizes_of(call);
  return dflash_stage_rows(&call->model->geometry, &sizes, dflash_stage_row(call->call.stage)->inputs[input]);
}

int64_t fault_input_width(const FaultCall *call, int input) {
  const DflashRunSizes sizes = sizes_of(call);
  return dflash_stage_width(&call->model->geometry, &sizes, dflash_stage_row(call->call.stage)->inputs[input]);
}

float *fault_scratch(FaultCall *call, int slot, int64_t count) {
  FaultScratch *scratch = call->model->scratch;
  if (scratch->slots[slot].count < count || scratch->slots[slot].data == NULL) {
    float *data = dflash_alloc(count > 0 ? (size_t)count : 1, sizeof *data);
    if (data == NULL) {
      dflash_error_set(call->error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for scratch");
      return NULL;
    }
    free(scratch->slots[slot].data);
    scratch->slots[slot].data = data;
    scratch->slots[slot].count = count;
  }
  return scratch->slots[slot].data;
}

static const float *source_of(const FaultCall *call, const FaultFlow *flow, int input) {
  int64_t layer;
  if (dflash_stage_row(call->call.stage)->inputs[input] == DFLASH_STAGE_NONE) return NULL;
  const int32_t source = dflash_stage_source(&call->model->geometry, call->call.stage, call->call.layer, input, &layer);
  switch (source) {
  case DFLASH_STAGE_TAPS:
  case DFLASH_STAGE_RESIDUAL:
    return flow->given;
  case DFLASH_STAGE_HELD_K:
    return flow->held_k;
  case DFLASH_STAGE_HELD_V:
    return flow->held_v;
  default:
    return fault_value(flow->values, source, layer);
  }
}

DflashStatus fault_flow_run(FaultCall *call, const FaultFlow *flow) {
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) call->call.inputs[i] = source_of(call, flow, i);
  call->call.output = fault_value(flow->values, call->call.stage, call->call.layer);
  return fault_stage_run(call);
}

bool fault_exposes(const DflashModel *model, int32_t stage) {
  return !model->expose_end || stage == DFLASH_STAGE_HEAD_LOGITS || stage == DFLASH_STAGE_SELECTOR_HIDDEN ||
         stage == DFLASH_STAGE_SELECT;
}

static DflashStatus check_sizes(const DflashModel *model, const DflashStageCall *call, DflashError *error) {
  const DflashGeometry *g = &model->geometry;
  const DflashStageRow *row = dflash_stage_row(call->stage);
  const bool head = call->stage == DFLASH_STAGE_HEAD_LOGITS || call->stage == DFLASH_STAGE_SELECT;
  const FaultRange rows = {"rows", call->rows, 1, row->rows == DFLASH_ROWS_CONTEXT ? FAULT_POSITION_MAX : g->block};
  const FaultRange draft[] = {
      {"n_draft", call->n_draft, 1, g->block - 1},
      {"head_width", head ? call->head_width : g->vocab, g->selector_top, g->vocab},
      {"anchor_token", call->stage == DFLASH_STAGE_SELECT ? call->anchor_token : 0, 0, g->vocab - 1}};
  const FaultRange places[] = {{"position", call->position, 0, FAULT_POSITION_MAX},
                               {"context_len", call->context_len, 0, FAULT_POSITION_MAX},
                               {"context_first", call->context_first, 0, FAULT_POSITION_MAX}};
  if (row->rows == DFLASH_ROWS_DRAFT) return fault_check_ranges(row->name, draft, 3, error);
  const DflashStatus status = fault_check_ranges(row->name, &rows, 1, error);
  return status == DFLASH_OK ? fault_check_ranges(row->name, places, 3, error) : status;
}

/* Held rows may be NULL when there are none. */
static DflashStatus check_pointers(const DflashStageCall *call, DflashError *error) {
  const DflashStageRow *row = dflash_stage_row(call->stage);
  for (int i = 0; i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++) {
    const bool held = row->inputs[i] == DFLASH_STAGE_HELD_K || row->inputs[i] == DFLASH_STAGE_HELD_V;
    if (call->inputs[i] == NULL && !(held && call->context_len == 0))
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: %s: input %d is NULL", row->name, i);
  }
  if (call->stage != DFLASH_STAGE_SELECT) return fault_check_pointer("stage: output", call->output, error);
  DflashStatus status = fault_check_struct("select: tokens", call->tokens, sizeof *call->tokens, error);
  if (status == DFLASH_OK) status = fault_check_pointer("select: chosen", call->tokens->chosen, error);
  if (status == DFLASH_OK) status = fault_check_pointer("select: plain", call->tokens->plain, error);
  return status;
}

DflashStatus fault_stage(DflashSequence *sequence, const DflashStageCall *call, DflashError *error) {
  DflashStatus status = fault_check_pointer("stage: sequence", sequence, error);
  if (status == DFLASH_OK) status = fault_check_struct("stage: call", call, sizeof *call, error);
  if (status == DFLASH_OK) status = fault_check_stage(sequence->model, call->stage, call->layer, error);
  if (status != DFLASH_OK) return status;
  if (!fault_exposes(sequence->model, call->stage))
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "faulty: %s cannot be entered alone with expose=end",
                            dflash_stage_row(call->stage)->name);
  status = check_sizes(sequence->model, call, error);
  if (status == DFLASH_OK) status = check_pointers(call, error);
  if (status != DFLASH_OK) return status;
  FaultCall one = {.model = sequence->model, .sequence = sequence, .call = *call, .error = error};
  return fault_stage_run(&one);
}
