/* What the list of the context's faults is made of. */
#ifndef DFLASH_FAULTS_CONTEXT_H
#define DFLASH_FAULTS_CONTEXT_H

#include "backends/faulty/kernels.h"

/* faults_context_project.c: from taps to rows of K and V */
extern const FaultNorm fault_k_gain_of_q, fault_k_first_position;
DflashStatus fault_k_kernel(FaultCall *call); /* context.k by the kernel; Fault.knobs is a FaultNorm */
DflashStatus fault_taps_swapped(FaultCall *call);
DflashStatus fault_chunk_64(FaultCall *call);
DflashStatus fault_k_chunk_32(FaultCall *call);
DflashStatus fault_k_by_index(FaultCall *call);
DflashStatus fault_k_by_count(FaultCall *call);

/* faults_context_push.c: what a push holds */
#define FAULT_PUSH(name) \
  DflashStatus name(DflashSequence *sequence, int64_t pos, const float *taps, int64_t rows, DflashError *error)
FAULT_PUSH(fault_push_flat);
FAULT_PUSH(fault_push_tail_chunk);
FAULT_PUSH(fault_push_old_taps);
FAULT_PUSH(fault_push_late);
FAULT_PUSH(fault_push_growing_empty);
FAULT_PUSH(fault_push_growing_k_only);
FAULT_PUSH(fault_push_in_bf16);
FAULT_PUSH(fault_push_over_gap);
FAULT_PUSH(fault_push_into_gap);
FAULT_PUSH(fault_push_before_first);
FAULT_PUSH(fault_push_empty_ignored);
FAULT_PUSH(fault_push_keeping_behind);
FAULT_PUSH(fault_push_at_cursor);
FAULT_PUSH(fault_push_past_ring);
DflashStatus fault_block_then_late_row(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_open_without_reserve(DflashSequence *sequence, const DflashSequenceDesc *desc);

/* faults_context_rewind.c: truncate, reset, open, load */
DflashStatus fault_open_with_length(DflashSequence *sequence, const DflashSequenceDesc *desc);
DflashStatus fault_truncate_nothing(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_truncate_one_more(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_truncate_marks_cursor(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_truncate_past_ring(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_truncate_refused(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_truncate_shortens(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_truncate_lengthens(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_truncate_moves_first(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_truncate_ignored(DflashSequence *sequence, int64_t pos, DflashError *error);
DflashStatus fault_reset_nothing(DflashSequence *sequence, DflashError *error);
DflashStatus fault_reset_first_kept(DflashSequence *sequence, DflashError *error);
DflashStatus fault_reset_length_kept(DflashSequence *sequence, DflashError *error);
#define FAULT_LOAD(name)                                                                         \
  DflashStatus name(DflashSequence *sequence, int64_t first, int64_t len, const float *const *k, \
                    const float *const *v, DflashError *error)
FAULT_LOAD(fault_load_from_0);
FAULT_LOAD(fault_load_swapped);
FAULT_LOAD(fault_load_layers_turned);
FAULT_LOAD(fault_load_rows_missing);

#endif
