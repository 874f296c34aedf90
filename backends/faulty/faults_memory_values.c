/* Values that go wrong now and then, here and there, or altogether. */
#include <math.h>
#include <string.h>

#include "backends/faulty/faults_memory.h"

/* Drawn by the block's number: the same blocks in every process. */
static bool drawn(const DflashModel *model, int64_t one_in) {
  const uint64_t mixed = (uint64_t)(model->blocks + 2) * UINT64_C(0x9e3779b97f4a7c15);
  return mixed >> 32 < (UINT64_C(1) << 32) / (uint64_t)one_in;
}

DflashStatus fault_at_place(FaultCall *call) {
  const FaultPlace *place = call->model->fault->knobs;
  const bool here = call->call.stage == place->stage && call->call.layer == place->layer;
  const bool now = (call->in_block ? FAULT_WHEN_BLOCK : FAULT_WHEN_ALONE) & place->when;
  if (!here || !now || (call->in_block && call->sequence->blocks < place->from_block)) return fault_base(call);
  if (place->one_in > 0 && !drawn(call->model, place->one_in)) return fault_base(call);
  return place->run(call);
}

DflashStatus fault_in_turn(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  const FaultTurn *turn = sequence->model->fault->knobs;
  const DflashStatus status = fault_block(sequence, call, error);
  if (status != DFLASH_OK || (turn->uncaptured && sequence->capture)) return status;
  if (sequence->blocks < turn->from_block || (turn->without_values && call->logits != NULL)) return status;
  return turn->change(sequence, call, error);
}

static float *row_of(FaultCall *call, int64_t row) { return call->call.output + row * fault_width(call); }

/* Half of a row's partial sums came too late. */
DflashStatus fault_row_unscaled(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  float *row = row_of(call, fault_rows(call) - 1);
  for (int64_t i = 0; status == DFLASH_OK && i < fault_width(call); i++) row[i] *= 1.41421356F;
  return status;
}

DflashStatus fault_scale_of_next(FaultCall *call) {
  enum { GROUP = 16 };
  const DflashStatus status = fault_base(call);
  float *row = row_of(call, 1);
  for (int64_t i = 0; status == DFLASH_OK && i < GROUP && i < fault_width(call); i++) row[i] *= 2;
  return status;
}

DflashStatus fault_head_of_other(FaultCall *call) {
  const int64_t dim = call->model->geometry.head_dim;
  const DflashStatus status = fault_base(call);
  float *row = row_of(call, 1);
  if (status == DFLASH_OK && call->model->geometry.heads > 1) memcpy(row + dim, row, (size_t)dim * sizeof *row);
  return status;
}

DflashStatus fault_added_twice(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  const int64_t at = fault_width(call) / 2;
  float *row = row_of(call, 0);
  for (int64_t i = at; status == DFLASH_OK && i < fault_width(call); i++) row[i] += call->call.inputs[0][i];
  return status;
}

DflashStatus fault_candidate_of_other(FaultCall *call) {
  const int64_t top = call->model->geometry.selector_top;
  const DflashStatus status = fault_base(call);
  int32_t *ids = call->call.tokens->candidates;
  if (status == DFLASH_OK && ids != NULL && top > 1) ids[1] = ids[0];
  return status;
}

DflashStatus fault_last_bits(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  for (int64_t i = 0; status == DFLASH_OK && call->model->blocks % 2 == 0 && i < fault_width(call); i++)
    call->call.output[i] = nextafterf(call->call.output[i], INFINITY);
  return status;
}

DflashStatus fault_row_lost(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK) memset(row_of(call, 0), 0, (size_t)fault_width(call) * sizeof(float));
  return status;
}

DflashStatus fault_thousandth(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  for (int64_t i = 0; status == DFLASH_OK && i < fault_rows(call) * fault_width(call); i++)
    call->call.output[i] *= 1.001F;
  return status;
}

static DflashStatus set_one(FaultCall *call, float value) {
  const DflashStatus status = fault_base(call);
  if (status == DFLASH_OK) row_of(call, 1)[fault_width(call) / 3] = value;
  return status;
}

DflashStatus fault_one_nan(FaultCall *call) { return set_one(call, NAN); }

DflashStatus fault_one_infinity(FaultCall *call) { return set_one(call, INFINITY); }

DflashStatus fault_padding_infinity(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  for (int64_t row = 0; status == DFLASH_OK && row < fault_rows(call); row++)
    row_of(call, row)[fault_width(call) - 1] = -INFINITY;
  return status;
}

/* A maximum that keeps the larger of two loses a NaN: to select it is the smallest. */
DflashStatus fault_nan_unseen(FaultCall *call) {
  DflashStageCall *c = &call->call;
  if (c->stage == DFLASH_STAGE_HEAD_LOGITS) {
    const DflashStatus status = fault_base(call);
    if (status == DFLASH_OK) c->output[c->head_width - 1] = NAN;
    return status;
  }
  if (c->stage != DFLASH_STAGE_SELECT) return fault_base(call);
  const int64_t count = c->n_draft * c->head_width;
  float *logits = fault_scratch(call, 0, count);
  if (logits == NULL) return DFLASH_OUT_OF_MEMORY;
  for (int64_t i = 0; i < count; i++) logits[i] = isnan(c->inputs[0][i]) ? -INFINITY : c->inputs[0][i];
  c->inputs[0] = logits;
  return fault_base(call);
}

/* Elements are counted over the layers. The error is as large as the largest value of its row. */
DflashStatus fault_one_in_3000(FaultCall *call) {
  enum { EVERY = 3000, FIRST = 1000 };
  const int64_t width = fault_width(call), count = fault_rows(call) * width;
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_MLP_GATE) return status;
  for (int64_t i = 0; i < count; i++) {
    if ((call->call.layer * count + i) % EVERY != FIRST) continue;
    float largest = 0;
    for (int64_t c = 0; c < width; c++) largest = fmaxf(largest, fabsf(row_of(call, i / width)[c]));
    call->call.output[i] += largest;
  }
  return status;
}

DflashStatus fault_token_other(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence;
  (void)error;
  call->tokens->chosen[0] ^= 1;
  return DFLASH_OK;
}

DflashStatus fault_logits_other(DflashSequence *sequence, const DflashBlockCall *call, DflashError *error) {
  (void)sequence;
  (void)error;
  if (call->logits != NULL) call->logits[call->head_width / 2] = 0;
  return DFLASH_OK;
}
