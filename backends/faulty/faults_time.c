/* Faults of the clock, of spans, and of blocks that are timed. They are found by timing a block. */
#include <stdlib.h>

#include "backends/faulty/faults_common.h"
#include "backends/faulty/faulty.h"

/* ---- the clock ---- */

/* The times of two blocks are kept with the sequence. */
typedef struct Times {
  uint64_t before_ns, last_ns;
  int64_t blocks;
} Times;

typedef struct TimeKnobs {
  uint64_t (*told)(const Times *times);
} TimeKnobs;

static uint64_t still(const Times *times) {
  (void)times;
  return 0;
}
static uint64_t half(const Times *times) { return times->last_ns / 2; }
static uint64_t ticks(const Times *times) { return times->last_ns / 10; }
static uint64_t microseconds(const Times *times) { return times->last_ns / 1000; }
static uint64_t submission(const Times *times) { return times->last_ns < 1500 ? times->last_ns : 1500; }
static uint64_t swapped(const Times *times) { return 0 - times->last_ns; }
static uint64_t earlier(const Times *times) { return times->before_ns; }
static uint64_t wrapped(const Times *times) {
  return times->blocks % 8 == 0 ? times->last_ns + (UINT64_C(1) << 32) : times->last_ns;
}

static DflashStatus block_timed(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const DflashStatus status = fault_block(sequence, call, error);
  if (sequence->fault_data == NULL) sequence->fault_data = calloc(1, sizeof(Times));
  Times *times = sequence->fault_data;
  if (times == NULL) return DFLASH_OUT_OF_MEMORY;
  times->before_ns = times->last_ns;
  times->last_ns = sequence->block_ns;
  times->blocks++;
  return status;
}

static DflashStatus time_told(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  const DflashStatus status = fault_block_time(sequence, time, error);
  const TimeKnobs *knobs = sequence->model->fault->knobs;
  const Times *times = sequence->fault_data;
  if (status == DFLASH_OK && times != NULL) time->device_ns = knobs->told(times);
  return status;
}

static DflashStatus time_without_resolution(DflashSequence *sequence, DflashBlockTime *time, DflashError *error) {
  const DflashStatus status = fault_block_time(sequence, time, error);
  if (status == DFLASH_OK) time->resolution_ns = 0;
  return status;
}

/* ---- spans ---- */

typedef struct SpanKnobs {
  void (*change)(DflashSpan *spans, uint32_t *count);
} SpanKnobs;

static DflashStatus spans_changed(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                  DflashError *error) {
  const DflashStatus status = fault_block_spans(sequence, spans, capacity, count, error);
  const SpanKnobs *knobs = sequence->model->fault->knobs;
  if (status == DFLASH_OK && capacity >= *count && *count > 1) knobs->change(spans, count);
  return status;
}

static void end_first(DflashSpan *spans, uint32_t *count) {
  DflashSpan *span = &spans[*count / 2];
  const uint64_t begin = span->begin_ns;
  span->begin_ns = span->end_ns + 1;
  span->end_ns = begin;
}

static void no_stage(DflashSpan *spans, uint32_t *count) { spans[*count - 1].stage = DFLASH_STAGE_COUNT; }

static void unordered(DflashSpan *spans, uint32_t *count) {
  const DflashSpan first = spans[0];
  spans[0] = spans[*count - 1];
  spans[*count - 1] = first;
}

static void twice(DflashSpan *spans, uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++) spans[i].end_ns += spans[i].end_ns - spans[i].begin_ns;
}

static void shifted(DflashSpan *spans, uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++) {
    spans[i].begin_ns += 1000000000U;
    spans[i].end_ns += 1000000000U;
  }
}

static void without_head(DflashSpan *spans, uint32_t *count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < *count; i++)
    if (spans[i].stage != DFLASH_STAGE_HEAD_LOGITS) spans[kept++] = spans[i];
  *count = kept;
}

static DflashStatus spans_fewer(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                DflashError *error) {
  const DflashStatus status = fault_block_spans(sequence, spans, capacity, count, error);
  if (status == DFLASH_OK && *count > 1 && sequence->blocks % 4 == 3) *count -= 1;
  return status;
}

