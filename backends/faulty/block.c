/* A block: every stage in data-flow order. And what it left: values, time, spans. */
#include <string.h>
#include <time.h>

#include "backends/faulty/executor.h"
#include "base/error.h"

uint64_t fault_clock_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static DflashStatus check_tokens(const DflashTokens *tokens, DflashError *error) {
  DflashStatus status = fault_check_struct("block: tokens", tokens, sizeof *tokens, error);
  if (status == DFLASH_OK) status = fault_check_pointer("block: chosen", tokens->chosen, error);
  if (status == DFLASH_OK) status = fault_check_pointer("block: plain", tokens->plain, error);
  return status;
}

static DflashStatus check(const DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  DflashStatus status = fault_check_pointer("block: sequence", sequence, error);
  if (status == DFLASH_OK) status = fault_check_struct("block: call", call, sizeof *call, error);
  if (status != DFLASH_OK) return status;
  const DflashGeometry *g = &sequence->model->geometry;
  const FaultRange ranges[] = {{"flags", call->flags, 0, DFLASH_BLOCK_STAMP},
                               {"rows", call->rows, 2, g->block},
                               {"n_draft", call->n_draft, 1, call->rows - 1},
                               {"head_width", call->head_width, g->selector_top, g->vocab},
                               {"anchor_token", call->anchor_token, 0, g->vocab - 1},
                               {"anchor_pos", call->anchor_pos, 0, FAULT_POSITION_MAX - g->block}};
  status = fault_check_ranges("block", ranges, sizeof ranges / sizeof *ranges, error);
  if (status == DFLASH_OK) status = fault_check_pointer("block: h", call->h, error);
  return status == DFLASH_OK ? check_tokens(call->tokens, error) : status;
}

/* The values of the last block become those of the block before. */
static void begin(DflashSequence *sequence, const DflashBlockCall *call) {
  const DflashRunSizes sizes = {.rows = call->rows, .n_draft = call->n_draft, .head_width = call->head_width};
  const FaultValues older = sequence->previous;
  sequence->previous = sequence->block;
  sequence->block = older;
  fault_values_place(&sequence->block, &sequence->model->geometry, &sizes);
  sequence->before = sequence->last;
  sequence->last.rows = call->rows;
  sequence->last.n_draft = call->n_draft;
  sequence->last.head_width = call->head_width;
  if (call->flags & DFLASH_BLOCK_STAMP) sequence->span_count = 0;
  sequence->blocks++;
  sequence->model->blocks++;
}

/* The context of a layer, as attention is given it. */
static DflashStatus look_back(const FaultCall *call, const DflashBlockCall *block, DflashStageCall *c,
                              FaultFlow *flow) {
  DflashSequence *sequence = call->sequence;
  const Fault *fault = sequence->model->fault;
  c->context_first = sequence->context.first;
  c->context_len = sequence->context.len;
  flow->held_k = flow->held_v = NULL;
  if (c->context_len > 0) {
    flow->held_k = fault_context_k(sequence, c->layer, 0);
    flow->held_v = fault_context_v(sequence, c->layer, 0);
  }
  if (fault->visible == NULL) return DFLASH_OK;
  return fault->visible(sequence, block, c->layer, &c->context_first, &c->context_len, &flow->held_k, &flow->held_v,
                        call->error);
}

/* Where only end values are exposed, what lies between two of them is one span. */
static void stamp(DflashSequence *sequence, const DflashStageCall *c, uint64_t begin_ns, uint64_t end_ns) {
  if (!fault_exposes(sequence->model, c->stage)) return;
  if (sequence->model->expose_end)
    begin_ns = sequence->span_count > 0 ? sequence->spans[sequence->span_count - 1].end_ns : 0;
  sequence->spans[sequence->span_count++] = (DflashSpan){c->stage, (int32_t)c->layer, begin_ns, end_ns};
}

/* The planted slowdown: waits until the stage has taken its multiple. */
static void wait_slow(const DflashModel *model, int32_t stage, uint64_t begin_ns) {
  if (stage != model->slow_stage) return;
  const double wanted = (double)(fault_clock_now() - begin_ns) * model->slow_by;
  while ((double)(fault_clock_now() - begin_ns) < wanted) continue;
}

static DflashStatus run_one(FaultCall *call, const DflashBlockCall *block, FaultFlow *flow, uint64_t start) {
  DflashStageCall *c = &call->call;
  DflashStatus status = DFLASH_OK;
  const uint64_t begin = fault_clock_now();
  if (c->stage == DFLASH_STAGE_ATTN_MIX) status = look_back(call, block, c, flow);
  if (status == DFLASH_OK) status = fault_flow_run(call, flow);
  wait_slow(call->model, c->stage, begin);
  if (block->flags & DFLASH_BLOCK_STAMP) stamp(call->sequence, c, begin - start, fault_clock_now() - start);
  return status;
}

