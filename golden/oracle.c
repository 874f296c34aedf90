#include "oracle.h"

#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "oracle_half.h"
#include "oracle_internal.h"
#include "oracle_scale.h"

void dflash_oracle_put(const DflashOracleCall *call, int64_t at, double value, double own, double inherited,
                       bool exact) {
  double apart = exact ? 0 : own;
  if (call->value) call->value[at] = (float)value;
  if (call->alone) call->alone[at] = dflash_sigma(apart);
  if (call->chain) call->chain[at] = dflash_sigma((inherited != 0 ? own : apart) + inherited);
}

static DflashStatus refuse(const DflashOracleCall *call, DflashError *error, const char *what) {
  char label[64];
  return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "oracle: %s: %s",
                          dflash_stage_label(call->stage, call->layer, label), what);
}

static DflashStatus check_sizes(const DflashOracleCall *call, DflashError *error) {
  const DflashRunSizes *sizes = &call->sizes;
  const DflashGeometry *g = call->geometry;
  bool context = dflash_stage_row(call->stage)->rows == DFLASH_ROWS_CONTEXT;
  int64_t rows = context ? sizes->push_rows : sizes->rows;
  if (rows < 1 && !context) return refuse(call, error, "rows must be at least 1");
  if (rows < 0 || sizes->context_len < 0) return refuse(call, error, "negative rows");
  if (sizes->n_draft > sizes->rows - 1 && call->stage == DFLASH_STAGE_HEAD_LOGITS)
    return refuse(call, error, "n_draft must be below rows");
  if (sizes->head_width > g->vocab) return refuse(call, error, "head_width is above vocab");
  if (call->position < 0 || call->position > INT64_MAX - rows) return refuse(call, error, "position out of range");
  if (call->context_first < 0 || call->context_first > INT64_MAX - sizes->context_len)
    return refuse(call, error, "context_first out of range");
  return DFLASH_OK;
}

static DflashStatus check(const DflashOracleCall *call, DflashError *error) {
  const DflashStageRow *row = dflash_stage_row(call->stage);
  if (call->profile < 0 || call->profile >= DFLASH_PROFILE_COUNT)
    return dflash_error_set(error, DFLASH_UNSUPPORTED, "oracle: there is no profile %" PRId32, call->profile);
  if (!row || call->stage == DFLASH_STAGE_SELECT)
    return dflash_error_set(error, DFLASH_INVALID_ARGUMENT, "oracle: %" PRId32 " is no stage that it computes",
                            call->stage);
  if (call->layer < 0 || call->layer >= dflash_stage_layers(call->geometry, call->stage))
    return refuse(call, error, "no such layer");
  DflashStatus status = check_sizes(call, error);
  for (int i = 0; status == DFLASH_OK && i < DFLASH_STAGE_INPUTS && row->inputs[i] != DFLASH_STAGE_NONE; i++)
    if (!call->inputs[i] && dflash_stage_rows(call->geometry, &call->sizes, row->inputs[i]) > 0)
      status = refuse(call, error, "an input is missing");
  return status;
}

/* Profile i8 rounds activations where they meet a q4tp matrix, and nowhere else. */
static bool rounds_to_i8(const DflashOracleCall *call) {
  const DflashTensor *weight = dflash_stage_weight(call->weights, call->stage, call->layer);
  return call->profile == DFLASH_PROFILE_I8 && weight && weight->data && weight->storage == DFLASH_STORAGE_Q4TP;
}

static DflashStatus compute(const DflashOracleCall *call, DflashError *error) {
  switch (call->stage) {
  case DFLASH_STAGE_CONTEXT_NORM:
  case DFLASH_STAGE_ATTN_NORM:
  case DFLASH_STAGE_MLP_NORM:
  case DFLASH_STAGE_FINAL_NORM:
    return dflash_oracle_norm(call, error);
  case DFLASH_STAGE_CONTEXT_K:
  case DFLASH_STAGE_ATTN_Q:
  case DFLASH_STAGE_ATTN_K:
    return dflash_oracle_head_norm(call, error);
  case DFLASH_STAGE_ATTN_CONV_IN:
  case DFLASH_STAGE_ATTN_OUT:
  case DFLASH_STAGE_MLP_CONV_IN:
  case DFLASH_STAGE_MLP_OUT:
    return dflash_oracle_conv(call, error);
  case DFLASH_STAGE_ATTN_MIX:
    return dflash_oracle_attention(call, error);
  case DFLASH_STAGE_MLP_ACT:
    return dflash_oracle_act(call, error);
  default:
    return rounds_to_i8(call) ? dflash_oracle_matrix_i8(call, error) : dflash_oracle_matrix(call, error);
  }
}

DflashStatus dflash_oracle_stage(const DflashOracleCall *call, DflashError *error) {
  DflashStatus status = check(call, error);
  if (status != DFLASH_OK || dflash_stage_rows(call->geometry, &call->sizes, call->stage) < 1) return status;
  return dflash_half_profile(call->profile) ? dflash_oracle_half(call, compute, error) : compute(call, error);
}