/* ---- blocks ---- */

static DflashStatus wrong_when_stamped(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const DflashStatus status = fault_block(sequence, call, error);
  if (status == DFLASH_OK && call->flags & DFLASH_BLOCK_STAMP) call->tokens->chosen[0] ^= 1;
  return status;
}

static DflashStatus wrong_later(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const DflashStatus status = fault_block(sequence, call, error);
  if (status == DFLASH_OK && sequence->blocks > 12) call->tokens->plain[0] ^= 1;
  return status;
}

#define TIME(id_, stage_, origin_, about_, exposed_by_) \
  .defect = {FAULT_DEFECT(id_, "time", stage_, "block-16/main", origin_, about_, exposed_by_), .timing = 1}
#define CLOCK(id_, origin_, about_, told_, exposed_by_)                                              \
  {                                                                                                  \
    TIME(id_, "clock", origin_, about_, exposed_by_), .block = block_timed, .block_time = time_told, \
                                                      .knobs = &(const TimeKnobs) {                  \
      told_                                                                                          \
    }                                                                                                \
  }
#define SPANS(id_, origin_, about_, change_, exposed_by_)                                                         \
  {                                                                                                               \
    TIME(id_, "spans", origin_, about_, exposed_by_), .block_spans = spans_changed, .knobs = &(const SpanKnobs) { \
      change_                                                                                                     \
    }                                                                                                             \
  }

const Fault faults_time[] = {
    CLOCK("clock-still", "generic", "the backend's clock stands still", still, "a time of zero"),
    CLOCK("clock-half", "generic", "the backend's clock runs at half the rate", half,
          "the host's clock beside the backend's"),
    CLOCK("clock-ticks", "generic", "ticks of 10 ns are taken for nanoseconds", ticks,
          "the host's clock beside the backend's"),
    CLOCK("clock-microseconds", "generic", "microseconds are told as nanoseconds", microseconds,
          "the host's clock beside the backend's"),
    CLOCK("clock-submission", "generic", "only the submission is timed, not the work", submission,
          "the host's clock beside the backend's"),
    CLOCK("clock-swapped", "D148 ggml-org/llama.cpp#17582", "begin less end: a negative time, told without a sign",
          swapped, "the wall time of the call"),
    CLOCK("clock-wraps", "D148 ggml-org/llama.cpp#17582", "a counter of 32 bits wraps in one block of eight", wrapped,
          "every sample is looked at"),
    CLOCK("clock-earlier", "D094 charlie12345/ROCmFPX#90", "the time told is that of the block before", earlier,
          "the first block of a sequence"),
    {TIME("clock-resolution", "clock", "generic", "a resolution of 0 is told", "a step is at least 1 ns"),
     .block_time = time_without_resolution},
    SPANS("spans-backwards", "D148 ggml-org/llama.cpp#17582", "a span ends before it begins", end_first,
          "begin and end of each span"),
    SPANS("spans-no-stage", "generic", "a span names a stage that does not exist", no_stage, "the stage of each span"),
    {TIME("spans-fewer", "spans", "generic", "one stamped block of two lacks its last span", "several stamped blocks"),
     .block_spans = spans_fewer},
    SPANS("spans-unordered", "generic", "the first span and the last change places", unordered,
          "spans in order of begin"),
    SPANS("spans-twice", "generic", "every span is told twice as long as it was", twice,
          "the sum of all spans beside the block"),
    SPANS("spans-shifted", "generic", "spans count from another moment than the block's start", shifted,
          "the last span's end beside the block's time"),
    SPANS("spans-without-head", "generic", "the head's work is in no span", without_head,
          "the sum of all spans beside the block"),
    {TIME("stamped-block", "timed block", "D142 infosave2007/cmf@b0966a5f97", "a block with stamps gives another token",
          "tokens of stamped blocks are judged"),
     .block = wrong_when_stamped},
    {TIME("later-block", "timed block", "D059 gittensor-ai-lab/sparkinfer#714",
          "from the thirteenth block on a plain token is another", "tokens of every timed block are compared"),
     .block = wrong_later},
    {.defect = {.id = NULL}}};
