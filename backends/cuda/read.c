/* What the last block and push left: values, times, spans. */
#include <string.h>

#include "abi.h"
#include "measure.h"
#include "sequence.h"

static int64_t held_rows(const DflashSequence *s, int32_t stage) {
  switch (cuda_stage_rows(stage)) {
  case DFLASH_ROWS_CONTEXT:
    return s->push_values.buffer.at ? s->push_values.rows : 0;
  case DFLASH_ROWS_DRAFT:
    return s->block_rows > 0 ? s->block_draft : 0;
  default:
    return s->block_rows;
  }
}

/* The scores of select are part of the block's answer. */
static CudaAddress held_at(const DflashSequence *s, int32_t stage, int64_t layer) {
  if (cuda_stage_rows(stage) == DFLASH_ROWS_CONTEXT)
    return s->push_values.stages[stage] + (uint64_t)layer * s->push_values.layer_bytes[stage];
  if (stage != DFLASH_STAGE_SELECT) return cuda_block_stage(&s->block, stage, layer);
  return s->block.result + (uint64_t)(s->block_draft * (2 + s->model->geometry.selector_top)) * sizeof(int32_t);
}

DflashStatus cuda_read_stage(DflashSequence *s, int32_t stage, int64_t layer, float *values, uint64_t count,
                             DflashError *error) {
  DflashStatus status = cuda_check_stage(s->model, stage, layer, error);
  if (status) return status;
  const char *name = cuda_stage_name(stage);
  if (!s->capture)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: the sequence was opened without capture", name);
  const int64_t rows = held_rows(s, stage);
  const int64_t width =
      stage == DFLASH_STAGE_HEAD_LOGITS ? s->block_head : cuda_stage_width(&s->model->geometry, stage);
  if (rows == 0) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: nothing has run", name);
  if (count != (uint64_t)(rows * width))
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: %s: count is %llu, the value has %lld elements",
                            name, (unsigned long long)count, (long long)rows * width);
  status = cuda_check_pointer(values, "read_stage: values", error);
  return status ? status
                : cuda_download(&s->model->device, held_at(s, stage, layer), values, count * sizeof(float), error);
}

DflashStatus cuda_block_time(DflashSequence *s, DflashBlockTime *time, DflashError *error) {
  float ms = 0;
  DflashBlockTime out = {.clock = DFLASH_CLOCK_DEVICE, .context_ns = s->settle_ns};
  DflashStatus status = cuda_check_struct(time, sizeof time->struct_size, "block_time: time", error);
  if (status) return status;
  if (!s->last) return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "cuda: block_time: no block has run");
  status = CUDA_CALL(&s->model->device, "the time of a block", error, event_elapsed, &ms, s->begin, s->end);
  if (!status) status = cuda_measure_step(s->model, &out.resolution_ns, error);
  if (status) return status;
  out.device_ns = (uint64_t)((double)ms * 1e6);
  cuda_answer(time, &out, sizeof out);
  return DFLASH_OK;
}

/* Each span lasts until the next one begins. */
DflashStatus cuda_block_spans(DflashSequence *s, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                              DflashError *error) {
  DflashStatus status = cuda_check_pointer(count, "block_spans: count", error);
  if (!status && capacity > 0) status = cuda_check_pointer(spans, "block_spans: spans", error);
  if (status) return status;
  const CudaGraph *last = s->last;
  *count = last && (last->flags & DFLASH_BLOCK_STAMP) ? last->span_count : 0;
  for (uint32_t i = 0; i < *count && i < capacity; i++) {
    const uint64_t *stamps = (const uint64_t *)((const char *)s->inputs.at + s->host_stamps);
    const uint32_t end = i + 1 < *count ? last->spans[i + 1].stamp : last->stamp_count;
    spans[i] = (DflashSpan){last->spans[i].stage, last->spans[i].layer, stamps[last->spans[i].stamp] - stamps[0],
                            stamps[end] - stamps[0]};
  }
  return DFLASH_OK;
}
