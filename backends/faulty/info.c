#include <stdio.h>

#include "backends/faulty/executor.h"

/* Copies of the block's values and of kept weights are small beside the base's; they are not counted. */
DflashStatus fault_model_info(const DflashModel *model, DflashModelInfo *info, DflashError *error) {
  DflashModelInfo base = {.struct_size = sizeof base}, value;
  DflashStatus status = fault_check_pointer("model_info: model", model, error);
  if (status == DFLASH_OK) status = model->base->model_info(model->inner, &base, error);
  if (status != DFLASH_OK) return status;
  value = base;
  snprintf(value.path, sizeof value.path, "%.63s: %.180s", model->path, base.path);
  return fault_answer("model_info: info", info, &value, sizeof value, error);
}

/* The next stage whose value exists. */
static int32_t next_exposed(const DflashModel *model, int32_t stage) {
  while (!fault_exposes(model, stage)) stage++;
  return stage;
}

DflashStatus fault_stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                              DflashStageInfo *info, DflashError *error) {
  DflashStageInfo value = {.struct_size = sizeof value};
  DflashStatus status = fault_check_pointer("stage_info: model", model, error);
  if (status == DFLASH_OK) status = fault_check_stage(model, stage, layer, error);
  if (status == DFLASH_OK) status = model->base->stage_info(model->inner, stage, layer, rows, &value, error);
  if (status != DFLASH_OK) return status;
  if (model->expose_end) {
    value.materialised = value.alone = fault_exposes(model, stage);
    value.covered_by = value.dispatch = next_exposed(model, stage);
  }
  return fault_answer("stage_info: info", info, &value, sizeof value, error);
}