static DflashStatus run_all(DflashSequence *sequence, const DflashBlockCall *block, uint64_t start,
                            DflashError *error) {
  FaultFlow flow = {.values = &sequence->block, .given = block->h};
  const DflashStageCall sizes = {.struct_size = sizeof sizes,
                                 .rows = block->rows,
                                 .position = block->anchor_pos,
                                 .n_draft = block->n_draft,
                                 .head_width = block->head_width,
                                 .anchor_token = block->anchor_token,
                                 .context_first = sequence->context.first,
                                 .context_len = sequence->context.len};
  DflashStatus status = DFLASH_OK;
  int32_t stage;
  int64_t layer;
  for (int64_t i = 0; status == DFLASH_OK; i++) {
    if (!dflash_stage_walk(&sequence->model->geometry, i, &stage, &layer)) break;
    if (dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT) continue;
    FaultCall call = {.model = sequence->model, .sequence = sequence, .call = sizes, .in_block = true, .error = error};
    call.call.stage = stage;
    call.call.layer = layer;
    if (stage == DFLASH_STAGE_SELECT) call.call.tokens = &sequence->tokens;
    status = run_one(&call, block, &flow, start);
  }
  return status;
}

static void copy_value(const DflashSequence *sequence, int32_t stage, float *out) {
  if (out == NULL) return;
  const size_t count = (size_t)sequence->block.elements[stage];
  memcpy(out, fault_value(&sequence->block, stage, 0), count * sizeof *out);
}

static void copy_tokens(const DflashSequence *sequence, const DflashTokens *out) {
  const size_t rows = (size_t)sequence->last.n_draft, top = (size_t)sequence->model->geometry.selector_top;
  const DflashTokens *own = &sequence->tokens;
  memcpy(out->chosen, own->chosen, rows * sizeof *out->chosen);
  memcpy(out->plain, own->plain, rows * sizeof *out->plain);
  if (out->candidates != NULL) memcpy(out->candidates, own->candidates, rows * top * sizeof *out->candidates);
  if (out->scores != NULL) memcpy(out->scores, own->scores, rows * top * sizeof *out->scores);
}

DflashStatus fault_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  DflashStatus status = check(sequence, call, error);
  if (status != DFLASH_OK) return status;
  begin(sequence, call);
  const uint64_t start = fault_clock_now();
  status = run_all(sequence, call, start, error);
  if (status == DFLASH_OK || status == DFLASH_NONFINITE) {
    copy_value(sequence, DFLASH_STAGE_HEAD_LOGITS, call->logits);
    copy_value(sequence, DFLASH_STAGE_SELECTOR_HIDDEN, call->selector_hidden);
  }
  if (status == DFLASH_OK) {
    copy_tokens(sequence, call->tokens);
    memcpy(fault_value(&sequence->block, DFLASH_STAGE_SELECT, 0), sequence->tokens.scores,
           (size_t)sequence->block.elements[DFLASH_STAGE_SELECT] * sizeof(float));
  }
  sequence->model->last = sequence;
  sequence->block_ns = fault_clock_now() - start;
  return status;
}

/* The value of select is its scores. */
DflashStatus fault_read_stage(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                              DflashError *error) {
  DflashStatus status = fault_check_pointer("read_stage: sequence", sequence, error);
  if (status == DFLASH_OK && count > 0) status = fault_check_pointer("read_stage: values", values, error);
  if (status == DFLASH_OK) status = fault_check_stage(sequence->model, stage, layer, error);
  if (status != DFLASH_OK) return status;
  const char *name = dflash_stage_row(stage)->name;
  if (!sequence->capture)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: %s: the sequence was opened without capture",
                            name);
  if (!fault_exposes(sequence->model, stage))
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "faulty: %s is not materialised with expose=end", name);
  const bool context = dflash_stage_row(stage)->rows == DFLASH_ROWS_CONTEXT;
  const FaultValues *from = context ? &sequence->push : &sequence->block;
  const float *value = fault_value(from, stage, layer);
  if (value == NULL) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: %s: nothing is captured", name);
  if (count != (uint64_t)from->elements[stage])
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: %s: count is %llu, the value has %lld elements",
                            name, (unsigned long long)count, (long long)from->elements[stage]);
  memcpy(values, value, (size_t)count * sizeof *values);
  return DFLASH_OK;
}

/* The smallest step that the clock shows. */
static uint64_t clock_step(void) {
  uint64_t smallest = 1000000000u, before = fault_clock_now();
  for (int i = 0; i < 100; i++) {
    const uint64_t now = fault_clock_now();
    if (now != before && now - before < smallest) smallest = now - before;
    before = now;
  }
  return smallest;
}

DflashStatus fault_block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  const DflashStatus status = fault_check_pointer("block_time: sequence", sequence, error);
  if (status != DFLASH_OK) return status;
  if (sequence->last.rows == 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "faulty: block_time: no block has run");
  const DflashBlockTime value = {
      .clock = DFLASH_CLOCK_HOST, .device_ns = sequence->block_ns, .resolution_ns = clock_step()};
  return fault_answer("block_time: time", time, &value, sizeof value, error);
}

DflashStatus fault_block_spans(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                               DflashError *error) {
  DflashStatus status = fault_check_pointer("block_spans: sequence", sequence, error);
  if (status == DFLASH_OK) status = fault_check_pointer("block_spans: count", count, error);
  if (status == DFLASH_OK && capacity > 0) status = fault_check_pointer("block_spans: spans", spans, error);
  if (status != DFLASH_OK) return status;
  *count = sequence->span_count;
  const uint32_t filled = capacity < *count ? capacity : *count;
  if (filled > 0) memcpy(spans, sequence->spans, filled * sizeof *spans);
  return DFLASH_OK;
}
