/* Claims that attn.mix is covered by a stage that does not exist. */
#include "harness/tests/plugins/plugin.h"

static DflashStatus stage_info(const DflashModel *model, int32_t stage, int64_t layer, int64_t rows,
                               DflashStageInfo *info, DflashError *error) {
  DflashStatus status = reference_backend.stage_info(model, stage, layer, rows, info, error);
  if (stage == DFLASH_STAGE_ATTN_MIX) {
    info->materialised = 0;
    info->covered_by = 9999;
  }
  return status;
}

const DflashBackend *dflash_backend(void) {
  static DflashBackend backend;
  backend = plugin_reference("false-cover");
  backend.stage_info = stage_info;
  return &backend;
}
