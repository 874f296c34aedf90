/* Faults of memory, order and life: hooks that several entries share. */
#ifndef DFLASH_FAULTY_FAULTS_MEMORY_H
#define DFLASH_FAULTY_FAULTS_MEMORY_H

#include "backends/faulty/faulty.h"

enum { FAULT_WHEN_ALONE = 1, FAULT_WHEN_BLOCK = 2, FAULT_WHEN_EVER = 3 };

/* A stage that goes wrong. */
typedef struct FaultPlace {
  int32_t stage;
  int64_t layer;
  int when;                             /* FAULT_WHEN_* */
  int64_t from_block;                   /* of a sequence, in blocks: the first is 1 */
  int64_t one_in;                       /* when above 0: one block in so many, drawn by its number */
  DflashStatus (*run)(FaultCall *call); /* in place of the base's stage */
} FaultPlace;

/* Fault.stage for knobs of type FaultPlace. */
DflashStatus fault_at_place(FaultCall *call);

/* A block that goes wrong once it has run. */
typedef struct FaultTurn {
  bool uncaptured;     /* only of a sequence that captures nothing */
  bool without_values; /* only when no logits are asked for */
  int64_t from_block;
  DflashStatus (*change)(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
} FaultTurn;

/* Fault.block for knobs of type FaultTurn. */
DflashStatus fault_in_turn(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);

/* faults_memory_bounds.c: outside of outputs, and outputs that are not written */
DflashStatus fault_write_after(FaultCall *call);
DflashStatus fault_write_before(FaultCall *call);
DflashStatus fault_write_input(FaultCall *call);
DflashStatus fault_skip_last_row(FaultCall *call);    /* of a block that is cut */
DflashStatus fault_skip_row_tail(FaultCall *call);    /* rows past the last whole three */
DflashStatus fault_skip_column_tail(FaultCall *call); /* columns past the last whole 64 */
DflashStatus fault_skip_ids(FaultCall *call);         /* candidates but the first */
DflashStatus fault_skip_all(FaultCall *call);
DflashStatus fault_logits_after(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_tokens_before(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_candidates_after(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_embeddings_scaled(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_push_writes_taps(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                                    DflashError *error);
DflashStatus fault_read_after(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                              DflashError *error);
DflashStatus fault_read_context_after(DflashSequence *sequence, int64_t layer, int64_t pos, int64_t rows, float *k,
                                      float *v, DflashError *error);

/* faults_memory_stale.c: what an earlier call, block or sequence left */
DflashStatus fault_stale_border(FaultCall *call);
DflashStatus fault_stale_parts(FaultCall *call);
DflashStatus fault_stale_sums(FaultCall *call);
DflashStatus fault_late_output(FaultCall *call);
DflashStatus fault_late_input(FaultCall *call);
DflashStatus fault_visible_other(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                                 int64_t *len, const float **k, const float **v, DflashError *error);
DflashStatus fault_visible_spare(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                                 int64_t *len, const float **k, const float **v, DflashError *error);
DflashStatus fault_block_over_other(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_tokens_unfinished(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);

/* faults_memory_values.c: values that go wrong now and then, here and there, or altogether */
DflashStatus fault_row_unscaled(FaultCall *call);
DflashStatus fault_scale_of_next(FaultCall *call);
DflashStatus fault_head_of_other(FaultCall *call);
DflashStatus fault_added_twice(FaultCall *call);
DflashStatus fault_candidate_of_other(FaultCall *call);
DflashStatus fault_last_bits(FaultCall *call); /* every second block */
DflashStatus fault_row_lost(FaultCall *call);
DflashStatus fault_thousandth(FaultCall *call);
DflashStatus fault_one_nan(FaultCall *call);
DflashStatus fault_one_infinity(FaultCall *call);
DflashStatus fault_padding_infinity(FaultCall *call);
DflashStatus fault_nan_unseen(FaultCall *call); /* Fault.stage: in the logits, and select passes over it */
DflashStatus fault_one_in_3000(FaultCall *call);
DflashStatus fault_token_other(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_logits_other(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);

/* faults_memory_end.c: the end of a process or of a call */
DflashStatus fault_crash_stage(FaultCall *call);
DflashStatus fault_hang_stage(FaultCall *call);
DflashStatus fault_error_stage(FaultCall *call);
DflashStatus fault_crash_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_exit_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_hang_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_error_block(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_crash_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                              DflashError *error);
DflashStatus fault_error_push(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows,
                              DflashError *error);

#endif
