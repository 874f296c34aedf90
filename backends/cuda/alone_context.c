/* Stages of a push alone, in pieces. */
#include "alone.h"
#include "held.h"

static void queue_context_stage(CudaRun *run, const DflashSequence *s, int32_t stage, int64_t layer) {
  const DflashModel *model = run->model;
  const CudaLayer *l = &model->layers[layer];
  const CudaAddress *at = s->piece_values.stages;
  switch (stage) {
  case DFLASH_STAGE_CONTEXT_FC:
    cuda_run_products(run, &(CudaProduct){&model->fc, model->tiled.fc_scales, at[stage]}, 1, s->piece.h);
    break;
  case DFLASH_STAGE_CONTEXT_NORM:
    cuda_run_norm(run, at[DFLASH_STAGE_CONTEXT_FC], model->hidden_norm, at[stage], run->rows);
    break;
  case DFLASH_STAGE_CONTEXT_K_PROJ:
    cuda_run_products(run, &(CudaProduct){&l->k, l->k_scales, at[stage]}, 1, at[DFLASH_STAGE_CONTEXT_NORM]);
    break;
  case DFLASH_STAGE_CONTEXT_V_PROJ:
    cuda_run_products(run, &(CudaProduct){&l->v, l->v_scales, at[stage]}, 1, at[DFLASH_STAGE_CONTEXT_NORM]);
    break;
  default:
    cuda_run_rotation(run, s->piece.inputs, run->rows, s->piece.table);
    cuda_run_heads(run, &(HeadsArgs){.x = at[DFLASH_STAGE_CONTEXT_K_PROJ],
                                     .w = l->k_norm,
                                     .table = s->piece.table,
                                     .y = at[stage],
                                     .rows = run->rows,
                                     .heads = (int32_t)model->geometry.kv_heads,
                                     .rotate = dflash_geometry_rotary(&model->geometry, layer)});
  }
}

static DflashStatus run_context_piece(const CudaAlone *a, int64_t done, int64_t rows) {
  const DflashSequence *s = a->s;
  const DflashStageCall *c = a->call;
  const DflashGeometry *g = &s->model->geometry;
  const int32_t source = cuda_stage_input(c->stage, 0);
  const bool taps = source == DFLASH_STAGE_TAPS;
  const int64_t width = taps ? dflash_geometry_tap_width(g) : cuda_stage_width(g, source);
  const int64_t out = cuda_stage_width(g, c->stage), position = c->position + done;
  CudaRun run = {.model = s->model, .block = &s->piece, .rows = rows, .error = a->error};
  DflashStatus status = cuda_alone_copy(a, s->piece.inputs, &position, sizeof position);
  if (!status)
    status = cuda_alone_copy(a, taps ? s->piece.h : s->piece_values.stages[source], c->inputs[0] + done * width,
                             (uint64_t)(rows * width) * sizeof(float));
  if (status) return status;
  queue_context_stage(&run, s, c->stage, c->layer);
  if (run.status) return run.status;
  return cuda_download(&s->model->device, s->piece_values.stages[c->stage], c->output + done * out,
                       (uint64_t)(rows * out) * sizeof(float), a->error);
}

DflashStatus cuda_alone_context(const CudaAlone *a) {
  DflashStatus status = cuda_settle_open(a->s, a->error);
  for (int64_t done = 0; !status && done < a->call->rows; done += CUDA_SETTLE_ROWS) {
    const int64_t left = a->call->rows - done;
    status = run_context_piece(a, done, left < CUDA_SETTLE_ROWS ? left : CUDA_SETTLE_ROWS);
  }
  return status;
}
