/* One context on a model, with its scratch and the values of its last push and block. */
#ifndef DFLASH_BLAS_SEQUENCE_H
#define DFLASH_BLAS_SEQUENCE_H

#include "run.h"

/* Rows that may wait unprojected; rows of a projected piece. */
enum { WAITING_MAX = 512, SETTLE_ROWS = 256 };

/* Positions stay far from where sums with rows and windows would overflow. */
#define POSITION_MAX (INT64_MAX / 4)

/* What a stage reads, and what follows from its row of the public table. */
typedef struct DflashStageShape {
  int32_t scope, rows, width;
  int32_t inputs[DFLASH_STAGE_INPUTS];
} DflashStageShape;

const DflashStageShape *dflash_stage_shape_of(int32_t stage);
/* Elements of a row; head_width for the logits. */
int64_t dflash_stage_row_width(const DflashGeometry *geometry, int32_t stage, int64_t head_width);

/* Values of a stage: of all layers when capturing, else of the layer at work. */
typedef struct DflashValue {
  float *data;
  int64_t layers, capacity; /* floats of a layer */
} DflashValue;

struct DflashSequence {
  DflashModel *model;
  bool capture;
  /* context: positions first .. first + len, the first `settled` of them projected, the others waiting */
  int64_t first, len, settled;
  DflashStore *stores; /* [layers] */
  float *waiting;      /* [waiting_capacity, tap_width] */
  int64_t waiting_capacity;
  /* scratch */
  DflashWorkspace workspace;
  DflashSelection selection;
  DflashStore own;
  DflashValue values[DFLASH_STAGE_COUNT];
  /* the last push and block, as read_stage gives them; 0 rows: none */
  int64_t push_rows, block_rows, n_draft, head_width;
  DflashSpan *spans;
  uint32_t span_count;
  bool timed;
  uint64_t block_ns, context_ns;
};

DflashStatus dflash_sequence_open(DflashModel *model, const DflashSequenceDesc *desc, DflashSequence **sequence,
                                  DflashError *error);
void dflash_sequence_close(DflashSequence *sequence);
DflashStatus dflash_sequence_poison(DflashSequence *sequence, uint32_t pattern, DflashError *error);

static inline float *dflash_value(const DflashSequence *sequence, int32_t stage, int64_t layer) {
  const DflashValue *value = &sequence->values[stage];
  return value->data + (layer < value->layers ? layer : 0) * value->capacity;
}

/* Room for the values of a push of `rows` rows, or of a piece of one when the sequence does not capture. */
bool dflash_sequence_reserve_push(DflashSequence *sequence, int64_t rows);

DflashStatus dflash_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error);
DflashStatus dflash_truncate(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus dflash_reset(DflashSequence *sequence, DflashError *error);
DflashStatus dflash_load(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k,
                         const float *const *v, DflashError *error);
DflashStatus dflash_span(DflashSequence *sequence, int64_t layer, int64_t *first, int64_t *len, int64_t *kept_from,
                         DflashError *error);
DflashStatus dflash_read_context(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k, float *v,
                                 DflashError *error);
/* Projects all waiting rows. No allocation. */
void dflash_settle(DflashSequence *sequence);

DflashStatus dflash_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus dflash_stage_alone(DflashSequence *sequence, const DflashStageCall *call, DflashError *error);
DflashStatus dflash_read_stage(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                               DflashError *error);
DflashStatus dflash_block_time(DflashSequence *sequence, DflashBlockTime *time, DflashError *error);
DflashStatus dflash_block_spans(DflashSequence *sequence, DflashSpan *spans, uint32_t capacity, uint32_t *count,
                                DflashError *error);

uint64_t dflash_now_ns(void); /* CLOCK_MONOTONIC */

#endif
