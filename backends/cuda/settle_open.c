/* Memory of what settles rows: the values of context.*, and a piece. */
#include "base/error.h"
#include "base/memory.h"
#include "held.h"

DflashStatus cuda_push_values_open(DflashModel *model, int64_t rows, bool every_layer, CudaPushValues *values,
                                   DflashError *error) {
  const DflashGeometry *g = &model->geometry;
  uint64_t total = 0;
  *values = (CudaPushValues){.rows = rows};
  for (int32_t stage = DFLASH_STAGE_CONTEXT_FC; stage <= DFLASH_STAGE_CONTEXT_K; stage++) {
    const bool all = every_layer || stage == DFLASH_STAGE_CONTEXT_K_PROJ; /* one launch may make those of all layers */
    const int64_t layers = all ? cuda_stage_layers(g, stage) : 1;
    int64_t bytes;
    if (!dflash_mul_i64(rows, cuda_stage_width(g, stage) * (int64_t)sizeof(float), &bytes))
      return dflash_error_set(error, DFLASH_OUT_OF_MEMORY, "cuda: %lld pushed rows are too many", (long long)rows);
    values->stages[stage] = cuda_place(&total, (uint64_t)bytes);
    values->layer_bytes[stage] = layers > 1 ? ((uint64_t)bytes + 255) / 256 * 256 : 0;
    for (int64_t layer = 1; layer < layers; layer++) (void)cuda_place(&total, (uint64_t)bytes);
  }
  DflashStatus status = cuda_buffer_open(&model->device, total, "the values of a push", &values->buffer, error);
  for (int32_t stage = DFLASH_STAGE_CONTEXT_FC; stage <= DFLASH_STAGE_CONTEXT_K; stage++)
    values->stages[stage] += values->buffer.at;
  return status;
}

static int64_t widest(const DflashGeometry *g) {
  const int64_t taps = dflash_geometry_tap_width(g);
  return taps > g->hidden ? taps : g->hidden;
}

/* Parts of a piece of CUDA_SETTLE_ROWS rows; the first ones, up to the taps' end, are the host's too. */
static uint64_t lay_out(const DflashModel *model, CudaBlock *piece, uint64_t *inputs) {
  const DflashGeometry *g = &model->geometry;
  const uint64_t rows = CUDA_SETTLE_ROWS, taps = (uint64_t)dflash_geometry_tap_width(g);
  const bool i8 = model->profile == DFLASH_PROFILE_I8;
  uint64_t total = 0;
  piece->inputs = cuda_place(&total, sizeof(int64_t));
  piece->h = cuda_place(&total, rows * taps * 4);
  *inputs = total;
  piece->table = cuda_place(&total, rows * (uint64_t)g->head_dim * 4);
  piece->words = cuda_place(&total, i8 ? rows * taps : 0);
  piece->steps = cuda_place(&total, i8 ? rows * (taps / CUDA_GROUP + 1) * 4 : 0);
  piece->halves = cuda_place(&total, model->profile == DFLASH_PROFILE_F16 ? rows * taps * 4 : 0);
  piece->exponents = cuda_place(&total, rows * 4);
  piece->tiled_parts = cuda_place(&total, cuda_tiled_part_bytes(model, CUDA_SETTLE_ROWS, widest(g)));
  piece->tiled_exponents = cuda_place(&total, rows * 4);
  piece->tiled_sums = cuda_place(&total, cuda_tiled_sum_bytes(model, CUDA_SETTLE_ROWS));
  return total;
}

DflashStatus cuda_settle_open(DflashSequence *s, DflashError *error) {
  CudaDevice *device = &s->model->device;
  CudaBlock piece = {0};
  uint64_t inputs;
  if (s->piece_memory.at) return DFLASH_OK;
  const uint64_t bytes = lay_out(s->model, &piece, &inputs);
  DflashStatus status = cuda_pinned_open(device, inputs, "the taps of a push", &s->piece_taps, error);
  if (!status) status = cuda_push_values_open(s->model, CUDA_SETTLE_ROWS, false, &s->piece_values, error);
  if (!status) status = cuda_buffer_open(device, bytes, "the projection of a push", &s->piece_memory, error);
  if (status) {
    cuda_buffer_close(device, &s->piece_values.buffer);
    cuda_pinned_close(device, &s->piece_taps);
    return status;
  }
  CudaAddress *const places[] = {&piece.inputs,          &piece.h,         &piece.table,     &piece.words,
                                 &piece.steps,           &piece.halves,    &piece.exponents, &piece.tiled_parts,
                                 &piece.tiled_exponents, &piece.tiled_sums};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) *places[i] += s->piece_memory.at;
  s->piece = piece;
  return DFLASH_OK;
}
