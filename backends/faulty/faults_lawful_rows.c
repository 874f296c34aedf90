#include <string.h>

#include "backends/faulty/faults_lawful.h"
#include "backends/faulty/kernels.h"
#include "model/stage_table.h"

/* Rows of these see nothing of other rows. */
static bool rows_are_apart(int32_t stage) {
  const DflashStageRow *row = dflash_stage_row(stage);
  const bool conv = stage == DFLASH_STAGE_ATTN_CONV_IN || stage == DFLASH_STAGE_ATTN_OUT ||
                    stage == DFLASH_STAGE_MLP_CONV_IN || stage == DFLASH_STAGE_MLP_OUT;
  return row->rows != DFLASH_ROWS_DRAFT && stage != DFLASH_STAGE_ATTN_MIX && !conv;
}

/* A base takes two rows or more of a block: each row is computed twice, but the first and the last. */
DflashStatus fault_by_rows(FaultCall *call) {
  enum { PIECE = 2 };
  const DflashStageCall whole = call->call;
  const int64_t rows = fault_rows(call), width = fault_width(call);
  if (!rows_are_apart(whole.stage) || rows <= PIECE) return fault_base(call);
  DflashStatus status = DFLASH_OK;
  for (int64_t row = 0; status == DFLASH_OK && row + PIECE <= rows; row++) {
    call->call = whole;
    for (int i = 0; i < DFLASH_STAGE_INPUTS && whole.inputs[i] != NULL; i++)
      call->call.inputs[i] = whole.inputs[i] + row * fault_input_width(call, i);
    call->call.rows = PIECE;
    call->call.position = whole.position + row;
    call->call.output = whole.output + row * width;
    status = fault_base(call);
  }
  return status;
}

/* Sums whose order depends on the moment. Where a sum is exact, no order shows. */
DflashStatus fault_last_bits_unpromised(FaultCall *call) {
  const FaultMatrix knobs = {.order = call->model->blocks % 2 == 0 ? FAULT_ORDER_FORWARD : FAULT_ORDER_BACKWARD};
  if (!call->in_block || !dflash_stage_is_matrix(call->call.stage)) return fault_base(call);
  return fault_kernel_matrix(call, &knobs);
}

DflashStatus fault_unrepeatable(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  const DflashStatus status = fault_model_info(model, info, error);
  if (status == DFLASH_OK) info->repeatable = 0;
  return status;
}
