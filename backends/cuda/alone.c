/* A stage alone: its inputs go where a block would have left them, its kernels run, its value is read back. */
#include <stdlib.h>

#include "alone.h"
#include "base/error.h"
#include "base/memory.h"
#include "held.h"

DflashStatus cuda_alone_copy(const CudaAlone *a, CudaAddress to, const void *from, uint64_t bytes) {
  CudaDevice *device = &a->s->model->device;
  if (bytes == 0) return DFLASH_OK;
  DflashStatus status = CUDA_CALL(device, "the copy of a stage's input", a->error, copy_to_device, to, from,
                                  (size_t)bytes, device->stream);
  return status ? status : cuda_wait(device, "the copy of a stage's input", a->error);
}

static int64_t width_of(const CudaAlone *a, int32_t stage) {
  return stage == DFLASH_STAGE_HEAD_LOGITS ? a->call->head_width : cuda_stage_width(&a->s->model->geometry, stage);
}

static uint64_t value_bytes(const CudaAlone *a, int32_t stage) {
  const int64_t rows = cuda_stage_rows(stage) == DFLASH_ROWS_DRAFT ? a->call->n_draft : a->rows;
  return (uint64_t)(rows * width_of(a, stage)) * sizeof(float);
}

static DflashStatus open_held(CudaAlone *a, CudaBuffer *buffer, const float *from) {
  const uint64_t bytes = (uint64_t)a->call->context_len * cuda_held_row_bytes(&a->s->model->geometry);
  DflashStatus status = cuda_buffer_open(&a->s->model->device, bytes, "a stage's context", buffer, a->error);
  return status ? status : cuda_alone_copy(a, buffer->at, from, bytes);
}

static DflashStatus give_input(CudaAlone *a, int index) {
  const CudaBlock *b = &a->s->block;
  const int64_t hidden = a->s->model->geometry.hidden, layer = a->call->layer;
  const int32_t source = cuda_stage_input(a->call->stage, index);
  const float *from = a->call->inputs[index];
  switch (source) {
  case DFLASH_STAGE_RESIDUAL:
    return cuda_alone_copy(a, cuda_block_residual(b, layer), from, (uint64_t)(a->rows * hidden) * sizeof(float));
  case DFLASH_STAGE_LAST:
    return cuda_alone_copy(a, cuda_block_residual(b, a->s->model->geometry.layers), from,
                           (uint64_t)(a->rows * hidden) * sizeof(float));
  case DFLASH_STAGE_HELD_K:
    return open_held(a, &a->k, from);
  case DFLASH_STAGE_HELD_V:
    return open_held(a, &a->v, from);
  default:
    return cuda_alone_copy(a, cuda_block_stage(b, source, layer), from, value_bytes(a, source));
  }
}

/* What the call's context lets the block's first row see. */
static CudaVisible visible_of(const CudaAlone *a) {
  const DflashStageCall *c = a->call;
  const int64_t window = dflash_geometry_window(&a->s->model->geometry, c->layer);
  const int64_t held = c->context_first + c->context_len, end = c->position < held ? c->position : held;
  CudaVisible seen = {.k = a->k.at, .v = a->v.at, .from = INT64_MIN / 2};
  if (window > 0 && window <= CUDA_POSITION_MAX) seen.from = c->position + 1 - window - c->context_first;
  seen.end = end > c->context_first ? end - c->context_first : 0;
  return seen;
}

static DflashStatus give_inputs(CudaAlone *a) {
  const DflashStageCall *c = a->call;
  const CudaBlock *b = &a->s->block;
  const CudaInputs inputs = {.position = c->position, .anchor_token = (int32_t)c->anchor_token};
  DflashStatus status = cuda_alone_copy(a, b->inputs, &inputs, sizeof inputs);
  for (int i = 0; !status && i < DFLASH_STAGE_INPUTS && cuda_stage_input(c->stage, i) != DFLASH_STAGE_NONE; i++)
    status = give_input(a, i);
  if (status || c->stage != DFLASH_STAGE_ATTN_MIX) return status;
  const CudaVisible seen = visible_of(a);
  return cuda_alone_copy(a, cuda_block_visible(b, c->layer), &seen, sizeof seen);
}

static DflashStatus take_tokens(const CudaAlone *a) {
  const int64_t n = a->call->n_draft, top = a->s->model->geometry.selector_top;
  const int64_t words = cuda_result_words(n, top);
  int32_t *result = dflash_alloc((size_t)words, sizeof *result);
  if (!result) return dflash_error_set(a->error, DFLASH_OUT_OF_MEMORY, "cuda: no memory for tokens");
  DflashStatus status =
      cuda_download(&a->s->model->device, a->s->block.result, result, (uint64_t)words * sizeof *result, a->error);
  if (!status) status = cuda_give_tokens(result, n, top, a->call->tokens, a->error);
  free(result);
  return status;
}

static DflashStatus run_block_stage(CudaAlone *a) {
  const DflashStageCall *c = a->call;
  const CudaBlock *b = &a->s->block;
  CudaRun run = {.model = a->s->model,
                 .block = b,
                 .rows = a->rows,
                 .n_draft = c->n_draft,
                 .head_width = c->head_width,
                 .error = a->error};
  DflashStatus status = give_inputs(a);
  if (status) return status;
  if (c->stage == DFLASH_STAGE_ATTN_Q || c->stage == DFLASH_STAGE_ATTN_K)
    cuda_run_rotation(&run, b->inputs + offsetof(CudaInputs, position), a->rows, b->table);
  cuda_run_stage(&run, c->stage, c->layer);
  if (run.status) return run.status;
  if (c->stage == DFLASH_STAGE_SELECT) return take_tokens(a);
  return cuda_download(&a->s->model->device, cuda_block_stage(b, c->stage, c->layer), c->output,
                       value_bytes(a, c->stage), a->error);
}

/* What ships for a block of so many rows is one kernel, which nothing enters in its middle. */
static DflashStatus check_path(const DflashSequence *s, const DflashStageCall *call, int64_t rows, DflashError *error) {
  if (call->stage == DFLASH_STAGE_SELECT || !cuda_fast_takes(s->model, rows)) return DFLASH_OK;
  return dflash_error_set(error, DFLASH_UNSUPPORTED,
                          "cuda: %s runs fused with the whole block; path=plain has it alone",
                          cuda_stage_name(call->stage));
}

/* The values of the last block are no longer those of one. */
DflashStatus cuda_stage(DflashSequence *s, const DflashStageCall *call, DflashError *error) {
  DflashStatus status = cuda_alone_check(s->model, call, error);
  if (status) return status;
  const bool draft = cuda_stage_rows(call->stage) == DFLASH_ROWS_DRAFT;
  CudaAlone a = {.s = s, .call = call, .rows = draft ? call->n_draft + 1 : call->rows, .error = error};
  if (cuda_stage_rows(call->stage) == DFLASH_ROWS_CONTEXT) return cuda_alone_context(&a);
  status = check_path(s, call, a.rows, error);
  if (status) return status;
  s->block_rows = 0;
  status = run_block_stage(&a);
  if (status) (void)s->model->device.driver.stream_wait(s->model->device.stream);
  cuda_buffer_close(&s->model->device, &a.k);
  cuda_buffer_close(&s->model->device, &a.v);
  return status;
}
