/* The block: every stage in the order of the table, each by dflash_run_stage. */
#include <string.h>
#include <time.h>

#include "abi.h"
#include "base/error.h"
#include "sequence.h"

uint64_t dflash_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static DflashStatus check_call(const DflashSequence *s, const DflashBlockCall *c, DflashError *error) {
  const DflashGeometry *g = &s->model->geometry;
  const struct {
    const char *name;
    int64_t value, least, most;
  } fields[] = {
      {"rows", c->rows, 2, g->block},
      {"n_draft", c->n_draft, 1, c->rows - 1},
      {"head_width", c->head_width, g->selector_top, g->vocab},
      {"anchor_pos", c->anchor_pos, 0, POSITION_MAX},
      {"anchor_token", c->anchor_token, 0, g->vocab - 1},
  };
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
      return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: block: %s is %lld, expected %lld to %lld",
                              fields[i].name, (long long)fields[i].value, (long long)fields[i].least,
                              (long long)fields[i].most);
  if (!c->h || !c->tokens || !c->tokens->chosen || !c->tokens->plain)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: block: no embeddings or no room for tokens");
  if (!s->model->has_head)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: block: the model was opened without a head");
  return DFLASH_OK;
}

/* Every context row that the block's first row sees must still be there. */
static DflashStatus check_kept(const DflashSequence *s, int64_t anchor, DflashError *error) {
  const int64_t end = anchor < s->first + s->len ? anchor : s->first + s->len;
  for (int64_t layer = 0; layer < s->model->geometry.layers; layer++) {
    const int64_t window = dflash_geometry_window(&s->model->geometry, layer), kept = s->stores[layer].kept;
    int64_t from = window > 0 ? anchor - (window - 1) : s->first;
    if (from < s->first) from = s->first;
    if (from < end && from < kept)
      return dflash_error_set(error, DFLASH_CONTEXT_LOST,
                              "blas: layer %lld keeps positions from %lld on; a block at %lld needs %lld",
                              (long long)layer, (long long)kept, (long long)anchor, (long long)from);
  }
  return DFLASH_OK;
}

typedef struct Work {
  DflashSequence *sequence;
  const DflashBlockCall *call;
  DflashRun run;
  bool stamps;
  uint64_t begin_ns, last_ns;
} Work;

static const float *value_of(const Work *work, int32_t source, int64_t layer) {
  const DflashSequence *s = work->sequence;
  switch (source) {
  case DFLASH_STAGE_RESIDUAL:
    return layer == 0 ? work->call->h : dflash_value(s, DFLASH_STAGE_MLP_OUT, layer - 1);
  case DFLASH_STAGE_LAST:
    return dflash_value(s, DFLASH_STAGE_MLP_OUT, s->model->geometry.layers - 1);
  case DFLASH_STAGE_HELD_K: /* read from the store */
  case DFLASH_STAGE_HELD_V:
  case DFLASH_STAGE_NONE:
    return NULL;
  default:
    return dflash_value(s, source, layer);
  }
}

static void stamp(Work *work, int32_t stage, int64_t layer) {
  if (!work->stamps) return;
  const uint64_t now = dflash_now_ns();
  work->sequence->spans[work->sequence->span_count++] =
      (DflashSpan){stage, (int32_t)layer, work->last_ns - work->begin_ns, now - work->begin_ns};
  work->last_ns = now;
}

static DflashStatus run_stage(Work *work, int32_t stage, int64_t layer, DflashError *error) {
  const float *in[DFLASH_STAGE_INPUTS];
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) in[i] = value_of(work, dflash_stage_shape_of(stage)->inputs[i], layer);
  work->run.store = &work->sequence->stores[layer];
  DflashStatus status =
      dflash_run_stage(&work->run, stage, layer, in, dflash_value(work->sequence, stage, layer), error);
  stamp(work, stage, layer);
  return status;
}

static DflashStatus run_stages(Work *work, DflashError *error) {
  for (int64_t layer = 0; layer < work->sequence->model->geometry.layers; layer++)
    for (int32_t stage = DFLASH_STAGE_ATTN_NORM; stage <= DFLASH_STAGE_MLP_OUT; stage++)
      run_stage(work, stage, layer, error);
  DflashStatus status = DFLASH_OK;
  for (int32_t stage = DFLASH_STAGE_FINAL_NORM; stage < DFLASH_STAGE_COUNT; stage++)
    status = run_stage(work, stage, 0, error);
  return status;
}

