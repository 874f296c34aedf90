/* The golden's values, replaced by those of the reference backend: what a golden is worth that was made with the
 * backend that it is to judge. Error scales stay the oracle's. */
#include <stddef.h>

#include "golden/oracle.h"
#include "run/loader.h"

DflashStatus __real_dflash_oracle_stage(const DflashOracleCall *call, DflashError *error);
DflashStatus __wrap_dflash_oracle_stage(const DflashOracleCall *call, DflashError *error);

static DflashLoaded loaded;

static DflashStatus backend_value(const DflashOracleCall *call, DflashError *error) {
  const DflashModelDesc desc = {.struct_size = sizeof desc, .geometry = call->geometry, .weights = call->weights};
  const DflashSequenceDesc plain = {.struct_size = sizeof plain};
  const DflashBackend *b = loaded.backend;
  bool context = dflash_stage_row(call->stage)->rows == DFLASH_ROWS_CONTEXT;
  DflashModel *model = NULL;
  DflashSequence *sequence = NULL;
  DflashStageCall own = {.struct_size = sizeof own,
                         .stage = call->stage,
                         .layer = call->layer,
                         .rows = context ? call->sizes.push_rows : call->sizes.rows,
                         .position = call->position,
                         .n_draft = call->sizes.n_draft,
                         .head_width = call->sizes.head_width,
                         .context_first = call->context_first,
                         .context_len = call->sizes.context_len,
                         .output = call->value};
  for (int i = 0; i < DFLASH_STAGE_INPUTS; i++) own.inputs[i] = call->inputs[i];
  DflashStatus status = b->model_open(&desc, &model, error);
  if (status == DFLASH_OK) status = b->sequence_open(model, &plain, &sequence, error);
  if (status == DFLASH_OK) status = b->stage(sequence, &own, error);
  b->sequence_close(sequence);
  b->model_close(model);
  return status;
}

DflashStatus __wrap_dflash_oracle_stage(const DflashOracleCall *call, DflashError *error) {
  DflashStatus status = __real_dflash_oracle_stage(call, error);
  if (status != DFLASH_OK || call->value == NULL) return status;
  if (loaded.backend == NULL) status = dflash_backend_load("reference", DFLASH_BACKEND_FOLDER, &loaded, error);
  return status == DFLASH_OK ? backend_value(call, error) : status;
}
