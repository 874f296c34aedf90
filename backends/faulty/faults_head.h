/* Hooks of the faults of the head and of the selector's projection. */
#ifndef DFLASH_FAULTY_FAULTS_HEAD_H
#define DFLASH_FAULTY_FAULTS_HEAD_H

#include "backends/faulty/faults_common.h"

typedef struct FaultHead {
  int32_t at;           /* DFLASH_STAGE_* */
  int64_t rows_add;     /* draft row j reads block row j + 1 + rows_add; rows past an end are the one there */
  bool rows_from_end;   /* the last n_draft rows of the block */
  int32_t input;        /* when not 0, a DFLASH_STAGE_* of the last layer, in place of final.norm */
  int64_t half_columns; /* when not 0: only the first of so many parts of the columns */
} FaultHead;
DflashStatus fault_head_rows(FaultCall *call);

/* faults_head_stages.c: head.logits */
DflashStatus fault_head_half(FaultCall *call);           /* the second half of the vocabulary stays zero */
DflashStatus fault_head_tail(FaultCall *call);           /* a last, partial tile of 64 tokens stays zero */
DflashStatus fault_head_pitch(FaultCall *call);          /* rows of the whole vocabulary, read as rows of head_width */
DflashStatus fault_head_ids(FaultCall *call);            /* token id has the logit of id + 1 */
DflashStatus fault_head_last_row(FaultCall *call);       /* the last row is that before */
DflashStatus fault_head_stale_row(FaultCall *call);      /* the last row is not computed: zeros */
DflashStatus fault_selector_part(FaultCall *call);       /* selector.hidden: half of the rank stays zero */
DflashStatus fault_selector_transposed(FaultCall *call); /* selector.hidden: written [rank][row] */

/* Knobs: FaultPrecision. */
typedef struct FaultPrecision {
  int32_t at; /* DFLASH_STAGE_* */
  FaultMatrix matrix;
} FaultPrecision;
DflashStatus fault_head_precision(FaultCall *call);
float fault_sum_f16(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
float fault_sum_bf16(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);

#endif
