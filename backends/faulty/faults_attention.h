/* What the list of attention's faults is made of: knobs of the kernel, and hooks. */
#ifndef DFLASH_FAULTS_ATTENTION_H
#define DFLASH_FAULTS_ATTENTION_H

#include "backends/faulty/kernels.h"

/* attn.mix by the kernel; Fault.knobs is a FaultAttention. */
DflashStatus fault_attention_mix(FaultCall *call);

/* faults_attention_keys.c: which keys a row sees */
extern const FaultAttention fault_window_more, fault_window_less, fault_window_missing, fault_window_first_row,
    fault_window_last_row, fault_window_on_block, fault_window_on_full, fault_window_of_layer_0, fault_window_by_rows,
    fault_window_half, fault_window_from_zero, fault_past_anchor, fault_anchor_included, fault_block_number,
    fault_first_left_out, fault_last_left_out, fault_causal, fault_causal_windowed, fault_no_block_keys,
    fault_no_own_key, fault_no_anchor_key, fault_draft_keys, fault_eight_block_keys, fault_row_0_erased,
    fault_weak_mask;

/* faults_attention_softmax.c: heads, scale, softmax and its merges */
extern const FaultAttention fault_head_modulo, fault_head_clamped, fault_head_shifted, fault_scale_none,
    fault_scale_hidden, fault_scale_squared, fault_scale_padded, fault_no_max, fault_null_key, fault_plus_one,
    fault_no_division, fault_half_exp, fault_bf16_weights, fault_merge_unscaled, fault_merge_empty, fault_tail_16,
    fault_tail_32, fault_first_twice, fault_stale_slots;

/* faults_attention_rows.c: other rows than those of the layer, the head or the position */
extern const FaultAttention fault_index_8_bits, fault_value_after, fault_row_stride;
DflashStatus fault_wide_heads_skipped(FaultCall *call);
DflashStatus fault_mix_transposed(FaultCall *call);
DflashStatus fault_empty_is_nan(FaultCall *call);
DflashStatus fault_previous_head(FaultCall *call);
DflashStatus fault_v_of_previous_block(FaultCall *call);
DflashStatus fault_block_over_live_rows(FaultCall *call);
DflashStatus fault_see_k_of_layer_0(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                    int64_t *first, int64_t *len, const float **k, const float **v, DflashError *error);
DflashStatus fault_see_v_of_layer_before(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                         int64_t *first, int64_t *len, const float **k, const float **v,
                                         DflashError *error);
DflashStatus fault_see_v_as_k(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                              int64_t *len, const float **k, const float **v, DflashError *error);
DflashStatus fault_see_tile_scale(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer, int64_t *first,
                                  int64_t *len, const float **k, const float **v, DflashError *error);
/* Faults between sequences: the block hook notes which one ran before. */
DflashStatus fault_block_note(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error);
DflashStatus fault_see_first_of_other(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                      int64_t *first, int64_t *len, const float **k, const float **v,
                                      DflashError *error);
DflashStatus fault_see_tiles_of_other(DflashSequence *sequence, const DflashBlockCall *call, int64_t layer,
                                      int64_t *first, int64_t *len, const float **k, const float **v,
                                      DflashError *error);

#endif
