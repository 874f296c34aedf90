/* Hooks of faults in matrix products and what they read and write. */
#ifndef DFLASH_FAULTY_FAULTS_MATRIX_H
#define DFLASH_FAULTY_FAULTS_MATRIX_H

#include "backends/faulty/faults_common.h"

/* Stages that are computed with these knobs. */
typedef struct FaultMatrixAt {
  uint32_t stages;
  FaultMatrix matrix;
} FaultMatrixAt;
DflashStatus fault_matrix_stage(FaultCall *call); /* knobs: FaultMatrixAt */

#define FAULT_MATRICES                                                                                         \
  (FAULT_AT(CONTEXT_FC) | FAULT_AT(CONTEXT_K_PROJ) | FAULT_AT(CONTEXT_V_PROJ) | FAULT_AT(ATTN_KERNEL) |        \
   FAULT_AT(ATTN_Q_PROJ) | FAULT_AT(ATTN_K_PROJ) | FAULT_AT(ATTN_V_PROJ) | FAULT_AT(ATTN_O_PROJ) |             \
   FAULT_AT(MLP_KERNEL) | FAULT_AT(MLP_GATE) | FAULT_AT(MLP_UP) | FAULT_AT(MLP_DOWN) | FAULT_AT(HEAD_LOGITS) | \
   FAULT_AT(SELECTOR_HIDDEN))

/* Stages whose first input (a copy) or whose output is changed. Either may be NULL. */
typedef struct FaultChangeAt {
  uint32_t stages;
  void (*input)(const FaultCall *call, float *x, int64_t rows, int64_t width);
  void (*output)(const FaultCall *call, float *x, int64_t rows, int64_t width);
} FaultChangeAt;
DflashStatus fault_change_stage(FaultCall *call); /* knobs: FaultChangeAt */

/* faults_matrix_sums.c: FaultMatrix.sum, .weights, .input */
float fault_sum_without_tail_64(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
float fault_sum_without_tail_32(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
float fault_sum_in_f16(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
float fault_sum_in_bf16(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
float fault_sum_towards_zero(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
float fault_sum_last_twice(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
float fault_sum_tf32_thrice(const FaultCall *call, int64_t out, const float *w, const float *x, int64_t count);
void fault_round_row_tf32(const FaultCall *call, int64_t row, float *x, int64_t count);
void fault_round_row_f16(const FaultCall *call, int64_t row, float *x, int64_t count);
void fault_round_row_bf16(const FaultCall *call, int64_t row, float *x, int64_t count);
void fault_split_row_bf16(const FaultCall *call, int64_t row, float *x, int64_t count);
void fault_split_row_f16(const FaultCall *call, int64_t row, float *x, int64_t count);

/* faults_matrix_changes.c: FaultChangeAt.input */
void fault_last_row_only(const FaultCall *call, float *x, int64_t rows, int64_t width);
/* FaultChangeAt.output */
void fault_output_f16(const FaultCall *call, float *x, int64_t rows, int64_t width);
void fault_row_blocks_swapped(const FaultCall *call, float *x, int64_t rows, int64_t width);
void fault_scale_left_over(const FaultCall *call, float *x, int64_t rows, int64_t width);
void fault_lengths_swapped(const FaultCall *call, float *x, int64_t rows, int64_t width);
void fault_last_width_lost(const FaultCall *call, float *x, int64_t rows, int64_t width);
void fault_head_order(const FaultCall *call, float *x, int64_t rows, int64_t width);

/* faults_matrix_hooks.c: stages without knobs */
DflashStatus fault_kv_copied_flat(FaultCall *call);
DflashStatus fault_kv_heads_interleaved(FaultCall *call);
DflashStatus fault_qkv_copied_flat(FaultCall *call);
DflashStatus fault_scale_not_applied(FaultCall *call);

#endif