static void give_outputs(const Work *work) {
  const DflashSequence *s = work->sequence;
  const DflashBlockCall *c = work->call;
  if (c->logits)
    memcpy(c->logits, dflash_value(s, DFLASH_STAGE_HEAD_LOGITS, 0),
           (size_t)(c->n_draft * c->head_width) * sizeof(float));
  if (c->selector_hidden)
    memcpy(c->selector_hidden, dflash_value(s, DFLASH_STAGE_SELECTOR_HIDDEN, 0),
           (size_t)(c->n_draft * s->model->geometry.selector_rank) * sizeof(float));
}

DflashStatus dflash_block(DflashSequence *s, const DflashBlockCall *call, DflashError *error) {
  DflashStatus status = check_call(s, call, error);
  if (status) return status;
  const uint64_t settle_ns = dflash_now_ns();
  dflash_settle(s);
  status = check_kept(s, call->anchor_pos, error);
  if (status) return status;
  Work work = {.sequence = s, .call = call, .stamps = call->flags & DFLASH_BLOCK_STAMP};
  work.run = (DflashRun){.model = s->model,
                         .workspace = &s->workspace,
                         .rows = call->rows,
                         .position = call->anchor_pos,
                         .n_draft = call->n_draft,
                         .head_width = call->head_width,
                         .anchor_token = call->anchor_token,
                         .first = s->first,
                         .len = s->len,
                         .own = &s->own,
                         .selection = &s->selection,
                         .tokens = call->tokens};
  s->block_rows = call->rows;
  s->n_draft = call->n_draft;
  s->head_width = call->head_width;
  s->span_count = 0;
  work.begin_ns = work.last_ns = dflash_now_ns();
  status = run_stages(&work, error);
  give_outputs(&work);
  s->block_ns = dflash_now_ns() - work.begin_ns;
  s->context_ns = work.begin_ns - settle_ns;
  s->timed = true;
  return status;
}

/* ---- what the last block left ---- */

static int64_t value_rows(const DflashSequence *s, int32_t stage) {
  switch (dflash_stage_shape_of(stage)->rows) {
  case DFLASH_ROWS_CONTEXT:
    return s->push_rows;
  case DFLASH_ROWS_DRAFT:
    return s->block_rows > 0 ? s->n_draft : 0;
  default:
    return s->block_rows;
  }
}

DflashStatus dflash_read_stage(DflashSequence *s, int32_t stage, int64_t layer, float *values, uint64_t count,
                               DflashError *error) {
  if (!s->capture)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: read_stage: the sequence does not capture");
  if (stage < 0 || stage >= DFLASH_STAGE_COUNT || layer < 0 ||
      layer >= (dflash_stage_shape_of(stage)->scope == DFLASH_SCOPE_LAYER ? s->model->geometry.layers : 1))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: read_stage: no stage %d of layer %lld", (int)stage,
                            (long long)layer);
  const int64_t rows = value_rows(s, stage);
  if (rows == 0) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: read_stage: nothing has run");
  const uint64_t held = (uint64_t)(rows * dflash_stage_row_width(&s->model->geometry, stage, s->head_width));
  if (count != held)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: read_stage: %llu values asked for, %llu are held",
                            (unsigned long long)count, (unsigned long long)held);
  memcpy(values, dflash_value(s, stage, layer), (size_t)count * sizeof(float));
  return DFLASH_OK;
}

/* The smallest step that CLOCK_MONOTONIC shows. */
static uint64_t clock_step(void) {
  uint64_t smallest = UINT64_MAX;
  for (int i = 0; i < 64; i++) {
    const uint64_t begin = dflash_now_ns();
    uint64_t now = begin;
    while (now == begin) now = dflash_now_ns();
    if (now - begin < smallest) smallest = now - begin;
  }
  return smallest;
}

DflashStatus dflash_block_time(DflashSequence *s, DflashBlockTime *time, DflashError *error) {
  if (!s->timed) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "blas: block_time: no block has run");
  const DflashBlockTime out = {
      .clock = DFLASH_CLOCK_HOST, .device_ns = s->block_ns, .resolution_ns = clock_step(), .context_ns = s->context_ns};
  DFLASH_GIVE(time, out);
  return DFLASH_OK;
}

DflashStatus dflash_block_spans(DflashSequence *s, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                DflashError *error) {
  (void)error;
  *count = s->span_count;
  const uint32_t given = capacity < s->span_count ? capacity : s->span_count;
  if (given > 0) memcpy(spans, s->spans, given * sizeof *spans);
  return DFLASH_OK;
}
