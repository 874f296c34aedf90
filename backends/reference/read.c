/* What the last block and push left: values, time, spans. */
#include "reference.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

static DflashStatus check_read(const DflashSequence *sequence, int32_t stage, uint64_t expected, uint64_t count,
                               DflashError *error) {
  const char *name = reference_stage_row(stage)->name;
  if (!sequence->capture)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: %s: the sequence was opened without capture",
                            name);
  if (count != expected && expected == 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: %s: nothing is captured", name);
  if (count != expected)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT,
                            "reference: %s: count is %" PRIu64 ", the value has %" PRIu64 " elements", name, count,
                            expected);
  return DFLASH_OK;
}

/* The value of select is its scores. */
DflashStatus reference_read_stage(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                                  DflashError *error) {
  DflashStatus status = reference_check_pointer("read_stage: sequence", sequence, error);
  if (status == DFLASH_OK && count > 0) status = reference_check_pointer("read_stage: values", values, error);
  if (status == DFLASH_OK) status = reference_stage_check(sequence->model, stage, layer, error);
  if (status != DFLASH_OK) return status;
  const int64_t width = reference_stage_width(&sequence->model->geometry, &sequence->last, stage);
  const uint64_t expected = (uint64_t)(reference_stage_rows(&sequence->last, stage) * width);
  status = check_read(sequence, stage, expected, count, error);
  if (status != DFLASH_OK) return status;
  const Values *from = stage <= DFLASH_STAGE_CONTEXT_K ? &sequence->push : &sequence->block;
  if (count > 0) memcpy(values, reference_values_at(from, stage, layer), count * sizeof(float));
  return DFLASH_OK;
}

DflashStatus reference_block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  DflashStatus status = reference_check_pointer("block_time: sequence", sequence, error);
  if (status != DFLASH_OK) return status;
  if (sequence->last.rows == 0)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "reference: block_time: no block has run");
  const DflashBlockTime value = {
      .clock = DFLASH_CLOCK_HOST, .device_ns = sequence->block_ns, .resolution_ns = reference_clock_resolution()};
  return reference_answer("block_time: time", time, &value, sizeof value, error);
}

DflashStatus reference_block_spans(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                   DflashError *error) {
  DflashStatus status = reference_check_pointer("block_spans: sequence", sequence, error);
  if (status == DFLASH_OK) status = reference_check_pointer("block_spans: count", count, error);
  if (status == DFLASH_OK && capacity > 0) status = reference_check_pointer("block_spans: spans", spans, error);
  if (status != DFLASH_OK) return status;
  *count = sequence->span_count;
  const uint32_t filled = capacity < *count ? capacity : *count;
  if (filled > 0) memcpy(spans, sequence->spans, filled * sizeof *spans);
  return DFLASH_OK;
}
