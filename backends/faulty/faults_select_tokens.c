/* What is handed over. */
#include <string.h>

#include "backends/faulty/faults_select.h"

DflashStatus fault_select_stage(FaultCall *call) {
  if (call->call.stage != DFLASH_STAGE_SELECT) return fault_base(call);
  return fault_kernel_select(call, call->model->fault->knobs);
}

DflashStatus fault_tokens_plain(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_SELECT) return status;
  memcpy(call->call.tokens->plain, call->call.tokens->chosen, (size_t)call->call.n_draft * sizeof(int32_t));
  return DFLASH_OK;
}

/* The right list goes to the scratch. */
DflashStatus fault_tokens_first_id(FaultCall *call) {
  const int64_t top = call->model->geometry.selector_top;
  if (call->call.stage != DFLASH_STAGE_SELECT || call->call.tokens->candidates == NULL) return fault_base(call);
  DflashTokens tokens = *call->call.tokens;
  FaultCall aside = *call;
  aside.call.tokens = &tokens;
  tokens.candidates = (int32_t *)fault_scratch(call, 2, call->call.n_draft * top);
  if (tokens.candidates == NULL) return DFLASH_OUT_OF_MEMORY;
  const DflashStatus status = fault_base(&aside);
  for (int64_t row = 0; status == DFLASH_OK && row < call->call.n_draft; row++)
    call->call.tokens->candidates[row * top] = tokens.candidates[row * top];
  return status;
}

/* Lanes past the row hold logit 0, and are taken before candidates below it; lane i has `id` + i * step. */
static DflashStatus pad(FaultCall *call, int32_t id, int32_t step) {
  const int64_t top = call->model->geometry.selector_top;
  const DflashStatus status = fault_base(call);
  const DflashTokens *tokens = call->call.tokens;
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_SELECT || tokens->candidates == NULL) return status;
  for (int64_t row = 0; row < call->call.n_draft; row++) {
    int32_t lane = id;
    for (int64_t c = 0; c < top; c++) {
      int32_t *candidate = tokens->candidates + row * top + c;
      if (call->call.inputs[0][row * call->call.head_width + *candidate] >= 0) continue;
      if (tokens->chosen[row] == *candidate) tokens->chosen[row] = lane;
      if (c == 0) tokens->plain[row] = lane;
      *candidate = lane;
      lane += step;
    }
  }
  return DFLASH_OK;
}

DflashStatus fault_tokens_padding(FaultCall *call) {
  if (call->call.head_width % 64 == 0) return fault_base(call);
  return pad(call, (int32_t)call->call.head_width, 1);
}

DflashStatus fault_tokens_negative(FaultCall *call) { return pad(call, -1, 0); }

DflashStatus fault_tokens_late(FaultCall *call) {
  const DflashStatus status = fault_base(call);
  if (status != DFLASH_OK || call->call.stage != DFLASH_STAGE_SELECT || !fault_now_and_then(call)) return status;
  memcpy(call->call.tokens->chosen, call->call.tokens->plain, (size_t)call->call.n_draft * sizeof(int32_t));
  return DFLASH_OK;
}
