/* The kernels of a block, in order. */
#include "sequence.h"

/* No layer reads the rotation before its attn.q; the first span holds it. */
void cuda_run_block(CudaRun *run) {
  const DflashGeometry *g = &run->model->geometry;
  if (cuda_fast_takes(run->model, run->rows)) {
    cuda_fast_run(run);
    return;
  }
  for (int64_t layer = 0; layer < g->layers; layer++)
    for (int32_t stage = DFLASH_STAGE_ATTN_NORM; stage <= DFLASH_STAGE_MLP_OUT; stage++) {
      cuda_run_stage(run, stage, layer);
      if (layer == 0 && stage == DFLASH_STAGE_ATTN_NORM)
        cuda_run_rotation(run, run->block->inputs + offsetof(CudaInputs, position), run->rows, run->block->table);
    }
  for (int32_t stage = DFLASH_STAGE_FINAL_NORM; stage <= DFLASH_STAGE_SELECT; stage++) cuda_run_stage(run, stage, 0);
}
