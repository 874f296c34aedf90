/* Hooks of the faults of the selection. */
#ifndef DFLASH_FAULTY_FAULTS_SELECT_H
#define DFLASH_FAULTY_FAULTS_SELECT_H

#include "backends/faulty/faults_common.h"

DflashStatus fault_select_stage(FaultCall *call); /* knobs: FaultSelect */

/* faults_select_order.c: which logits stand first, and the list that comes of it */
bool fault_before_higher_id(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b);
bool fault_before_any(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b);
bool fault_before_size(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b);
bool fault_before_bits(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b);
bool fault_before_positive(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b);
bool fault_before_bf16(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b);
bool fault_before_f16(const FaultCall *call, float logit_a, int32_t id_a, float logit_b, int32_t id_b);
float fault_logit_first_half(const FaultCall *call, int64_t row, int32_t id, float logit);
float fault_logit_whole_tiles(const FaultCall *call, int64_t row, int32_t id, float logit);
float fault_logit_bf16(const FaultCall *call, int64_t row, int32_t id, float logit);
void fault_listed_by_id(FaultCall *call, int64_t row, int32_t *candidates);
void fault_listed_distinct(FaultCall *call, int64_t row, int32_t *candidates);
void fault_listed_stash(FaultCall *call, int64_t row, int32_t *candidates);
void fault_listed_kept(FaultCall *call, int64_t row, int32_t *candidates);
void fault_listed_narrow(FaultCall *call, int64_t row, int32_t *candidates);
void fault_listed_f16(FaultCall *call, int64_t row, int32_t *candidates);

/* faults_select_walk.c: the token before, the term, the choice */
int32_t fault_previous_plain(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
int32_t fault_previous_mask(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
int32_t fault_previous_mask_always(const FaultCall *call, int64_t row, const int32_t *chosen,
                                   const int32_t *candidates);
int32_t fault_previous_anchor(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
int32_t fault_previous_slot(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
int32_t fault_previous_strides(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
int32_t fault_previous_two_back(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
int32_t fault_previous_own(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
int32_t fault_previous_round(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates);
DflashStatus fault_walk_on(FaultCall *call); /* fault_select_stage, then keeps what fault_previous_round reads */
float fault_term_swapped(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
float fault_term_ungated(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
float fault_term_no_previous(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
float fault_term_none(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
float fault_term_first_row(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
float fault_term_row_before(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
float fault_term_modulo(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
float fault_term_16_bits(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
float fault_term_f16(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden);
int64_t fault_best_first_better(const FaultCall *call, int64_t row, const float *scores, int64_t count);
int64_t fault_best_padded(const FaultCall *call, int64_t row, const float *scores, int64_t count);
int64_t fault_best_plain(const FaultCall *call, int64_t row, const float *scores, int64_t count);
int64_t fault_best_not_last_row(const FaultCall *call, int64_t row, const float *scores, int64_t count);

/* faults_select_tokens.c: what is handed over */
DflashStatus fault_tokens_plain(FaultCall *call);    /* plain is what was chosen */
DflashStatus fault_tokens_first_id(FaultCall *call); /* only the first candidate of a row is written */
DflashStatus fault_tokens_padding(FaultCall *call);  /* candidates below 0 give way to padding lanes */
DflashStatus fault_tokens_negative(FaultCall *call); /* candidates below 0 give way to id -1 */
DflashStatus fault_tokens_late(FaultCall *call);     /* now and then the chosen tokens are the plain ones */

#endif
