/* The walk: the token before, the selector's term, the choice. */
#include <stdlib.h>

#include "backends/faulty/faults_select.h"
#include "base/error.h"

static int32_t chosen_before(const FaultCall *call, int64_t row, const int32_t *chosen) {
  return row > 0 ? chosen[row - 1] : (int32_t)call->call.anchor_token;
}

int32_t fault_previous_plain(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  const int64_t top = call->model->geometry.selector_top;
  return row > 0 ? candidates[(row - 1) * top] : chosen_before(call, row, chosen);
}

int32_t fault_previous_mask(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  (void)candidates;
  return row > 0 ? chosen[row - 1] : (int32_t)call->model->geometry.mask_token;
}

int32_t fault_previous_mask_always(const FaultCall *call, int64_t row, const int32_t *chosen,
                                   const int32_t *candidates) {
  (void)row, (void)chosen, (void)candidates;
  return (int32_t)call->model->geometry.mask_token;
}

int32_t fault_previous_anchor(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  (void)row, (void)chosen, (void)candidates;
  return (int32_t)call->call.anchor_token;
}

/* The place of the token before among its row's candidates. */
static int64_t slot_before(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  const int64_t top = call->model->geometry.selector_top;
  int64_t slot = 0;
  while (slot + 1 < top && candidates[(row - 1) * top + slot] != chosen[row - 1]) slot++;
  return slot;
}

int32_t fault_previous_slot(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  if (row == 0) return chosen_before(call, row, chosen);
  return (int32_t)slot_before(call, row, chosen, candidates);
}

/* [slot][row] for [row][slot], within the rows that are there. */
int32_t fault_previous_strides(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  if (row == 0) return chosen_before(call, row, chosen);
  const int64_t written = (row + 1) * call->model->geometry.selector_top;
  const int64_t index = slot_before(call, row, chosen, candidates) * call->call.n_draft + row - 1;
  return candidates[index % written];
}

int32_t fault_previous_two_back(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  (void)candidates;
  return chosen_before(call, row > 0 ? row - 1 : 0, chosen);
}

/* The row's own top candidate. */
int32_t fault_previous_own(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  (void)chosen;
  return candidates[row * call->model->geometry.selector_top];
}

/* The first row walks from the last draft of the block before, which the sequence keeps. */
int32_t fault_previous_round(const FaultCall *call, int64_t row, const int32_t *chosen, const int32_t *candidates) {
  const int32_t *last = call->in_block ? call->sequence->fault_data : NULL;
  (void)candidates;
  return row == 0 && last != NULL ? *last : chosen_before(call, row, chosen);
}

DflashStatus fault_walk_on(FaultCall *call) {
  const DflashStatus status = fault_select_stage(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_SELECT || !call->in_block) return status;
  if (call->sequence->fault_data == NULL) call->sequence->fault_data = malloc(sizeof(int32_t));
  int32_t *last = call->sequence->fault_data;
  if (last == NULL) return dflash_error_set(call->error, DFLASH_OUT_OF_MEMORY, "faulty: no memory for a token");
  *last = call->call.tokens->chosen[call->call.n_draft - 1];
  return DFLASH_OK;
}

/* sum((P[p] * gate) * C[c]) by any two codebooks; a gate of NULL is one of ones. */
static float product(FaultCall *call, const DflashTensor *p, int32_t row_p, const DflashTensor *c, int32_t row_c,
                     const float *gate) {
  const int64_t rank = call->model->geometry.selector_rank;
  float *left = fault_scratch(call, 2, rank), *right = fault_scratch(call, 3, rank);
  if (left == NULL || right == NULL) return 0;
  fault_decode_row(p, row_p, left);
  fault_decode_row(c, row_c, right);
  for (int64_t i = 0; gate != NULL && i < rank; i++) left[i] *= gate[i];
  return fault_sum(left, right, rank, FAULT_ORDER_FORWARD, false);
}

static float right_term(FaultCall *call, int32_t previous, int32_t candidate, const float *hidden) {
  const DflashWeights *kept = &call->model->kept;
  return product(call, &kept->predecessor, previous, &kept->successor, candidate, hidden);
}

float fault_term_swapped(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  const DflashWeights *kept = &call->model->kept;
  (void)row;
  return product(call, &kept->successor, previous, &kept->predecessor, candidate, hidden);
}

float fault_term_ungated(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  (void)row, (void)hidden;
  return right_term(call, previous, candidate, NULL);
}

float fault_term_no_previous(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  const int64_t rank = call->model->geometry.selector_rank;
  float *right = fault_scratch(call, 3, rank);
  (void)row, (void)previous;
  if (right == NULL) return 0;
  fault_decode_row(&call->model->kept.successor, candidate, right);
  return fault_sum(hidden, right, rank, FAULT_ORDER_FORWARD, false);
}

float fault_term_none(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  (void)call, (void)row, (void)previous, (void)candidate, (void)hidden;
  return 0;
}

float fault_term_first_row(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  return right_term(call, previous, candidate, hidden - row * call->model->geometry.selector_rank);
}

float fault_term_row_before(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  return right_term(call, previous, candidate, row > 0 ? hidden - call->model->geometry.selector_rank : hidden);
}

float fault_term_modulo(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  const int32_t narrow = (int32_t)((call->model->geometry.vocab + 1) / 2);
  (void)row;
  return right_term(call, previous % narrow, candidate % narrow, hidden);
}

float fault_term_16_bits(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  (void)row;
  return right_term(call, previous & 0xffff, candidate & 0xffff, hidden);
}

float fault_term_f16(FaultCall *call, int64_t row, int32_t previous, int32_t candidate, const float *hidden) {
  (void)row;
  return fault_round_f16(right_term(call, previous, candidate, hidden));
}

/* The first that beats the leader ends the search. */
int64_t fault_best_first_better(const FaultCall *call, int64_t row, const float *scores, int64_t count) {
  (void)call, (void)row;
  for (int64_t c = 1; c < count; c++)
    if (scores[c] > scores[0]) return c;
  return 0;
}

/* 32 lanes, those past the candidates hold 0; the place of one of them is cut to the list. */
int64_t fault_best_padded(const FaultCall *call, int64_t row, const float *scores, int64_t count) {
  int64_t best = 0;
  (void)call, (void)row;
  for (int64_t c = 1; c < count; c++)
    if (scores[c] > scores[best]) best = c;
  return count < 32 && scores[best] < 0 ? count - 1 : best;
}

int64_t fault_best_plain(const FaultCall *call, int64_t row, const float *scores, int64_t count) {
  (void)call, (void)row, (void)scores, (void)count;
  return 0;
}

int64_t fault_best_not_last_row(const FaultCall *call, int64_t row, const float *scores, int64_t count) {
  int64_t best = 0;
  if (row > 0 && row == call->call.n_draft - 1) return 0;
  for (int64_t c = 1; c < count; c++)
    if (scores[c] > scores[best]) best = c;
  return best;
}
