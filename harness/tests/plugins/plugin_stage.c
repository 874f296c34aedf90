#include "harness/tests/plugins/plugin.h"

static bool damaged(int32_t stage, int64_t layer) { return stage == DFLASH_STAGE_ATTN_MIX && layer == 0; }

static DflashStatus run_stage(DflashSequence *sequence, const DflashStageCall *call, DflashError *error) {
  if (!damaged(call->stage, call->layer)) return reference_stage(sequence, call, error);
  const DflashGeometry *g = &sequence->model->geometry;
  const int64_t count = call->rows * g->heads * g->head_dim;
  const float before = call->output[count - 1];
  const DflashStatus status = reference_stage(sequence, call, error);
  if (status == DFLASH_OK) plugin_damage(call->output, count, before);
  return status;
}

static DflashStatus read_stage(DflashSequence *sequence, int32_t stage, int64_t layer, float *values, uint64_t count,
                               DflashError *error) {
  if (!damaged(stage, layer)) return reference_read_stage(sequence, stage, layer, values, count, error);
  const float before = values[count - 1];
  const DflashStatus status = reference_read_stage(sequence, stage, layer, values, count, error);
  if (status == DFLASH_OK) plugin_damage(values, (int64_t)count, before);
  return status;
}

DflashBackend plugin_stage(const char *name) {
  DflashBackend backend = plugin_reference(name);
  backend.stage = run_stage;
  backend.read_stage = read_stage;
  return backend;
}
