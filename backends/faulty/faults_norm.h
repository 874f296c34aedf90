/* Hooks of faults in norms and rotation. */
#ifndef DFLASH_FAULTY_FAULTS_NORM_H
#define DFLASH_FAULTY_FAULTS_NORM_H

#include "backends/faulty/faults_common.h"

enum { FAULT_NORM_UNIT = 64 }; /* elements that one pass of a reduction takes */

#define FAULT_ROW_NORMS (FAULT_AT(CONTEXT_NORM) | FAULT_AT(ATTN_NORM) | FAULT_AT(MLP_NORM) | FAULT_AT(FINAL_NORM))
#define FAULT_HEAD_NORMS (FAULT_AT(CONTEXT_K) | FAULT_AT(ATTN_Q) | FAULT_AT(ATTN_K))

/* Stages that fault_kernel_norm computes, with these knobs. */
typedef struct FaultNormAt {
  uint32_t stages;
  FaultNorm norm;
} FaultNormAt;
DflashStatus fault_norm_stage(FaultCall *call); /* knobs: FaultNormAt */

/* faults_norm_hooks.c; without knobs unless said otherwise */
DflashStatus fault_norm_tail_lost(FaultCall *call);
DflashStatus fault_norm_over_rows(FaultCall *call);
DflashStatus fault_hidden_norm_skipped(FaultCall *call);
DflashStatus fault_hidden_norm_per_tap(FaultCall *call);
DflashStatus fault_hidden_norm_again(FaultCall *call);
DflashStatus fault_context_input_norm(FaultCall *call);
float fault_gain_plus_one(const FaultCall *call, const float *gain, int64_t index, int64_t count);
float fault_gain_of_last_layer(const FaultCall *call, const float *gain, int64_t index, int64_t count);
float fault_gain_half(const FaultCall *call, const float *gain, int64_t index, int64_t count);
float fault_gain_bf16(const FaultCall *call, const float *gain, int64_t index, int64_t count);
DflashStatus fault_mask_rows_zero(DflashSequence *sequence, const DflashBlockCall *call,
                                  DflashError *error); /* block */

/* faults_rotate_hooks.c */
void fault_frequency_f32(const Fault *fault, const DflashGeometry *geometry, float *inv_freq);
void fault_frequency_bf16(const Fault *fault, const DflashGeometry *geometry, float *inv_freq);
void fault_frequency_theta_10000(const Fault *fault, const DflashGeometry *geometry, float *inv_freq);
void fault_frequency_of_half(const Fault *fault, const DflashGeometry *geometry, float *inv_freq);
void fault_frequency_shifted(const Fault *fault, const DflashGeometry *geometry, float *inv_freq);
float fault_turn_stepwise(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle);
float fault_turn_reduced_f32(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle);
float fault_turn_u16(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle);
float fault_turn_by_row(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle);
float fault_turn_first_head(const FaultCall *call, int64_t row, int64_t head, int64_t pair, float angle);

#endif
